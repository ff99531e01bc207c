#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/base/log.h"
#include "transport/clock/this_machine.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/rpc/rpc_host.h"
#include "transport/socket/addr.h"
#include "transport/socket/peer.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"

/* A host with one service on a listener, and one client. */
struct fixture {
	struct loop *loop;
	struct listener *listener;
	struct rpc_stats stats;
	struct rpc_client *client;
	char dir[64];
	char err[512];

	/* host side */
	struct rpc_conn *conn;
	struct rpc_call kept;
	int bound, gone;
	int got_fd;
	size_t got_len;
	struct rpc_claimed_identity identity;
	const struct rpc_guard *guard;

	/* client side */
	int ready, down, drained;
	char down_text[512];
	int replies, failures;
	bool more;
	char reply[64];
	int reply_fd;
	bool free_in_callback;
};

static struct fixture *fix;

static enum rpc_verdict
method_echo(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	rpc_reply(call, args, len, false, -1);
	return RPC_OK;
}

static enum rpc_verdict
method_keep(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	fix->kept = call;
	return RPC_OK;
}

static enum rpc_verdict
method_count(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	fix->got_len += len;
	assert_false(call.wants_reply);
	return RPC_OK;
}

static enum rpc_verdict
method_take_fd(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	fix->got_fd = rpc_take_fd(call);
	rpc_reply(call, "got", 3, false, fix->got_fd);
	return RPC_OK;
}

static enum rpc_verdict
method_refuse(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	return RPC_REJECT;
}

static enum rpc_verdict
method_hang_up(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	rpc_conn_close(call.conn, NULL);
	return RPC_OK;
}

static const struct rpc_method methods[] = {
	{ "Echo", method_echo },
	{ "Keep", method_keep },
	{ "Count", method_count },
	{ "TakeFd", method_take_fd },
	{ "Refuse", method_refuse },
	{ "HangUp", method_hang_up },
};

static void *
host_bind(struct rpc_conn *c, void *arg)
{
	fix->bound++;
	fix->conn = c;
	fix->identity = *rpc_conn_identity(c);
	return fix;
}

static void
host_gone(void *ctx)
{
	fix->gone++;
	fix->conn = NULL;
}

static const struct rpc_service service = {
	.name = "ProducerPort",
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
	.bind = host_bind,
	.gone = host_gone,
};

static const struct rpc_service *const services[] = { &service };

static void
host_accept(struct listener *l, int fd, void *arg)
{
	struct rpc_conn_setup s = {
		.services = services,
		.n_services = 1,
		.stats = &fix->stats,
		.guard = fix->guard,
	};

	assert_non_null(rpc_conn_new(fix->loop, fd, &s));
}

static bool
admits_nobody(struct rpc_conn *c, const struct peer *p, void *arg, char *why)
{
	snprintf(why, RPC_WHY_MAX, "nobody is admitted\n");
	return false;
}

static bool
lets_nobody_bind(struct rpc_conn *c, const struct rpc_service *s, void *arg,
    char *why)
{
	snprintf(why, RPC_WHY_MAX, "only a producer may bind %s", s->name);
	return false;
}

static void
on_ready(struct rpc_client *c, void *arg)
{
	fix->ready++;
}

static void
on_down(struct rpc_client *c, const char *text, void *arg)
{
	fix->down++;
	snprintf(fix->down_text, sizeof(fix->down_text), "%s", text);
	if (fix->free_in_callback) {
		rpc_client_free(c);
		fix->client = NULL;
	}
}

static void
on_drained(struct rpc_client *c, void *arg)
{
	fix->drained++;
}

static const struct rpc_client_ops client_ops = {
	.ready = on_ready,
	.down = on_down,
	.drained = on_drained,
};

