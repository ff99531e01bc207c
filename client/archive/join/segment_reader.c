#include "client/archive/join/segment_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/inspect/scan/trace_window.h"
#include "client/trace/packet_expand.h"
#include "client/trace/packet_splitter.h"
#include "protos/fields.h"
#include "transport/base/failure.h"
#include "transport/wire/pb_writer.h"

/* A longer packet is damage. */
#define MAX_PACKET (64u << 20)
#define EXPAND_ERROR_BYTES 128

struct segment_reader {
	int fd;
	struct trace_window window;
	struct packet_expand *expand; /* owned */
	struct pb_writer inner; /* packets of a compressed one, framed */
	size_t inner_at;        /* the next one */
	const uint8_t *stored;  /* in the window */
	size_t stored_len, header;
	bool compressed;
	size_t nth;             /* packets of `stored` that were read */
};

static void
inner_cb(void *arg, const uint8_t *data, size_t len)
{
	struct segment_reader *r = arg;

	pb_put_bytes(&r->inner, Trace_packet, data, len);
}

/* -1 with errno.  A trace is read twice: what is no file has no second time. */
static int
open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st = { .st_mode = 0 };

	if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
		return fd;
	close(fd);
	errno = S_ISDIR(st.st_mode) ? EISDIR : ESPIPE;
	return -1;
}

struct segment_reader *
segment_reader_open(const char *path, char *err, size_t err_size)
{
	struct segment_reader *r;

	if ((r = calloc(1, sizeof(*r))) == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	pb_writer_init(&r->inner);
	if ((r->fd = open_file(path)) < 0) {
		snprintf(err, err_size, "cannot open %s: %s", path, errno ==
		    ESPIPE ? "it is a pipe or a device, not a file" :
		    strerror(errno));
		free(r);
		return NULL;
	}
	posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	trace_window_init_fd(&r->window, &r->fd);
	if ((r->expand = packet_expand_new(inner_cb, r)) == NULL) {
		snprintf(err, err_size, "out of memory");
		segment_reader_close(r);
		return NULL;
	}
	return r;
}

void
segment_reader_close(struct segment_reader *r)
{
	if (r == NULL)
		return;
	packet_expand_free(r->expand);
	pb_writer_done(&r->inner);
	trace_window_done(&r->window);
	close(r->fd);
	free(r);
}

/* Sets stored to the next packet of the file. */
static enum segment_read
read_stored(struct segment_reader *r)
{
	const uint8_t *p;
	size_t len, total;

	trace_window_skip(&r->window, r->stored_len);
	r->stored_len = 0;
	if (trace_window_want(&r->window, PACKET_SPLITTER_HEADER_MAX) < 0)
		return SEGMENT_READ_FAILED;
	if ((p = trace_window_bytes(&r->window, &len), len) == 0)
		return SEGMENT_READ_END;
	if (packet_splitter_look(p, len, &r->header, &total) == TRACE_CUT_BAD ||
	    total == 0 || total > MAX_PACKET)
		return SEGMENT_READ_CUT_OFF;
	if (trace_window_want(&r->window, total) < 0)
		return SEGMENT_READ_FAILED;
	if ((p = trace_window_bytes(&r->window, &len), len) < total)
		return SEGMENT_READ_CUT_OFF;
	r->stored = p;
	r->stored_len = total;
	r->nth = 0;
	return SEGMENT_READ_PACKET;
}

/* Reads and expands the next packet of the file. */
static enum segment_read
read_next(struct segment_reader *r)
{
	char why[EXPAND_ERROR_BYTES];
	enum packet_expand_result result;
	enum segment_read got;

	if ((got = read_stored(r)) != SEGMENT_READ_PACKET)
		return got;
	pb_writer_reset(&r->inner);
	r->inner_at = 0;
	result = packet_expand_packet(r->expand, r->stored + r->header,
	    r->stored_len - r->header, why, sizeof(why));
	if (r->inner.failed) {
		errno = ENOMEM;
		return SEGMENT_READ_FAILED;
	}
	r->compressed = result != PACKET_EXPAND_PLAIN;
	return result == PACKET_EXPAND_BAD ? SEGMENT_READ_CUT_OFF :
	    SEGMENT_READ_PACKET;
}

static enum segment_read
take(struct segment_reader *r, struct segment_next *out, const uint8_t *data,
    size_t len, bool last)
{
	if (!segment_packet_read(&out->packet, data, len))
		return SEGMENT_READ_CUT_OFF;
	out->stored = r->stored;
	out->stored_len = r->stored_len;
	out->nth = r->nth++;
	out->last = last;
	return SEGMENT_READ_PACKET;
}

enum segment_read
segment_reader_next(struct segment_reader *r, struct segment_next *out)
{
	size_t header, total;
	const uint8_t *p;
	enum segment_read got;

	while (r->inner_at == r->inner.len) {
		if ((got = read_next(r)) != SEGMENT_READ_PACKET)
			return got;
		if (!r->compressed)
			return take(r, out, r->stored + r->header,
			    r->stored_len - r->header, true);
	}
	p = r->inner.data + r->inner_at;
	if (packet_splitter_look(p, r->inner.len - r->inner_at, &header,
	    &total) != TRACE_CUT_OK)
		return SEGMENT_READ_CUT_OFF;
	r->inner_at += total;
	return take(r, out, p + header, total - header,
	    r->inner_at == r->inner.len);
}

int
segment_reader_again(struct segment_reader *r, size_t n,
    int (*fn)(void *arg, const uint8_t *data, size_t len), void *arg)
{
	size_t header, total, at = 0;
	int rc = 0;

	while (n-- > 0 && rc == 0 && at < r->inner.len) {
		if (packet_splitter_look(r->inner.data + at,
		    r->inner.len - at, &header, &total) != TRACE_CUT_OK)
			return -1;
		rc = fn(arg, r->inner.data + at + header, total - header);
		at += total;
	}
	return rc;
}

uint64_t
segment_reader_offset(const struct segment_reader *r)
{
	return r->window.offset + r->stored_len;
}
