#include "client/archive/fetch/trace_zip.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "client/archive/fetch/trace_out.h"
#include "transport/base/failure.h"
#include "transport/wire/pb_writer.h"

/* APPNOTE.TXT 6.3: records, and the versions that are needed to read them. */
#define LOCAL_HEADER  0x04034b50u
#define ENTRY         0x02014b50u
#define END           0x06054b50u
#define END_64        0x06064b50u
#define LOCATOR_64    0x07064b50u
#define VERSION_PLAIN 20u
#define VERSION_64    45u
#define ID_64         1u
/* Says in a field of 32 bits: see the Zip64 field of 64 bits. */
#define FULL_32       0xffffffffu
#define FULL_16       0xffffu
/* The host of the versions is UNIX; a file that its owner reads and writes. */
#define MADE_BY       (3u << 8 | VERSION_64)
#define MODE          (0100600u << 16)

#define CHUNK (256u << 10)

struct trace_zip {
	struct trace_out *out;
	struct pb_writer directory; /* entries so far */
	uint64_t n;
	uint64_t plain_max; /* larger numbers are Zip64's */
	uint32_t when; /* DOS date and time */
	uint8_t chunk[CHUNK];
};

struct member {
	const char *name;
	uint64_t size;
	uint64_t at; /* where its header begins */
	uint32_t crc;
};

/* ---- little-endian numbers ---- */

static void
put(struct pb_writer *w, uint64_t v, size_t bytes)
{
	uint8_t b[8];
	size_t i;

	for (i = 0; i < bytes; i++)
		b[i] = (uint8_t)(v >> 8 * i);
	pb_put_raw(w, b, bytes);
}

static uint32_t
dos_time(void)
{
	time_t now = time(NULL);
	struct tm t;

	if (localtime_r(&now, &t) == NULL || t.tm_year < 80)
		return 1u << 21 | 1u << 16; /* its first day */
	return (uint32_t)(t.tm_year - 80) << 25 |
	    (uint32_t)(t.tm_mon + 1) << 21 | (uint32_t)t.tm_mday << 16 |
	    (uint32_t)t.tm_hour << 11 | (uint32_t)t.tm_min << 5 |
	    (uint32_t)t.tm_sec / 2;
}

static uint32_t
limit_32(const struct trace_zip *z, uint64_t v)
{
	return v > z->plain_max ? FULL_32 : (uint32_t)v;
}

/* From "version needed" to the length of the name. */
static void
put_common(struct trace_zip *z, struct pb_writer *w, const struct member *m,
    bool is_64)
{
	put(w, is_64 ? VERSION_64 : VERSION_PLAIN, 2);
	put(w, 0, 2); /* flags */
	put(w, 0, 2); /* stored */
	put(w, z->when, 4);
	put(w, m->crc, 4);
	put(w, limit_32(z, m->size), 4);
	put(w, limit_32(z, m->size), 4);
	put(w, strlen(m->name), 2);
}

/* Writes out what was put together, and frees it. */
static void
flush(struct trace_zip *z, struct pb_writer *w)
{
	(void)trace_out_put(z->out, w->data, w->len);
	pb_writer_done(w);
}

static void
put_header(struct trace_zip *z, struct member *m)
{
	bool is_64 = m->size > z->plain_max;
	struct pb_writer w;

	pb_writer_init(&w);
	m->at = trace_out_bytes(z->out);
	put(&w, LOCAL_HEADER, 4);
	put_common(z, &w, m, is_64);
	put(&w, is_64 ? 20 : 0, 2);
	pb_put_raw(&w, m->name, strlen(m->name));
	if (is_64) {
		put(&w, ID_64, 2);
		put(&w, 16, 2);
		put(&w, m->size, 8);
		put(&w, m->size, 8);
	}
	flush(z, &w);
}

static void
put_entry(struct trace_zip *z, const struct member *m)
{
	bool large = m->size > z->plain_max;
	bool far = m->at > z->plain_max;
	size_t extra = (large ? 16u : 0u) + (far ? 8u : 0u);
	struct pb_writer *w = &z->directory;

	put(w, ENTRY, 4);
	put(w, MADE_BY, 2);
	put_common(z, w, m, extra > 0);
	put(w, extra > 0 ? extra + 4 : 0, 2);
	put(w, 0, 2); /* comment */
	put(w, 0, 2); /* disk */
	put(w, 0, 2); /* internal attributes */
	put(w, MODE, 4);
	put(w, limit_32(z, m->at), 4);
	pb_put_raw(w, m->name, strlen(m->name));
	if (extra > 0) {
		put(w, ID_64, 2);
		put(w, extra, 2);
	}
	if (large) {
		put(w, m->size, 8);
		put(w, m->size, 8);
	}
	if (far)
		put(w, m->at, 8);
	z->n++;
}

