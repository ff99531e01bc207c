#include "transport/segment/segment_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/base/tailq.h"
#include "transport/segment/segment_folder.h"
#include "transport/sink/packet_boundary.h"
#include "transport/sink/sink_path.h"
#include "transport/sink/sink_writer.h"
#include "transport/wire/pb_writer.h"

/*
 * Bytes of one file after which the kernel is asked to begin writing them, so
 * that the sync at the end finds little to do.
 */
#define WRITEBACK_BYTES (8u << 20)

struct segment_file {
	TAILQ_ENTRY(segment_file) of_files;
	TAILQ_ENTRY(segment_file) of_open; /* while writer.fd is one */
	void *tag;
	char *path;
	struct pb_writer pending; /* whole packets */
	struct sink_writer writer; /* its fd is -1 while the file is closed */
	uint64_t writeback; /* of writer.total, on its way to the disk */
	dev_t dev;          /* of the part, by which it is known again */
	ino_t ino;  /* 0: there is no part, or none any more */
	bool dirty; /* written since the last sync */
};

TAILQ_HEAD(file_list, segment_file);

struct segment_files {
	struct segment_files_options o;
	struct segment_folder *folder;
	struct packet_compressor *compressor; /* NULL: bytes as they are */
	size_t batch;
	struct file_list files; /* that are being written */
	struct file_list ended; /* to be settled */
	struct file_list open;  /* of both; the one used last at the end */
	unsigned n_open, n_ended;
	size_t n_files; /* of both */
	size_t pending;
	uint64_t total;
	char err[SEGMENT_ERR_MAX];
};

struct segment_files *
segment_files_new(struct segment_folder *folder,
    const struct segment_files_options *o)
{
	struct segment_files *f;

	if ((f = calloc(1, sizeof(*f))) == NULL)
		return NULL;
	f->o = *o;
	if (f->o.pending_bytes == 0)
		f->o.pending_bytes = SEGMENT_PENDING_BYTES;
	if (f->o.fds == 0)
		f->o.fds = SEGMENT_FDS;
	TAILQ_INIT(&f->files);
	TAILQ_INIT(&f->ended);
	TAILQ_INIT(&f->open);
	f->batch = SEGMENT_BATCH_BYTES;
	if (o->compression.kind != PACKET_PLAIN) {
		f->batch = PACKET_BATCH_BYTES;
		f->compressor = packet_compressor_new(&o->compression);
		if (f->compressor == NULL) {
			free(f);
			return NULL;
		}
	}
	f->folder = folder;
	return f;
}

static void
fail(struct segment_files *f, const struct segment_file *file, const char *why)
{
	if (f->err[0] == '\0')
		snprintf(f->err, sizeof(f->err), "segment %.90s: %.150s",
		    file->path, why);
}

/* ---- descriptors ---- */

static void
close_file(struct segment_files *f, struct segment_file *file)
{
	char err[SINK_ERR_MAX];

	if (file->writer.fd < 0)
		return;
	TAILQ_REMOVE(&f->open, file, of_open);
	f->n_open--;
	if (sink_writer_close(&file->writer, f->err[0] == '\0', err,
	    sizeof(err)) != 0)
		fail(f, file, err);
}

/*
 * After a call that failed: whether the process has no descriptors left, and it
 * may be tried again, as ours are closed now.
 */
static bool
has_made_room(struct segment_files *f)
{
	if ((errno != EMFILE && errno != ENFILE) || f->n_open == 0)
		return false;
	while (f->n_open > 0)
		close_file(f, TAILQ_FIRST(&f->open));
	return true;
}

/* Takes fd.  The total of the writer goes on. */
static void
have_open(struct segment_files *f, struct segment_file *file, int fd)
{
	uint64_t total = file->writer.total;

	while (f->n_open >= f->o.fds)
		close_file(f, TAILQ_FIRST(&f->open));
	sink_writer_init(&file->writer, fd, true);
	file->writer.total = total;
	file->writer.give_up = f->o.give_up;
	file->writer.give_up_arg = f->o.arg;
	TAILQ_INSERT_TAIL(&f->open, file, of_open);
	f->n_open++;
}

/* Whether fd is the part that was closed, as it was left. */
static bool
is_same(const struct segment_file *file, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == file->dev &&
	    st.st_ino == file->ino &&
	    (uint64_t)st.st_size == file->writer.total;
}

/* False: the error is set. */
static bool
open_again(struct segment_files *f, struct segment_file *file)
{
	int fd;

	if (file->writer.fd >= 0) {
		TAILQ_REMOVE(&f->open, file, of_open);
		TAILQ_INSERT_TAIL(&f->open, file, of_open);
		return true;
	}
	fd = segment_folder_reopen(f->folder, file->path);
	if (fd < 0 && has_made_room(f))
		fd = segment_folder_reopen(f->folder, file->path);
	if (fd < 0) {
		fail(f, file, sink_path_error(errno));
		return false;
	}
	if (!is_same(file, fd)) {
		close(fd);
		fail(f, file, "another program changed or replaced it");
		return false;
	}
	have_open(f, file, fd);
	return true;
}

