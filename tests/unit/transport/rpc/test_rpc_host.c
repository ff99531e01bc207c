#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/transport/socket/tcp_pair.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/socket/peer.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"

/* One connection; the test speaks raw frames at the other end, `fd`. */
static struct {
	struct loop *loop;
	struct rpc_conn *conn;
	struct rpc_stats stats;
	int fd;
	struct pb_writer out; /* the frame being made */

	/* What the methods saw and how they behave. */
	int bound, gone, calls, drained;
	bool refuse_bind, close_in_bind;
	enum rpc_verdict verdict;
	bool close_in_method, pause_in_method;
	int again; /* RPC_AGAIN so many times */
	uint8_t args[70000];
	size_t args_len;
	const uint8_t *args_at;
	struct rpc_call call;

	/* The replies received. */
	uint8_t in[300000];
	size_t in_len, in_at;
	struct ipc_frame reply;
} t;

static void *
on_bind(struct rpc_conn *c, void *arg)
{
	assert_string_equal(arg, "arg");
	if (t.close_in_bind)
		rpc_conn_close(c, NULL);
	if (t.refuse_bind)
		return NULL;
	t.bound++;
	return &t;
}

static void
on_gone(void *ctx)
{
	assert_ptr_equal(ctx, &t);
	t.gone++;
	/* The peer can still be named. */
	if (t.conn != NULL)
		assert_true(strlen(rpc_conn_peer(t.conn)->text) > 0);
	t.conn = NULL;
}

static void
on_drained(void *ctx)
{
	t.drained++;
}

static enum rpc_verdict
method_any(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	assert_ptr_equal(ctx, &t);
	t.calls++;
	if (t.again > 0) {
		t.again--;
		return RPC_AGAIN;
	}
	t.call = call;
	assert_true(len <= sizeof(t.args));
	if (len > 0)
		memcpy(t.args, args, len);
	t.args_len = len;
	t.args_at = args;
	if (t.close_in_method)
		rpc_conn_close(call.conn, NULL);
	if (t.pause_in_method)
		rpc_conn_pause(call.conn);
	return t.verdict;
}

static enum rpc_verdict
method_echo(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	t.calls++;
	rpc_reply(call, args, len, false, -1);
	return RPC_OK;
}

/* Answers a few bytes with a lot. */
static enum rpc_verdict
method_flood(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	static const uint8_t big[100000];

	t.calls++;
	rpc_reply(call, big, sizeof(big), false, -1);
	return RPC_OK;
}

/* Works for a millisecond or two. */
static enum rpc_verdict
method_work(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	uint64_t until = loop_now_ms() + 2;

	t.calls++;
	while (loop_now_ms() < until)
		;
	return RPC_OK;
}

static const struct rpc_method methods[] = {
	{ "Any", method_any },
	{ "Echo", method_echo },
	{ "Flood", method_flood },
	{ "Work", method_work },
};

static const struct rpc_service producer = {
	.name = "ProducerPort",
	.alias = "producer_port",
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
	.bind = on_bind,
	.gone = on_gone,
	.drained = on_drained,
	.arg = (void *)"arg",
};

static const struct rpc_service relay = {
	.name = "RelayPort",
	.methods = methods,
	.n_methods = 1,
	.bind = on_bind,
	.gone = on_gone,
	.arg = (void *)"arg",
};

static const struct rpc_service *const services[] = { &producer, &relay };

static int
setup_fds(int sv[2])
{
	memset(&t, 0, sizeof(t));
	log_init("test", LOG_LEVEL_ERROR);
	t.loop = loop_new();
	pb_writer_init(&t.out);
	t.fd = sv[1];
	fcntl(t.fd, F_SETFL, O_NONBLOCK);
	t.conn = rpc_conn_new(t.loop, sv[0], &(struct rpc_conn_setup){
	    .services = services, .n_services = 2, .stats = &t.stats });
	return t.loop == NULL || t.conn == NULL;
}

static int
setup_unix(void **state)
{
	int sv[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, sv) || setup_fds(sv);
}

static int
setup_tcp(void **state)
{
	int sv[2];

	return tcp_pair(sv) || setup_fds(sv);
}

static int
teardown(void **state)
{
	rpc_conns_close_all(&t.stats);
	loop_free(t.loop);
	close(t.fd);
	pb_writer_done(&t.out);
	return 0;
}

