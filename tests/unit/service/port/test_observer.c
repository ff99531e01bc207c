#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "service/port/observer.h"
#include "tests/unit/service/port/port_fixture.h"

#define ONE_SOURCE "buffers { size_kb: 64 } data_sources { config { name: "   \
	"\"src\" } } "

static void
a_question_is_a_list_packed_or_not(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		bool ok;
		uint32_t mask;
	} cases[] = {
		{ "", 0, true, 0 },
		{ "\x08\x01", 2, true, 1 },
		{ "\x08\x01\x08\x04", 4, true, 5 },
		{ "\x0a\x02\x01\x02", 4, true, 3 },
		{ "\x0a\x00", 2, true, 0 },
		{ "\x10\x07\x08\x02", 4, true, 2 },
		{ "\x0a\x01\x80", 3, false, 0 },
		{ "\x0d\1\0\0\0", 5, false, 0 },
		{ "\x08", 1, false, 0 },
	};
	uint32_t mask;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(observer_parse(
		    (const uint8_t *)cases[i].bytes, cases[i].len, &mask),
		    cases[i].ok);
		if (cases[i].ok)
			assert_int_equal(mask, cases[i].mask);
	}
}

/* The events of one kind that a client got for a call. */
static size_t
events(const struct client *c, uint64_t call, uint32_t kind)
{
	struct pb_reader r;
	struct pb_field f, g;
	size_t i, n = 0;

	for (i = 0; i < c->n_replies; i++) {
		if (c->replies[i].request != call ||
		    !reply_field(&c->replies[i], 1, &f))
			continue;
		pb_init(&r, f.data, f.len);
		while (pb_next(&r, &g))
			n += g.number == kind;
	}
	return n;
}

static void
only_what_was_asked_for_is_told(void **state)
{
	struct ports *p = *state;
	struct client prod, all, none;
	uint64_t a, n;

	client_open(&prod, p, PRODUCER);
	client_initialize(&prod, "p");
	client_register(&prod, "src");
	client_open(&all, p, CONSUMER);
	client_open(&none, p, CONSUMER);
	a = client_send(&all, C_OBSERVE, args_uint(1, OBSERVE_INSTANCES |
	    OBSERVE_ALL_STARTED | OBSERVE_CLONE_TRIGGER), -1);
	n = client_send(&none, C_OBSERVE, args_uint(1, OBSERVE_CLONE_TRIGGER),
	    -1);
	(void)client_enable(&all, ONE_SOURCE "trigger_config { trigger_mode: "
	    "CLONE_SNAPSHOT trigger_timeout_ms: 3600000 triggers { name: "
	    "\"snap\" } }", -1);
	/* It was set up, and it started. */
	while (events(&all, a, 2) == 0)
		client_turn(&all);
	assert_int_equal(events(&all, a, 1), 2);
	assert_int_equal(events(&all, a, 2), 1);
	assert_int_equal(events(&all, a, 3), 0);
	assert_true(client_call(&prod, P_TRIGGERS,
	    args_string(1, "snap"))->ok);
	while (events(&all, a, 3) == 0)
		client_turn(&all);
	/* The other has no session: nothing is for it. */
	client_call(&none, C_CAPABILITIES, NULL);
	assert_int_equal(client_count(&none, n), 0);
	client_close(&prod);
	client_close(&all);
	client_close(&none);
}

static void
what_happened_before_the_question_is_told(void **state)
{
	struct ports *p = *state;
	struct client prod, c;
	uint64_t call;

	client_open(&prod, p, PRODUCER);
	client_initialize(&prod, "p");
	client_register(&prod, "src");
	client_open(&c, p, CONSUMER);
	(void)client_enable(&c, ONE_SOURCE, -1);
	client_call(&c, C_CAPABILITIES, NULL);
	call = client_send(&c, C_OBSERVE, args_uint(1, 3), -1);
	while (events(&c, call, 2) == 0)
		client_turn(&c);
	assert_int_equal(events(&c, call, 1), 1);
	assert_int_equal(events(&c, call, 2), 1);
	/* And that a source went: */
	client_close(&prod);
	while (events(&c, call, 1) < 2)
		client_turn(&c);
	client_close(&c);
}

/* ---- the stream by itself ---- */

