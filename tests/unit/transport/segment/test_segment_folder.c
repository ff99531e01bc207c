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
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "segment_test_folder.h"
#include "transport/segment/segment_folder.h"

static char folder[PATH_MAX];
static char told[1000]; /* paths that were recovered, a blank behind each */

static void
recovered(const char *path, void *arg)
{
	strcat(strcat(told, path), " ");
}

static const struct segment_folder_options telling = {
	.owner = { 0, -1, -1 }, .recovered = recovered,
};

static int
setup(void **state)
{
	told[0] = '\0';
	test_folder_make(folder);
	return 0;
}

static int
teardown(void **state)
{
	test_folder_remove(folder);
	return 0;
}

static void
make_folder(const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void
assert_size(const char *name, size_t want)
{
	size_t len;
	uint8_t *data = test_folder_read(folder, name, &len);

	assert_non_null(data);
	assert_int_equal(len, want);
	free(data);
}

/* Leaves a part with `whole` bytes of packets, and `rest` of a cut one. */
static size_t
leave_part(const char *name, unsigned packets, size_t payload, size_t rest)
{
	uint8_t *data = malloc((packets + 1) * (payload + 11));
	size_t len = 0, n = 0;
	unsigned i;

	for (i = 0; i <= packets; i++) {
		n = test_packet(data + len, payload, (uint8_t)i);
		len += i < packets ? n : 0;
	}
	assert_true(rest < n);
	test_folder_write(folder, name, data, len + rest);
	free(data);
	return len;
}

static void
parts_of_a_crash_end_with_their_last_whole_packet(void **state)
{
	size_t few, many, large;

	make_folder("a");
	few = leave_part("a/x-000001.pftrace.part", 3, 100, 50);
	many = leave_part("many.pftrace.part", 50000, 60, 1);
	large = leave_part("large.pftrace.part", 3, 3u << 20, 3u << 20);
	(void)leave_part("whole.pftrace.part", 2, 5, 0);
	segment_folder_free(test_folder_open(folder, &telling));
	assert_size("a/x-000001.pftrace", few);
	assert_size("many.pftrace", many);
	assert_size("large.pftrace", large);
	assert_size("whole.pftrace", 14);
	assert_int_equal(test_folder_mode(folder, "many.pftrace.part"), 0);
	assert_non_null(strstr(told, "a/x-000001.pftrace "));
	assert_non_null(strstr(told, "whole.pftrace "));
}

static void
parts_without_a_whole_packet_are_removed(void **state)
{
	leave_part("a.pftrace.part", 0, 100, 0);
	leave_part("b.pftrace.part", 0, 100, 60);
	test_folder_write(folder, "c.pftrace.part", "no trace", 8);
	segment_folder_free(test_folder_open(folder, &telling));
	assert_int_equal(test_folder_mode(folder, "a.pftrace.part"), 0);
	assert_int_equal(test_folder_mode(folder, "b.pftrace.part"), 0);
	assert_int_equal(test_folder_mode(folder, "b.pftrace"), 0);
	assert_string_equal(told, "");
}

static void
a_part_whose_name_is_taken_gets_another(void **state)
{
	test_folder_write(folder, "a.pftrace", "precious", 8);
	leave_part("a.pftrace.part", 2, 5, 0);
	segment_folder_free(test_folder_open(folder, &telling));
	assert_size("a.pftrace", 8);
	assert_size("a-2.pftrace", 14);
}

static void
other_files_are_left_alone(void **state)
{
	char from[PATH_MAX + 40], to[PATH_MAX + 40];

	test_folder_write(folder, "notes.part", "mine", 4);
	test_folder_write(folder, "precious", "\x0a\x05" "ab", 4);
	snprintf(from, sizeof(from), "%s/precious", folder);
	snprintf(to, sizeof(to), "%s/linked.pftrace.part", folder);
	assert_int_equal(link(from, to), 0);
	snprintf(to, sizeof(to), "%s/pointing.pftrace.part", folder);
	assert_int_equal(symlink(from, to), 0);
	segment_folder_free(test_folder_open(folder, &telling));
	assert_size("notes.part", 4);
	assert_size("precious", 4);
	assert_size("linked.pftrace.part", 4);
	assert_string_equal(told, "");
}

static void
parts_of_others_that_still_write_are_left_alone(void **state)
{
	struct segment_folder *first = test_folder_open(folder, &telling);

	leave_part("a.pftrace.part", 2, 5, 3);
	segment_folder_free(test_folder_open(folder, &telling));
	assert_size("a.pftrace.part", 17);
	segment_folder_free(first);
	segment_folder_free(test_folder_open(folder, &telling));
	assert_size("a.pftrace", 14);
}

static struct segment_folder *
open_within(const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return test_folder_open(path, &telling);
}

static void
parts_in_a_folder_within_that_has_writers_are_left_alone(void **state)
{
	struct segment_folder *within;

	make_folder("a");
	make_folder("a/b");
	within = open_within("a");
	leave_part("a/b/x.pftrace.part", 2, 5, 3);
	segment_folder_free(test_folder_open(folder, &telling));
	assert_size("a/b/x.pftrace.part", 17);
	segment_folder_free(within);
	segment_folder_free(test_folder_open(folder, &telling));
	assert_size("a/b/x.pftrace", 14);
}

static void
parts_of_writers_of_a_folder_above_are_left_alone(void **state)
{
	struct segment_folder *above = test_folder_open(folder, &telling);

	make_folder("a");
	make_folder("a/b");
	leave_part("a/b/x.pftrace.part", 2, 5, 3);
	segment_folder_free(open_within("a/b"));
	assert_size("a/b/x.pftrace.part", 17);
	segment_folder_free(above);
	segment_folder_free(open_within("a/b"));
	assert_size("a/b/x.pftrace", 14);
}

static bool
at_once(void *arg)
{
	return true;
}

static void
on_alarm(int signo)
{
}

static void
a_lock_that_others_keep_can_be_given_up(void **state)
{
	const struct segment_folder_options o = { .owner = { 0, -1, -1 },
		.give_up = at_once };
	const struct sigaction interrupt = { .sa_handler = on_alarm };
	char path[PATH_MAX + 10], err[300];
	int lock, fd;

	snprintf(path, sizeof(path), "%s/.writers", folder);
	assert_true((lock = open(path, O_RDONLY | O_CREAT, 0600)) >= 0);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	sigaction(SIGALRM, &interrupt, NULL);
	ualarm(20000, 20000);
	fd = segment_folder_of_user(folder, err, sizeof(err));
	assert_null(segment_folder_open(fd, &o, err, sizeof(err)));
	ualarm(0, 0);
	assert_non_null(strstr(err, "cannot be locked"));
	close(lock);
}

static void
files_and_folders_have_the_mode_that_was_asked_for(void **state)
{
	const struct segment_folder_options o = { .owner = { 0640, -1, -1 } };
	struct segment_folder *f = test_folder_open(folder, &o);
	char path[SEGMENT_PATH_MAX] = "a/b/x.pftrace";
	int fd = segment_folder_create(f, path);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(segment_folder_publish(f, path), 0);
	assert_string_equal(path, "a/b/x.pftrace");
	assert_int_equal(test_folder_mode(folder, "a"), 0750);
	assert_int_equal(test_folder_mode(folder, "a/b"), 0750);
	assert_int_equal(test_folder_mode(folder, "a/b/x.pftrace"), 0640);
	segment_folder_free(f);
}

static void
no_link_leads_out_of_the_folder(void **state)
{
	struct segment_folder *f = test_folder_open(folder, NULL);
	char path[SEGMENT_PATH_MAX] = "out/x.pftrace", link[PATH_MAX + 10];
	char up[SEGMENT_PATH_MAX] = "../x.pftrace";

	snprintf(link, sizeof(link), "%s/out", folder);
	assert_int_equal(symlink("/tmp", link), 0);
	assert_int_equal(segment_folder_create(f, path), -1);
	assert_int_equal(segment_folder_create(f, up), -1);
	assert_int_equal(errno, EXDEV);
	segment_folder_free(f);
}

static void
names_that_are_taken_get_a_number(void **state)
{
	struct segment_folder *f = test_folder_open(folder, NULL);
	char one[SEGMENT_PATH_MAX] = "x.pftrace", two[SEGMENT_PATH_MAX];
	int fd;

	strcpy(two, one);
	assert_true((fd = segment_folder_create(f, one)) >= 0);
	close(fd);
	assert_string_equal(one, "x.pftrace");
	assert_true((fd = segment_folder_create(f, two)) >= 0);
	close(fd);
	assert_string_equal(two, "x-2.pftrace");
	/* Taken after the part was created. */
	test_folder_write(folder, "x.pftrace", "first", 5);
	assert_int_equal(segment_folder_publish(f, one), 0);
	assert_string_equal(one, "x-2.pftrace");
	assert_int_equal(segment_folder_publish(f, two), 0);
	assert_string_equal(two, "x-2-2.pftrace");
	assert_size("x.pftrace", 5);
	segment_folder_free(f);
}

static void
a_file_is_no_folder(void **state)
{
	char path[PATH_MAX + 10], err[300];

	test_folder_write(folder, "f", "", 0);
	snprintf(path, sizeof(path), "%s/f", folder);
	assert_int_equal(segment_folder_of_user(path, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "is a file"));
}

static void
missing_folders_are_made(void **state)
{
	char path[PATH_MAX + 10], err[300];
	int fd;

	snprintf(path, sizeof(path), "%s/a//b/c/", folder);
	fd = segment_folder_of_user(path, err, sizeof(err));
	assert_true(fd >= 0);
	close(fd);
	assert_true(test_folder_mode(folder, "a/b/c") != 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    parts_of_a_crash_end_with_their_last_whole_packet, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    parts_without_a_whole_packet_are_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_part_whose_name_is_taken_gets_another, setup, teardown),
		cmocka_unit_test_setup_teardown(other_files_are_left_alone,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(
		    parts_of_others_that_still_write_are_left_alone, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    parts_in_a_folder_within_that_has_writers_are_left_alone,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(
		    parts_of_writers_of_a_folder_above_are_left_alone, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    a_lock_that_others_keep_can_be_given_up, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    files_and_folders_have_the_mode_that_was_asked_for, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    no_link_leads_out_of_the_folder, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    names_that_are_taken_get_a_number, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_is_no_folder, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(missing_folders_are_made, setup,
		    teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