#define RUN_UNTIL(cond)                                                        \
	do {                                                                   \
		long rounds_ = 0;                                              \
		while (!(cond)) {                                              \
			loop_run_once(t.loop);                                 \
			assert_true(rounds_++ < 20000000);                     \
		}                                                              \
	} while (0)

static void
turn(int n)
{
	while (n-- > 0)
		loop_run_once(t.loop);
}

static void
send_bytes(const void *data, size_t len)
{
	size_t at = 0;
	ssize_t n;

	while (at < len) {
		n = send(t.fd, (const char *)data + at, len - at, MSG_NOSIGNAL);
		if (n > 0)
			at += (size_t)n;
		else
			assert_int_equal(errno, EAGAIN);
		loop_run_once(t.loop);
	}
}

static void
make_bind(const char *name)
{
	size_t mark = ipc_frame_begin(&t.out, 1, IPC_BIND_SERVICE);

	pb_put_string(&t.out, 1, name);
	ipc_frame_end(&t.out, mark);
}

static void
make_invoke(uint64_t id, uint32_t service, uint32_t method, const char *args,
    bool drop)
{
	size_t mark = ipc_frame_begin(&t.out, id, IPC_INVOKE_METHOD);

	pb_put_uint(&t.out, 1, service);
	pb_put_uint(&t.out, 2, method);
	if (args != NULL)
		pb_put_string(&t.out, 3, args);
	pb_put_uint(&t.out, 4, drop);
	ipc_frame_end(&t.out, mark);
}

static void
send_out(void)
{
	send_bytes(t.out.data, t.out.len);
}

static void
send_invoke(uint64_t id, uint32_t service, uint32_t method, const char *args,
    bool drop)
{
	make_invoke(id, service, method, args, drop);
	send_out();
}

/* Whether a whole frame is there now; moves on to it. */
static bool
next_reply(void)
{
	const uint8_t *payload;
	size_t len, used, need;
	ssize_t n;

	loop_run_once(t.loop);
	n = recv(t.fd, t.in + t.in_len, sizeof(t.in) - t.in_len, 0);
	if (n > 0)
		t.in_len += (size_t)n;
	if (frame_next(t.in + t.in_at, t.in_len - t.in_at, &payload, &len,
		&used, &need) != FRAME_OK)
		return false;
	assert_int_equal(ipc_parse_frame(&t.reply, payload, len), 0);
	t.in_at += used;
	return true;
}

static void
expect_kind(enum ipc_kind kind, uint64_t id)
{
	RUN_UNTIL(next_reply());
	assert_int_equal(t.reply.kind, kind);
	assert_true(t.reply.request_id == id);
}

static void
expect_no_reply(void)
{
	int i;

	for (i = 0; i < 5; i++)
		assert_false(next_reply());
}

static void
expect_reply(uint64_t id, bool success, bool more, const char *msg)
{
	struct ipc_invoke_reply m;

	expect_kind(IPC_INVOKE_METHOD_REPLY, id);
	assert_int_equal(ipc_parse_invoke_reply(&m, t.reply.body), 0);
	assert_int_equal(m.success, success);
	assert_int_equal(m.has_more, more);
	assert_int_equal(m.reply.len, strlen(msg));
	if (m.reply.len > 0)
		assert_memory_equal(m.reply.data, msg, m.reply.len);
}

static void
expect_error(uint64_t id, const char *words)
{
	struct ipc_slice text;
	char copy[200] = "";

	expect_kind(IPC_REQUEST_ERROR, id);
	assert_int_equal(ipc_parse_text(&text, t.reply.body), 0);
	memcpy(copy, text.data, text.len);
	assert_non_null(strstr(copy, words));
}

static void
expect_closed(void)
{
	char byte;

	RUN_UNTIL(recv(t.fd, &byte, 1, MSG_PEEK) == 0);
}

static size_t n_listed;

static void
check_method(void *arg, const struct ipc_method_info *info)
{
	assert_int_equal(info->id, n_listed + 1);
	assert_int_equal(info->name.len, strlen(methods[n_listed].name));
	assert_memory_equal(info->name.data, methods[n_listed].name,
	    info->name.len);
	n_listed++;
}