static void
on_reply(void *arg, bool ok, bool more, const uint8_t *msg, size_t len, int fd)
{
	if (!ok) {
		assert_null(msg);
		assert_false(more);
		assert_int_equal(fd, -1);
		fix->failures++;
		return;
	}
	assert_non_null(msg);
	fix->replies++;
	fix->more = more;
	if (len > sizeof(fix->reply) - 1)
		len = sizeof(fix->reply) - 1;
	memcpy(fix->reply, msg, len);
	fix->reply[len] = '\0';
	if (fd >= 0)
		fix->reply_fd = fd;
	if (fix->free_in_callback) {
		rpc_client_free(fix->client);
		fix->client = NULL;
	}
}

/* Turns the loop until cond holds; the rounds are a stop for a broken test. */
#define RUN_UNTIL(cond)                                                        \
	do {                                                                   \
		long rounds_ = 0;                                              \
		while (!(cond)) {                                              \
			loop_run_once(fix->loop);                              \
			assert_true(rounds_++ < 20000000);                     \
		}                                                              \
	} while (0)

static void
listen_at(const char *text)
{
	struct addr a;

	assert_int_equal(addr_parse(&a, text, fix->err, sizeof(fix->err)), 0);
	fix->listener = listener_new(fix->loop,
	    &(struct listener_setup){ .addr = &a, .fn = host_accept }, fix->err,
	    sizeof(fix->err));
	if (fix->listener == NULL)
		fail_msg("%s", fix->err);
}

static void
connect_to(const char *text)
{
	struct addr a;

	assert_int_equal(addr_parse(&a, text, fix->err, sizeof(fix->err)), 0);
	fix->client = rpc_client_new(fix->loop,
	    &(struct rpc_client_setup){ .addr = &a, .service = "ProducerPort",
	    .ops = &client_ops }, fix->err, sizeof(fix->err));
	assert_non_null(fix->client);
}

static void
connect_unix(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/p", fix->dir);
	listen_at(path);
	connect_to(path);
	RUN_UNTIL(fix->ready);
}

static int
setup(void **state)
{
	fix = calloc(1, sizeof(*fix));
	fix->loop = loop_new();
	fix->got_fd = fix->reply_fd = -1;
	strcpy(fix->dir, "/tmp/test_rpc_client.XXXXXX");
	log_init("test", LOG_LEVEL_ERROR);
	return fix->loop == NULL || mkdtemp(fix->dir) == NULL;
}

static int
teardown(void **state)
{
	char path[128];

	rpc_client_free(fix->client);
	rpc_conns_close_all(&fix->stats);
	listener_free(fix->listener);
	loop_free(fix->loop);
	if (fix->got_fd >= 0)
		close(fix->got_fd);
	if (fix->reply_fd >= 0)
		close(fix->reply_fd);
	snprintf(path, sizeof(path), "%s/p", fix->dir);
	unlink(path);
	rmdir(fix->dir);
	free(fix);
	return 0;
}

static void
a_call_is_answered_over_unix(void **state)
{
	connect_unix();
	assert_int_equal(fix->bound, 1);
	assert_true(rpc_client_offers(fix->client, "Echo"));
	assert_false(rpc_client_offers(fix->client, "Missing"));
	assert_true(rpc_client_can_pass_fds(fix->client));
	rpc_invoke(fix->client, "Echo", "hello", 5, on_reply, NULL);
	RUN_UNTIL(fix->replies);
	assert_string_equal(fix->reply, "hello");
	assert_false(fix->more);
}

static void
a_call_is_answered_over_tcp(void **state)
{
	char text[64];

	listen_at("127.0.0.1:0");
	snprintf(text, sizeof(text), "127.0.0.1:%d",
	    listener_port(fix->listener));
	connect_to(text);
	RUN_UNTIL(fix->ready);
	assert_false(rpc_client_can_pass_fds(fix->client));
	rpc_invoke(fix->client, "Echo", NULL, 0, on_reply, NULL);
	RUN_UNTIL(fix->replies);
	assert_string_equal(fix->reply, "");
}

