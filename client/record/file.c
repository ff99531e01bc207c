#include "client/record/file.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client/record/segments.h"
#include "protos/fields.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define PACKET_TAG 0x0a /* Trace.packet, length-delimited */
#define HEADER_MAX 11   /* tag and the longest varint */

/* Writes to a pipe in one turn of the loop, of PIPE_BUF bytes each. */
#define PIPE_WRITES_A_TURN 64

enum kind {
	KIND_REGULAR, /* can be cut, read and synced */
	KIND_DIRECT,  /* written blocking: /dev/null, a terminal */
	KIND_PIPE,    /* may be full: pipe, FIFO */
	KIND_SOCKET,  /* may be full */
	KIND_SEGMENTS, /* segments take packets and write them */
};

struct record_file {
	int fd;
	enum kind kind;
	char *path; /* owned; NULL: standard output, or a folder */
	struct record_segments *segments; /* owned; KIND_SEGMENTS */
	bool created;
	bool used;      /* record_file_packet() was called */
	uint64_t kept, kept_bytes; /* whole packets written */
	uint64_t base;  /* offset behind the last whole packet written */
	struct pb_writer batch; /* whole packets; [written, len) is unwritten */
	size_t written;         /* pipes: bytes of the batch that are written */
	struct event *writable; /* owned; NULL but for pipes and sockets */
	record_file_fn drained;
	void *arg;
	char error[512];
};

/* Keeps the first sentence.  Returns -1. */
static int PRINTF_LIKE(2, 3)
fail(struct record_file *f, const char *fmt, ...)
{
	va_list ap;

	if (f->error[0] != '\0')
		return -1;
	va_start(ap, fmt);
	vsnprintf(f->error, sizeof(f->error), fmt, ap);
	va_end(ap);
	return -1;
}

static enum kind
kind_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return KIND_DIRECT;
	if (S_ISREG(st.st_mode))
		return KIND_REGULAR;
	if (S_ISFIFO(st.st_mode))
		return KIND_PIPE;
	return S_ISSOCK(st.st_mode) ? KIND_SOCKET : KIND_DIRECT;
}

/* -1 with errno; *created: the file did not exist. */
static int
open_path(const char *path, bool no_clobber, bool *created)
{
	int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY;
	struct stat st;
	int fd;

	*created = true;
	if ((fd = open(path, flags | O_EXCL, 0600)) >= 0 || errno != EEXIST ||
	    no_clobber)
		return fd;
	*created = false;
	/* A FIFO opened O_RDWR would never tell that its reader is gone. */
	if (stat(path, &st) == 0 && S_ISFIFO(st.st_mode))
		flags = O_WRONLY | O_CLOEXEC;
	return open(path, flags, 0600);
}