static void
expect_bound(bool success)
{
	struct ipc_bind_reply m;

	expect_kind(IPC_BIND_SERVICE_REPLY, 1);
	n_listed = 0;
	assert_int_equal(ipc_parse_bind_reply(&m, t.reply.body, check_method,
	    NULL), 0);
	assert_int_equal(m.success, success);
	if (!success)
		assert_int_equal(n_listed, 0);
}

static void
bind_as(const char *name)
{
	make_bind(name);
	send_out();
	expect_bound(true);
}

static void
a_service_is_bound_by_its_name_and_lists_its_methods(void **state)
{
	bind_as("ProducerPort");
	assert_int_equal(n_listed, 4);
	assert_int_equal(t.bound, 1);
	assert_int_equal(t.stats.connections, 1);
}

static void
a_service_is_bound_by_its_alias(void **state)
{
	bind_as("producer_port");
	send_invoke(2, 1, 2, "x", false);
	expect_reply(2, true, false, "x");
}

static void
the_second_service_has_an_id_of_its_own(void **state)
{
	bind_as("RelayPort");
	assert_int_equal(n_listed, 1);
	send_invoke(2, 1, 1, "x", false);
	expect_reply(2, false, false, "");
	send_invoke(3, 2, 1, "x", true);
	RUN_UNTIL(t.calls == 1);
}

static void
an_unknown_service_is_answered_without_success(void **state)
{
	make_bind("NoSuchPort");
	send_out();
	expect_bound(false);
	make_bind("");
	send_out();
	expect_bound(false);
	assert_int_equal(t.stats.unknown_service, 2);
	bind_as("ProducerPort"); /* it may try again */
}

static void
a_second_bind_is_refused_and_harms_nothing(void **state)
{
	bind_as("ProducerPort");
	make_bind("ProducerPort");
	send_out();
	expect_bound(false);
	make_bind("RelayPort");
	send_out();
	expect_bound(false);
	assert_int_equal(t.bound, 1);
	send_invoke(2, 1, 2, "x", false);
	expect_reply(2, true, false, "x");
}

static void
a_refused_bind_owes_no_gone(void **state)
{
	t.refuse_bind = true;
	make_bind("ProducerPort");
	send_out();
	expect_bound(false);
	rpc_conns_close_all(&t.stats);
	expect_closed();
	assert_int_equal(t.gone, 0);
}

static void
a_bind_that_closes_is_told_gone_once(void **state)
{
	t.close_in_bind = true;
	make_bind("ProducerPort");
	send_out();
	RUN_UNTIL(t.gone == 1);
	expect_closed();
}

static void
calls_before_a_bind_to_unknown_methods_and_services_fail(void **state)
{
	send_invoke(7, 1, 1, NULL, false);
	expect_reply(7, false, false, "");
	bind_as("ProducerPort");
	send_invoke(2, 1, 0, NULL, false);
	expect_reply(2, false, false, "");
	send_invoke(3, 1, 5, NULL, false);
	expect_reply(3, false, false, "");
	send_invoke(4, 1, UINT32_MAX, NULL, false);
	expect_reply(4, false, false, "");
	send_invoke(5, 9, 1, NULL, false);
	expect_reply(5, false, false, "");
	send_invoke(6, 9, 1, NULL, true);
	expect_no_reply();
	assert_int_equal(t.stats.unknown_method, 6);
	assert_int_equal(t.calls, 0);
}

static void
a_method_gets_its_arguments_and_replies_at_once(void **state)
{
	bind_as("ProducerPort");
	send_invoke(UINT64_MAX, 1, 2, "hello", false);
	expect_reply(UINT64_MAX, true, false, "hello");
	send_invoke(2, 1, 2, NULL, false);
	expect_reply(2, true, false, "");
}

static void
a_method_replies_later_and_several_times(void **state)
{
	bind_as("ProducerPort");
	send_invoke(5, 1, 1, "a", false);
	expect_no_reply();
	rpc_reply(t.call, "one", 3, true, -1);
	rpc_reply(t.call, "two", 3, true, -1);
	expect_reply(5, true, true, "one");
	expect_reply(5, true, true, "two");
	rpc_reply(t.call, NULL, 0, false, -1);
	expect_reply(5, true, false, "");
	send_invoke(6, 1, 1, "a", false);
	RUN_UNTIL(t.calls == 2);
	rpc_reject(t.call);
	expect_reply(6, false, false, "");
}

