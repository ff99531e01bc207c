#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>
#include <cmocka.h>

#include "relay/producers/shm_keeper.h"

struct folder {
	char path[32];
	int fd;
};

static void
folder_make(struct folder *f)
{
	snprintf(f->path, sizeof(f->path), "/tmp/keeper-XXXXXX");
	assert_non_null(mkdtemp(f->path));
	f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->fd >= 0);
}

static void
folder_remove(struct folder *f)
{
	unlinkat(f->fd, "lock", 0);
	unlinkat(f->fd, "keeper", 0);
	assert_int_equal(rmdir(f->path), 0);
	close(f->fd);
}

static int
locked(const struct folder *f)
{
	int fd = openat(f->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		fail_msg("the lock is still held");
	return fd;
}

static int
moved_up(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, 64);

	assert_true(moved >= 0);
	close(fd);
	return moved;
}

/*
 * In place of the C library's: the keeper, a child's child, gets no processor
 * until the test lets it, as on a machine with much to do.
 */
static int gate[2];
static pid_t test_pid;

pid_t
fork(void)
{
	bool is_child = getpid() != test_pid;
	pid_t pid = _Fork();
	char byte;

	if (pid == 0 && is_child) {
		close(gate[1]); /* a test that failed lets it go, too */
		(void)!read(gate[0], &byte, 1);
	}
	return pid;
}

/* A relay that ends right after it started a keeper, and the next relay. */
static void
a_lock_ends_with_its_relay(void **state)
{
	struct shm_keeper *k;
	struct folder f;
	char err[256];
	int lock;

	(void)state;
	test_pid = getpid();
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	/* Above the numbers that the keeper uses. */
	gate[0] = moved_up(gate[0]);
	gate[1] = moved_up(gate[1]);
	folder_make(&f);
	lock = locked(&f);
	k = shm_keeper_start(f.fd, err, sizeof(err));
	if (k == NULL)
		fail_msg("%s", err);
	shm_keeper_close(k);
	close(lock);
	close(locked(&f));
	assert_int_equal(write(gate[1], "", 1), 1);
	folder_remove(&f);
	close(gate[0]);
	close(gate[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_ends_with_its_relay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