static void
a_call_of_the_largest_frame_arrives_and_a_larger_one_fails(void **state)
{
	static uint8_t big[FRAME_MAX_BYTES];
	uint8_t head[IPC_HEAD_MAX];
	size_t len;

	connect_unix();
	for (len = sizeof(big); ; len--) {
		if (ipc_put_invoke_head(head, 2, 1, 1, false, len) + len <=
		    FRAME_MAX_BYTES)
			break;
	}
	rpc_invoke(fix->client, "Echo", big, len, on_reply, NULL);
	RUN_UNTIL(fix->replies);
	rpc_invoke(fix->client, "Echo", big, len + 1, on_reply, NULL);
	rpc_invoke(fix->client, "Echo", big, sizeof(big) + 1, on_reply, NULL);
	RUN_UNTIL(fix->failures == 2);
	assert_int_equal(fix->down, 0);
}

static void
arguments_in_two_pieces_arrive_as_one(void **state)
{
	static uint8_t head[RPC_HEAD_MAX + 1];

	connect_unix();
	rpc_invoke_with(fix->client, &(struct rpc_request){ .method = "Echo",
	    .head = "two ", .head_len = 4, .args = "pieces", .len = 6, .fd = -1,
	    .fn = on_reply });
	RUN_UNTIL(fix->replies == 1);
	assert_string_equal(fix->reply, "two pieces");
	rpc_invoke_with(fix->client, &(struct rpc_request){ .method = "Echo",
	    .head = "one", .head_len = 3, .fd = -1, .fn = on_reply });
	RUN_UNTIL(fix->replies == 2);
	assert_string_equal(fix->reply, "one");
	rpc_invoke_with(fix->client, &(struct rpc_request){ .method = "Echo",
	    .head = head, .head_len = sizeof(head), .args = "x", .len = 1,
	    .fd = -1, .fn = on_reply });
	RUN_UNTIL(fix->failures == 1);
	assert_int_equal(fix->down, 0);
}

static void
the_address_of_our_end_is_known_where_the_network_has_one(void **state)
{
	struct sockaddr_storage sa;
	char text[64];

	listen_at("127.0.0.1:0");
	snprintf(text, sizeof(text), "127.0.0.1:%d",
	    listener_port(fix->listener));
	connect_to(text);
	assert_int_equal(rpc_client_local_address(fix->client, &sa), -1);
	RUN_UNTIL(fix->ready);
	assert_int_equal(rpc_client_local_address(fix->client, &sa), 0);
	assert_int_equal(sa.ss_family, AF_INET);
	assert_int_equal(((struct sockaddr_in *)&sa)->sin_addr.s_addr,
	    htonl(INADDR_LOOPBACK));
}

static void
our_end_of_a_unix_socket_has_no_address_of_a_network(void **state)
{
	struct sockaddr_storage sa;

	connect_unix();
	assert_int_equal(rpc_client_local_address(fix->client, &sa), -1);
}

static void
one_call_gets_many_replies_until_the_last(void **state)
{
	int i;

	connect_unix();
	rpc_invoke(fix->client, "Keep", NULL, 0, on_reply, NULL);
	RUN_UNTIL(fix->kept.conn != NULL);
	for (i = 1; i <= 3; i++) {
		rpc_reply(fix->kept, "x", 1, i < 3, -1);
		RUN_UNTIL(fix->replies == i);
		assert_int_equal(fix->more, i < 3);
	}
	/* Nobody waits for this one. */
	rpc_reply(fix->kept, "y", 1, false, -1);
	rpc_invoke(fix->client, "Echo", "end", 3, on_reply, NULL);
	RUN_UNTIL(strcmp(fix->reply, "end") == 0);
	assert_int_equal(fix->replies, 4);
}

