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

#include "client/library/control.h"
#include "protos/control.pb-c.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/socket/addr.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define CALLS_MAX 64

/* The service answers when the test says so. */
struct fixture {
	struct loop *loop;
	struct rpc_service service;
	const struct rpc_service *services[1];
	struct rpc_stats stats;
	struct rpc_conn *conn;
	struct control *control;
	struct rpc_call calls[CALLS_MAX]; /* that were made, in their order */
	char names[CALLS_MAX];            /* m, q, s, f, x */
	uint8_t args[64];                 /* of the last one */
	size_t args_len;
	size_t n_calls;

	size_t answers; /* that came back */
	size_t last_sessions;
	char last_error[400];
	bool free_inside;
};

static enum rpc_verdict
note(struct fixture *f, char name, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	assert_true(f->n_calls < CALLS_MAX && len <= sizeof(f->args));
	f->names[f->n_calls] = name;
	f->calls[f->n_calls++] = call;
	memcpy(f->args, args, len);
	f->args_len = len;
	return RPC_OK;
}

#define METHOD(name, letter)                                                  \
	static enum rpc_verdict name(void *ctx, struct rpc_call call,         \
	    const uint8_t *args, size_t len)                                  \
	{                                                                     \
		return note(ctx, letter, call, args, len);                    \
	}
METHOD(machines, 'm')
METHOD(sessions, 'q')
METHOD(start, 's')
METHOD(flush, 'f')
METHOD(stop, 'x')

static const struct rpc_method methods[] = {
	{ "QueryMachines", machines },
	{ "QuerySessions", sessions },
	{ "StartSession", start },
	{ "FlushSession", flush },
	{ "StopSession", stop },
};

static void *
bind_cb(struct rpc_conn *c, void *arg)
{
	return arg;
}

static void
gone_cb(void *ctx)
{
}

static void
connect_to(struct fixture *f, const char *service, size_t n_methods)
{
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0), fd;
	char name[64], err[300];
	struct addr a;

	f->service = (struct rpc_service){
		.name = service,
		.methods = methods,
		.n_methods = n_methods,
		.bind = bind_cb,
		.gone = gone_cb,
		.arg = f,
	};
	f->services[0] = &f->service;
	snprintf(name, sizeof(name), "@test-control-%d", (int)getpid());
	assert_int_equal(addr_parse(&a, name, err, sizeof(err)), 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&a.sa, a.sa_len),
	    0);
	assert_int_equal(listen(listener, 1), 0);
	f->control = control_new(f->loop, &a, NULL, err, sizeof(err));
	assert_non_null(f->control);
	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC |
	    SOCK_NONBLOCK)) < 0)
		loop_run_once(f->loop);
	close(listener);
	f->conn = rpc_conn_new(f->loop, fd, &(struct rpc_conn_setup){
	    .services = f->services, .n_services = 1, .stats = &f->stats });
	assert_non_null(f->conn);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->loop = loop_new();
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	control_free(f->control);
	rpc_conns_close_all(&f->stats);
	while (f->stats.n_conns > 0)
		loop_run_once(f->loop);
	loop_free(f->loop);
	free(f);
	return 0;
}

/* Turns the loop until cond; the test's time-out is meson's. */
#define UNTIL(f, cond)                                                        \
	do {                                                                  \
		while (!(cond))                                               \
			loop_run_once((f)->loop);                             \
	} while (0)

static void
came(struct fixture *f, const char *error)
{
	f->answers++;
	snprintf(f->last_error, sizeof(f->last_error), "%s", error != NULL ?
	    error : "");
	if (f->free_inside) {
		control_free(f->control);
		f->control = NULL;
	}
}

static void
sessions_cb(void *arg, const Tributary__QuerySessionsReply *r, const char *why)
{
	struct fixture *f = arg;

	assert_true((r == NULL) == (why != NULL));
	f->last_sessions = r != NULL ? r->n_sessions : 0;
	came(f, why);
}

static void
machines_cb(void *arg, const Tributary__QueryMachinesReply *r, const char *why)
{
	assert_true((r == NULL) == (why != NULL));
	came(arg, why);
}

static void
done_cb(void *arg, const char *error)
{
	came(arg, error);
}

static void
ask(struct fixture *f)
{
	const struct control_sessions all = { 0 };

	control_query_sessions(f->control, &all, sessions_cb, f);
}

static void
order(struct fixture *f, enum control_verb verb)
{
	const struct control_order o = { .verb = verb, .id = 7,
		.discard = verb == CONTROL_STOP, .timeout_ms = 9 };

	control_command(f->control, &o, done_cb, f);
}

/* A session, in a part of the answer. */
static void
reply_session(struct fixture *f, size_t call, bool more)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_nest_end(&w, pb_nest_begin(&w, 1));
	rpc_reply(f->calls[call], w.data, w.len, more, -1);
	pb_writer_done(&w);
}

static void
reply_done(struct fixture *f, size_t call, const char *error)
{
	struct pb_writer w;

	pb_writer_init(&w);
	if (error != NULL)
		pb_put_string(&w, 1, error);
	rpc_reply(f->calls[call], w.data, w.len, false, -1);
	pb_writer_done(&w);
}

static void
an_answer_in_parts_is_one(void **state)
{
	struct fixture *f = *state;

	connect_to(f, "TributaryControl", 5);
	ask(f);
	UNTIL(f, f->n_calls == 1);
	reply_session(f, 0, true);
	reply_session(f, 0, true);
	reply_session(f, 0, false);
	UNTIL(f, f->answers == 1);
	assert_string_equal(f->last_error, "");
	assert_int_equal(f->last_sessions, 3);
	assert_int_equal(f->n_calls, 1);
}

