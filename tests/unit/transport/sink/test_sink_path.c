#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

#include "transport/sink/sink_path.h"

/*
 * top/            the folder of a test
 *   outside       a file that must not be touched
 *   dir/          the trace directory
 *     sub/
 *     file
 *     out -> ..       down -> sub       dangling -> nowhere
 */
struct fixture {
	char top[PATH_MAX];
	int topfd;
	int dirfd;
	char err[SINK_ERR_MAX];
};

static int
touch(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT, 0600);

	return fd < 0 ? -1 : close(fd);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *tmp = getenv("TMPDIR");

	snprintf(f->top, sizeof(f->top), "%s/sink_path.XXXXXX",
	    tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(f->top) == NULL)
		return -1;
	f->topfd = open(f->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (touch(f->topfd, "outside") < 0 ||
	    mkdirat(f->topfd, "dir", 0700) < 0)
		return -1;
	f->dirfd = openat(f->topfd, "dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (touch(f->dirfd, "file") < 0 ||
	    mkdirat(f->dirfd, "sub", 0700) < 0 ||
	    symlinkat("..", f->dirfd, "out") < 0 ||
	    symlinkat("sub", f->dirfd, "down") < 0 ||
	    symlinkat("nowhere", f->dirfd, "dangling") < 0)
		return -1;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	static const char *const inside[] = { "file", "sub/a", "a", "down",
		"out", "dangling", "nowhere" };
	size_t i;

	for (i = 0; i < sizeof(inside) / sizeof(*inside); i++)
		unlinkat(f->dirfd, inside[i], 0);
	unlinkat(f->dirfd, "sub", AT_REMOVEDIR);
	unlinkat(f->topfd, "outside", 0);
	unlinkat(f->topfd, "dir", AT_REMOVEDIR);
	close(f->dirfd);
	close(f->topfd);
	/* Fails when a test created what it must not */
	assert_int_equal(rmdir(f->top), 0);
	free(f);
	return 0;
}

static int
create(struct fixture *f, const char *path)
{
	struct sink_dir dir = { .fd = f->dirfd };

	f->err[0] = '\0';
	return sink_path_create(&dir, path, -1, -1, f->err, sizeof(f->err));
}

static void
assert_refused(struct fixture *f, const char *path, const char *why)
{
	int fd = create(f, path);

	if (fd >= 0)
		fail_msg("%s was created", path);
	if (strstr(f->err, why) == NULL)
		fail_msg("%s: '%s' does not say '%s'", path, f->err, why);
}

static void
a_new_file_is_created_private_and_writable(void **state)
{
	struct fixture *f = *state;
	struct stat st;
	int fd = create(f, "sub/a");

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
	assert_int_equal(faccessat(f->dirfd, "sub/a", F_OK, 0), 0);
}

static void
dots_and_double_slashes_that_stay_inside_are_accepted(void **state)
{
	struct fixture *f = *state;
	int fd = create(f, "./sub//./a");

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(faccessat(f->dirfd, "sub/a", F_OK, 0), 0);
}

static void
a_file_that_exists_is_refused(void **state)
{
	assert_refused(*state, "file", "exists already");
	assert_refused(*state, "sub/../file", "inside the trace directory");
}

static void
nothing_outside_the_directory_can_be_created(void **state)
{
	struct fixture *f = *state;
	char absolute[PATH_MAX + 16];

	snprintf(absolute, sizeof(absolute), "%s/dir/a", f->top);
	assert_refused(f, absolute, "inside the trace directory");
	assert_refused(f, "../a", "inside the trace directory");
	assert_refused(f, "sub/../../a", "inside the trace directory");
	assert_refused(f, "sub/..", "inside the trace directory");
	assert_refused(f, "..", "inside the trace directory");
	assert_refused(f, "out/a", "link");
	assert_refused(f, "/", "inside the trace directory");
}

static void
links_are_not_followed_even_if_they_stay_inside(void **state)
{
	assert_refused(*state, "down/a", "link");
	assert_refused(*state, "dangling", "exists already");
}