static void
a_call_that_drops_its_reply_gets_none(void **state)
{
	connect_unix();
	rpc_invoke(fix->client, "Count", "abc", 3, NULL, NULL);
	rpc_invoke(fix->client, "Echo", "e", 1, on_reply, NULL);
	RUN_UNTIL(fix->replies);
	assert_int_equal(fix->got_len, 3);
	assert_int_equal(fix->replies, 1);
}

static void
rejected_unknown_and_early_calls_fail(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/p", fix->dir);
	listen_at(path);
	connect_to(path);
	rpc_invoke(fix->client, "Echo", NULL, 0, on_reply, NULL);
	assert_int_equal(fix->failures, 0); /* never from inside */
	RUN_UNTIL(fix->failures == 1);
	RUN_UNTIL(fix->ready);
	rpc_invoke(fix->client, "Refuse", NULL, 0, on_reply, NULL);
	RUN_UNTIL(fix->failures == 2);
	rpc_invoke(fix->client, "Missing", NULL, 0, on_reply, NULL);
	RUN_UNTIL(fix->failures == 3);
	assert_int_equal(fix->replies, 0);
}

static void
a_descriptor_travels_both_ways(void **state)
{
	struct stat a, b;
	int fd;

	connect_unix();
	assert_true((fd = open("/dev/null", O_RDWR)) >= 0);
	rpc_invoke_with(fix->client, &(struct rpc_request){ .method = "TakeFd",
	    .fd = fd, .fn = on_reply, .arg = NULL });
	assert_int_equal(fstat(fd, &a), 0); /* still the caller's */
	close(fd);
	RUN_UNTIL(fix->replies);
	assert_true(fix->got_fd >= 0);
	assert_true(fix->reply_fd >= 0);
	assert_int_equal(fstat(fix->reply_fd, &b), 0);
	assert_int_equal(a.st_rdev, b.st_rdev);
}

static void
calls_without_a_descriptor_do_not_get_their_neighbours(void **state)
{
	int fd;

	connect_unix();
	assert_true((fd = open("/dev/null", O_RDWR)) >= 0);
	/* All three lie in the host's socket when it reads. */
	rpc_invoke_with(fix->client, &(struct rpc_request){ .method = "Echo",
	    .args = "1", .len = 1, .fd = fd, .fn = on_reply, .arg = NULL });
	rpc_invoke(fix->client, "TakeFd", NULL, 0, on_reply, NULL);
	rpc_invoke(fix->client, "Echo", "2", 1, on_reply, NULL);
	close(fd);
	RUN_UNTIL(fix->replies == 3);
	assert_int_equal(fix->got_fd, -1);
}

static void
the_end_of_the_connection_fails_pending_calls_first(void **state)
{
	connect_unix();
	rpc_invoke(fix->client, "Keep", NULL, 0, on_reply, NULL);
	rpc_invoke(fix->client, "HangUp", NULL, 0, on_reply, NULL);
	RUN_UNTIL(fix->down);
	assert_int_equal(fix->failures, 2);
	assert_non_null(strstr(fix->down_text, "closed the connection"));
	assert_int_equal(fix->gone, 1);
	rpc_invoke(fix->client, "Echo", NULL, 0, on_reply, NULL);
	RUN_UNTIL(fix->failures == 3);
}

static void
the_client_may_be_freed_in_its_callbacks(void **state)
{
	connect_unix();
	fix->free_in_callback = true;
	rpc_invoke(fix->client, "Echo", "a", 1, on_reply, NULL);
	rpc_invoke(fix->client, "Echo", "b", 1, on_reply, NULL);
	RUN_UNTIL(fix->replies);
	RUN_UNTIL(fix->gone);
	assert_int_equal(fix->replies, 1);
	assert_int_equal(fix->failures, 0);
	assert_int_equal(fix->down, 0);
}

static void
nobody_at_the_address_is_told_in_a_sentence(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/p", fix->dir);
	fix->free_in_callback = true;
	connect_to(path);
	assert_int_equal(fix->down, 0);
	RUN_UNTIL(fix->down);
	assert_non_null(strstr(fix->down_text, "no daemon listens at /tmp/"));
	assert_non_null(strstr(fix->down_text, "start tributaryd, or set "
	    "PERFETTO_PRODUCER_SOCK_NAME"));
}

