#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/archive/archive_path.h"
#include "client/archive/index/archive_files.h"
#include "client/archiver/folder_watch.h"
#include "transport/loop/loop.h"

static char root[] = "/tmp/test_folder_watch.XXXXXX";
static struct loop *loop;
static struct folder_watch *watch;
static char told[4096]; /* " path" of files, " path/" of folders */
static char err[512];

static void
changed(const char *path, bool is_folder, void *arg)
{
	size_t len = strlen(told);

	snprintf(told + len, sizeof(told) - len, " %s%s", path,
	    is_folder ? "/" : "");
}

static int
setup(void **state)
{
	strcpy(root, "/tmp/test_folder_watch.XXXXXX");
	told[0] = '\0';
	if (mkdtemp(root) == NULL || (loop = loop_new()) == NULL)
		return -1;
	watch = NULL;
	return 0;
}

static int
teardown(void **state)
{
	char command[128];

	folder_watch_free(watch);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void
start(void)
{
	const struct folder_watch_setup setup = {
		.loop = loop,
		.root = root,
		.is_meant = archive_path_is_segment,
		.changed = changed,
	};

	watch = folder_watch_new(&setup, err, sizeof(err));
	if (watch == NULL)
		fail_msg("%s", err);
}

static const char *
at(const char *path)
{
	static char paths[2][256];
	static int i;

	i = !i;
	snprintf(paths[i], sizeof(paths[i]), "%s/%s", root, path);
	return paths[i];
}

static void
make_folder(const char *path)
{
	assert_int_equal(mkdir(at(path), 0700), 0);
}

static void
write_file(const char *path)
{
	int fd = open(at(path), O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

static void
move(const char *from, const char *to)
{
	assert_int_equal(rename(at(from), at(to)), 0);
}

/* Events are there as soon as the call that made them has returned. */
static void
assert_told(const char *expected)
{
	loop_run_once(loop);
	assert_string_equal(told, expected);
	told[0] = '\0';
}

static void
whole_files_are_told(void **state)
{
	start();
	write_file("a.pftrace.part");
	assert_told("");
	move("a.pftrace.part", "a.pftrace");
	assert_told(" a.pftrace");
	write_file("b.pftrace");
	assert_told(" b.pftrace");
	assert_int_equal(unlink(at("b.pftrace")), 0);
	assert_told(" b.pftrace");
	move("a.pftrace", "elsewhere");
	assert_told(" a.pftrace");
	write_file("catalog.db");
	write_file(".hidden.pftrace");
	make_folder(".hidden");
	write_file(".hidden/c.pftrace");
	assert_told("");
}

static void
folders_that_were_there_are_watched(void **state)
{
	make_folder("kiosk-1");
	make_folder("kiosk-1/2026-11-23");
	start();
	assert_told("");
	write_file("kiosk-1/2026-11-23/a.pftrace");
	assert_told(" kiosk-1/2026-11-23/a.pftrace");
}

static void
folders_that_appear_are_told_and_watched(void **state)
{
	start();
	make_folder("a");
	make_folder("a/b");
	/* There before anybody could watch the folder. */
	write_file("a/b/early.pftrace");
	assert_told(" a/");
	write_file("a/b/late.pftrace");
	assert_told(" a/b/late.pftrace");
}

static void
folders_that_go_are_told(void **state)
{
	make_folder("a");
	start();
	assert_int_equal(rmdir(at("a")), 0);
	assert_told(" a/");
	make_folder("a");
	assert_told(" a/");
	write_file("a/x.pftrace");
	assert_told(" a/x.pftrace");
}

static void
a_folder_that_moves_makes_it_start_over(void **state)
{
	make_folder("a");
	make_folder("a/b");
	start();
	move("a", "c");
	loop_run_once(loop);
	assert_non_null(strstr(told, " /"));
	told[0] = '\0';
	/* What the watches that were dropped have left behind. */
	loop_run_once(loop);
	told[0] = '\0';
	write_file("c/b/x.pftrace");
	assert_told(" c/b/x.pftrace");
}

static void
links_in_the_tree_are_not_followed(void **state)
{
	make_folder("a");
	assert_int_equal(symlink("a", at("link")), 0);
	start();
	write_file("link/x.pftrace");
	assert_told(" a/x.pftrace");
}

/* The kernel keeps 16384 events by default; more come than that. */
static void
events_that_are_lost_make_it_look_at_everything(void **state)
{
	FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
	unsigned most = 0, i;
	int rounds;

	if (f == NULL || fscanf(f, "%u", &most) != 1 || most > 100000)
		most = 0;
	if (f != NULL)
		fclose(f);
	if (most == 0)
		skip();
	start();
	write_file("0.pftrace");
	write_file("1.pftrace");
	for (i = 0; i < most; i++)
		move(i % 2 != 0 ? "0.pftrace" : "1.pftrace",
		    i % 2 != 0 ? "1.pftrace" : "0.pftrace");
	for (rounds = 0; rounds < 10000 && strstr(told, " /") == NULL;
	    rounds++) {
		told[0] = '\0';
		loop_run_once(loop);
	}
	assert_non_null(strstr(told, " /"));
	told[0] = '\0';
	loop_run_once(loop);
	told[0] = '\0';
	write_file("after.pftrace");
	assert_told(" after.pftrace");
	assert_int_equal(folder_watch_unwatched(watch), 0);
}

static void
a_folder_that_is_missing_is_named(void **state)
{
	struct folder_watch_setup setup = {
		.loop = loop,
		.root = "/nonexistent/archive",
		.is_meant = archive_path_is_segment,
		.changed = changed,
	};

	assert_null(folder_watch_new(&setup, err, sizeof(err)));
	assert_string_equal(err, "cannot watch the folder "
	    "/nonexistent/archive: No such file or directory");
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(whole_files_are_told),
		CASE(folders_that_were_there_are_watched),
		CASE(folders_that_appear_are_told_and_watched),
		CASE(folders_that_go_are_told),
		CASE(a_folder_that_moves_makes_it_start_over),
		CASE(links_in_the_tree_are_not_followed),
		CASE(events_that_are_lost_make_it_look_at_everything),
		CASE(a_folder_that_is_missing_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
