#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/transport/socket/tcp_pair.h"
#include "transport/socket/peer.h"

/* The address that the next peers have; NULL: the true one. */
static const char *comes_from;

int __real_getpeername(int fd, struct sockaddr *out, socklen_t *len);
int __wrap_getpeername(int fd, struct sockaddr *out, socklen_t *len);

int
__wrap_getpeername(int fd, struct sockaddr *out, socklen_t *len)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

	if (comes_from == NULL)
		return __real_getpeername(fd, out, len);
	assert_int_equal(inet_pton(AF_INET6, comes_from, &in6.sin6_addr), 1);
	memcpy(out, &in6, sizeof(in6));
	*len = sizeof(in6);
	return 0;
}

static struct peer
peer_from(const char *ipv6)
{
	struct peer p;

	comes_from = ipv6;
	peer_from_socket(&p, -1);
	comes_from = NULL;
	return p;
}

static void
addresses_of_one_ipv6_network_are_one_site(void **state)
{
	struct peer a = peer_from("2001:db8:1:2::1");
	struct peer b = peer_from("2001:db8:1:2:ffff:ffff:ffff:ffff");
	struct peer c = peer_from("2001:db8:1:3::1");
	struct peer v4 = peer_from("::ffff:10.0.0.7");
	struct peer neighbour = peer_from("::ffff:10.0.0.8");

	(void)state;
	assert_true(a.addr_hash != b.addr_hash);
	assert_true(a.net_hash == b.net_hash);
	assert_true(a.net_hash != c.net_hash);
	/* Through a listener for both these are still addresses of IPv4. */
	assert_true(v4.net_hash == v4.addr_hash);
	assert_true(v4.net_hash != neighbour.net_hash);
}

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
		cmocka_unit_test(addresses_of_one_ipv6_network_are_one_site),
		cmocka_unit_test(a_peer_that_left_already_is_unknown_not_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
