/* forward: what goes in at one end comes out at the other, both ways. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/tunnel/forward.h"
#include "transport/loop/loop.h"
#include "transport/wire/ipc_frame.h"

#define FAR_MAX 8

static struct fixture {
	char folder[32];
	struct loop *loop;
	struct forwarder *forwarder;
	struct addr near, to;
	int door; /* the collector's listening socket */
	char err[1024];
} t;

static int
unix_socket(const struct addr *a, bool listening)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (listening) {
		assert_int_equal(bind(fd, (const struct sockaddr *)&a->sa,
		    a->sa_len), 0);
		assert_int_equal(listen(fd, FAR_MAX), 0);
	} else {
		assert_int_equal(connect(fd, (const struct sockaddr *)&a->sa,
		    a->sa_len), 0);
	}
	return fd;
}

static int
setup(void **state)
{
	char path[64];

	memset(&t, 0, sizeof(t));
	strcpy(t.folder, "/tmp/tribXXXXXX");
	assert_non_null(mkdtemp(t.folder));
	t.loop = loop_new();
	snprintf(path, sizeof(path), "%s/near", t.folder);
	assert_int_equal(addr_parse(&t.near, path, t.err, sizeof(t.err)), 0);
	snprintf(path, sizeof(path), "%s/far", t.folder);
	assert_int_equal(addr_parse(&t.to, path, t.err, sizeof(t.err)), 0);
	t.door = unix_socket(&t.to, true);
	return 0;
}

static int
teardown(void **state)
{
	forwarder_free(t.forwarder);
	loop_free(t.loop);
	close(t.door);
	unlink(t.to.text);
	assert_int_equal(rmdir(t.folder), 0);
	return 0;
}

static void
start(bool consumers)
{
	struct forward_options o = {
		.listen = &t.near,
		.to = &t.to,
		.consumers = consumers,
		.machine_name = "bench-3",
	};

	t.forwarder = forwarder_new(t.loop, &o, t.err, sizeof(t.err));
	assert_non_null(t.forwarder);
}

/* Turns the loop until fd can be read. */
static void
wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (poll(&p, 1, 1) == 0)
		loop_run_once(t.loop);
}

