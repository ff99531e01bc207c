#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "protos/control.pb-c.h"
#include "service/model/model.h"
#include "tests/unit/service/port/port_fixture.h"
#include "transport/loop/delays.h"

enum { M_METRICS = 12 };

typedef Tributary__QueryMetricsReply metrics;
typedef Tributary__QueryMetricsReply__Count count;

static metrics *
ask(struct client *c)
{
	const struct reply *r = client_call(c, M_METRICS, NULL);
	metrics *m;

	assert_true(r->ok);
	assert_false(r->more);
	m = tributary__query_metrics_reply__unpack(NULL, r->len, r->msg);
	assert_non_null(m);
	return m;
}

static void
done(metrics *m)
{
	tributary__query_metrics_reply__free_unpacked(m, NULL);
}

static uint64_t
of(count *const *counts, size_t n, const char *label)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(counts[i]->label, label) == 0)
			return counts[i]->value;
	fail_msg("no label %s", label);
	return 0;
}
#define OF(m, member, label) of((m)->member, (m)->n_##member, label)

static void
a_collector_that_did_nothing_says_so(void **state)
{
	struct ports *p = *state;
	struct client c;
	metrics *m;

	client_open(&c, p, CONTROL);
	m = ask(&c);
	assert_string_equal(m->version, TRIBUTARY_VERSION);
	assert_int_equal(OF(m, sessions, "started"), 0);
	assert_int_equal(OF(m, recordings, "running"), 0);
	assert_int_equal(OF(m, machines, "connected"), 1);
	assert_int_equal(OF(m, links, "cut"), 0);
	assert_int_equal(OF(m, links_opened, "resumed"), 0);
	assert_int_equal(OF(m, refused, "other"), 0);
	assert_int_equal(OF(m, lost_packets, "spool_full"), 0);
	assert_int_equal(OF(m, segments, "trigger"), 0);
	assert_true(m->has_received_bytes && m->received_bytes == 0);
	assert_true(m->buffer_limit_bytes > 0);
	assert_int_equal(OF(m, relays_backlog, "spool"), 0);
	assert_int_equal(m->n_loop_delays, DELAYS);
	assert_false(m->loop_delays[DELAYS - 1]->has_most_ns);
	assert_true(m->process->resident_bytes > 0);
	done(m);
	client_close(&c);
}

static void
sessions_buffers_and_producers_are_counted(void **state)
{
	struct ports *p = *state;
	struct client c, producer, consumer;
	metrics *m;

	client_open(&producer, p, PRODUCER);
	client_initialize(&producer, "probes");
	client_register(&producer, "a");
	client_open(&consumer, p, CONSUMER);
	client_enable(&consumer, "buffers { size_kb: 64 } data_sources { "
	    "config { name: \"b\" } }", -1);
	client_open(&c, p, CONTROL);
	m = ask(&c);
	assert_int_equal(m->producers, 1);
	assert_int_equal(m->data_sources, 1);
	assert_int_equal(OF(m, sessions, "started"), 1);
	assert_int_equal(m->buffer_bytes, 64 * 1024);
	assert_int_equal(m->buffer_used_bytes, 0);
	done(m);
	client_close(&consumer);
	client_close(&producer);
	client_close(&c);
}

static void
a_refusal_is_counted_by_its_setting(void **state)
{
	struct ports *p = *state;
	struct client c, consumer;
	metrics *m;
	size_t i;

	p->settings.limits.max_sessions = 0;
	client_open(&consumer, p, CONSUMER);
	client_enable(&consumer, "buffers { size_kb: 64 }", -1);
	client_enable(&consumer, "buffers { size_kb: 64 }", -1);
	client_open(&c, p, CONTROL);
	m = ask(&c);
	assert_int_equal(OF(m, refused, "limits.max_sessions"), 2);
	assert_int_equal(OF(m, refused, "other"), 0);
	for (i = 0; i < m->n_refused; i++) {
		assert_int_equal(m->refused[i]->has_last_ns,
		    m->refused[i]->value != 0);
		if (m->refused[i]->has_last_ns)
			assert_true(m->refused[i]->last_ns <= m->now_ns &&
			    m->refused[i]->last_ns + 60000000000u > m->now_ns);
	}
	done(m);
	client_close(&consumer);
	client_close(&c);
}

static void
report(void *arg, struct pb_writer *w)
{
	pb_put_uint(w, 9, 1234);
}

static void
what_the_service_does_not_know_is_asked_of_the_front(void **state)
{
	struct ports *p = *state;
	struct client c;
	metrics *m;

	client_open(&c, p, CONTROL);
	m = ask(&c);
	assert_false(m->has_certificate_expiry_s);
	done(m);
	p->service->report_front = report;
	m = ask(&c);
	assert_int_equal(m->certificate_expiry_s, 1234);
	done(m);
	client_close(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_collector_that_did_nothing_says_so,
		    ports_setup, ports_teardown),
		cmocka_unit_test_setup_teardown(
		    sessions_buffers_and_producers_are_counted,
		    ports_setup, ports_teardown),
		cmocka_unit_test_setup_teardown(
		    a_refusal_is_counted_by_its_setting,
		    ports_setup, ports_teardown),
		cmocka_unit_test_setup_teardown(
		    what_the_service_does_not_know_is_asked_of_the_front,
		    ports_setup, ports_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
