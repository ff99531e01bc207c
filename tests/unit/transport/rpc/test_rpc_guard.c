/* Who may connect and bind, and who is thrown out for being quiet. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "protos/fields.h"
#include "tests/unit/transport/socket/tcp_pair.h"
#include "tests/unit/transport/tls/tls_fixture.h"
#include "transport/base/budget.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"

static struct {
	struct loop *loop;
	struct rpc_stats stats;
	struct rpc_guard guard;
	struct rpc_conn *conn; /* NULL: gone */
	int fd;                /* the client's plain end, or -1 */
	struct stream *client; /* or its end of TLS */
	struct pb_writer out;

	/* How the guard behaves, and what it saw. */
	bool refuse_admit, refuse_bind, close_in_bind, close_in_admit;
	int admits, binds, gone, bound, service_gone;
	enum addr_kind admitted_kind;
	char admitted_name[64];

	int client_opened, client_ends;
	uint8_t in[300000];
	size_t in_len, in_at;
	struct ipc_frame reply;
} t;

static bool
on_admit(struct rpc_conn *c, const struct peer *p, void *arg, char *why)
{
	assert_string_equal(arg, "guard");
	assert_null(rpc_conn_mark(c));
	rpc_conn_set_mark(c, &t);
	t.admits++;
	t.admitted_kind = p->kind;
	if (p->cert != NULL)
		snprintf(t.admitted_name, sizeof(t.admitted_name), "%.60s",
		    p->cert->name);
	if (t.close_in_admit)
		rpc_conn_close(c, "in admit");
	if (t.refuse_admit)
		snprintf(why, RPC_WHY_MAX, "full: %.200s",
		    "no more than 64 connections from one address");
	return !t.refuse_admit;
}

static bool
on_may_bind(struct rpc_conn *c, const struct rpc_service *s, void *arg,
    char *why)
{
	assert_string_equal(s->name, "ConsumerPort");
	assert_ptr_equal(rpc_conn_mark(c), &t);
	t.binds++;
	if (t.close_in_bind)
		rpc_conn_close(c, "in may_bind");
	if (t.refuse_bind)
		snprintf(why, RPC_WHY_MAX, "a producer reads no traces");
	return !t.refuse_bind;
}

static void
on_guard_gone(struct rpc_conn *c, void *arg)
{
	assert_true(strlen(rpc_conn_peer(c)->text) > 0);
	t.gone++;
	if (c != t.conn)
		return;
	/* The service was told before, if there was one. */
	assert_int_equal(t.service_gone, t.bound);
	t.conn = NULL;
}

static void *
on_bind(struct rpc_conn *c, void *arg)
{
	t.bound++;
	return &t;
}

static void
on_service_gone(void *ctx)
{
	t.service_gone++;
}

static enum rpc_verdict
method_flood(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	static const uint8_t big[100000];

	rpc_reply(call, big, sizeof(big), false, -1);
	return RPC_OK;
}

static const struct rpc_method methods[] = { { "Flood", method_flood } };
static const struct rpc_service consumer = {
	.name = "ConsumerPort",
	.methods = methods,
	.n_methods = 1,
	.bind = on_bind,
	.gone = on_service_gone,
};
static const struct rpc_service *const services[] = { &consumer };

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	log_init("test", LOG_LEVEL_ERROR);
	t.loop = loop_new();
	t.fd = -1;
	pb_writer_init(&t.out);
	t.guard.admit = on_admit;
	t.guard.may_bind = on_may_bind;
	t.guard.gone = on_guard_gone;
	t.guard.arg = (void *)"guard";
	return 0;
}

static int
teardown(void **state)
{
	rpc_conns_close_all(&t.stats);
	if (t.client != NULL)
		stream_close(t.client, false);
	loop_free(t.loop);
	if (t.fd >= 0)
		close(t.fd);
	pb_writer_done(&t.out);
	assert_null(t.conn);
	assert_int_equal(t.stats.n_conns, 0);
	return 0;
}

#define RUN_UNTIL(cond)                                                        \
	do {                                                                   \
		uint64_t give_up_ = loop_now_ms() + 30000;                     \
		while (!(cond)) {                                              \
			loop_run_once(t.loop);                                 \
			assert_true(loop_now_ms() < give_up_);                 \
		}                                                              \
	} while (0)

static void
turn(int n)
{
	while (n-- > 0)
		loop_run_once(t.loop);
}

static void
host(int fd, const struct stream_setup *over)
{
	struct rpc_conn_setup s = {
		.services = services,
		.n_services = 1,
		.stats = &t.stats,
		.guard = &t.guard,
		.stream = over,
	};

	t.conn = rpc_conn_new(t.loop, fd, &s);
	assert_non_null(t.conn);
}