static int
accept_far(void)
{
	int fd;

	wait_readable(t.door);
	fd = accept4(t.door, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void
read_all(int fd, void *out, size_t len)
{
	size_t at = 0;
	ssize_t n;

	while (at < len) {
		wait_readable(fd);
		n = read(fd, (char *)out + at, len - at);
		if (n < 0 && errno == EAGAIN)
			continue;
		assert_true(n > 0);
		at += (size_t)n;
	}
}

static void
read_identity(int fd, struct ipc_identity *id, uint8_t *buf, size_t size)
{
	struct ipc_frame f;
	uint32_t len;

	read_all(fd, buf, 4);
	len = (uint32_t)buf[0] | (uint32_t)buf[1] << 8;
	assert_true(len <= size);
	read_all(fd, buf, len);
	assert_int_equal(ipc_parse_frame(&f, buf, len), 0);
	assert_int_equal(f.kind, IPC_SET_PEER_IDENTITY);
	assert_int_equal(ipc_parse_identity(id, f.body), 0);
}

static void
a_producer_is_introduced_before_its_first_byte(void **state)
{
	struct ipc_identity id;
	uint8_t buf[512];
	int near, far;

	start(false);
	near = unix_socket(&t.near, false);
	assert_int_equal(write(near, "hello", 5), 5);
	far = accept_far();
	read_identity(far, &id, buf, sizeof(buf));
	assert_int_equal(id.pid, getpid());
	assert_int_equal(id.uid, getuid());
	assert_true(id.forwarded);
	assert_int_equal(id.machine_name.len, 7);
	assert_memory_equal(id.machine_name.data, "bench-3", 7);
	read_all(far, buf, 5);
	assert_memory_equal(buf, "hello", 5);
	close(near);
	close(far);
}

static void
a_consumer_is_not_introduced(void **state)
{
	uint8_t buf[8];
	int near, far;

	start(true);
	near = unix_socket(&t.near, false);
	assert_int_equal(write(near, "hello", 5), 5);
	far = accept_far();
	read_all(far, buf, 5);
	assert_memory_equal(buf, "hello", 5);
	close(near);
	close(far);
}

#define MUCH (24u * 1024u * 1024u)

static uint8_t
byte_at(size_t at)
{
	return (uint8_t)(at * 2654435761u >> 13);
}

/* Sends MUCH from one end and checks it at the other, which reads slowly. */
static void
pour(int from, int to)
{
	static uint8_t out[65536], in[70000];
	size_t sent = 0, got = 0, i, n_out;
	ssize_t n;

	while (got < MUCH) {
		n_out = sizeof(out) - sent % 4096;
		if (n_out > MUCH - sent)
			n_out = MUCH - sent;
		for (i = 0; i < n_out; i++)
			out[i] = byte_at(sent + i);
		n = n_out == 0 ? 0 : write(from, out, n_out);
		if (n > 0)
			sent += (size_t)n;
		loop_run_once(t.loop);
		n = read(to, in, sizeof(in));
		assert_true(n > 0 || (n < 0 && errno == EAGAIN));
		for (i = 0; n > 0 && i < (size_t)n; i++)
			if (in[i] != byte_at(got + i))
				fail_msg("byte %zu differs", got + i);
		got += n > 0 ? (size_t)n : 0;
	}
}

static void
much_passes_both_ways_unchanged(void **state)
{
	int near, far;

	start(true);
	near = unix_socket(&t.near, false);
	far = accept_far();
	pour(near, far);
	pour(far, near);
	close(near);
	close(far);
}

static void
who_does_not_read_holds_the_other_side_back(void **state)
{
	static uint8_t block[65536];
	size_t sent = 0, idle = 0;
	int near, far;
	ssize_t n;

	start(true);
	near = unix_socket(&t.near, false);
	far = accept_far();
	while (idle < 1000) {
		n = write(near, block, sizeof(block));
		if (n > 0)
			sent += (size_t)n;
		idle = n > 0 ? 0 : idle + 1;
		loop_run_once(t.loop);
		assert_true(sent < 8u * 1024u * 1024u);
	}
	assert_int_equal(forwarder_connections(t.forwarder), 1);
	close(near);
	close(far);
}

static void
wait_end(int fd)
{
	char byte;

	wait_readable(fd);
	assert_int_equal(read(fd, &byte, 1), 0);
}

static void
the_last_words_of_one_side_reach_the_other(void **state)
{
	uint8_t buf[8];
	int near, far;

	start(true);
	near = unix_socket(&t.near, false);
	assert_int_equal(write(near, "bye", 3), 3);
	close(near);
	far = accept_far();
	read_all(far, buf, 3);
	assert_memory_equal(buf, "bye", 3);
	wait_end(far);
	close(far);
	near = unix_socket(&t.near, false);
	far = accept_far();
	assert_int_equal(write(far, "bye", 3), 3);
	close(far);
	read_all(near, buf, 3);
	wait_end(near);
	close(near);
	assert_int_equal(forwarder_connections(t.forwarder), 0);
}

static void
a_collector_that_is_not_there_ends_the_connection(void **state)
{
	int near;

	close(t.door);
	t.door = -1;
	start(false);
	near = unix_socket(&t.near, false);
	wait_end(near);
	close(near);
	assert_int_equal(forwarder_connections(t.forwarder), 0);
}

static void
it_ends_with_connections_open(void **state)
{
	int near, far, waiting;

	start(false);
	near = unix_socket(&t.near, false);
	far = accept_far();
	waiting = unix_socket(&t.near, false);
	loop_run_once(t.loop);
	forwarder_free(t.forwarder);
	t.forwarder = NULL;
	loop_run_once(t.loop);
	close(near);
	close(far);
	close(waiting);
}

static void
only_this_machine_may_connect(void **state)
{
	struct forward_options o = { .listen = &t.near, .to = &t.to,
		.machine_name = "" };

	static const char *const others[] = { "0.0.0.0:0", "tls://127.0.0.1:0",
		"vsock://2:1" };
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(addr_parse(&t.near, others[i], t.err,
		    sizeof(t.err)), 0);
		assert_null(forwarder_new(t.loop, &o, t.err, sizeof(t.err)));
		assert_non_null(strstr(t.err, "let through unchecked"));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(a_producer_is_introduced_before_its_first_byte),
		T(a_consumer_is_not_introduced),
		T(much_passes_both_ways_unchanged),
		T(who_does_not_read_holds_the_other_side_back),
		T(the_last_words_of_one_side_reach_the_other),
		T(a_collector_that_is_not_there_ends_the_connection),
		T(it_ends_with_connections_open),
		T(only_this_machine_may_connect),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
