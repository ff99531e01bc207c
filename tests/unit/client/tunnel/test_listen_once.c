#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/tunnel/listen_once.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

#define N 3

/* One that waits, and what it got. */
struct taker {
	struct listen_once *accept;
	int calls;
	int fd;
	char error[1024];
};

static struct {
	struct loop *loop;
	char dir[64];
	char path[100];
	char lock[110];
	struct addr addr;
	struct taker takers[N];
	int clients[N];
} t;

static void
on_accept(void *arg, int fd, const char *error)
{
	struct taker *k = arg;

	k->calls++;
	k->fd = fd;
	snprintf(k->error, sizeof(k->error), "%s", error != NULL ? error : "");
	listen_once_free(k->accept);
	k->accept = NULL;
}

static void
set_path(const char *path)
{
	char err[256];

	snprintf(t.path, sizeof(t.path), "%s", path);
	snprintf(t.lock, sizeof(t.lock), "%s.lock", path);
	assert_int_equal(addr_parse(&t.addr, t.path, err, sizeof(err)), 0);
}

static int
setup(void **state)
{
	char path[80];
	int i;

	memset(&t, 0, sizeof(t));
	for (i = 0; i < N; i++)
		t.takers[i].fd = t.clients[i] = -1;
	t.loop = loop_new();
	strcpy(t.dir, "/tmp/test_accept.XXXXXX");
	if (t.loop == NULL || mkdtemp(t.dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/s", t.dir);
	set_path(path);
	return 0;
}

static int
teardown(void **state)
{
	int i;

	for (i = 0; i < N; i++) {
		listen_once_free(t.takers[i].accept);
		if (t.takers[i].fd >= 0)
			close(t.takers[i].fd);
		if (t.clients[i] >= 0)
			close(t.clients[i]);
	}
	loop_free(t.loop);
	/* Neither socket nor lock stays. */
	return rmdir(t.dir);
}

#define RUN_UNTIL(cond)                                                        \
	do {                                                                   \
		uint64_t start_ = loop_now_ms();                               \
		while (!(cond)) {                                              \
			loop_run_once(t.loop);                                 \
			assert_true(loop_now_ms() - start_ < 30000);           \
		}                                                              \
	} while (0)

static void
waits(int i)
{
	t.takers[i].accept = listen_once_new(t.loop, &t.addr, on_accept,
	    &t.takers[i]);
	assert_non_null(t.takers[i].accept);
	assert_int_equal(t.takers[i].calls, 0);
}

static bool
connected(int i)
{
	if (t.clients[i] < 0)
		t.clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	return connect(t.clients[i], (struct sockaddr *)&t.addr.sa,
	    t.addr.sa_len) == 0;
}

static int
calls(void)
{
	return t.takers[0].calls + t.takers[1].calls + t.takers[2].calls;
}

static void
one_connection_is_taken_and_nobody_listens_any_more(void **state)
{
	char byte;

	waits(0);
	RUN_UNTIL(connected(0));
	RUN_UNTIL(t.takers[0].calls);
	assert_string_equal(t.takers[0].error, "");
	assert_true(fcntl(t.takers[0].fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(write(t.clients[0], "x", 1), 1);
	assert_int_equal(read(t.takers[0].fd, &byte, 1), 1);
	assert_int_equal(access(t.path, F_OK), -1);
	assert_int_equal(access(t.lock, F_OK), -1);
	assert_false(connected(1));
}

static void
several_at_one_path_take_turns(void **state)
{
	int i;

	for (i = 0; i < N; i++)
		waits(i);
	for (i = 0; i < N; i++) {
		RUN_UNTIL(connected(i));
		RUN_UNTIL(calls() == i + 1);
	}
	for (i = 0; i < N; i++) {
		assert_true(t.takers[i].fd >= 0);
		assert_int_equal(t.takers[i].calls, 1);
	}
}

static void
one_that_gives_up_leaves_the_turn_to_the_next(void **state)
{
	waits(0);
	RUN_UNTIL(connected(0) || access(t.path, F_OK) == 0);
	waits(1);
	loop_run_once(t.loop);
	listen_once_free(t.takers[0].accept);
	t.takers[0].accept = NULL;
	RUN_UNTIL(connected(1));
	RUN_UNTIL(t.takers[1].calls);
	assert_true(t.takers[1].fd >= 0);
}

static void
somebody_else_who_listens_there_is_left_alone(void **state)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&t.addr.sa,
	    t.addr.sa_len), 0);
	assert_int_equal(listen(fd, 5), 0);
	waits(0);
	RUN_UNTIL(t.takers[0].calls);
	assert_int_equal(t.takers[0].fd, -1);
	assert_non_null(strstr(t.takers[0].error, t.path));
	assert_int_equal(access(t.path, F_OK), 0);
	close(fd);
	unlink(t.path);
}

static void
a_directory_that_is_not_there_is_said(void **state)
{
	char path[90];

	snprintf(path, sizeof(path), "%s/no/s", t.dir);
	set_path(path);
	waits(0);
	RUN_UNTIL(t.takers[0].calls);
	assert_int_equal(t.takers[0].fd, -1);
	assert_non_null(strstr(t.takers[0].error, "No such file or directory"));
	assert_non_null(strstr(t.takers[0].error, t.lock));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_connection_is_taken_and_nobody_listens_any_more),
		TEST(several_at_one_path_take_turns),
		TEST(one_that_gives_up_leaves_the_turn_to_the_next),
		TEST(somebody_else_who_listens_there_is_left_alone),
		TEST(a_directory_that_is_not_there_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