static void
half_a_reply_is_a_refusal(void **state)
{
	struct pb_writer w;

	bind_as("ProducerPort");
	pb_writer_init(&w);
	pb_put_raw(&w, "whole", 5);
	send_invoke(5, 1, 1, "a", false);
	expect_no_reply();
	rpc_reply_written(t.call, &w);
	expect_reply(5, true, false, "whole");
	w.failed = true;
	send_invoke(6, 1, 1, "a", false);
	RUN_UNTIL(t.calls == 2);
	rpc_reply_written(t.call, &w);
	expect_reply(6, false, false, "");
	pb_writer_done(&w);
}

static void
a_dropped_reply_is_not_sent(void **state)
{
	bind_as("ProducerPort");
	send_invoke(5, 1, 1, "a", true);
	RUN_UNTIL(t.calls == 1);
	assert_false(t.call.wants_reply);
	rpc_reply(t.call, "one", 3, false, -1);
	rpc_reject(t.call);
	send_invoke(6, 1, 2, "a", true);
	t.verdict = RPC_REJECT;
	send_invoke(7, 1, 1, "a", true);
	expect_no_reply();
}

static void
rejected_and_unparsable_arguments_are_told_and_counted(void **state)
{
	bind_as("ProducerPort");
	t.verdict = RPC_REJECT;
	send_invoke(5, 1, 1, "a", false);
	expect_reply(5, false, false, "");
	assert_int_equal(t.stats.bad_args, 0);
	t.verdict = RPC_BAD_ARGS;
	send_invoke(6, 1, 1, "a", false);
	expect_reply(6, false, false, "");
	assert_int_equal(t.stats.bad_args, 1);
}

static void
an_empty_frame_gets_a_request_error(void **state)
{
	send_bytes("\0\0\0\0", 4);
	expect_error(0, "no message that this service knows");
	bind_as("ProducerPort");
	assert_int_equal(t.stats.frames_malformed, 1);
}

static void
a_frame_with_no_known_message_gets_a_request_error(void **state)
{
	/* request_id 9 and an unknown field; then a reply, which is ours. */
	send_bytes("\x06\0\0\0\x10\x09\xfa\x01\x01x", 10);
	expect_error(9, "no message that this service knows");
	send_bytes("\x04\0\0\0\x10\x0a\x32\0", 8);
	expect_error(10, "no message that this service knows");
}

static void
bytes_that_are_no_message_get_a_request_error(void **state)
{
	send_bytes("\x04\0\0\0\x10\x09\xff\xff", 8);
	expect_error(9, "cannot be parsed");
	/* Their messages are cut short, the frames are not. */
	send_bytes("\x06\0\0\0\x10\x09\x1a\x02\x0a\x05", 10);
	expect_error(9, "BindService");
	send_bytes("\x06\0\0\0\x10\x09\x2a\x02\x1a\x05", 10);
	expect_error(9, "InvokeMethod");
	send_bytes("\x06\0\0\0\x10\x09\x42\x02\x1a\x05", 10);
	expect_error(9, "SetPeerIdentity");
	assert_int_equal(t.stats.frames_malformed, 4);
}

static void
a_frame_that_is_too_big_closes_its_connection(void **state)
{
	bind_as("ProducerPort");
	send_bytes("\xfd\xff\x01\0", 4); /* 128 KiB + 1 with its length */
	RUN_UNTIL(t.gone == 1);
	expect_closed();
	assert_int_equal(t.stats.frames_too_big, 1);
}

static void
a_client_that_speaks_TLS_is_told_at_once(void **state)
{
	/* A ClientHello of 253 bytes begins so; the rest is not waited for. */
	send_bytes("\x16\x03\x01\0\xf8\x01\0\0\xf4\x03\x03", 11);
	expect_error(0, "without TLS");
	expect_closed();
	assert_int_equal(t.stats.frames_malformed, 1);
}

static void
a_frame_that_only_looks_like_TLS_is_one(void **state)
{
	static char frame[4 + 0x10316] = { 0x16, 0x03, 0x01, 0x00 };
	uint64_t before;

	bind_as("ProducerPort");
	before = t.stats.frames_in;
	send_bytes(frame, sizeof(frame));
	RUN_UNTIL(t.stats.frames_in == before + 1);
	assert_int_equal(t.gone, 0);
}