static void
a_service_that_is_not_offered_is_told_in_a_sentence(void **state)
{
	struct addr a;
	char path[128];

	snprintf(path, sizeof(path), "%s/p", fix->dir);
	listen_at(path);
	assert_int_equal(addr_parse(&a, path, fix->err, sizeof(fix->err)), 0);
	fix->client = rpc_client_new(fix->loop,
	    &(struct rpc_client_setup){ .addr = &a, .service = "RelayPort",
	    .ops = &client_ops }, fix->err, sizeof(fix->err));
	RUN_UNTIL(fix->down);
	assert_non_null(strstr(fix->down_text, "does not offer RelayPort"));
	assert_true(rpc_client_service_unknown(fix->client));
	assert_int_equal(fix->stats.unknown_service, 1);
}

static void
an_identity_goes_ahead_of_the_bind_and_labels_a_tcp_peer(void **state)
{
	char text[64];

	listen_at("127.0.0.1:0");
	snprintf(text, sizeof(text), "127.0.0.1:%d",
	    listener_port(fix->listener));
	connect_to(text);
	rpc_client_set_identity(fix->client, 4711, 1000, "boot-id", "device-1");
	RUN_UNTIL(fix->ready);
	assert_true(fix->identity.present);
	assert_int_equal(fix->identity.pid, 4711);
	assert_int_equal(fix->identity.uid, 1000);
	assert_string_equal(fix->identity.machine_id_hint, "boot-id");
	assert_string_equal(fix->identity.machine_name, "device-1");
	assert_int_equal(rpc_conn_peer(fix->conn)->uid, PEER_UID_UNKNOWN);
}

static void
an_identity_is_not_sent_where_the_kernel_says_it(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/p", fix->dir);
	listen_at(path);
	connect_to(path);
	rpc_client_set_identity(fix->client, 4711, 1000, "boot-id", "device-1");
	RUN_UNTIL(fix->ready);
	assert_false(fix->identity.present);
	assert_false(rpc_conn_peer(fix->conn)->forwarded);
}

/* Both ends are this process, which calls itself as a tunnel's end does. */
static void
through_a_tunnel_it_says_who_it_is_without_being_told_to(void **state)
{
	char hint[THIS_MACHINE_CLOCKS_MAX], name[64];

	this_machine_clocks(hint, sizeof(hint));
	this_machine_name(name, sizeof(name));
	prctl(PR_SET_NAME, "ssh");
	connect_unix();
	prctl(PR_SET_NAME, "test_rpc_client");
	assert_true(fix->identity.present);
	assert_int_equal(fix->identity.pid, getpid());
	assert_int_equal(fix->identity.uid, getuid());
	assert_string_equal(fix->identity.machine_id_hint, hint);
	assert_string_equal(fix->identity.machine_name, name);
	assert_true(rpc_conn_peer(fix->conn)->forwarded);
	assert_false(rpc_client_can_pass_fds(fix->client));
}

static void
through_a_tunnel_it_says_what_it_was_told(void **state)
{
	char path[128];

	prctl(PR_SET_NAME, "sshd");
	snprintf(path, sizeof(path), "%s/p", fix->dir);
	listen_at(path);
	connect_to(path);
	rpc_client_set_identity(fix->client, 4711, 1000, "hint", "device-1");
	RUN_UNTIL(fix->ready);
	prctl(PR_SET_NAME, "test_rpc_client");
	assert_int_equal(fix->identity.pid, 4711);
	assert_string_equal(fix->identity.machine_id_hint, "hint");
	assert_string_equal(fix->identity.machine_name, "device-1");
}

