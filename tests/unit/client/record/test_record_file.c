#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/record/file.h"
#include "client/trace/trace_summary.h"
#include "transport/loop/loop.h"

struct fixture {
	char dir[64];
	char path[128];
	struct loop *loop;
	struct record_file *file;
	int drained;
	char err[600];
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "/tmp/test_record_file.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/trace", f->dir);
	f->loop = loop_new();
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	record_file_free(f->file);
	loop_free(f->loop);
	unlink(f->path);
	rmdir(f->dir);
	free(f);
	return 0;
}

static void
drained_cb(void *arg)
{
	struct fixture *f = arg;

	f->drained++;
}

static void
open_file(struct fixture *f, bool no_clobber)
{
	f->file = record_file_open(f->path, no_clobber, f->err,
	    sizeof(f->err));
}

static void
begin(struct fixture *f)
{
	open_file(f, false);
	assert_non_null(f->file);
	assert_int_equal(record_file_begin(f->file, f->loop, drained_cb, f),
	    0);
}

static void
put_file(struct fixture *f, const char *text)
{
	FILE *out = fopen(f->path, "w");

	fputs(text, out);
	fclose(out);
}

static off_t
size_of(const struct fixture *f)
{
	struct stat st;

	return stat(f->path, &st) < 0 ? -1 : st.st_size;
}

/* Packets in the file; fails when it does not end on one. */
static uint64_t
packets_in(const struct fixture *f)
{
	struct trace_summary *s = trace_summary_new();
	static uint8_t data[4 << 20];
	uint64_t packets;
	char err[200];
	ssize_t n;
	int fd = open(f->path, O_RDONLY);

	n = read(fd, data, sizeof(data));
	close(fd);
	assert_true(n >= 0 && n < (ssize_t)sizeof(data));
	assert_int_equal(trace_summary_feed(s, data, (size_t)n, err,
	    sizeof(err)), 0);
	assert_int_equal(trace_summary_loose_bytes(s), 0);
	assert_int_equal(trace_summary_totals(s)->malformed, 0);
	packets = trace_summary_totals(s)->packets;
	trace_summary_free(s);
	return packets;
}

/* A packet of exactly len bytes (4 to 130, or over 130 and under 16000). */
static size_t
make_packet(uint8_t *out, size_t len)
{
	memset(out, 'x', len);
	out[0] = 11 << 3 | 2; /* track_event */
	if (len <= 129) {
		out[1] = (uint8_t)(len - 2);
	} else {
		out[1] = (uint8_t)((len - 3) | 0x80);
		out[2] = (uint8_t)((len - 3) >> 7);
	}
	return len;
}

static void
packets_are_written_as_a_trace(void **state)
{
	struct fixture *f = *state;
	uint8_t packet[2000];
	size_t len;
	int i;

	begin(f);
	for (i = 0; i < 1000; i++) {
		len = make_packet(packet, 4 + (size_t)i);
		assert_int_equal(record_file_packet(f->file, packet, len), 0);
	}
	assert_false(record_file_full(f->file));
	assert_int_equal(record_file_finish(f->file), 1);
	assert_int_equal(packets_in(f), 1000);
	assert_string_equal(record_file_error(f->file), "");
}

static void
a_packet_larger_than_the_batch_keeps_its_place(void **state)
{
	static uint8_t large[RECORD_FILE_BATCH + 100];
	struct fixture *f = *state;
	uint8_t packet[10], first[4];
	int fd;

	memset(large, 'x', sizeof(large));
	large[0] = 11 << 3 | 2;
	large[1] = (uint8_t)((sizeof(large) - 4) | 0x80);
	large[2] = (uint8_t)((sizeof(large) - 4) >> 7 | 0x80);
	large[3] = (uint8_t)((sizeof(large) - 4) >> 14);
	begin(f);
	assert_int_equal(record_file_packet(f->file, packet,
	    make_packet(packet, 10)), 0);
	assert_int_equal(record_file_packet(f->file, large, sizeof(large)), 0);
	assert_int_equal(record_file_packet(f->file, packet, 10), 0);
	assert_int_equal(record_file_finish(f->file), 1);
	assert_int_equal(packets_in(f), 3);
	fd = open(f->path, O_RDONLY);
	assert_int_equal(read(fd, first, 4), 4);
	close(fd);
	assert_int_equal(first[1], 10);
}