/* ---- writing ---- */

static void
begin_writeback(struct segment_file *file)
{
	uint64_t from = file->writeback;

	if (file->writer.total - from < WRITEBACK_BYTES)
		return;
	file->writeback = file->writer.total;
	(void)sync_file_range(file->writer.fd, (off_t)from,
	    (off_t)(file->writeback - from), SYNC_FILE_RANGE_WRITE);
}

/*
 * Writes the first len bytes that were collected, which are whole packets.
 * Returns how many of them are in the file.
 */
static size_t
write_piece(struct segment_files *f, struct segment_file *file,
    const uint8_t *data, size_t len)
{
	uint64_t before = file->writer.total;
	char err[SINK_ERR_MAX];
	const uint8_t *out = data;
	size_t n = len, kept = len;

	if (f->compressor != NULL)
		out = packet_compressor_run(f->compressor, data, len, &n);
	file->dirty = true;
	if (sink_writer_write(&file->writer, out, n, err, sizeof(err)) != 0) {
		fail(f, file, err);
		/* A compressed packet that is not whole has nothing in it. */
		kept = out == data ? file->writer.kept : 0;
	}
	f->total += file->writer.total - before;
	begin_writeback(file);
	return kept;
}

/* The next piece to be written: a batch, or the one packet that is larger. */
static size_t
piece_of(const struct segment_files *f, const uint8_t *data, size_t len)
{
	size_t n;
	uint64_t size;
	const uint8_t *body;

	if (len <= f->batch + f->batch / 2)
		return len;
	if ((n = packet_boundary(data, f->batch)) > 0)
		return n;
	body = pb_varint(data + 1, data + len, &size);
	return body != NULL ? (size_t)(body - data) + (size_t)size : len;
}

static void
flush_file(struct segment_files *f, struct segment_file *file)
{
	struct pb_writer *p = &file->pending;
	size_t done = 0, n, kept = 0;

	if (p->len == 0 || f->err[0] != '\0' || !open_again(f, file))
		return;
	while (done < p->len && f->err[0] == '\0') {
		n = piece_of(f, p->data + done, p->len - done);
		kept = write_piece(f, file, p->data + done, n);
		done += kept;
	}
	f->pending -= done;
	p->len -= done;
	memmove(p->data, p->data + done, p->len);
	/* Each segment may keep its share of the memory. */
	if (p->len == 0 && p->cap > f->o.pending_bytes / f->n_files)
		pb_writer_done(p);
}

static void
flush_largest(struct segment_files *f)
{
	struct segment_file *file, *largest = NULL;

	TAILQ_FOREACH(file, &f->files, of_files)
		if (largest == NULL || file->pending.len > largest->pending.len)
			largest = file;
	if (largest == NULL)
		return;
	flush_file(f, largest);
	/* Packets that an error left are told as lost. */
	if (largest->pending.len == 0)
		pb_writer_done(&largest->pending);
}

int
segment_files_put(struct segment_files *f, struct segment_file *file,
    const uint8_t *packets, size_t len)
{
	pb_put_raw(&file->pending, packets, len);
	if (file->pending.failed) {
		file->pending.failed = false;
		return -1;
	}
	f->pending += len;
	if (file->pending.len >= f->batch)
		flush_file(f, file);
	while (f->pending > f->o.pending_bytes && f->err[0] == '\0')
		flush_largest(f);
	return 0;
}

void
segment_files_flush(struct segment_files *f)
{
	struct segment_file *file;

	TAILQ_FOREACH(file, &f->files, of_files)
		flush_file(f, file);
}

static void
sync_file(struct segment_files *f, struct segment_file *file)
{
	char err[SINK_ERR_MAX];

	if (!file->dirty || f->err[0] != '\0' || !open_again(f, file))
		return;
	if (sink_writer_sync(&file->writer, err, sizeof(err)) != 0)
		fail(f, file, err);
	else
		file->dirty = false;
}

void
segment_files_sync(struct segment_files *f)
{
	struct segment_file *file;

	segment_files_flush(f);
	TAILQ_FOREACH(file, &f->files, of_files)
		sync_file(f, file);
}

/* ---- begin and end of a segment ---- */

static void
free_file(struct segment_files *f, struct file_list *of,
    struct segment_file *file)
{
	TAILQ_REMOVE(of, file, of_files);
	f->n_files--;
	close_file(f, file);
	pb_writer_done(&file->pending);
	free(file->path);
	free(file);
}

/* False: errno. */
static bool
create(struct segment_files *f, struct segment_file *file, const char *path)
{
	char wanted[SEGMENT_PATH_MAX];
	struct stat st;
	char *name;
	int fd, e;

	snprintf(wanted, sizeof(wanted), "%s", path);
	fd = segment_folder_create(f->folder, wanted);
	if (fd < 0 && has_made_room(f))
		fd = segment_folder_create(f->folder, wanted);
	if (fd < 0)
		return false;
	if ((name = strdup(wanted)) == NULL || fstat(fd, &st) != 0) {
		e = errno;
		free(name);
		close(fd);
		segment_folder_remove(f->folder, wanted);
		errno = e;
		return false;
	}
	free(file->path);
	file->path = name;
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	have_open(f, file, fd);
	return true;
}

