/*
 * file_sink with compression and with max_bytes: what is in the file, packet by
 * packet.  The rest of its promises: test_file_sink.c.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <cmocka.h>

#include "service/sink/file_sink.h"
#include "transport/loop/loop.h"
#include "transport/sink/packet_boundary.h"
#include "transport/wire/pb_reader.h"

#define PACKET_BYTES 100u
/* So many of them are more than a batch. */
#define ENOUGH (PACKET_BATCH_BYTES / PACKET_BYTES + 1)

struct fixture {
	struct loop *l;
	struct file_sink *s;
	int fd; /* the same file as the sink's */
	uint32_t next; /* number of the next packet */
	int written;
	int full;
	int failed;
	int closed;
	uint64_t total;
	char err[160];
};

static void
on_opened(struct file_sink *s, const char *err, void *arg)
{
}

static void
on_written(struct file_sink *s, uint64_t total, void *arg)
{
	struct fixture *f = arg;

	f->written++;
	f->total = total;
	loop_stop(f->l);
}

static void
on_full(struct file_sink *s, void *arg)
{
	struct fixture *f = arg;

	f->full++;
	loop_stop(f->l);
}

static void
on_failed(struct file_sink *s, const char *err, void *arg)
{
	struct fixture *f = arg;

	f->failed++;
	loop_stop(f->l);
}

static void
on_closed(struct file_sink *s, const char *err, void *arg)
{
	struct fixture *f = arg;

	f->closed++;
	snprintf(f->err, sizeof(f->err), "%s", err != NULL ? err : "");
	loop_stop(f->l);
}

static const struct file_sink_ops ops = {
	.opened = on_opened,
	.written = on_written,
	.full = on_full,
	.failed = on_failed,
	.closed = on_closed,
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	return f == NULL || (f->l = loop_new()) == NULL;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	loop_free(f->l);
	free(f);
	return 0;
}

static void
begin(struct fixture *f, enum packet_compression_kind kind, uint64_t most)
{
	struct file_sink_options options = {
		.compression = { kind, 0 },
		.max_bytes = most,
	};

	f->fd = memfd_create("trace", MFD_CLOEXEC);
	f->next = 0;
	f->written = f->full = f->failed = f->closed = 0;
	f->total = 0;
	assert_true(f->fd >= 0);
	f->s = file_sink_new_fd(f->l, dup(f->fd), &options, &ops, f);
	assert_non_null(f->s);
}

static void
finish(struct fixture *f)
{
	file_sink_close(f->s);
	while (!f->closed)
		loop_run(f->l);
}

/* n numbered packets, one in three without any pattern, in one batch. */
static void
submit(struct fixture *f, size_t n)
{
	struct sink_batch *b;
	uint8_t *p;
	uint32_t x;
	size_t i;

	while ((b = file_sink_batch(f->s)) == NULL)
		loop_run(f->l);
	for (; n > 0; n--, f->next++) {
		assert_true(file_sink_reserve(b, PACKET_BYTES));
		p = b->data + b->len;
		memset(p, 0x55, PACKET_BYTES);
		p[0] = 0x0a;
		p[1] = PACKET_BYTES - 2;
		memcpy(p + 2, &f->next, sizeof(f->next));
		for (i = 6, x = f->next; f->next % 3 == 0 && i < PACKET_BYTES;
		    i++) {
			x = x * 1664525u + 1013904223u;
			p[i] = (uint8_t)(x >> 24);
		}
		b->len += PACKET_BYTES;
	}
	file_sink_submit(f->s, false);
}

/* Packets in data that come one after another from *next on. */
static void
count_numbered(const uint8_t *data, size_t len, uint32_t *next)
{
	struct pb_reader r;
	struct pb_field packet;
	uint32_t number;

	pb_init(&r, data, len);
	while (pb_next(&r, &packet)) {
		assert_int_equal(packet.len, PACKET_BYTES - 2);
		memcpy(&number, packet.data, sizeof(number));
		assert_int_equal(number, *next);
		++*next;
	}
	assert_false(r.bad);
}

static void
count_compressed(const struct pb_field *packet, uint32_t *next)
{
	size_t cap = PACKET_BATCH_BYTES * 4;
	uint8_t *out = malloc(cap);
	struct pb_reader r;
	struct pb_field f;
	uLongf n = cap;

	pb_init(&r, packet->data, packet->len);
	assert_true(pb_next(&r, &f));
	if (f.number == 133) {
		n = ZSTD_decompress(out, cap, f.data, f.len);
		assert_false(ZSTD_isError(n));
	} else {
		assert_int_equal(f.number, 50);
		assert_int_equal(uncompress(out, &n, f.data, f.len), Z_OK);
	}
	count_numbered(out, n, next);
	free(out);
}