static void
a_frame_of_4_GiB_closes_its_connection(void **state)
{
	send_bytes("\xff\xff\xff\xff", 4);
	expect_closed();
	assert_int_equal(t.stats.frames_too_big, 1);
}

static void
frames_cut_at_every_byte_are_put_together(void **state)
{
	struct pb_writer all;
	size_t cut, i;

	pb_writer_init(&all);
	for (i = 0; i < 3; i++) {
		make_invoke(i + 2, 1, 2, "some arguments", false);
		pb_put_raw(&all, t.out.data, t.out.len);
	}
	bind_as("ProducerPort");
	for (cut = 0; cut <= all.len; cut++) {
		send_bytes(all.data, cut);
		turn(2);
		send_bytes(all.data + cut, all.len - cut);
		for (i = 0; i < 3; i++)
			expect_reply(i + 2, true, false, "some arguments");
		t.in_len = t.in_at = 0;
	}
	pb_writer_done(&all);
	assert_int_equal(t.stats.frames_in, 1 + 3 * cut);
}

static void
arguments_are_handed_over_without_a_copy(void **state)
{
	bind_as("ProducerPort");
	send_invoke(2, 1, 1, "in place", true);
	RUN_UNTIL(t.calls == 1);
	assert_true(t.args_at >= loop_scratch(t.loop) &&
	    t.args_at < loop_scratch(t.loop) + LOOP_SCRATCH_BYTES);
	assert_memory_equal(t.args, "in place", 8);
}

static void
a_call_without_a_reply_allocates_nothing(void **state)
{
	size_t before;
	int i;

	bind_as("ProducerPort");
	send_invoke(2, 1, 1, "warm", true);
	make_invoke(2, 1, 1, "warm", true);
	before = mallinfo2().uordblks;
	for (i = 0; i < 100; i++) {
		assert_int_equal(send(t.fd, t.out.data, t.out.len, 0),
		    t.out.len);
		RUN_UNTIL(t.calls == i + 2);
		assert_int_equal(mallinfo2().uordblks, before);
	}
}

static void
a_call_that_asks_to_wait_is_shown_again_after_resume(void **state)
{
	bind_as("ProducerPort");
	t.again = 2;
	send_invoke(2, 1, 1, "first", false);
	send_invoke(3, 1, 2, "second", false);
	RUN_UNTIL(t.calls == 1);
	turn(5);
	assert_int_equal(t.calls, 1);
	rpc_conn_resume(t.conn);
	RUN_UNTIL(t.calls == 2);
	turn(5);
	assert_int_equal(t.calls, 2);
	rpc_conn_resume(t.conn);
	/* In order, and each counted once. */
	expect_reply(3, true, false, "second");
	assert_int_equal(t.calls, 4);
	assert_memory_equal(t.args, "first", 5);
	assert_int_equal(t.stats.frames_in, 3);
}

static void
a_paused_connection_takes_no_more_frames_even_those_it_has(void **state)
{
	struct pb_writer all;
	int i;

	pb_writer_init(&all);
	for (i = 0; i < 10; i++) {
		make_invoke(2, 1, 1, "x", true);
		pb_put_raw(&all, t.out.data, t.out.len);
	}
	bind_as("ProducerPort");
	t.pause_in_method = true;
	send_bytes(all.data, all.len);
	for (i = 1; i <= 10; i++) {
		RUN_UNTIL(t.calls == i);
		turn(3);
		assert_int_equal(t.calls, i);
		rpc_conn_resume(t.conn);
	}
	pb_writer_done(&all);
}

static void
a_close_in_a_method_ends_everything_once(void **state)
{
	struct pb_writer all;

	bind_as("ProducerPort");
	pb_writer_init(&all);
	make_invoke(2, 1, 1, "x", false);
	pb_put_raw(&all, t.out.data, t.out.len);
	pb_put_raw(&all, t.out.data, t.out.len);
	t.close_in_method = true;
	t.verdict = RPC_REJECT;
	assert_int_equal(send(t.fd, all.data, all.len, 0), all.len);
	pb_writer_done(&all);
	RUN_UNTIL(t.calls == 1);
	RUN_UNTIL(t.gone == 1);
	expect_closed();
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.gone, 1);
	expect_no_reply();
}

