#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/unit/session/fixture.h"
#include "service/session/trigger.h"

#define ONE_SOURCE "buffers { size_kb: 64 } data_sources { config { name: "   \
	"\"src\" } } "
#define MODE(m) ONE_SOURCE "trigger_config { trigger_mode: " m                 \
	" trigger_timeout_ms: 3600000 "

static void
hit(struct fake_producer *p, const char *name)
{
	trigger_activate(p->p, name, strlen(name));
}

static void
begin(struct fake_producer *p, struct fixture *f)
{
	fake_producer_init(p, f, "prod-7", true);
	p->ack_flushes = true;
	fake_producer_register(p, "src", false, false);
}

static void
a_start_trigger_starts_and_its_delay_stops(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	begin(&p, f);
	assert_non_null(fake_enable(f, &c, MODE("START_TRACING")
	    "triggers { name: \"go\" stop_delay_ms: 1 } }", -1));
	assert_int_equal(fake_producer_count(&p, "setup"), 1);
	hit(&p, "other");
	assert_int_equal(fake_producer_count(&p, "start"), 0);
	assert_int_equal(session_start(c.s), -1);
	assert_true(session_reads_nothing(c.s));
	hit(&p, "go");
	assert_int_equal(fake_producer_count(&p, "start"), 1);
	assert_false(session_reads_nothing(c.s));
	fixture_wait(f, fake_disabled, &c);
	assert_string_equal(c.error, "");
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_stop_trigger_stops_after_its_delay_and_is_in_the_trace(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
	size_t i, n = 0;

	begin(&p, f);
	assert_non_null(fake_enable(f, &c, MODE("STOP_TRACING")
	    "triggers { name: \"stop\" stop_delay_ms: 1 } triggers { name: "
	    "\"also\" stop_delay_ms: 3600000 } }", -1));
	assert_int_equal(fake_producer_count(&p, "start"), 1);
	hit(&p, "stop");
	hit(&p, "also"); /* the first decides, both are told */
	fixture_wait(f, fake_disabled, &c);
	fake_read(c.s, &t);
	for (i = 0; i < t.n; i++) {
		if (t.packets[i]->data_case !=
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_TRIGGER)
			continue;
		assert_string_equal(t.packets[i]->trigger->trigger_name,
		    n == 0 ? "stop" : "also");
		assert_string_equal(t.packets[i]->trigger->producer_name,
		    "prod-7");
		n++;
	}
	assert_int_equal(n, 2);
	fake_trace_done(&t);
	session_free(c.s);
	fake_producer_done(&p);
}

static bool
is_hit(void *arg)
{
	return ((struct fake_consumer *)arg)->clone_hit;
}

static void
a_clone_trigger_tells_its_consumer_again_and_again(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	begin(&p, f);
	assert_non_null(fake_enable(f, &c, MODE("CLONE_SNAPSHOT")
	    "triggers { name: \"snap\" stop_delay_ms: 1 } }", -1));
	assert_false(session_reads_nothing(c.s));
	hit(&p, "snap");
	assert_false(c.clone_hit); /* after its delay */
	fixture_wait(f, is_hit, &c);
	c.clone_hit = false;
	hit(&p, "snap");
	hit(&p, "snap");
	fixture_wait(f, is_hit, &c);
	assert_false(c.disabled);
	/* One is under way when the session goes. */
	hit(&p, "snap");
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_clone_trigger_may_outlive_its_consumer(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c, d = { 0 };
	char err[80];

	begin(&p, f);
	assert_non_null(fake_enable(f, &c, MODE("CLONE_SNAPSHOT")
	    "triggers { name: \"snap\" } }", -1));
	hit(&p, "snap");
	assert_int_equal(session_detach(c.s, "k", err, sizeof(err)), 0);
	while (c.s->delayed_clone != NULL)
		loop_run_once(f->loop);
	assert_false(c.clone_hit);
	assert_non_null(session_attach(f->service, "k", fake_user(1000),
	    &fake_consumer_ops, &d));
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_trigger_that_never_comes_times_out(void **state)
{
	static const char *const modes[] = { "START_TRACING", "STOP_TRACING",
		"CLONE_SNAPSHOT" };
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	char text[300];
	size_t i;

	begin(&p, f);
	for (i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), ONE_SOURCE "trigger_config { "
		    "trigger_mode: %s trigger_timeout_ms: 1 triggers { name: "
		    "\"t\" } }", modes[i]);
		assert_non_null(fake_enable(f, &c, text, -1));
		fixture_wait(f, fake_disabled, &c);
		assert_string_equal(c.error, "");
		/* Too late: */
		hit(&p, "t");
		assert_false(c.clone_hit);
		session_free(c.s);
	}
	fake_producer_done(&p);
}

static void
a_pattern_says_whose_trigger_counts(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p, other;
	struct fake_consumer c;

	begin(&p, f);
	fake_producer_init(&other, f, "someone", true);
	assert_non_null(fake_enable(f, &c, MODE("START_TRACING")
	    "triggers { name: \"go\" producer_name_regex: \"prod-[0-9]+\" "
	    "stop_delay_ms: 3600000 } }", -1));
	hit(&other, "go");
	assert_int_equal(fake_producer_count(&p, "start"), 0);
	hit(&p, "go");
	assert_int_equal(fake_producer_count(&p, "start"), 1);
	session_free(c.s);
	assert_null(fake_enable(f, &c, MODE("START_TRACING")
	    "triggers { name: \"go\" producer_name_regex: \"(\" } }", -1));
	assert_non_null(strstr(c.error, "("));
	fake_producer_done(&p);
	fake_producer_done(&other);
}

static void
a_trigger_counts_only_so_often_a_day(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	unsigned i;

	begin(&p, f);
	for (i = 0; i < 3; i++) {
		assert_non_null(fake_enable(f, &c, MODE("START_TRACING")
		    "triggers { name: \"rare\" max_per_24_h: 2 "
		    "stop_delay_ms: 3600000 } }", -1));
		hit(&p, "rare");
		assert_int_equal(c.s->state, i < 2 ? SESSION_STARTED :
		    SESSION_CONFIGURED);
		session_free(c.s);
	}
	fake_producer_done(&p);
}

static void
one_name_reaches_every_session_that_waits_for_it(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer a, b;

	begin(&p, f);
	assert_non_null(fake_enable(f, &a, MODE("START_TRACING")
	    "triggers { name: \"t\" stop_delay_ms: 3600000 } }", -1));
	assert_non_null(fake_enable(f, &b, MODE("STOP_TRACING")
	    "triggers { name: \"t\" stop_delay_ms: 1 } }", -1));
	hit(&p, "t");
	assert_int_equal(a.s->state, SESSION_STARTED);
	fixture_wait(f, fake_disabled, &b);
	session_free(a.s);
	session_free(b.s);
	fake_producer_done(&p);
}

static void
names_from_outside_may_be_anything(void **state)
{
	static char big[100000];
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	begin(&p, f);
	assert_non_null(fake_enable(f, &c, MODE("START_TRACING")
	    "triggers { name: \"t\" } }", -1));
	memset(big, 't', sizeof(big));
	trigger_activate(p.p, big, sizeof(big));
	trigger_activate(p.p, "", 0);
	trigger_activate(p.p, "\xff\x00t", 3);
	assert_int_equal(c.s->state, SESSION_CONFIGURED);
	session_free(c.s);
	fake_producer_done(&p);
}

#define T(name)                                                               \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_start_trigger_starts_and_its_delay_stops),
		T(a_stop_trigger_stops_after_its_delay_and_is_in_the_trace),
		T(a_clone_trigger_tells_its_consumer_again_and_again),
		T(a_clone_trigger_may_outlive_its_consumer),
		T(a_trigger_that_never_comes_times_out),
		T(a_pattern_says_whose_trigger_counts),
		T(a_trigger_counts_only_so_often_a_day),
		T(one_name_reaches_every_session_that_waits_for_it),
		T(names_from_outside_may_be_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