struct segment_file *
segment_files_begin(struct segment_files *f, const char *path, void *tag)
{
	struct segment_file *file;

	if ((file = calloc(1, sizeof(*file))) == NULL ||
	    (file->path = strdup(path)) == NULL) {
		free(file);
		return NULL;
	}
	file->tag = tag;
	file->writer.fd = -1;
	pb_writer_init(&file->pending);
	TAILQ_INSERT_TAIL(&f->files, file, of_files);
	f->n_files++;
	if (f->err[0] == '\0' && !create(f, file, path))
		fail(f, file, sink_path_error(errno));
	return file;
}

void
segment_files_end(struct segment_files *f, struct segment_file *file)
{
	flush_file(f, file);
	if (f->err[0] != '\0')
		return; /* it stays with those that are not whole */
	TAILQ_REMOVE(&f->files, file, of_files);
	TAILQ_INSERT_TAIL(&f->ended, file, of_files);
	f->n_ended++;
}

/* Gives a part its name.  False: the error is set. */
static bool
publish(struct segment_files *f, struct segment_file *file)
{
	char path[SEGMENT_PATH_MAX], *name;

	snprintf(path, sizeof(path), "%s", file->path);
	if (segment_folder_publish(f->folder, path) != 0) {
		fail(f, file, sink_path_error(errno));
		return false;
	}
	if ((name = strdup(path)) == NULL) {
		fail(f, file, "out of memory");
		return false;
	}
	free(file->path);
	file->path = name;
	return true;
}

/* Directories of segments that were given their names. */
static void
sync_folders(struct segment_files *f, bool all)
{
	struct segment_file *file;

	if (all && segment_folder_sync_all(f->folder) == 0)
		return;
	TAILQ_FOREACH(file, &f->ended, of_files)
		segment_folder_sync(f->folder, file->path);
}

void
segment_files_settle(struct segment_files *f)
{
	bool all = f->n_ended > SEGMENT_SYNC_EACH;
	struct segment_file *file, *next;

	if (f->n_ended == 0 || f->err[0] != '\0')
		return;
	if (!all || segment_folder_sync_all(f->folder) != 0)
		TAILQ_FOREACH(file, &f->ended, of_files)
			sync_file(f, file);
	TAILQ_FOREACH(file, &f->ended, of_files)
		if (f->err[0] != '\0' || !publish(f, file))
			return;
	sync_folders(f, all);
	TAILQ_FOREACH_SAFE(file, &f->ended, of_files, next) {
		f->n_ended--;
		if (f->o.settled != NULL)
			f->o.settled(f->o.arg, file->tag, file->path,
			    file->writer.total);
		free_file(f, &f->ended, file);
	}
}

/* After an error, or where the owner gave up: as a crash would be closed. */
static void
leave_file(struct segment_files *f, struct segment_file *file)
{
	char err[SINK_ERR_MAX];

	if (file->ino == 0)
		return;
	if (file->writer.fd >= 0 && file->writer.total > 0 &&
	    sink_writer_sync(&file->writer, err, sizeof(err)) != 0)
		fail(f, file, err);
	close_file(f, file);
	if (file->writer.total > 0)
		(void)publish(f, file);
	else
		segment_folder_remove(f->folder, file->path);
	file->ino = 0;
}

void
segment_files_leave(struct segment_files *f)
{
	struct segment_file *file;

	TAILQ_FOREACH(file, &f->ended, of_files)
		leave_file(f, file);
	TAILQ_FOREACH(file, &f->files, of_files)
		leave_file(f, file);
}

void
segment_files_free(struct segment_files *f)
{
	struct segment_file *file;

	if (f == NULL)
		return;
	segment_files_leave(f);
	while ((file = TAILQ_FIRST(&f->ended)) != NULL)
		free_file(f, &f->ended, file);
	while ((file = TAILQ_FIRST(&f->files)) != NULL)
		free_file(f, &f->files, file);
	packet_compressor_free(f->compressor);
	segment_folder_free(f->folder);
	free(f);
}

/* ---- what there is ---- */

const char *
segment_files_error(const struct segment_files *f)
{
	return f->err[0] != '\0' ? f->err : NULL;
}

void
segment_files_lost(const struct segment_files *f,
    void (*lost)(void *arg, const uint8_t *packets, size_t len), void *arg)
{
	const struct segment_file *file;

	TAILQ_FOREACH(file, &f->files, of_files)
		if (file->pending.len > 0)
			lost(arg, file->pending.data, file->pending.len);
}

uint64_t
segment_files_total(const struct segment_files *f)
{
	return f->total;
}

uint64_t
segment_file_bytes(const struct segment_file *file)
{
	return file->writer.total;
}

size_t
segment_files_pending(const struct segment_files *f)
{
	return f->pending;
}