static void
gone_comes_on_a_later_turn_after_a_close(void **state)
{
	bind_as("ProducerPort");
	rpc_conn_close(t.conn, "for the test");
	assert_int_equal(t.gone, 0);
	rpc_conn_close(t.conn, "again");
	rpc_conn_pause(t.conn);
	rpc_conn_resume(t.conn);
	RUN_UNTIL(t.gone == 1);
	expect_closed();
}

static void
gone_comes_when_the_peer_leaves_or_breaks(void **state)
{
	bind_as("ProducerPort");
	shutdown(t.fd, SHUT_RDWR);
	RUN_UNTIL(t.gone == 1);
	assert_null(t.stats.conns);
}

static void
queued_replies_leave_before_a_close(void **state)
{
	static uint8_t big[100000];
	size_t got = 0;
	ssize_t n = 1;
	int i;

	bind_as("ProducerPort");
	send_invoke(2, 1, 1, "x", false);
	RUN_UNTIL(t.calls == 1);
	for (i = 0; i < 8; i++)
		rpc_reply(t.call, big, sizeof(big), true, -1);
	assert_true(rpc_conn_queued(t.conn) > 0);
	rpc_conn_close(t.conn, NULL);
	while (n != 0) {
		n = recv(t.fd, t.in, sizeof(t.in), 0);
		if (n > 0)
			got += (size_t)n;
		loop_run_once(t.loop);
	}
	assert_true(got > 8 * sizeof(big));
}

static void
who_is_thrown_out_gets_no_more(void **state)
{
	static uint8_t big[100000];
	size_t queued, got = 0;
	ssize_t n = 1;
	int i;

	bind_as("ProducerPort");
	send_invoke(2, 1, 1, "x", false);
	RUN_UNTIL(t.calls == 1);
	for (i = 0; i < 8; i++)
		rpc_reply(t.call, big, sizeof(big), true, -1);
	queued = rpc_conn_queued(t.conn);
	assert_true(queued > 0);
	rpc_conn_close(t.conn, "for the test");
	while (n != 0) {
		loop_run_once(t.loop);
		n = recv(t.fd, t.in, sizeof(t.in), 0);
		assert_true(n >= 0);
		got += (size_t)n;
	}
	assert_true(got <= 8 * (sizeof(big) + IPC_HEAD_MAX) - queued);
}

static void
a_slow_reader_is_closed_and_counted(void **state)
{
	static uint8_t big[100000];
	int i;

	bind_as("ProducerPort");
	rpc_conn_set_limits(t.conn, 200000, 1000);
	send_invoke(2, 1, 1, "x", false);
	RUN_UNTIL(t.calls == 1);
	for (i = 0; i < 100; i++)
		rpc_reply(t.call, big, sizeof(big), true, -1);
	assert_true(rpc_conn_queued(t.conn) <= 300100);
	RUN_UNTIL(t.gone == 1);
	assert_int_equal(t.stats.closed_slow, 1);
}

static void
what_a_slow_reader_asked_for_is_not_made_once_it_is_closed(void **state)
{
	int i;

	bind_as("ProducerPort");
	rpc_conn_set_limits(t.conn, 200000, 1000);
	pb_writer_reset(&t.out);
	for (i = 0; i < 1000; i++) {
		struct pb_writer all = t.out;

		pb_writer_init(&t.out);
		make_invoke(2, 1, 3, NULL, false);
		pb_put_raw(&all, t.out.data, t.out.len);
		pb_writer_done(&t.out);
		t.out = all;
	}
	send_out();
	RUN_UNTIL(t.gone == 1);
	assert_int_equal(t.stats.closed_slow, 1);
	assert_true(t.calls < 100);
}

static void
frames_that_cost_much_leave_turns_to_others(void **state)
{
	int i;

	bind_as("ProducerPort");
	pb_writer_reset(&t.out);
	for (i = 0; i < 100; i++) {
		struct pb_writer all = t.out;

		pb_writer_init(&t.out);
		make_invoke(2, 1, 4, NULL, true);
		pb_put_raw(&all, t.out.data, t.out.len);
		pb_writer_done(&t.out);
		t.out = all;
	}
	assert_int_equal(send(t.fd, t.out.data, t.out.len, MSG_NOSIGNAL),
	    t.out.len);
	RUN_UNTIL(t.calls > 0);
	assert_true(t.calls < 50);
	RUN_UNTIL(t.calls == 100);
}