struct record_file *
record_file_open(const char *path, bool no_clobber, char *err, size_t err_size)
{
	struct record_file *f;

	if ((f = calloc(1, sizeof(*f))) == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	f->fd = -1;
	pb_writer_init(&f->batch);
	if (strcmp(path, "-") == 0) {
		f->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	} else if ((f->path = strdup(path)) != NULL) {
		f->fd = open_path(path, no_clobber, &f->created);
	}
	if (f->fd < 0) {
		if (errno == EEXIST)
			snprintf(err, err_size, "%s exists, and --no-clobber "
			    "says to leave it alone", record_file_name(f));
		else
			snprintf(err, err_size, "cannot write to %s: %s",
			    record_file_name(f), strerror(errno));
		record_file_free(f);
		return NULL;
	}
	f->kind = kind_of(f->fd);
	return f;
}

struct record_file *
record_file_of_segments(struct record_segments *segments)
{
	struct record_file *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->fd = -1;
	f->kind = KIND_SEGMENTS;
	f->segments = segments;
	pb_writer_init(&f->batch);
	return f;
}

struct record_segments *
record_file_segments(const struct record_file *f)
{
	return f->segments;
}

void
record_file_free(struct record_file *f)
{
	if (f == NULL)
		return;
	record_segments_free(f->segments);
	if (f->writable != NULL)
		event_free(f->writable);
	if (f->fd >= 0)
		close(f->fd);
	pb_writer_done(&f->batch);
	free(f->path);
	free(f);
}

int
record_file_fd(const struct record_file *f)
{
	return f->fd;
}

const char *
record_file_name(const struct record_file *f)
{
	if (f->segments != NULL)
		return record_segments_folder(f->segments);
	return f->path == NULL ? "standard output" : f->path;
}

bool
record_file_can_be_shared(const struct record_file *f)
{
	return f->kind == KIND_REGULAR && f->path != NULL;
}

const char *
record_file_error(const struct record_file *f)
{
	return f->error;
}

static void
write_failed(struct record_file *f)
{
	if (errno == EPIPE)
		fail(f, "the reader of %s went away before the trace was "
		    "complete", record_file_name(f));
	else
		fail(f, "writing to %s failed: %s", record_file_name(f),
		    strerror(errno));
}

/* Counts the whole packets in len written bytes; returns their bytes. */
static size_t
keep_whole(struct record_file *f, const uint8_t *data, size_t len)
{
	const uint8_t *p = data, *end = data + len, *body;
	uint64_t size;

	while (p < end) {
		if ((body = pb_varint(p + 1, end, &size)) == NULL ||
		    size > (uint64_t)(end - body))
			break;
		p = body + size;
		f->kept++;
	}
	f->kept_bytes += (uint64_t)(p - data);
	return (size_t)(p - data);
}

/*
 * Writes all of iov, which begins on a packet, to a file that takes it at
 * once.  Returns the bytes written, less than total only after a failure.
 */
static size_t
write_all(struct record_file *f, struct iovec *iov, int n, size_t total)
{
	size_t done = 0;
	ssize_t w;

	while (done < total) {
		if ((w = writev(f->fd, iov, n)) < 0) {
			if (errno == EINTR)
				continue;
			write_failed(f);
			return done;
		}
		done += (size_t)w;
		for (; n > 0 && (size_t)w >= iov->iov_len; n--, iov++)
			w -= (ssize_t)iov->iov_len;
		if (n > 0) {
			iov->iov_base = (char *)iov->iov_base + w;
			iov->iov_len -= (size_t)w;
		}
	}
	return done;
}

/* Cuts a file at base + keep, after a write that failed behind it. */
static void
cut(struct record_file *f, size_t keep)
{
	f->base += keep;
	if (f->kind == KIND_REGULAR && ftruncate(f->fd, (off_t)f->base) < 0)
		fail(f, "cutting %s failed: %s", record_file_name(f),
		    strerror(errno));
}

/* Segments count what they take: after an error the folder has less. */
static int
put_batch(struct record_file *f)
{
	int rc = record_segments_put(f->segments, f->batch.data, f->batch.len);

	if (rc == 0)
		f->base += keep_whole(f, f->batch.data, f->batch.len);
	else
		fail(f, "%s", record_segments_error(f->segments));
	pb_writer_reset(&f->batch);
	return rc;
}

static int
write_batch(struct record_file *f)
{
	struct iovec iov = { f->batch.data, f->batch.len };
	size_t done;

	if (f->batch.len == 0)
		return 0;
	if (f->kind == KIND_SEGMENTS)
		return put_batch(f);
	done = write_all(f, &iov, 1, f->batch.len);
	if (done < f->batch.len) {
		cut(f, keep_whole(f, f->batch.data, done));
		pb_writer_reset(&f->batch);
		return -1;
	}
	f->base += keep_whole(f, f->batch.data, done);
	pb_writer_reset(&f->batch);
	return 0;
}

/* Writes a packet that is too large to be worth copying into the batch. */
static int
write_large(struct record_file *f, const uint8_t *data, size_t len)
{
	uint8_t header[HEADER_MAX] = { PACKET_TAG };
	size_t total, header_len = 1 + pb_encode_varint(header + 1, len);
	struct iovec iov[2] = {
		{ header, header_len },
		{ (void *)(uintptr_t)data, len },
	};

	if (write_batch(f) < 0)
		return -1;
	total = header_len + len;
	if (write_all(f, iov, 2, total) < total) {
		cut(f, 0);
		return -1;
	}
	f->base += total;
	f->kept++;
	f->kept_bytes += total;
	return 0;
}

static bool
waits(const struct record_file *f)
{
	return f->kind == KIND_PIPE || f->kind == KIND_SOCKET;
}

/*
 * Writes at most PIPE_BUF bytes to a pipe or socket that poll() calls writable:
 * so many never block, even in blocking mode.  O_NONBLOCK is not set, as other
 * processes share the open file description.  0: not now; -1: failed.
 */
static ssize_t
write_piece(struct record_file *f, const uint8_t *data, size_t len)
{
	struct pollfd p = { .fd = f->fd, .events = POLLOUT };
	ssize_t w;

	if (len > PIPE_BUF)
		len = PIPE_BUF;
	if (poll(&p, 1, 0) <= 0)
		return 0;
	if (f->kind == KIND_SOCKET)
		w = send(f->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		w = write(f->fd, data, len);
	if (w >= 0)
		return w;
	if (errno == EINTR || errno == EAGAIN)
		return 0;
	write_failed(f);
	return -1;
}

static void
writable_cb(evutil_socket_t fd, short what, void *arg)
{
	struct record_file *f = arg;
	ssize_t w = 1;
	int i;

	for (i = 0; i < PIPE_WRITES_A_TURN && w > 0 &&
	    f->written < f->batch.len; i++) {
		w = write_piece(f, f->batch.data + f->written,
		    f->batch.len - f->written);
		if (w > 0)
			f->written += (size_t)w;
	}
	if (w >= 0 && f->written < f->batch.len)
		return;
	(void)keep_whole(f, f->batch.data, f->written);
	pb_writer_reset(&f->batch);
	f->written = 0;
	event_del(f->writable);
	f->drained(f->arg);
}

int
record_file_begin(struct record_file *f, struct loop *l,
    record_file_fn drained, void *arg)
{
	off_t at;

	f->drained = drained;
	f->arg = arg;
	if (f->kind == KIND_REGULAR && f->path != NULL) {
		if (ftruncate(f->fd, 0) < 0)
			return fail(f, "emptying %s failed: %s", f->path,
			    strerror(errno));
	} else if (f->kind == KIND_REGULAR) {
		at = lseek(f->fd, 0, (fcntl(f->fd, F_GETFL) & O_APPEND) != 0 ?
		    SEEK_END : SEEK_CUR);
		f->base = at < 0 ? 0 : (uint64_t)at; /* `>> file` */
	}
	if (!waits(f))
		return 0;
	f->writable = event_new(loop_base(l), f->fd, EV_WRITE | EV_PERSIST,
	    writable_cb, f);
	if (f->writable == NULL)
		return fail(f, "out of memory");
	return 0;
}

int
record_file_begin_segments(struct record_file *f, struct loop *l,
    struct record_live *live, const struct record_segments_ops *ops, void *arg)
{
	if (record_segments_begin(f->segments, l, live, ops, arg) == 0)
		return 0;
	return fail(f, "%s", record_segments_error(f->segments));
}

/*
 * Drops written packets from the front of the batch, once they are worth the
 * move; the rest begins with a whole packet, as keep_whole() needs.
 */
static void
compact(struct record_file *f)
{
	size_t n;

	if (f->written < RECORD_FILE_BATCH)
		return;
	n = keep_whole(f, f->batch.data, f->written);
	f->batch.len -= n;
	f->written -= n;
	memmove(f->batch.data, f->batch.data + n, f->batch.len);
}

int
record_file_packet(struct record_file *f, const uint8_t *data, size_t len)
{
	f->used = true;
	if (f->error[0] != '\0')
		return -1;
	if (!waits(f) && len >= RECORD_FILE_BATCH && f->kind != KIND_SEGMENTS)
		return write_large(f, data, len);
	compact(f);
	pb_put_bytes(&f->batch, Trace_packet, data, len);
	if (f->batch.failed)
		return fail(f, "out of memory for a packet of %zu bytes", len);
	if (!waits(f))
		return f->batch.len >= RECORD_FILE_BATCH ? write_batch(f) : 0;
	if (event_add(f->writable, NULL) < 0)
		return fail(f, "cannot wait for %s", record_file_name(f));
	return 0;
}

void
record_file_kept(const struct record_file *f, uint64_t *packets,
    uint64_t *bytes)
{
	if (!f->used)
		return;
	*packets = f->kept;
	*bytes = f->kept_bytes;
}

bool
record_file_full(const struct record_file *f)
{
	return waits(f) && f->batch.len - f->written > RECORD_FILE_FULL;
}

int
record_file_flush(struct record_file *f)
{
	if (f->error[0] != '\0')
		return -1;
	if (waits(f))
		return 0;
	if (write_batch(f) < 0)
		return -1;
	if (f->kind == KIND_SEGMENTS && record_segments_flush(f->segments) < 0)
		return fail(f, "%s", record_segments_error(f->segments));
	return 0;
}

int
record_file_sync(struct record_file *f)
{
	struct stat st;

	if (f->kind != KIND_REGULAR)
		return 0;
	if (f->path != NULL && fstat(f->fd, &st) == 0 && st.st_nlink == 0)
		return fail(f, "the trace is lost: %s was removed while it was "
		    "written", record_file_name(f));
	if (fsync(f->fd) == 0)
		return 0;
	return fail(f, "%s may not be on disk: %s", record_file_name(f),
	    strerror(errno));
}

static int
finish_segments(struct record_file *f)
{
	int rc = record_segments_finish(f->segments);

	return rc >= 0 ? rc : fail(f, "%s", record_segments_error(f->segments));
}

int
record_file_finish(struct record_file *f)
{
	if (f->error[0] != '\0')
		return -1;
	if (waits(f))
		return f->written == f->batch.len ? 1 : 0;
	if (write_batch(f) < 0)
		return -1;
	if (f->kind == KIND_SEGMENTS)
		return finish_segments(f);
	return record_file_sync(f) < 0 ? -1 : 1;
}

bool
record_file_remove_if_empty(struct record_file *f)
{
	struct stat st;

	return f->created && f->path != NULL && fstat(f->fd, &st) == 0 &&
	    S_ISREG(st.st_mode) && st.st_size == 0 && unlink(f->path) == 0;
}