static void
connect_unix(void)
{
	int sv[2] = { -1, -1 };

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	t.fd = sv[1];
	fcntl(t.fd, F_SETFL, O_NONBLOCK);
	host(sv[0], NULL);
}

static void
send_out(void)
{
	if (t.client != NULL)
		stream_write(t.client, t.out.data, t.out.len, -1);
	else
		assert_int_equal(send(t.fd, t.out.data, t.out.len,
		    MSG_NOSIGNAL), t.out.len);
}

static void
send_bind(void)
{
	size_t mark = ipc_frame_begin(&t.out, 1, IPC_BIND_SERVICE);

	pb_put_string(&t.out, 1, "ConsumerPort");
	ipc_frame_end(&t.out, mark);
	send_out();
}

static void
send_call(void)
{
	size_t mark = ipc_frame_begin(&t.out, 2, IPC_INVOKE_METHOD);

	pb_put_uint(&t.out, 1, 1);
	pb_put_uint(&t.out, 2, 1);
	ipc_frame_end(&t.out, mark);
	send_out();
}

static void
send_identity(bool forwarded)
{
	size_t mark = ipc_frame_begin(&t.out, 0, IPC_SET_PEER_IDENTITY);

	pb_put_int(&t.out, 1, 42);
	pb_put_string(&t.out, 4, "device-7");
	if (forwarded)
		pb_put_uint(&t.out, SetPeerIdentity_tributary_forwarded, 1);
	ipc_frame_end(&t.out, mark);
	send_out();
}

static bool
next_reply(void)
{
	const uint8_t *payload;
	size_t len, used, need;
	ssize_t n;

	loop_run_once(t.loop);
	if (t.fd >= 0 && (n = recv(t.fd, t.in + t.in_len,
		sizeof(t.in) - t.in_len, 0)) > 0)
		t.in_len += (size_t)n;
	if (frame_next(t.in + t.in_at, t.in_len - t.in_at, &payload, &len,
		&used, &need) != FRAME_OK)
		return false;
	assert_int_equal(ipc_parse_frame(&t.reply, payload, len), 0);
	t.in_at += used;
	return true;
}

static void
expect_told(const char *words)
{
	struct ipc_slice text;
	char copy[RPC_WHY_MAX] = "";

	RUN_UNTIL(next_reply());
	assert_int_equal(t.reply.kind, IPC_REQUEST_ERROR);
	assert_true(t.reply.request_id == 0);
	assert_int_equal(ipc_parse_text(&text, t.reply.body), 0);
	assert_true(text.len < sizeof(copy));
	memcpy(copy, text.data, text.len);
	assert_non_null(strstr(copy, words));
}

static void
no_method(void *arg, const struct ipc_method_info *info)
{
}

static void
expect_bound(bool success)
{
	struct ipc_bind_reply m;

	RUN_UNTIL(next_reply());
	assert_int_equal(t.reply.kind, IPC_BIND_SERVICE_REPLY);
	assert_true(t.reply.request_id == 1);
	assert_int_equal(ipc_parse_bind_reply(&m, t.reply.body, no_method,
	    NULL), 0);
	assert_int_equal(m.success, success);
}

static void
expect_closed(void)
{
	char byte;

	RUN_UNTIL(recv(t.fd, &byte, 1, MSG_PEEK) == 0);
}

static void
who_is_admitted_binds_and_the_guard_hears_the_end_last(void **state)
{
	connect_unix();
	assert_int_equal(t.admits, 1); /* at once */
	assert_int_equal(t.admitted_kind, ADDR_UNIX);
	send_bind();
	expect_bound(true);
	assert_int_equal(t.binds, 1);
	close(t.fd);
	t.fd = -1;
	RUN_UNTIL(t.gone == 1);
	assert_int_equal(t.stats.refused_admit + t.stats.refused_bind, 0);
}

static void
who_is_not_admitted_reads_why_and_then_the_end(void **state)
{
	t.refuse_admit = true;
	connect_unix();
	assert_int_equal(t.gone, 0); /* not inside */
	expect_told("no more than 64 connections");
	expect_closed();
	RUN_UNTIL(t.gone == 1);
	assert_int_equal(t.stats.refused_admit, 1);
	assert_int_equal(t.stats.connections, 1);
	assert_int_equal(t.binds, 0);
	assert_int_equal(t.bound, 0);
}

static void
a_guard_may_close_in_admit(void **state)
{
	t.refuse_admit = t.close_in_admit = true;
	connect_unix();
	RUN_UNTIL(t.gone == 1);
	expect_closed();
}