static void
a_file_is_private_and_named(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	begin(f);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_string_equal(record_file_name(f->file), f->path);
	assert_true(record_file_can_be_shared(f->file));
}

static void
an_old_file_is_emptied_only_when_the_recording_begins(void **state)
{
	struct fixture *f = *state;

	put_file(f, "an older trace");
	open_file(f, false);
	assert_non_null(f->file);
	assert_int_equal(size_of(f), 14);
	assert_int_equal(record_file_begin(f->file, f->loop, drained_cb, f),
	    0);
	assert_int_equal(size_of(f), 0);
	assert_false(record_file_remove_if_empty(f->file));
	assert_int_equal(size_of(f), 0);
}

static void
no_clobber_leaves_an_old_file_alone(void **state)
{
	struct fixture *f = *state;

	put_file(f, "an older trace");
	open_file(f, true);
	assert_null(f->file);
	assert_non_null(strstr(f->err, "--no-clobber"));
	assert_int_equal(size_of(f), 14);
	unlink(f->path);
	open_file(f, true);
	assert_non_null(f->file);
}

static void
a_new_file_that_stayed_empty_is_removed(void **state)
{
	struct fixture *f = *state;
	uint8_t packet[10];

	begin(f);
	assert_true(record_file_remove_if_empty(f->file));
	assert_int_equal(size_of(f), -1);
	record_file_free(f->file);

	begin(f);
	assert_int_equal(record_file_packet(f->file, packet,
	    make_packet(packet, 10)), 0);
	assert_int_equal(record_file_finish(f->file), 1);
	assert_false(record_file_remove_if_empty(f->file));
	assert_int_equal(size_of(f), 12);
}

static void
a_path_that_cannot_be_written_is_a_sentence(void **state)
{
	struct fixture *f = *state;

	assert_null(record_file_open(f->dir, false, f->err, sizeof(f->err)));
	assert_non_null(strstr(f->err, "Is a directory"));
	assert_null(record_file_open("/nonexistent/t", false, f->err,
	    sizeof(f->err)));
	assert_non_null(strstr(f->err, "No such file"));
}

/* n packets of size bytes, framing included. */
static void
expect_kept(struct fixture *f, uint64_t n, uint64_t size)
{
	uint64_t packets = 77, bytes = 77;

	record_file_kept(f->file, &packets, &bytes);
	assert_int_equal(packets, n);
	assert_int_equal(bytes, n * size);
}

static void
a_file_that_cannot_grow_ends_on_a_whole_packet(void **state)
{
	struct fixture *f = *state;
	struct rlimit old, limit;
	uint8_t packet[1000];
	int i, r = 0;

	begin(f);
	make_packet(packet, sizeof(packet));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = RECORD_FILE_BATCH + 4567;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (i = 0; i < 600 && r == 0; i++)
		r = record_file_packet(f->file, packet, sizeof(packet));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);

	assert_int_equal(r, -1);
	assert_non_null(strstr(record_file_error(f->file), "File too large"));
	assert_int_equal(record_file_finish(f->file), -1);
	/* 1003 bytes each with their framing: all that fit */
	assert_int_equal(packets_in(f), limit.rlim_cur / 1003);
	expect_kept(f, limit.rlim_cur / 1003, 1003);
}

static void
a_large_packet_of_which_a_part_fits_is_not_kept(void **state)
{
	static uint8_t large[RECORD_FILE_BATCH];
	struct fixture *f = *state;
	struct rlimit old, limit;
	uint8_t packet[10];
	int r;

	begin(f);
	assert_int_equal(record_file_packet(f->file, packet,
	    make_packet(packet, sizeof(packet))), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = RECORD_FILE_BATCH / 2;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	r = record_file_packet(f->file, large, sizeof(large));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);

	assert_int_equal(r, -1);
	assert_int_equal(packets_in(f), 1);
	expect_kept(f, 1, 2 + sizeof(packet));
}

