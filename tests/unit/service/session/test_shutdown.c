#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "service/session/shutdown.h"
#include "tests/unit/fake_time.h"
#include "tests/unit/service/session/fixture.h"

#define SOURCE_CONFIG                                                          \
	"buffers { size_kb: 64 } "                                             \
	"data_sources { config { name: 'src' } } "

static int told;

static void
idle_cb(void *arg)
{
	told++;
}

static bool
was_told(void *arg)
{
	return told > 0;
}

static int
setup(void **state)
{
	told = 0;
	fixture_pass_time = fake_time_tick;
	return fixture_setup(state);
}

static void
turns(struct fixture *f)
{
	int i;

	for (i = 0; i < 20; i++)
		loop_run_once(f->loop);
}

static void
without_sessions_it_is_idle_on_a_later_turn(void **state)
{
	struct fixture *f = *state;

	service_shutdown(f->service, idle_cb, NULL);
	assert_int_equal(told, 0);
	fixture_wait(f, was_told, NULL);
	turns(f);
	assert_int_equal(told, 1);
}

static void
asking_twice_tells_once(void **state)
{
	struct fixture *f = *state;

	service_shutdown(f->service, idle_cb, NULL);
	service_shutdown(f->service, idle_cb, NULL);
	fixture_wait(f, was_told, NULL);
	turns(f);
	assert_int_equal(told, 1);
}

static void
a_running_session_is_ended_and_its_consumer_may_read_it(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c = { .s = NULL };
	struct fake_trace t;

	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, SOURCE_CONFIG, -1));
	assert_int_equal(fake_commit(&p, p.last_buffer, 1, 0, 1, "kept"), 0);
	service_shutdown(f->service, idle_cb, NULL);
	fixture_wait(f, fake_disabled, &c);
	assert_string_equal(c.error, "");
	turns(f);
	assert_int_equal(told, 0); /* it has not been read yet */
	fake_read(c.s, &t);
	assert_int_equal(fake_trace_count(&t, "kept"), 1);
	fake_trace_done(&t);
	session_free(c.s);
	fixture_wait(f, was_told, NULL);
	fake_producer_done(&p);
}

static void
a_consumer_that_stays_is_not_waited_for_long(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c = { .s = NULL };
	uint64_t begin = loop_now_ms();

	assert_non_null(fake_enable(f, &c, SOURCE_CONFIG, -1));
	service_shutdown(f->service, idle_cb, NULL);
	fixture_wait(f, was_told, NULL);
	assert_true(c.disabled);
	assert_true(loop_now_ms() - begin < 8000);
	/* The daemon ends as planned. */
	assert_false(session_is_unfinished(c.s));
	session_free(c.s);
}

static void
a_detached_session_is_ended_and_nobody_waited_for(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c = { .s = NULL };
	uint64_t begin = loop_now_ms();
	char err[256];

	assert_non_null(fake_enable(f, &c, SOURCE_CONFIG, -1));
	assert_int_equal(session_detach(c.s, "key", err, sizeof(err)), 0);
	service_shutdown(f->service, idle_cb, NULL);
	fixture_wait(f, was_told, NULL);
	assert_true(loop_now_ms() - begin < 1500);
	assert_int_equal(c.s->state, SESSION_DISABLED);
	session_free(c.s);
}

static void
a_file_is_complete_when_it_is_idle(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c = { .s = NULL };
	struct fake_trace t;
	char path[128];

	/* Until then: what its thread takes is real time. */
	fixture_pass_time = NULL;
	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, SOURCE_CONFIG
		"write_into_file: true output_path: 'out' "
		"file_write_period_ms: 100000", -1));
	assert_int_equal(fake_commit(&p, p.last_buffer, 1, 0, 1, "kept"), 0);
	service_shutdown(f->service, idle_cb, NULL);
	fixture_wait(f, fake_disabled, &c);
	session_free(c.s);
	fixture_wait(f, was_told, NULL);
	snprintf(path, sizeof(path), "%s/out", f->dir);
	fake_read_file(path, &t);
	assert_int_equal(fake_trace_count(&t, "kept"), 1);
	fake_trace_done(&t);
	fake_producer_done(&p);
}

static void
a_producer_that_never_acknowledges_does_not_hold_it(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c = { .s = NULL };
	char err[256];

	fake_producer_init(&p, f, "p", true);
	fake_producer_register(&p, "src", true, true);
	assert_non_null(fake_enable(f, &c, SOURCE_CONFIG
		"data_source_stop_timeout_ms: 60000", -1));
	assert_int_equal(session_detach(c.s, "key", err, sizeof(err)), 0);
	service_shutdown(f->service, idle_cb, NULL);
	fixture_wait(f, was_told, NULL);
	session_free(c.s);
	fake_producer_done(&p);
}

/* Told to stop before the daemon is, with all the time of its config. */
static void
end_in_its_own_time(struct fixture *f, bool acks_flush)
{
	struct fake_producer p;
	struct fake_consumer c = { .s = NULL };
	char err[256];

	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = acks_flush;
	fake_producer_register(&p, "src", false, true);
	assert_non_null(fake_enable(f, &c, SOURCE_CONFIG
		"flush_timeout_ms: 60000 data_source_stop_timeout_ms: 60000",
		-1));
	assert_int_equal(session_detach(c.s, "key", err, sizeof(err)), 0);
	session_disable(c.s, NULL);
	turns(f);
	assert_int_equal(c.s->state, acks_flush ? SESSION_DISABLING :
	    SESSION_LAST_FLUSH);
	service_shutdown(f->service, idle_cb, NULL);
	fixture_wait(f, was_told, NULL);
	assert_int_equal(c.s->state, SESSION_DISABLED);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_session_that_waits_for_its_last_flush_already_is_hurried(void **state)
{
	end_in_its_own_time(*state, false);
}

static void
a_session_that_waits_for_its_sources_to_stop_already_is_hurried(void **state)
{
	end_in_its_own_time(*state, true);
}

static void
no_session_is_begun_any_more(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c = { .s = NULL };

	service_shutdown(f->service, idle_cb, NULL);
	assert_null(fake_enable(f, &c, SOURCE_CONFIG, -1));
	assert_non_null(strstr(c.error, "shutting down"));
	fixture_wait(f, was_told, NULL);
}

#define CASE(name)                                                             \
	cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_sessions_it_is_idle_on_a_later_turn),
		CASE(asking_twice_tells_once),
		CASE(a_running_session_is_ended_and_its_consumer_may_read_it),
		CASE(a_consumer_that_stays_is_not_waited_for_long),
		CASE(a_detached_session_is_ended_and_nobody_waited_for),
		CASE(a_file_is_complete_when_it_is_idle),
		CASE(a_producer_that_never_acknowledges_does_not_hold_it),
		CASE(a_session_that_waits_for_its_last_flush_already_is_hurried),
		CASE(a_session_that_waits_for_its_sources_to_stop_already_is_hurried),
		CASE(no_session_is_begun_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
