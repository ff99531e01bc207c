#include <errno.h>
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
#include <unistd.h>
#include <cmocka.h>

#include "transport/connect/bridge.h"
#include "transport/loop/loop.h"

static struct {
	struct loop *loop;
	struct bridge *bridge;
	/* in: far[0] -> bridge; out: bridge -> far[1]; near: the socket's */
	int in, out;
	int far_in, far_out, near;
	int abandoned, ended, error;
	bool free_in_callback;
} t;

static void
over(void)
{
	if (!t.free_in_callback)
		return;
	bridge_free(t.bridge);
	t.bridge = NULL;
}

static void
on_abandoned(void *arg)
{
	assert_ptr_equal(arg, &t);
	t.abandoned++;
	over();
}

static void
on_ended(void *arg, int error)
{
	t.ended++;
	t.error = error;
	over();
}

static const struct bridge_ops ops = { on_abandoned, on_ended };

static void
unblock(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

static int
setup(void **state)
{
	int fds[2];

	memset(&t, 0, sizeof(t));
	t.near = -1;
	t.loop = loop_new();
	assert_int_equal(pipe(fds), 0);
	t.in = fds[0];
	t.far_in = fds[1];
	assert_int_equal(pipe(fds), 0);
	t.far_out = fds[0];
	t.out = fds[1];
	unblock(t.in);
	unblock(t.out);
	unblock(t.far_in);
	unblock(t.far_out);
	t.bridge = bridge_new(t.loop, t.in, t.out, &ops, &t);
	return t.bridge == NULL;
}

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int
teardown(void **state)
{
	bridge_free(t.bridge);
	loop_free(t.loop);
	close_fd(&t.in);
	close_fd(&t.out);
	close_fd(&t.far_in);
	close_fd(&t.far_out);
	close_fd(&t.near);
	return 0;
}

static void
attach(void)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
	    pair), 0);
	t.near = pair[0];
	bridge_attach(t.bridge, pair[1]);
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
arrives(int fd, const char *text)
{
	char got[256] = "";
	size_t len = 0;
	ssize_t n;

	RUN_UNTIL((n = read(fd, got + len, sizeof(got) - 1 - len)) > 0 ?
	    (len += (size_t)n, len >= strlen(text)) : false);
	assert_string_equal(got, text);
}

static void
put(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void
bytes_go_both_ways(void **state)
{
	attach();
	put(t.far_in, "up");
	arrives(t.near, "up");
	put(t.near, "down");
	arrives(t.far_out, "down");
	assert_int_equal(t.ended, 0);
}

static void
what_came_before_the_socket_waits_for_it(void **state)
{
	put(t.far_in, "early ");
	loop_run_once(t.loop);
	put(t.far_in, "bytes");
	loop_run_once(t.loop);
	attach();
	arrives(t.near, "early bytes");
}

static void
an_input_that_ends_before_there_is_a_socket_is_told(void **state)
{
	t.free_in_callback = true;
	put(t.far_in, "early bytes");
	close_fd(&t.far_in);
	RUN_UNTIL(t.abandoned);
	loop_run_once(t.loop);
	assert_int_equal(t.abandoned, 1);
	assert_int_equal(t.ended, 0);
}

static void
the_end_of_the_input_is_passed_on_and_answers_still_come(void **state)
{
	char byte;

	attach();
	put(t.far_in, "last words");
	close_fd(&t.far_in);
	arrives(t.near, "last words");
	RUN_UNTIL(read(t.near, &byte, 1) == 0);
	put(t.near, "answer");
	arrives(t.far_out, "answer");
	assert_int_equal(t.ended, 0);
	close_fd(&t.near);
	RUN_UNTIL(t.ended);
	assert_int_equal(t.error, 0);
}

static void
the_end_of_the_socket_ends_it_after_its_last_bytes(void **state)
{
	t.free_in_callback = true;
	attach();
	put(t.near, "last words");
	close_fd(&t.near);
	RUN_UNTIL(t.ended);
	arrives(t.far_out, "last words");
	assert_int_equal(t.ended, 1);
	assert_int_equal(t.error, 0);
}

/* Fills fd until it takes no more, all along; the bytes that went. */
static size_t
stuff(int fd)
{
	static const char block[65536];
	size_t total = 0, stuck = 0;
	ssize_t n;

	while (stuck < 50) {
		n = write(fd, block, sizeof(block));
		if (n > 0) {
			total += (size_t)n;
			stuck = 0;
		} else {
			assert_int_equal(errno, EAGAIN);
			stuck++;
		}
		loop_run_once(t.loop);
	}
	return total;
}

static size_t
count(int fd, size_t total)
{
	static char block[65536];
	size_t got = 0;
	ssize_t n;

	RUN_UNTIL((n = read(fd, block, sizeof(block))) > 0 ?
	    (got += (size_t)n, got >= total) : false);
	return got;
}

static void
a_side_that_does_not_read_stops_the_other(void **state)
{
	size_t up, down;

	attach();
	up = stuff(t.far_in);
	down = stuff(t.near);
	/* pipes and sockets hold some, the bridge one buffer each way */
	assert_true(up < 2 * 1024 * 1024);
	assert_true(down < 2 * 1024 * 1024);
	assert_int_equal(count(t.near, up), up);
	assert_int_equal(count(t.far_out, down), down);
	put(t.far_in, "on");
	arrives(t.near, "on");
}

static void
a_socket_that_is_reset_is_said(void **state)
{
	attach();
	put(t.far_in, "never read");
	RUN_UNTIL(recv(t.near, (char[1]){ 0 }, 1, MSG_PEEK) == 1);
	close_fd(&t.near); /* with bytes unread: a reset */
	RUN_UNTIL(t.ended);
	assert_int_equal(t.error, ECONNRESET);
}

static void
an_output_that_nobody_reads_ends_it(void **state)
{
	attach();
	close_fd(&t.far_out);
	put(t.near, "into the void");
	RUN_UNTIL(t.ended);
	assert_int_equal(t.error, 0);
}

/* epoll takes no files; they are always ready. */
static void
a_file_serves_as_input(void **state)
{
	char path[] = "/tmp/test_bridge.XXXXXX", byte;
	int fd = mkstemp(path);

	put(fd, "from a file");
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	bridge_free(t.bridge);
	t.bridge = bridge_new(t.loop, fd, t.out, &ops, &t);
	attach();
	arrives(t.near, "from a file");
	RUN_UNTIL(read(t.near, &byte, 1) == 0);
	assert_int_equal(t.ended, 0);
	bridge_free(t.bridge);
	t.bridge = NULL;
	close(fd);
	unlink(path);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(bytes_go_both_ways),
		TEST(what_came_before_the_socket_waits_for_it),
		TEST(an_input_that_ends_before_there_is_a_socket_is_told),
		TEST(the_end_of_the_input_is_passed_on_and_answers_still_come),
		TEST(the_end_of_the_socket_ends_it_after_its_last_bytes),
		TEST(a_side_that_does_not_read_stops_the_other),
		TEST(a_socket_that_is_reset_is_said),
		TEST(an_output_that_nobody_reads_ends_it),
		TEST(a_file_serves_as_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
