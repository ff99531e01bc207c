#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "segment_test_folder.h"
#include "transport/segment/segment_files.h"
#include "transport/segment/segment_folder.h"
#include "transport/sink/packet_boundary.h"

#define PACKET 1003u /* bytes, with 1000 of payload */

static char folder[PATH_MAX];
static char settled_paths[4000];
static uint64_t settled_bytes;
static uint64_t lost_bytes;

static void
settled(void *arg, void *tag, const char *path, uint64_t bytes)
{
	strcat(strcat(settled_paths, path), " ");
	settled_bytes += bytes;
}

static void
lost(void *arg, const uint8_t *packets, size_t len)
{
	assert_int_equal(packet_boundary(packets, len), len);
	lost_bytes += len;
}

static int
setup(void **state)
{
	settled_paths[0] = '\0';
	settled_bytes = lost_bytes = 0;
	test_folder_make(folder);
	return 0;
}

static int
teardown(void **state)
{
	test_folder_remove(folder);
	return 0;
}

static struct segment_files *
files_new(struct segment_files_options o)
{
	struct segment_files *f;

	o.settled = settled;
	f = segment_files_new(test_folder_open(folder, NULL), &o);
	assert_non_null(f);
	return f;
}

static struct segment_file *
begin(struct segment_files *f, const char *path)
{
	struct segment_file *file = segment_files_begin(f, path, NULL);

	assert_non_null(file);
	return file;
}

static void
put(struct segment_files *f, struct segment_file *file, uint8_t which,
    unsigned n)
{
	uint8_t packet[PACKET];

	while (n-- > 0) {
		assert_int_equal(test_packet(packet, 1000, which), PACKET);
		assert_int_equal(segment_files_put(f, file, packet, PACKET), 0);
	}
}

/* Asserts that a file has n packets, all of which say `which`. */
static void
assert_packets(const char *name, uint8_t which, unsigned n)
{
	size_t len, i;
	uint8_t *data = test_folder_read(folder, name, &len);

	assert_non_null(data);
	assert_int_equal(len, n * PACKET);
	for (i = 0; i < len; i++)
		assert_int_equal(data[i], i % PACKET < 3 ? data[i % PACKET] : which);
	free(data);
}

static void
a_segment_has_its_name_once_it_is_whole(void **state)
{
	struct segment_files *f = files_new((struct segment_files_options){
		.fds = 0 });
	struct segment_file *file = begin(f, "a/x.pftrace");

	put(f, file, 7, 3);
	assert_int_equal(segment_files_total(f), 0);
	segment_files_flush(f);
	assert_int_equal(segment_files_total(f), 3 * PACKET);
	assert_packets("a/x.pftrace.part", 7, 3);
	segment_files_end(f, file);
	assert_string_equal(settled_paths, "");
	segment_files_settle(f);
	assert_string_equal(settled_paths, "a/x.pftrace ");
	assert_int_equal(settled_bytes, 3 * PACKET);
	assert_packets("a/x.pftrace", 7, 3);
	assert_int_equal(test_folder_mode(folder, "a/x.pftrace.part"), 0);
	assert_null(segment_files_error(f));
	segment_files_free(f);
}

static unsigned
open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

static void
many_segments_share_few_descriptors_and_little_memory(void **state)
{
	struct segment_files *f = files_new((struct segment_files_options){
		.fds = 4, .pending_bytes = 20 * PACKET });
	struct segment_file *files[50];
	unsigned before = open_descriptors(), i, round;
	char name[SEGMENT_PATH_MAX];

	for (i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "m%u/x.pftrace", i);
		files[i] = begin(f, name);
	}
	for (round = 0; round < 7; round++) {
		for (i = 0; i < 50; i++) {
			put(f, files[i], (uint8_t)i, 2);
			assert_true(segment_files_pending(f) <= 20 * PACKET);
			assert_true(open_descriptors() <= before + 4);
		}
	}
	for (i = 0; i < 50; i++)
		segment_files_end(f, files[i]);
	segment_files_settle(f);
	assert_null(segment_files_error(f));
	assert_int_equal(settled_bytes, 50 * 14 * PACKET);
	for (i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "m%u/x.pftrace", i);
		assert_packets(name, (uint8_t)i, 14);
	}
	segment_files_free(f);
}

static void
large_batches_are_written_at_once(void **state)
{
	struct segment_files *f = files_new((struct segment_files_options){
		.fds = 0 });
	struct segment_file *file = begin(f, "x.pftrace");

	put(f, file, 1, SEGMENT_BATCH_BYTES / PACKET + 1);
	assert_int_equal(segment_files_pending(f), 0);
	assert_int_equal(segment_file_bytes(file), segment_files_total(f));
	assert_true(segment_files_total(f) > SEGMENT_BATCH_BYTES);
	segment_files_free(f);
}

static void
compressed_segments_are_whole_packets_and_smaller(void **state)
{
	struct segment_files *f = files_new((struct segment_files_options){
		.compression = { .kind = PACKET_ZSTD } });
	struct segment_file *file = begin(f, "x.pftrace");
	uint8_t *data;
	size_t len;

	put(f, file, 1, 2000);
	segment_files_end(f, file);
	segment_files_settle(f);
	data = test_folder_read(folder, "x.pftrace", &len);
	assert_non_null(data);
	assert_int_equal(len, settled_bytes);
	assert_true(len < 2000 * PACKET / 10);
	assert_int_equal(packet_boundary(data, len), len);
	free(data);
	segment_files_free(f);
}