static void
who_may_not_bind_reads_why_and_may_try_again(void **state)
{
	t.refuse_bind = true;
	connect_unix();
	send_bind();
	expect_told("a producer reads no traces");
	expect_bound(false);
	assert_int_equal(t.stats.refused_bind, 1);
	assert_int_equal(t.bound, 0);
	t.refuse_bind = false;
	send_bind();
	expect_bound(true);
}

static void
a_guard_may_close_in_may_bind(void **state)
{
	int refuse;

	for (refuse = 0; refuse < 2; refuse++) {
		t.close_in_bind = true;
		t.refuse_bind = refuse;
		connect_unix();
		send_bind();
		RUN_UNTIL(t.gone == refuse + 1);
		expect_closed();
		assert_int_equal(t.bound, 0);
		close(t.fd);
		t.fd = -1;
	}
}

static void
a_connection_without_guard_needs_none(void **state)
{
	memset(&t.guard, 0, sizeof(t.guard));
	connect_unix();
	send_bind();
	expect_bound(true);
	t.conn = NULL;
}

static void
a_socket_that_is_refused_at_the_door_reads_why(void **state)
{
	int tcp, sv[2] = { -1, -1 };

	for (tcp = 0; tcp < 2; tcp++) {
		t.in_len = t.in_at = 0;
		if (tcp)
			assert_int_equal(tcp_pair(sv), 0);
		else
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0,
			    sv), 0);
		t.fd = sv[1];
		fcntl(t.fd, F_SETFL, O_NONBLOCK);
		send_bind();
		rpc_refuse(sv[0], "4096 are open");
		expect_told("4096 are open");
		/* Read to its end, not reset. */
		assert_int_equal(recv(t.fd, t.in, 1, 0), 0);
		close(t.fd);
		t.fd = -1;
	}
}

/* ---- forwarded peers ---- */

static void
a_unix_peer_that_says_it_is_forwarded_claims_an_identity(void **state)
{
	connect_unix();
	assert_false(rpc_conn_peer(t.conn)->forwarded);
	send_identity(true);
	send_bind();
	expect_bound(true);
	assert_true(rpc_conn_peer(t.conn)->forwarded);
	assert_false(rpc_conn_peer(t.conn)->can_pass_fds);
	assert_true(rpc_conn_identity(t.conn)->present);
	assert_string_equal(rpc_conn_identity(t.conn)->machine_name,
	    "device-7");
	/* The kernel's word on who owns the tunnel stays. */
	assert_int_equal(rpc_conn_peer(t.conn)->uid, geteuid());
}

static void
a_unix_peer_that_does_not_say_so_claims_nothing(void **state)
{
	connect_unix();
	send_identity(false);
	send_bind();
	expect_bound(true);
	assert_false(rpc_conn_identity(t.conn)->present);
	assert_true(rpc_conn_peer(t.conn)->can_pass_fds);
	/* And not behind its first service. */
	send_identity(true);
	turn(3);
	assert_false(rpc_conn_peer(t.conn)->forwarded);
	assert_false(rpc_conn_identity(t.conn)->present);
}

static void
a_peer_that_is_known_to_be_forwarded_claims_an_identity(void **state)
{
	struct stream_setup over = { 0 };
	struct peer peer;
	int sv[2] = { -1, -1 };

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	t.fd = sv[1];
	fcntl(t.fd, F_SETFL, O_NONBLOCK);
	peer_from_socket(&peer, sv[0]);
	peer.forwarded = true;
	peer.can_pass_fds = false;
	over.peer = &peer;
	host(sv[0], &over);
	send_identity(false);
	send_bind();
	expect_bound(true);
	assert_true(rpc_conn_identity(t.conn)->present);
}

static void
a_peer_behind_ssh_claims_an_identity(void **state)
{
	struct stream_setup over = { 0 };
	struct peer peer;
	struct addr a;
	char err[200];
	int sv[2] = { -1, -1 };

	assert_int_equal(addr_parse(&a, "ssh://device-7", err, sizeof(err)),
	    0);
	peer_from_ssh(&peer, &a);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	t.fd = sv[1];
	fcntl(t.fd, F_SETFL, O_NONBLOCK);
	over.peer = &peer;
	host(sv[0], &over);
	assert_int_equal(t.admitted_kind, ADDR_SSH);
	send_identity(false);
	send_bind();
	expect_bound(true);
	assert_true(rpc_conn_identity(t.conn)->present);
	assert_int_equal(rpc_conn_peer(t.conn)->uid, PEER_UID_UNKNOWN);
}