static void
what_cannot_be_a_file_is_refused_with_the_reason(void **state)
{
	struct fixture *f = *state;
	char name[NAME_MAX + 2];
	char path[PATH_MAX + 16];

	assert_refused(f, "", "inside the trace directory");
	assert_refused(f, "sub/", "inside the trace directory");
	assert_refused(f, "sub/.", "inside the trace directory");
	assert_refused(f, "missing/a", "no such directory");
	assert_refused(f, "file/a", "not a directory");
	assert_refused(f, "sub", "exists already");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_refused(f, name, "too long");
	memset(path, '/', sizeof(path));
	memcpy(path, "sub", 3);
	strcpy(path + sizeof(path) - 2, "a");
	assert_refused(f, path, "too long");
}

static void
no_permission_is_said_as_such(void **state)
{
	struct fixture *f = *state;
	bool root = geteuid() == 0;

	assert_int_equal(fchmodat(f->dirfd, "sub", 0500, 0), 0);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	assert_refused(f, "sub/a", "permission");
	if (root)
		assert_int_equal(seteuid(0), 0);
}

static void
the_file_has_the_mode_of_the_folder_whatever_the_umask(void **state)
{
	struct fixture *f = *state;
	struct sink_dir dir = { .fd = f->dirfd };
	mode_t before = umask(077);
	struct stat st;
	int fd;

	fd = sink_path_create(&dir, "a", -1, -1, f->err, sizeof(f->err));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	close(fd);
	assert_int_equal(unlinkat(f->dirfd, "a", 0), 0);
	dir.mode = 0644;
	fd = sink_path_create(&dir, "a", -1, -1, f->err, sizeof(f->err));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	close(fd);
	umask(before);
}

static void
the_file_belongs_to_its_consumer_when_we_are_root(void **state)
{
	struct fixture *f = *state;
	struct sink_dir dir = { .fd = f->dirfd };
	struct stat st;
	int fd;

	if (geteuid() != 0) {
		print_message("not root: ownership is not tried\n");
		skip();
	}
	fd = sink_path_create(&dir, "a", 65534, 65533, f->err,
	    sizeof(f->err));
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_uid, 65534);
	assert_int_equal(st.st_gid, 65533);
	close(fd);
}

/* Both ways to resolve, on every kind of path: the same answer. */
static void
a_kernel_without_openat2_gives_the_same_answers(void **state)
{
	static const char *const paths[] = { "a", "./a", "sub/a", "sub//a",
		"sub/./a", "../a", "sub/../a", "sub/../../a", "/a", "out/a",
		"down/a", "down/../a", "missing/a", "file/a", "", "sub/", ".",
		"..", "out/dir/a" };
	struct fixture *f = *state;
	struct stat a, b;
	const char *name;
	size_t i;
	int one, two;

	for (i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		one = sink_path_open_parent(f->dirfd, paths[i], true, &name);
		if (one >= 0)
			assert_string_equal(name, "a");
		two = sink_path_open_parent(f->dirfd, paths[i], false, &name);
		if ((one >= 0) != (two >= 0))
			fail_msg("'%s': %d and %d", paths[i], one, two);
		if (one < 0)
			continue;
		assert_string_equal(name, "a");
		assert_int_equal(fstat(one, &a), 0);
		assert_int_equal(fstat(two, &b), 0);
		assert_int_equal(a.st_ino, b.st_ino);
		close(one);
		close(two);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_new_file_is_created_private_and_writable),
		T(dots_and_double_slashes_that_stay_inside_are_accepted),
		T(a_file_that_exists_is_refused),
		T(nothing_outside_the_directory_can_be_created),
		T(links_are_not_followed_even_if_they_stay_inside),
		T(what_cannot_be_a_file_is_refused_with_the_reason),
		T(no_permission_is_said_as_such),
		T(the_file_has_the_mode_of_the_folder_whatever_the_umask),
		T(the_file_belongs_to_its_consumer_when_we_are_root),
		T(a_kernel_without_openat2_gives_the_same_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
