#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/transport/tcp_pair.h"
#include "transport/peer.h"

static void
a_unix_peer_is_who_the_kernel_says(void **state)
{
	struct peer p;
	char want[80];
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	peer_from_socket(&p, sv[0]);
	assert_int_equal(p.kind, ADDR_UNIX);
	assert_int_equal(p.auth, PEER_UNIX);
	assert_true(p.can_pass_fds);
	assert_int_equal(p.uid, geteuid());
	assert_int_equal(p.gid, getegid());
	assert_int_equal(p.pid, getpid());
	assert_int_equal(p.addr_hash, 0);
	snprintf(want, sizeof(want), "unix pid %d uid %u", getpid(),
	    geteuid());
	assert_string_equal(p.text, want);
	close(sv[0]);
	close(sv[1]);
}

static void
a_tcp_peer_is_nobody_and_known_by_its_address(void **state)
{
	struct peer p, q;
	int a[2], b[2];

	assert_int_equal(tcp_pair(a), 0);
	assert_int_equal(tcp_pair(b), 0);
	peer_from_socket(&p, a[0]);
	peer_from_socket(&q, b[0]);
	assert_int_equal(p.kind, ADDR_TCP);
	assert_int_equal(p.auth, PEER_NOBODY);
	assert_false(p.can_pass_fds);
	assert_int_equal(p.uid, PEER_UID_UNKNOWN);
	assert_int_equal(p.pid, PEER_PID_UNKNOWN);
	assert_memory_equal(p.text, "127.0.0.1:", 10);
	/* Two connections, one machine. */
	assert_string_not_equal(p.text, q.text);
	assert_true(p.addr_hash == q.addr_hash);
	assert_true(p.addr_hash != 0);
	assert_true(p.net_hash == p.addr_hash);
	close(a[0]);
	close(a[1]);
	close(b[0]);
	close(b[1]);
}

static void
a_peer_that_left_already_is_unknown_not_root(void **state)
{
	struct linger hard = { 1, 0 };
	struct peer p;
	int a[2];

	assert_int_equal(tcp_pair(a), 0);
	setsockopt(a[1], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(a[1]);
	peer_from_socket(&p, a[0]);
	assert_int_equal(p.uid, PEER_UID_UNKNOWN);
	assert_int_equal(p.auth, PEER_NOBODY);
	close(a[0]);
	peer_from_socket(&p, a[0]);
	assert_int_equal(p.uid, PEER_UID_UNKNOWN);
	assert_string_equal(p.text, "unknown");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_unix_peer_is_who_the_kernel_says),
		cmocka_unit_test(a_tcp_peer_is_nobody_and_known_by_its_address),
		cmocka_unit_test(a_peer_that_left_already_is_unknown_not_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