static void
what_a_device_refused_is_not_kept(void **state)
{
	struct fixture *f = *state;
	uint8_t packet[1000];
	uint64_t packets = 77, bytes = 77;
	struct stat st;

	if (stat("/dev/full", &st) != 0 || !S_ISCHR(st.st_mode)) {
		print_message("/dev/full is no device here\n");
		skip();
	}
	f->file = record_file_open("/dev/full", false, f->err, sizeof(f->err));
	assert_non_null(f->file);
	record_file_kept(f->file, &packets, &bytes);
	assert_int_equal(packets, 77); /* somebody else may have written */
	assert_int_equal(record_file_begin(f->file, f->loop, drained_cb, f), 0);
	assert_int_equal(record_file_packet(f->file, packet,
	    make_packet(packet, 1000)), 0);
	assert_int_equal(record_file_finish(f->file), -1);
	expect_kept(f, 0, 1003);
}

static void
a_pipe_that_is_full_waits_without_blocking(void **state)
{
	static uint8_t data[8 << 20];
	struct fixture *f = *state;
	uint8_t packet[10000];
	size_t got = 0, put = 0;
	ssize_t n;
	int fd;

	assert_int_equal(mkfifo(f->path, 0600), 0);
	fd = open(f->path, O_RDONLY | O_NONBLOCK);
	begin(f);
	assert_false(record_file_can_be_shared(f->file));
	make_packet(packet, sizeof(packet));
	while (!record_file_full(f->file)) {
		assert_int_equal(record_file_packet(f->file, packet,
		    sizeof(packet)), 0);
		put += sizeof(packet) + 3;
		loop_run_once(f->loop);
	}
	assert_int_equal(record_file_finish(f->file), 0);
	f->drained = 0; /* it was, while the pipe was not yet full */
	loop_run_once(f->loop);
	assert_int_equal(f->drained, 0);
	while (f->drained == 0) {
		n = read(fd, data + got, sizeof(data) - got);
		if (n > 0)
			got += (size_t)n;
		loop_run_once(f->loop);
	}
	while ((n = read(fd, data + got, sizeof(data) - got)) > 0)
		got += (size_t)n;
	close(fd);
	assert_int_equal(got, put);
	expect_kept(f, put / (sizeof(packet) + 3), sizeof(packet) + 3);
	assert_false(record_file_full(f->file));
	assert_int_equal(record_file_finish(f->file), 1);
	assert_int_equal(data[got - sizeof(packet)], packet[0]);
}

static void
a_pipe_whose_reader_left_is_a_sentence(void **state)
{
	struct fixture *f = *state;
	uint8_t packet[1000];
	int fd;

	assert_int_equal(mkfifo(f->path, 0600), 0);
	fd = open(f->path, O_RDONLY | O_NONBLOCK);
	begin(f);
	assert_int_equal(record_file_packet(f->file, packet,
	    make_packet(packet, 1000)), 0);
	close(fd);
	while (f->drained == 0)
		loop_run_once(f->loop);
	assert_non_null(strstr(record_file_error(f->file), "went away"));
	assert_int_equal(record_file_packet(f->file, packet, 1000), -1);
	assert_int_equal(record_file_finish(f->file), -1);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(packets_are_written_as_a_trace),
		T(a_packet_larger_than_the_batch_keeps_its_place),
		T(a_file_is_private_and_named),
		T(an_old_file_is_emptied_only_when_the_recording_begins),
		T(no_clobber_leaves_an_old_file_alone),
		T(a_new_file_that_stayed_empty_is_removed),
		T(a_path_that_cannot_be_written_is_a_sentence),
		T(a_file_that_cannot_grow_ends_on_a_whole_packet),
		T(a_large_packet_of_which_a_part_fits_is_not_kept),
		T(what_a_device_refused_is_not_kept),
		T(a_pipe_that_is_full_waits_without_blocking),
		T(a_pipe_whose_reader_left_is_a_sentence),
	};

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests_name("record_file", tests, NULL, NULL);
}