/* ---- sweeping ---- */

static const struct rpc_timeouts timeouts = {
	.handshake_ms = 10000,
	.bind_ms = 20000,
	.idle_ms = 300000,
	.stalled_ms = 30000,
};

static void
sweep_in(uint64_t ms)
{
	rpc_conns_sweep(&t.stats, &timeouts, loop_now_ms() + ms);
}

static void
who_binds_nothing_is_told_and_closed_in_time(void **state)
{
	connect_unix();
	sweep_in(19000);
	turn(2);
	assert_int_equal(t.gone, 0);
	sweep_in(20001);
	expect_told("it bound no service for 20000 ms");
	expect_closed();
	RUN_UNTIL(t.gone == 1);
	assert_int_equal(t.stats.closed_unbound, 1);
}

static void
who_is_quiet_is_told_and_closed_in_time(void **state)
{
	connect_unix();
	send_bind();
	expect_bound(true);
	sweep_in(299000);
	turn(2);
	assert_int_equal(t.gone, 0);
	sweep_in(300001);
	expect_told("it was quiet for 300000 ms");
	expect_closed();
	assert_int_equal(t.stats.closed_idle, 1);
	assert_int_equal(t.stats.closed_unbound, 0);
}

static void
who_is_paused_by_us_is_not_quiet(void **state)
{
	connect_unix();
	send_bind();
	expect_bound(true);
	rpc_conn_pause(t.conn);
	sweep_in(300001);
	turn(2);
	assert_int_equal(t.gone, 0);
}

static void
who_takes_no_output_is_closed_in_time(void **state)
{
	int i;

	connect_unix();
	send_bind();
	expect_bound(true);
	for (i = 0; i < 4; i++)
		send_call();
	RUN_UNTIL(rpc_conn_queued(t.conn) > 0);
	turn(3);
	sweep_in(29000);
	turn(2);
	assert_int_equal(t.gone, 0);
	sweep_in(30001);
	RUN_UNTIL(t.gone == 1);
	assert_int_equal(t.stats.closed_stalled, 1);
}

static void
timeouts_of_zero_never_come(void **state)
{
	static const struct rpc_timeouts never;

	connect_unix();
	rpc_conns_sweep(&t.stats, &never, UINT64_MAX);
	turn(2);
	assert_int_equal(t.gone, 0);
	assert_int_equal(t.stats.n_conns, 1);
}

static void
memory_that_is_used_up_is_counted(void **state)
{
	struct budget b = { .memory_max = 50000 };
	int i;

	connect_unix();
	stream_set_budgets(rpc_conn_stream(t.conn), &b, NULL);
	send_bind();
	expect_bound(true);
	for (i = 0; i < 4; i++)
		send_call();
	RUN_UNTIL(t.gone == 1);
	assert_int_equal(t.stats.closed_budget, 1);
	assert_int_equal(b.memory_refused, 1);
	assert_int_equal(b.memory, 0);
}

/* ---- over TLS ---- */

static struct fix_cert *ca, *server_cert, *client_cert;
static char *server_dir, *client_dir;
static struct tls_context *server_tls, *client_tls;

static int
setup_all(void **state)
{
	struct fix_wish server = { .cn = "collector", .sans = "DNS:localhost" };
	struct fix_wish client = { .cn = "device-7" };

	ca = fix_ca("ours");
	server_cert = fix_cert(ca, &server);
	client_cert = fix_cert(ca, &client);
	server_dir = fix_side(ca, server_cert);
	client_dir = fix_side(ca, client_cert);
	server_tls = fix_context(TLS_SERVER, server_dir);
	client_tls = fix_context(TLS_CLIENT, client_dir);
	return 0;
}

static int
teardown_all(void **state)
{
	tls_context_free(server_tls);
	tls_context_free(client_tls);
	fix_dir_free(server_dir);
	fix_dir_free(client_dir);
	fix_cert_free(server_cert);
	fix_cert_free(client_cert);
	fix_cert_free(ca);
	return 0;
}

static size_t
client_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	memcpy(t.in + t.in_len, buf, len);
	t.in_len += len;
	return len;
}

static void
client_opened(struct stream *s, void *arg)
{
	t.client_opened++;
}

static void
client_closed(struct stream *s, enum stream_end why, void *arg)
{
	t.client_ends++;
	t.client = NULL;
}

static const struct stream_ops client_ops = {
	.data = client_data,
	.opened = client_opened,
	.closed = client_closed,
};