/* The packets of the whole file, every byte of it accounted for. */
static uint32_t
read_file(struct fixture *f, off_t *size)
{
	struct pb_reader r;
	struct pb_field packet;
	uint32_t next = 0;
	struct stat st;
	uint8_t *data;

	assert_int_equal(fstat(f->fd, &st), 0);
	*size = st.st_size;
	data = malloc((size_t)st.st_size + 1);
	assert_int_equal(pread(f->fd, data, (size_t)st.st_size, 0),
	    st.st_size);
	pb_init(&r, data, (size_t)st.st_size);
	while (pb_next(&r, &packet)) {
		assert_int_equal(packet.number, 1);
		if (packet.len == PACKET_BYTES - 2)
			count_numbered(packet.start, (size_t)(r.p -
			    packet.start), &next);
		else
			count_compressed(&packet, &next);
	}
	assert_false(r.bad);
	free(data);
	close(f->fd);
	return next;
}

static void
each_batch_is_a_packet_in_the_file(void **state)
{
	struct fixture *f = *state;
	off_t size;
	int kind, i;

	for (kind = PACKET_DEFLATE; kind <= PACKET_ZSTD; kind++) {
		begin(f, kind, 0);
		for (i = 0; i < 5; i++)
			submit(f, ENOUGH);
		submit(f, 1); /* does not become smaller: as it is */
		finish(f);
		assert_string_equal(f->err, "");
		assert_int_equal(read_file(f, &size), 5 * ENOUGH + 1);
		assert_true((size_t)size < 5 * ENOUGH * PACKET_BYTES / 2);
		assert_int_equal(f->full, 0);
	}
}

static void
what_is_told_are_bytes_of_the_file(void **state)
{
	struct fixture *f = *state;
	struct stat st;
	off_t size;

	begin(f, PACKET_ZSTD, 0);
	submit(f, ENOUGH);
	while (!file_sink_idle(f->s))
		loop_run(f->l);
	assert_int_equal(fstat(f->fd, &st), 0);
	assert_int_equal(f->total, st.st_size);
	finish(f);
	assert_int_equal(read_file(f, &size), ENOUGH);
}

static void
batches_of_compressed_files_are_larger(void **state)
{
	struct fixture *f = *state;
	off_t size;

	begin(f, PACKET_ZSTD, 0);
	assert_int_equal(file_sink_batch(f->s)->nominal, PACKET_BATCH_BYTES);
	assert_true(file_sink_batch(f->s)->cap >= PACKET_BATCH_BYTES);
	finish(f);
	assert_int_equal(read_file(f, &size), 0);
	begin(f, PACKET_PLAIN, 0);
	assert_int_equal(file_sink_batch(f->s)->nominal, SINK_BATCH_BYTES);
	finish(f);
	assert_int_equal(read_file(f, &size), 0);
}

static void
a_limit_holds_for_bytes_of_the_file(void **state)
{
	static const uint64_t limits[] = { 1, 150, 5000, 30000, 260000 };
	struct fixture *f = *state;
	uint32_t got, last;
	size_t i, tries;
	off_t size;
	int kind;

	for (kind = PACKET_PLAIN; kind <= PACKET_ZSTD; kind++) {
		last = 0;
		for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
			begin(f, kind, limits[i]);
			for (tries = 0; !f->full; tries++) {
				assert_true(tries < 100);
				submit(f, 2500);
				while (!file_sink_idle(f->s))
					loop_run(f->l);
			}
			/* nothing comes behind it */
			submit(f, 1);
			finish(f);
			assert_int_equal(f->full, 1);
			assert_string_equal(f->err, "");
			got = read_file(f, &size);
			assert_true((uint64_t)size <= limits[i]);
			/* no more than a packet's worth is left */
			assert_true((uint64_t)size + 2 * PACKET_BYTES >
			    limits[i]);
			assert_true(got >= last);
			last = got;
		}
		assert_true(last > 0);
	}
}

static void
a_file_that_can_grow_no_more_ends_on_a_packet(void **state)
{
	struct fixture *f = *state;
	struct rlimit before, limit;
	off_t size;
	uint32_t n;
	int kind;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	for (kind = PACKET_DEFLATE; kind <= PACKET_ZSTD; kind++) {
		begin(f, kind, 0);
		limit = before;
		limit.rlim_cur = 300000; /* in the middle of a batch */
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		while (!f->failed)
			submit(f, ENOUGH);
		finish(f);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_non_null(strstr(f->err, "ended early"));
		assert_null(strstr(f->err, "middle of a packet"));
		n = read_file(f, &size);
		assert_true(n > 0);
		assert_true(size < 300000);
		assert_int_equal(n % ENOUGH, 0);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_batch_is_a_packet_in_the_file),
		T(what_is_told_are_bytes_of_the_file),
		T(batches_of_compressed_files_are_larger),
		T(a_limit_holds_for_bytes_of_the_file),
		T(a_file_that_can_grow_no_more_ends_on_a_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