static void
the_owner_hears_when_output_drained(void **state)
{
	static uint8_t big[100000];
	int i;

	bind_as("ProducerPort");
	rpc_conn_set_limits(t.conn, 1 << 20, 50000);
	send_invoke(2, 1, 1, "x", false);
	RUN_UNTIL(t.calls == 1);
	for (i = 0; i < 8; i++)
		rpc_reply(t.call, big, sizeof(big), true, -1);
	assert_true(rpc_conn_queued(t.conn) > 50000);
	while (t.drained == 0) {
		(void)!recv(t.fd, t.in, sizeof(t.in), 0);
		loop_run_once(t.loop);
	}
	assert_true(rpc_conn_queued(t.conn) <= 50000);
}

static void
a_reply_that_fits_no_frame_closes_the_connection(void **state)
{
	static uint8_t big[FRAME_MAX_BYTES];

	log_init("test", LOG_LEVEL_ERROR);
	bind_as("ProducerPort");
	send_invoke(2, 1, 1, "x", false);
	RUN_UNTIL(t.calls == 1);
	rpc_reply(t.call, big, sizeof(big), false, -1);
	rpc_reply(t.call, "later", 5, false, -1);
	RUN_UNTIL(t.gone == 1);
	expect_closed();
}

static void
make_identity(const char *machine)
{
	size_t mark = ipc_frame_begin(&t.out, 0, IPC_SET_PEER_IDENTITY);

	pb_put_int(&t.out, 1, 42);
	pb_put_int(&t.out, 2, -1);
	pb_put_string(&t.out, 3, "hint");
	pb_put_string(&t.out, 4, machine);
	ipc_frame_end(&t.out, mark);
}

static void
an_identity_is_taken_once_and_only_before_a_bind(void **state)
{
	const struct rpc_claimed_identity *id = rpc_conn_identity(t.conn);

	assert_false(id->present);
	assert_string_equal(id->machine_name, "");
	make_identity("one");
	send_out();
	make_identity("two");
	send_out();
	bind_as("ProducerPort");
	id = rpc_conn_identity(t.conn);
	assert_true(id->present);
	assert_int_equal(id->pid, 42);
	assert_int_equal(id->uid, -1);
	assert_string_equal(id->machine_id_hint, "hint");
	assert_string_equal(id->machine_name, "one");
	assert_int_equal(rpc_conn_peer(t.conn)->uid, PEER_UID_UNKNOWN);
}

static void
an_identity_after_a_bind_is_ignored(void **state)
{
	bind_as("ProducerPort");
	make_identity("late");
	send_out();
	send_invoke(2, 1, 2, "x", false);
	expect_reply(2, true, false, "x");
	assert_false(rpc_conn_identity(t.conn)->present);
}

static void
an_identity_over_unix_is_ignored(void **state)
{
	make_identity("forged");
	send_out();
	bind_as("ProducerPort");
	assert_false(rpc_conn_identity(t.conn)->present);
	assert_int_equal(rpc_conn_peer(t.conn)->uid, geteuid());
}

static void
a_long_machine_name_is_cut_between_characters(void **state)
{
	char name[400] = "", want[400] = "";
	int i;

	for (i = 0; i < 120; i++)
		strcat(name, "\xe2\x82\xac"); /* three bytes each */
	for (i = 0; i < 85; i++)
		strcat(want, "\xe2\x82\xac");
	make_identity(name);
	send_out();
	bind_as("ProducerPort");
	assert_string_equal(rpc_conn_identity(t.conn)->machine_name, want);
}