static void
questions_wait_for_each_other_and_commands_do_not(void **state)
{
	struct fixture *f = *state;

	connect_to(f, "TributaryControl", 5);
	ask(f);
	control_query_machines(f->control, machines_cb, f);
	order(f, CONTROL_START);
	order(f, CONTROL_FLUSH);
	order(f, CONTROL_STOP);
	UNTIL(f, f->n_calls == 4);
	assert_memory_equal(f->names, "qsfx", 4);
	/* id 7, timeout_ms 9, discard */
	assert_int_equal(f->args_len, 6);
	assert_memory_equal(f->args, "\x08\x07\x18\x09\x20\x01", 6);
	reply_session(f, 0, false);
	UNTIL(f, f->n_calls == 5);
	assert_int_equal(f->names[4], 'm');
	reply_done(f, 4, NULL);
	reply_done(f, 3, NULL);
	UNTIL(f, f->answers == 3);
	assert_string_equal(f->last_error, "");
	reply_done(f, 1, "It runs already");
	UNTIL(f, f->answers == 4);
	assert_string_equal(f->last_error, "It runs already");
}

static void
a_refused_question_and_nonsense_are_told(void **state)
{
	struct fixture *f = *state;

	connect_to(f, "TributaryControl", 5);
	ask(f);
	UNTIL(f, f->n_calls == 1);
	rpc_reject(f->calls[0]);
	UNTIL(f, f->answers == 1);
	assert_non_null(strstr(f->last_error, "does not say which sessions"));
	ask(f);
	UNTIL(f, f->n_calls == 2);
	rpc_reply(f->calls[1], "\x0a\x7f", 2, false, -1);
	UNTIL(f, f->answers == 2);
	assert_non_null(strstr(f->last_error, "makes no sense"));
	assert_false(control_is_foreign(f->control));
}

static void
an_endless_answer_is_cut_off(void **state)
{
	static uint8_t big[100000];
	struct fixture *f = *state;
	size_t sent;

	connect_to(f, "TributaryControl", 5);
	rpc_conn_set_limits(f->conn, CONTROL_MAX_ANSWER, 1024);
	ask(f);
	UNTIL(f, f->n_calls == 1);
	for (sent = 0; sent <= CONTROL_MAX_ANSWER; sent += sizeof(big)) {
		rpc_reply(f->calls[0], big, sizeof(big), true, -1);
		UNTIL(f, rpc_conn_queued(f->conn) < 1000000);
	}
	reply_session(f, 0, false);
	UNTIL(f, f->answers == 1);
	assert_non_null(strstr(f->last_error, "too long"));
	order(f, CONTROL_STOP);
	UNTIL(f, f->n_calls == 2);
}

static void
a_lost_connection_answers_everything_once(void **state)
{
	struct fixture *f = *state;

	connect_to(f, "TributaryControl", 5);
	ask(f);
	ask(f);
	order(f, CONTROL_STOP);
	UNTIL(f, f->n_calls == 2);
	rpc_conn_close(f->conn, "test");
	UNTIL(f, f->answers == 3);
	assert_true(f->last_error[0] != '\0');
	/* Later ones learn the same. */
	ask(f);
	assert_int_equal(f->answers, 3);
	UNTIL(f, f->answers == 4);
	assert_true(f->last_error[0] != '\0');
	assert_false(control_is_foreign(f->control));
}

static void
a_collector_without_the_service_is_told_from_one_that_is_not_there(
    void **state)
{
	struct fixture *f = *state;

	connect_to(f, "ConsumerPort", 5);
	ask(f);
	UNTIL(f, f->answers == 1);
	assert_true(control_is_foreign(f->control));
}

static void
so_is_one_that_is_older_than_the_question(void **state)
{
	struct fixture *f = *state;

	connect_to(f, "TributaryControl", 1);
	ask(f);
	UNTIL(f, f->answers == 1);
	assert_non_null(strstr(f->last_error, "older"));
	assert_true(control_is_foreign(f->control));
	control_query_machines(f->control, machines_cb, f);
	UNTIL(f, f->n_calls == 1);
}

static void
it_may_be_freed_inside_of_any_answer(void **state)
{
	struct fixture *f = *state;
	int i;

	f->free_inside = true;
	for (i = 0; i < 3; i++) {
		connect_to(f, i == 2 ? "ConsumerPort" : "TributaryControl", 5);
		f->n_calls = f->answers = 0;
		ask(f);
		order(f, CONTROL_STOP);
		if (i < 2)
			UNTIL(f, f->n_calls == 2);
		if (i == 0)
			reply_session(f, 0, false);
		if (i == 1)
			rpc_conn_close(f->conn, "test");
		UNTIL(f, f->answers == 1);
		assert_null(f->control);
		rpc_conns_close_all(&f->stats);
		UNTIL(f, f->stats.n_conns == 0);
		assert_int_equal(f->answers, 1);
	}
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(an_answer_in_parts_is_one),
		T(questions_wait_for_each_other_and_commands_do_not),
		T(a_refused_question_and_nonsense_are_told),
		T(an_endless_answer_is_cut_off),
		T(a_lost_connection_answers_everything_once),
		T(a_collector_without_the_service_is_told_from_one_that_is_not_there),
		T(so_is_one_that_is_older_than_the_question),
		T(it_may_be_freed_inside_of_any_answer),
	};

	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
