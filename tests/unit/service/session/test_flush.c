#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "service/session/flush.h"
#include "service/session/instance.h"
#include "tests/unit/service/session/fixture.h"

#define RING "buffers { size_kb: 64 } "
#define ONE_SOURCE RING "data_sources { config { name: \"src\" } } "

/* Longer than a test: the time-out does not come. */
#define LONG_MS 3600000u

struct outcome {
	size_t calls;
	bool success;
};

static void
note(struct session *s, bool success, void *arg)
{
	struct outcome *o = arg;

	o->calls++;
	o->success = success;
}

static bool
is_told(void *arg)
{
	return ((struct outcome *)arg)->calls > 0;
}

static void
register_source(struct fake_producer *p, const char *name, bool no_flush)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_string(&w, 1, name);
	pb_put_uint(&w, 9, no_flush);
	assert_null(producer_register(p->p, w.data, w.len));
	pb_writer_done(&w);
}

static void
nobody_to_ask_is_a_success_on_a_later_turn(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct outcome o = { 0 };

	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	flush_start(c.s, LONG_MS, FLUSH_EXPLICIT, note, &o);
	assert_int_equal(o.calls, 0);
	fixture_wait(f, is_told, &o);
	assert_true(o.success);
	assert_int_equal(c.s->flushes_succeeded, 1);
	session_free(c.s);
}