/* Lets files grow to n bytes only; RLIM_INFINITY: to any. */
static void
limit_files(rlim_t n)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void
an_error_loses_nothing_silently(void **state)
{
	struct segment_files *f = files_new((struct segment_files_options){
		.fds = 0 });
	struct segment_file *one = begin(f, "one.pftrace"),
	    *two = begin(f, "two.pftrace");
	uint64_t total;

	put(f, one, 1, 4);
	segment_files_flush(f);
	put(f, two, 2, 5);
	put(f, one, 1, 10);
	limit_files(10 * PACKET + 500);
	segment_files_flush(f);
	assert_non_null(strstr(segment_files_error(f), "one.pftrace"));
	assert_non_null(strstr(segment_files_error(f), "largest size"));
	limit_files(RLIM_INFINITY);
	/* Packets that come later are not written, and are lost as well. */
	put(f, two, 2, 1);
	segment_files_end(f, one);
	segment_files_settle(f);
	assert_string_equal(settled_paths, "");
	segment_files_lost(f, lost, NULL);
	total = segment_files_total(f);
	assert_int_equal(total, 10 * PACKET);
	assert_int_equal(total + lost_bytes, 20 * PACKET);
	segment_files_free(f);
	assert_packets("one.pftrace", 1, 10);
	assert_int_equal(test_folder_mode(folder, "two.pftrace"), 0);
	assert_int_equal(test_folder_mode(folder, "two.pftrace.part"), 0);
}

static void
an_error_in_the_midst_of_little_memory_loses_nothing_silently(void **state)
{
	struct segment_files *f = files_new((struct segment_files_options){
		.pending_bytes = 20 * PACKET });
	struct segment_file *one = begin(f, "one.pftrace");

	limit_files(10 * PACKET + 500);
	put(f, one, 1, 25);
	limit_files(RLIM_INFINITY);
	assert_non_null(strstr(segment_files_error(f), "largest size"));
	segment_files_lost(f, lost, NULL);
	assert_int_equal(segment_files_total(f), 10 * PACKET);
	assert_int_equal(lost_bytes, 15 * PACKET);
	segment_files_free(f);
}

/* Leaves the process n free descriptors; 0: as many as it had. */
static void
limit_descriptors(unsigned n)
{
	static rlim_t before;
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (n > 0)
		before = limit.rlim_cur;
	/* What is open are the lowest ones, and opendir()'s in the count. */
	limit.rlim_cur = n > 0 ? open_descriptors() - 3 + n : before;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void
segments_go_on_where_others_have_taken_the_descriptors(void **state)
{
	struct segment_files *f = files_new((struct segment_files_options){
		.fds = 8 });
	struct segment_file *files[6];
	char name[] = "a/x.pftrace";
	unsigned i, round;

	limit_descriptors(4);
	for (i = 0; i < 6; i++) {
		name[0] = (char)('a' + i);
		files[i] = begin(f, name);
	}
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 6; i++)
			put(f, files[i], (uint8_t)i, 1);
		segment_files_flush(f);
	}
	for (i = 0; i < 6; i++)
		segment_files_end(f, files[i]);
	segment_files_settle(f);
	limit_descriptors(0);
	assert_null(segment_files_error(f));
	assert_int_equal(settled_bytes, 12 * PACKET);
	segment_files_free(f);
}

static void
segments_that_are_given_up_keep_what_is_written(void **state)
{
	struct segment_files *f = files_new((struct segment_files_options){
		.fds = 1 });
	struct segment_file *one = begin(f, "one.pftrace"),
	    *two = begin(f, "two.pftrace");

	put(f, one, 1, 4);
	put(f, two, 2, 5);
	segment_files_sync(f);
	segment_files_free(f);
	assert_packets("one.pftrace", 1, 4);
	assert_packets("two.pftrace", 2, 5);
}

static void
a_part_that_was_replaced_is_not_written_to(void **state)
{
	struct segment_files *f = files_new((struct segment_files_options){
		.fds = 1 });
	struct segment_file *one = begin(f, "one.pftrace");
	char path[PATH_MAX + 20];

	put(f, one, 1, 4);
	segment_files_flush(f);
	(void)begin(f, "two.pftrace");
	snprintf(path, sizeof(path), "%s/one.pftrace.part", folder);
	assert_int_equal(unlink(path), 0);
	test_folder_write(folder, "one.pftrace.part", "other", 5);
	put(f, one, 1, 1);
	segment_files_flush(f);
	assert_non_null(strstr(segment_files_error(f), "another program"));
	segment_files_lost(f, lost, NULL);
	assert_int_equal(lost_bytes, PACKET);
	segment_files_free(f);
}

static void
a_folder_that_cannot_be_written_is_told(void **state)
{
	struct segment_files *f = files_new((struct segment_files_options){
		.fds = 0 });
	struct segment_file *file;

	test_folder_write(folder, "a", "", 0);
	file = begin(f, "a/x.pftrace");
	assert_non_null(strstr(segment_files_error(f), "a/x.pftrace"));
	put(f, file, 1, 2);
	segment_files_end(f, file);
	segment_files_lost(f, lost, NULL);
	assert_int_equal(lost_bytes, 2 * PACKET);
	segment_files_free(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_segment_has_its_name_once_it_is_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    many_segments_share_few_descriptors_and_little_memory,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(
		    large_batches_are_written_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    compressed_segments_are_whole_packets_and_smaller, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    an_error_loses_nothing_silently, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    an_error_in_the_midst_of_little_memory_loses_nothing_silently,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(
		    segments_go_on_where_others_have_taken_the_descriptors,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(
		    segments_that_are_given_up_keep_what_is_written, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    a_part_that_was_replaced_is_not_written_to, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    a_folder_that_cannot_be_written_is_told, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