/* The server's half; the client's descriptor. */
static int
connect_tls_server(void)
{
	struct stream_setup over = { 0 };
	int sv[2] = { -1, -1 };

	assert_int_equal(tcp_pair(sv), 0);
	over.tls = tls_conn_new(server_tls, sv[0], NULL, "device");
	assert_non_null(over.tls);
	host(sv[0], &over);
	return sv[1];
}

static void
connect_tls(void)
{
	struct stream_setup over = { 0 };
	int fd = connect_tls_server();

	over.tls = tls_conn_new(client_tls, fd, "localhost", "collector");
	assert_non_null(over.tls);
	t.client = stream_new_over(t.loop, fd, &over, &client_ops, NULL);
	assert_non_null(t.client);
}

static void
over_tls_the_guard_is_asked_after_the_handshake(void **state)
{
	connect_tls();
	send_bind(); /* waits in the client */
	assert_int_equal(t.admits, 0);
	RUN_UNTIL(t.admits == 1);
	assert_int_equal(t.admitted_kind, ADDR_TLS);
	assert_string_equal(t.admitted_name, "device-7");
	expect_bound(true);
	send_identity(false);
	turn(3);
	assert_int_equal(t.gone, 0);
}

static void
over_tls_an_identity_is_claimed(void **state)
{
	connect_tls();
	send_identity(false);
	send_bind();
	expect_bound(true);
	assert_true(rpc_conn_identity(t.conn)->present);
}

static void
over_tls_who_is_not_admitted_reads_why(void **state)
{
	t.refuse_admit = true;
	connect_tls();
	send_bind();
	expect_told("no more than 64 connections");
	RUN_UNTIL(t.client_ends == 1);
	RUN_UNTIL(t.gone == 1);
	assert_int_equal(t.stats.refused_admit, 1);
	assert_int_equal(t.bound, 0);
}

static void
a_handshake_that_fails_is_counted_and_gone_is_told(void **state)
{
	t.fd = connect_tls_server();
	assert_int_equal(send(t.fd, "no TLS at all", 13, 0), 13);
	RUN_UNTIL(t.gone == 1);
	assert_int_equal(t.admits, 0);
	assert_int_equal(t.stats.failed_handshake, 1);
	assert_int_equal(t.stats.n_conns, 0);
}

static void
a_slow_handshake_is_closed_in_time_and_a_neighbour_stays(void **state)
{
	struct rpc_conn *slow;
	char byte;
	int fd;

	fd = connect_tls_server();
	slow = t.conn;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	/* A byte now and then does not help it. */
	assert_int_equal(send(fd, "\x16", 1, 0), 1);
	turn(3);
	connect_tls();
	send_bind();
	expect_bound(true);
	assert_ptr_not_equal(slow, t.conn);
	sweep_in(9000);
	turn(3);
	assert_int_equal(t.gone, 0);
	assert_int_equal(send(fd, "\x03", 1, 0), 1);
	turn(3);
	sweep_in(10001);
	RUN_UNTIL(recv(fd, &byte, 1, 0) == 0);
	RUN_UNTIL(t.gone == 1);
	assert_int_equal(t.stats.closed_handshake, 1);
	assert_int_equal(t.stats.n_conns, 1);
	assert_int_equal(t.client_ends, 0);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_is_admitted_binds_and_the_guard_hears_the_end_last),
		TEST(who_is_not_admitted_reads_why_and_then_the_end),
		TEST(a_guard_may_close_in_admit),
		TEST(who_may_not_bind_reads_why_and_may_try_again),
		TEST(a_guard_may_close_in_may_bind),
		TEST(a_connection_without_guard_needs_none),
		TEST(a_socket_that_is_refused_at_the_door_reads_why),
		TEST(a_unix_peer_that_says_it_is_forwarded_claims_an_identity),
		TEST(a_unix_peer_that_does_not_say_so_claims_nothing),
		TEST(a_peer_that_is_known_to_be_forwarded_claims_an_identity),
		TEST(a_peer_behind_ssh_claims_an_identity),
		TEST(who_binds_nothing_is_told_and_closed_in_time),
		TEST(who_is_quiet_is_told_and_closed_in_time),
		TEST(who_is_paused_by_us_is_not_quiet),
		TEST(who_takes_no_output_is_closed_in_time),
		TEST(timeouts_of_zero_never_come),
		TEST(memory_that_is_used_up_is_counted),
		TEST(over_tls_the_guard_is_asked_after_the_handshake),
		TEST(over_tls_an_identity_is_claimed),
		TEST(over_tls_who_is_not_admitted_reads_why),
		TEST(a_handshake_that_fails_is_counted_and_gone_is_told),
		TEST(a_slow_handshake_is_closed_in_time_and_a_neighbour_stays),
	};

	return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