struct trace_zip *
trace_zip_new(struct trace_out *o, uint64_t plain_max)
{
	struct trace_zip *z = calloc(1, sizeof(*z));

	if (z == NULL)
		return NULL;
	z->out = o;
	z->plain_max = plain_max;
	z->when = dos_time();
	pb_writer_init(&z->directory);
	return z;
}

void
trace_zip_free(struct trace_zip *z)
{
	if (z == NULL)
		return;
	pb_writer_done(&z->directory);
	free(z);
}

/* ---- members ---- */

static int
cannot_write(const struct trace_zip *z, char *err, size_t err_size)
{
	return FAILURE(err, err_size, "cannot write the ZIP: %s",
	    strerror(trace_out_error(z->out)));
}

/* Reads the file; out: writes it, too. */
static int
pass(struct trace_zip *z, struct member *m, int fd, bool out, char *err,
    size_t err_size)
{
	uint64_t at = 0, left;
	ssize_t n;

	m->crc = (uint32_t)crc32(0, NULL, 0);
	while (at < m->size) {
		left = m->size - at;
		n = pread(fd, z->chunk, left < CHUNK ? (size_t)left : CHUNK,
		    (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return FAILURE(err, err_size, "cannot read %s: %s",
			    m->name, n < 0 ? strerror(errno) :
			    "it is shorter than it was");
		m->crc = (uint32_t)crc32(m->crc, z->chunk, (uInt)n);
		if (out && trace_out_put(z->out, z->chunk, (size_t)n) != 0)
			return cannot_write(z, err, err_size);
		at += (uint64_t)n;
	}
	return 0;
}

int
trace_zip_file(struct trace_zip *z, const char *name, int fd, uint64_t size,
    char *err, size_t err_size)
{
	struct member m = { .name = name, .size = size };
	uint32_t crc;

	/* The sum stands in front, and a pipe cannot be gone back in. */
	if (pass(z, &m, fd, false, err, err_size) != 0)
		return -1;
	crc = m.crc;
	put_header(z, &m);
	if (pass(z, &m, fd, true, err, err_size) != 0)
		return -1;
	if (m.crc != crc)
		return FAILURE(err, err_size, "%s changed while it was copied",
		    name);
	put_entry(z, &m);
	return 0;
}

int
trace_zip_text(struct trace_zip *z, const char *name, const void *text,
    size_t size, char *err, size_t err_size)
{
	struct member m = { .name = name, .size = size };

	m.crc = (uint32_t)crc32(crc32(0, NULL, 0), text, (uInt)size);
	put_header(z, &m);
	if (trace_out_put(z->out, text, size) != 0)
		return cannot_write(z, err, err_size);
	put_entry(z, &m);
	return 0;
}

static void
put_end_64(struct trace_zip *z, struct pb_writer *w, uint64_t at)
{
	uint64_t end = at + z->directory.len;

	put(w, END_64, 4);
	put(w, 44, 8); /* bytes behind this field */
	put(w, MADE_BY, 2);
	put(w, VERSION_64, 2);
	put(w, 0, 8); /* this disk, and that of the directory */
	put(w, z->n, 8);
	put(w, z->n, 8);
	put(w, z->directory.len, 8);
	put(w, at, 8);
	put(w, LOCATOR_64, 4);
	put(w, 0, 4);
	put(w, end, 8);
	put(w, 1, 4); /* disks */
}

int
trace_zip_finish(struct trace_zip *z, char *err, size_t err_size)
{
	uint64_t at = trace_out_bytes(z->out);
	uint64_t n = z->n < FULL_16 ? z->n : FULL_16;
	struct pb_writer w;

	if (z->directory.failed)
		return FAILURE(err, err_size, "out of memory");
	(void)trace_out_put(z->out, z->directory.data, z->directory.len);
	pb_writer_init(&w);
	if (at > z->plain_max || n == FULL_16)
		put_end_64(z, &w, at);
	put(&w, END, 4);
	put(&w, 0, 4);
	put(&w, n, 2);
	put(&w, n, 2);
	put(&w, z->directory.len, 4);
	put(&w, limit_32(z, at), 4);
	put(&w, 0, 2); /* comment */
	flush(z, &w);
	return 0;
}