static void
tell_many(struct observer *o, unsigned n)
{
	char name[16];
	unsigned i;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		observer_instance(o, name, "src", true);
	}
}

/* The port's own end of a client's connection. */
static struct rpc_conn *
conn_of(struct ports *p)
{
	assert_int_equal(p->stats.n_conns, 1);
	return p->stats.conns;
}

static void
many_events_share_few_replies_in_their_order(void **state)
{
	struct ports *p = *state;
	const struct clone_trigger t = { .name = "n", .producer_name = "p" };
	struct client c;
	struct observer o;
	uint64_t call;

	client_open(&c, p, CONSUMER);
	call = client_send(&c, C_OBSERVE, args_uint(1, 7), -1);
	client_call(&c, C_CAPABILITIES, NULL);
	observer_init(&o, p->loop, conn_of(p), 1u << 20);
	observer_set(&o, (struct rpc_call){ conn_of(p), call, true }, 7);
	tell_many(&o, 1000);
	observer_clone_trigger(&o, 1, &t);
	observer_clone_trigger(&o, 2, &t);
	observer_all_started(&o);
	while (events(&c, call, 2) == 0)
		client_turn(&c);
	assert_int_equal(events(&c, call, 1), 1000);
	/* A reply has room for one clone trigger. */
	assert_int_equal(events(&c, call, 3), 2);
	assert_in_range(client_count(&c, call), 2, 8);
	observer_done(&o);
	client_close(&c);
}

static void
who_does_not_read_is_waited_for_and_then_closed(void **state)
{
	struct ports *p = *state;
	struct client c;
	struct observer o;
	uint64_t call, closed = p->stats.closed_slow;
	unsigned i;

	client_open(&c, p, CONSUMER);
	call = client_send(&c, C_OBSERVE, args_uint(1, 7), -1);
	client_call(&c, C_CAPABILITIES, NULL);
	rpc_conn_set_limits(conn_of(p), 1u << 20, 64u << 10);
	observer_init(&o, p->loop, conn_of(p), 1u << 20);
	observer_set(&o, (struct rpc_call){ conn_of(p), call, true }, 7);
	c.deaf = true;
	/* Its queue is filled no further than it needs to be. */
	for (i = 0; i < 40; i++) {
		tell_many(&o, 1000);
		loop_run_once(p->loop);
	}
	assert_int_equal(p->stats.closed_slow, closed);
	assert_in_range(rpc_conn_queued(conn_of(p)), 256u << 10,
	    (256u + 64u) << 10);
	assert_in_range(o.pending.len, 100u << 10, 1u << 20);
	/* All at once, when it is too much: the queue has its own limit. */
	while (p->stats.closed_slow == closed) {
		tell_many(&o, 1000);
		client_turn(&c);
	}
	observer_done(&o);
	client_close(&c);
}

static void
a_slow_reader_gets_every_event(void **state)
{
	struct ports *p = *state;
	struct client c;
	struct observer o;
	uint64_t call;
	unsigned i;

	client_open(&c, p, CONSUMER);
	call = client_send(&c, C_OBSERVE, args_uint(1, 7), -1);
	client_call(&c, C_CAPABILITIES, NULL);
	observer_init(&o, p->loop, conn_of(p), 1u << 20);
	observer_set(&o, (struct rpc_call){ conn_of(p), call, true }, 7);
	c.deaf = true;
	for (i = 0; o.pending.len - o.sent < 100000; i += 1000) {
		tell_many(&o, 1000);
		loop_run_once(p->loop);
	}
	c.deaf = false;
	while (events(&c, call, 1) < i) {
		client_turn(&c);
		observer_drained(&o);
	}
	assert_int_equal(events(&c, call, 1), i);
	/* Nobody asks any more: nothing is kept. */
	tell_many(&o, 10);
	observer_set(&o, (struct rpc_call){ conn_of(p), call, true }, 0);
	assert_int_equal(o.pending.len, 0);
	tell_many(&o, 10);
	assert_int_equal(o.pending.len, 0);
	observer_done(&o);
	client_close(&c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, ports_setup, ports_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_a_list_packed_or_not),
		T(only_what_was_asked_for_is_told),
		T(what_happened_before_the_question_is_told),
		T(many_events_share_few_replies_in_their_order),
		T(who_does_not_read_is_waited_for_and_then_closed),
		T(a_slow_reader_gets_every_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