static void
is_refused(const struct rpc_guard *guard, const char *text)
{
	char path[128];

	fix->guard = guard;
	snprintf(path, sizeof(path), "%s/p", fix->dir);
	listen_at(path);
	connect_to(path);
	RUN_UNTIL(fix->down);
	assert_int_equal(fix->ready, 0);
	assert_int_equal(strncmp(fix->down_text, path, strlen(path)), 0);
	assert_string_equal(fix->down_text + strlen(path), text);
	assert_false(rpc_client_service_unknown(fix->client));
}

static void
who_is_not_admitted_reads_why(void **state)
{
	static const struct rpc_guard guard = { .admit = admits_nobody };

	is_refused(&guard, " refused: nobody is admitted\\x0a");
}

static void
who_may_not_bind_reads_why(void **state)
{
	static const struct rpc_guard guard = { .may_bind = lets_nobody_bind };

	is_refused(&guard, " refused: only a producer may bind ProducerPort");
}

static void
many_calls_are_matched_to_their_replies(void **state)
{
	int i;

	connect_unix();
	rpc_client_set_limits(fix->client, 1 << 24, 1 << 20);
	rpc_conn_set_limits(fix->conn, 1 << 24, 1 << 20);
	for (i = 0; i < 20000; i++)
		rpc_invoke(fix->client, i % 2 ? "Echo" : "Refuse", "z", 1,
		    on_reply, NULL);
	RUN_UNTIL(fix->replies == 10000 && fix->failures == 10000);
}

static void
a_paused_client_gets_its_replies_after_resume(void **state)
{
	int i;

	connect_unix();
	rpc_client_pause(fix->client);
	rpc_invoke(fix->client, "Echo", "z", 1, on_reply, NULL);
	for (i = 0; i < 100; i++)
		loop_run_once(fix->loop);
	assert_int_equal(fix->replies, 0);
	rpc_client_resume(fix->client);
	RUN_UNTIL(fix->replies);
}

static void
a_socket_that_is_connected_already_serves_too(void **state)
{
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	assert_non_null(rpc_conn_new(fix->loop, sv[0], &(struct rpc_conn_setup){
	    .services = services, .n_services = 1, .stats = &fix->stats }));
	fix->client = rpc_client_from_fd(fix->loop, sv[1], "ProducerPort",
	    &client_ops, NULL);
	assert_non_null(fix->client);
	RUN_UNTIL(fix->ready);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_call_is_answered_over_unix),
		TEST(a_call_is_answered_over_tcp),
		TEST(a_call_of_the_largest_frame_arrives_and_a_larger_one_fails),
		TEST(arguments_in_two_pieces_arrive_as_one),
		TEST(the_address_of_our_end_is_known_where_the_network_has_one),
		TEST(our_end_of_a_unix_socket_has_no_address_of_a_network),
		TEST(one_call_gets_many_replies_until_the_last),
		TEST(a_call_that_drops_its_reply_gets_none),
		TEST(rejected_unknown_and_early_calls_fail),
		TEST(a_descriptor_travels_both_ways),
		TEST(calls_without_a_descriptor_do_not_get_their_neighbours),
		TEST(the_end_of_the_connection_fails_pending_calls_first),
		TEST(the_client_may_be_freed_in_its_callbacks),
		TEST(nobody_at_the_address_is_told_in_a_sentence),
		TEST(a_service_that_is_not_offered_is_told_in_a_sentence),
		TEST(an_identity_goes_ahead_of_the_bind_and_labels_a_tcp_peer),
		TEST(an_identity_is_not_sent_where_the_kernel_says_it),
		TEST(through_a_tunnel_it_says_who_it_is_without_being_told_to),
		TEST(through_a_tunnel_it_says_what_it_was_told),
		TEST(who_is_not_admitted_reads_why),
		TEST(who_may_not_bind_reads_why),
		TEST(many_calls_are_matched_to_their_replies),
		TEST(a_paused_client_gets_its_replies_after_resume),
		TEST(a_socket_that_is_connected_already_serves_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