static void
two_thousand_connections_bind_leave_and_are_small(void **state)
{
	enum { N = 2000 };
	static int fds[N];
	struct rlimit rl;
	size_t before, bytes;
	int sv[2], i;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
	rl.rlim_cur = rl.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
	if (rl.rlim_cur < 2 * N + 100)
		skip();
	bind_as("ProducerPort");
	make_bind("ProducerPort");
	before = mallinfo2().uordblks;
	for (i = 0; i < N; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
		t.conn = rpc_conn_new(t.loop, sv[0], &(struct rpc_conn_setup){
		    .services = services, .n_services = 2, .stats = &t.stats });
		assert_non_null(t.conn);
		fds[i] = sv[1];
		assert_int_equal(send(sv[1], t.out.data, t.out.len, 0),
		    t.out.len);
	}
	RUN_UNTIL(t.bound == N + 1);
	bytes = (mallinfo2().uordblks - before) / N;
	print_message("%zu bytes a connection\n", bytes);
	assert_true(bytes < 1024);
	/* Half leave by themselves. */
	for (i = 0; i < N; i += 2)
		close(fds[i]);
	RUN_UNTIL(t.gone == N / 2);
	rpc_conns_close_all(&t.stats);
	assert_null(t.stats.conns);
	RUN_UNTIL(t.gone == N + 1);
	for (i = 1; i < N; i += 2)
		close(fds[i]);
	assert_int_equal(t.stats.connections, N + 1);
}

#define UNIX(name) cmocka_unit_test_setup_teardown(name, setup_unix, teardown)
#define TCP(name)  cmocka_unit_test_setup_teardown(name, setup_tcp, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		UNIX(a_service_is_bound_by_its_name_and_lists_its_methods),
		TCP(a_service_is_bound_by_its_name_and_lists_its_methods),
		UNIX(a_service_is_bound_by_its_alias),
		UNIX(the_second_service_has_an_id_of_its_own),
		UNIX(an_unknown_service_is_answered_without_success),
		UNIX(a_second_bind_is_refused_and_harms_nothing),
		UNIX(a_refused_bind_owes_no_gone),
		UNIX(a_bind_that_closes_is_told_gone_once),
		UNIX(calls_before_a_bind_to_unknown_methods_and_services_fail),
		UNIX(a_method_gets_its_arguments_and_replies_at_once),
		UNIX(a_method_replies_later_and_several_times),
		UNIX(half_a_reply_is_a_refusal),
		UNIX(a_dropped_reply_is_not_sent),
		UNIX(rejected_and_unparsable_arguments_are_told_and_counted),
		UNIX(an_empty_frame_gets_a_request_error),
		UNIX(a_frame_with_no_known_message_gets_a_request_error),
		UNIX(bytes_that_are_no_message_get_a_request_error),
		UNIX(a_client_that_speaks_TLS_is_told_at_once),
		TCP(a_client_that_speaks_TLS_is_told_at_once),
		UNIX(a_frame_that_only_looks_like_TLS_is_one),
		UNIX(a_frame_that_is_too_big_closes_its_connection),
		TCP(a_frame_of_4_GiB_closes_its_connection),
		UNIX(frames_cut_at_every_byte_are_put_together),
		UNIX(arguments_are_handed_over_without_a_copy),
		UNIX(a_call_without_a_reply_allocates_nothing),
		UNIX(a_call_that_asks_to_wait_is_shown_again_after_resume),
		UNIX(a_paused_connection_takes_no_more_frames_even_those_it_has),
		UNIX(a_close_in_a_method_ends_everything_once),
		TCP(a_close_in_a_method_ends_everything_once),
		UNIX(gone_comes_on_a_later_turn_after_a_close),
		UNIX(gone_comes_when_the_peer_leaves_or_breaks),
		TCP(gone_comes_when_the_peer_leaves_or_breaks),
		UNIX(queued_replies_leave_before_a_close),
		UNIX(who_is_thrown_out_gets_no_more),
		UNIX(a_slow_reader_is_closed_and_counted),
		UNIX(what_a_slow_reader_asked_for_is_not_made_once_it_is_closed),
		UNIX(frames_that_cost_much_leave_turns_to_others),
		UNIX(the_owner_hears_when_output_drained),
		UNIX(a_reply_that_fits_no_frame_closes_the_connection),
		TCP(an_identity_is_taken_once_and_only_before_a_bind),
		TCP(an_identity_after_a_bind_is_ignored),
		UNIX(an_identity_over_unix_is_ignored),
		TCP(a_long_machine_name_is_cut_between_characters),
		UNIX(two_thousand_connections_bind_leave_and_are_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