static void
it_succeeds_when_the_last_producer_has_answered(void **state)
{
	struct fixture *f = *state;
	struct fake_producer a, b;
	struct fake_consumer c;
	struct outcome o = { 0 };

	fake_producer_init(&a, f, "a", true);
	fake_producer_init(&b, f, "b", true);
	fake_producer_register(&a, "src", false, false);
	fake_producer_register(&b, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	flush_start(c.s, LONG_MS, FLUSH_EXPLICIT, note, &o);
	assert_int_equal(a.last_flush, b.last_flush);
	assert_int_equal(a.last_flush_flags, FLUSH_EXPLICIT);
	assert_int_equal(a.last_flush_n, 1);
	assert_int_equal(a.last_flush_ids[0], a.last_instance);
	flush_ack(b.p, b.last_flush);
	flush_ack(b.p, b.last_flush);
	assert_int_equal(o.calls, 0);
	flush_ack(a.p, a.last_flush);
	assert_int_equal(o.calls, 1);
	assert_true(o.success);
	session_free(c.s);
	fake_producer_done(&a);
	fake_producer_done(&b);
}

static void
an_answer_covers_all_requests_before_it_and_none_after(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct outcome o[4] = { 0 };
	uint64_t id[4];
	size_t i;

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	for (i = 0; i < 4; i++) {
		flush_start(c.s, LONG_MS, FLUSH_EXPLICIT, note, &o[i]);
		id[i] = p.last_flush;
	}
	flush_ack(p.p, id[2]);
	assert_int_equal(o[0].calls, 1);
	assert_int_equal(o[1].calls, 1);
	assert_int_equal(o[2].calls, 1);
	assert_int_equal(o[3].calls, 0);
	flush_ack(p.p, UINT64_MAX);
	assert_int_equal(o[3].calls, 1);
	assert_int_equal(c.s->flushes_requested, 4);
	assert_int_equal(c.s->flushes_succeeded, 4);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
an_answer_reaches_the_flushes_of_every_session(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c, d;
	struct outcome o = { 0 }, q = { 0 };

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	assert_non_null(fake_enable(f, &d, ONE_SOURCE, -1));
	flush_start(c.s, LONG_MS, FLUSH_EXPLICIT, note, &o);
	flush_start(d.s, LONG_MS, FLUSH_EXPLICIT, note, &q);
	flush_ack(p.p, p.last_flush);
	assert_true(o.success);
	assert_true(q.success);
	session_free(c.s);
	session_free(d.s);
	fake_producer_done(&p);
}

static void
a_producer_that_goes_is_not_waited_for(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct outcome o = { 0 };

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	flush_start(c.s, LONG_MS, FLUSH_EXPLICIT, note, &o);
	fake_producer_done(&p);
	assert_int_equal(o.calls, 1);
	assert_true(o.success);
	session_free(c.s);
}

static void
a_time_out_is_a_failure_that_names_the_slow_sources(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
	struct outcome o = { 0 };
	size_t i, slow = 0;

	fake_producer_init(&p, f, "sleeper", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	flush_start(c.s, 10, FLUSH_EXPLICIT, note, &o);
	fixture_wait(f, is_told, &o);
	assert_false(o.success);
	assert_int_equal(c.s->flushes_failed, 1);
	fake_read(c.s, &t);
	for (i = 0; i < t.n; i++) {
		Perfetto__Protos__TracingServiceEvent *e;

		if (t.packets[i]->data_case !=
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_SERVICE_EVENT)
			continue;
		e = t.packets[i]->service_event;
		if (e->event_type_case ==
		    PERFETTO__PROTOS__TRACING_SERVICE_EVENT__EVENT_TYPE_LAST_FLUSH_SLOW_DATA_SOURCES)
			slow += e->last_flush_slow_data_sources->n_data_source;
	}
	assert_int_equal(slow, 1);
	fake_trace_done(&t);
	/* Too late, and for nobody: */
	flush_ack(p.p, p.last_flush);
	assert_int_equal(o.calls, 1);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
sources_that_said_no_flush_are_left_alone(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct outcome o = { 0 };

	fake_producer_init(&p, f, "p", false);
	register_source(&p, "src", true);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	flush_start(c.s, LONG_MS, FLUSH_EXPLICIT, note, &o);
	fixture_wait(f, is_told, &o);
	assert_true(o.success);
	assert_int_equal(fake_producer_count(&p, "flush"), 0);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
emulated_producers_are_asked_even_so(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct outcome o = { 0 };

	fake_producer_init(&p, f, "p", true);
	register_source(&p, "src", true);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	flush_start(c.s, LONG_MS, FLUSH_EXPLICIT, note, &o);
	assert_int_equal(fake_producer_count(&p, "flush"), 1);
	flush_ack(p.p, p.last_flush);
	assert_true(o.success);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
only_sources_that_run_are_asked(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c, d;
	struct outcome o = { 0 };

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, true);
	fake_producer_register(&p, "other", false, false);
	assert_non_null(fake_enable(f, &d, RING "data_sources { config { "
	    "name: \"other\" } }", -1));
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	instance_ack_stopped(producer_find_instance(p.p, p.last_instance));
	flush_start(c.s, LONG_MS, FLUSH_EXPLICIT, note, &o);
	assert_int_equal(fake_producer_count(&p, "flush"), 0);
	session_free(c.s);
	session_free(d.s);
	fake_producer_done(&p);
}

static void
a_forgotten_flush_tells_nobody(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct outcome o = { 0 }, q = { 0 };

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	flush_start(c.s, LONG_MS, FLUSH_EXPLICIT, note, &o);
	flush_start(c.s, LONG_MS, FLUSH_EXPLICIT, note, &q);
	flush_forget(c.s, &o);
	flush_ack(p.p, p.last_flush);
	assert_int_equal(o.calls, 0);
	assert_int_equal(q.calls, 1);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_session_that_is_freed_tells_nobody(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct outcome o = { 0 };

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	flush_start(c.s, 1, FLUSH_EXPLICIT, note, &o);
	session_free(c.s);
	flush_ack(p.p, p.last_flush);
	assert_int_equal(o.calls, 0);
	fake_producer_done(&p);
}

static void
shared_memory_is_scraped_before_the_end_is_told(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
	struct shm_slot slot;
	struct outcome o = { 0 };

	fake_producer_init(&p, f, "p", false);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	fake_shm_packet(&p, 1, 0, 1, "left", true, &slot);
	flush_start(c.s, LONG_MS, FLUSH_EXPLICIT, note, &o);
	flush_ack(p.p, p.last_flush);
	assert_true(o.success);
	fake_read(c.s, &t);
	assert_int_equal(fake_trace_count(&t, "left"), 1);
	fake_trace_done(&t);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_periodic_flush_may_outlive_the_file_it_was_for(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	uint64_t id;

	/* Asked before a periodic write; never answers, but stops unasked. */
	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", false, true);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE "write_into_file: true "
	    "output_path: \"t.pftrace\" file_write_period_ms: 100 "
	    "write_flush_mode: WRITE_FLUSH_ENABLED flush_timeout_ms: 3600000",
	    -1));
	while (fake_producer_count(&p, "flush") == 0)
		loop_run_once(f->loop);
	id = p.last_flush;
	instance_ack_stopped(producer_find_instance(p.p, p.last_instance));
	session_disable(c.s, NULL);
	fixture_wait(f, fake_disabled, &c);
	assert_string_equal(c.error, "");
	flush_ack(p.p, id);
	session_free(c.s);
	fake_producer_done(&p);
}

#define T(name)                                                               \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(nobody_to_ask_is_a_success_on_a_later_turn),
		T(it_succeeds_when_the_last_producer_has_answered),
		T(an_answer_covers_all_requests_before_it_and_none_after),
		T(an_answer_reaches_the_flushes_of_every_session),
		T(a_producer_that_goes_is_not_waited_for),
		T(a_time_out_is_a_failure_that_names_the_slow_sources),
		T(sources_that_said_no_flush_are_left_alone),
		T(emulated_producers_are_asked_even_so),
		T(only_sources_that_run_are_asked),
		T(a_forgotten_flush_tells_nobody),
		T(a_session_that_is_freed_tells_nobody),
		T(shared_memory_is_scraped_before_the_end_is_told),
		T(a_periodic_flush_may_outlive_the_file_it_was_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
