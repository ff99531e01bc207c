#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "service/session/trigger.h"
#include "service/session/trigger_history.h"
#include "tests/unit/service/session/fixture.h"

#define ONE_SOURCE "buffers { size_kb: 64 } data_sources { config { name: "   \
	"\"src\" } } "
#define MODE(m) ONE_SOURCE "trigger_config { trigger_mode: " m                 \
	" trigger_timeout_ms: 3600000 "

static void
hit(struct fake_producer *p, const char *name)
{
	trigger_activate(p->p, name, strlen(name));
}

/* Time and chance of these tests. */
static struct world {
	uint64_t now;
	double drawn;
	size_t n_drawn;
} world;

static uint64_t
world_now(void *arg)
{
	return ((struct world *)arg)->now;
}

static double
world_random(void *arg)
{
	((struct world *)arg)->n_drawn++;
	return ((struct world *)arg)->drawn;
}

static void
begin(struct fake_producer *p, struct fixture *f)
{
	const struct trigger_world w = { world_now, world_random, &world };

	world = (struct world){ .now = 1000000000 };
	trigger_state_set_world(f->service->triggers, &w);
	fake_producer_init(p, f, "prod-7", true);
	p->ack_flushes = true;
	fake_producer_register(p, "src", false, false);
}

static void
fired(void *arg)
{
	*(bool *)arg = true;
}

static bool
is_true(void *arg)
{
	return *(bool *)arg;
}

/* Those that were set before and are due earlier have fired, too. */
static void
let_timers_of_1_ms_fire(struct fixture *f)
{
	bool done = false;
	struct loop_timer *t = loop_timer_new(f->loop, fired, &done);

	assert_non_null(t);
	loop_timer_set(t, 3, 0);
	fixture_wait(f, is_true, &done);
	loop_timer_free(t);
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
a_start_trigger_without_delay_has_no_end(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	begin(&p, f);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE "trigger_config { "
	    "trigger_mode: START_TRACING trigger_timeout_ms: 1 triggers { "
	    "name: \"go\" } }", -1));
	hit(&p, "go");
	/* Neither its delay nor the time-out ends it. */
	let_timers_of_1_ms_fire(f);
	assert_int_equal(c.s->state, SESSION_STARTED);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_session_that_waits_for_its_trigger_may_be_started_by_hand(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	begin(&p, f);
	assert_non_null(fake_enable(f, &c, MODE("START_TRACING")
	    "triggers { name: \"go\" stop_delay_ms: 1 } }", -1));
	assert_int_equal(session_start(c.s), 0);
	assert_int_equal(session_start(c.s), -1);
	assert_int_equal(fake_producer_count(&p, "start"), 1);
	/* Too late to start it, or to say when it ends; but it is noted. */
	assert_true(session_reads_nothing(c.s));
	hit(&p, "go");
	assert_false(session_reads_nothing(c.s));
	assert_int_equal(fake_producer_count(&p, "start"), 1);
	assert_int_equal(c.s->state, SESSION_STARTED);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
the_time_to_stop_counts_from_the_start(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	begin(&p, f);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE "deferred_start: true "
	    "trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 1 "
	    "triggers { name: \"t\" } }", -1));
	let_timers_of_1_ms_fire(f);
	assert_int_equal(c.s->state, SESSION_CONFIGURED);
	assert_int_equal(session_start(c.s), 0);
	fixture_wait(f, fake_disabled, &c);
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
all_told(void *arg)
{
	return ((struct fake_consumer *)arg)->s->n_delayed_clones == 0;
}

static void
each_clone_trigger_is_told_after_its_delay(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	unsigned i;

	begin(&p, f);
	assert_non_null(fake_enable(f, &c, MODE("CLONE_SNAPSHOT")
	    "triggers { name: \"snap\" stop_delay_ms: 1 } triggers { name: "
	    "\"later\" stop_delay_ms: 3600000 } }", -1));
	/* It is there to be cloned, and read by nobody. */
	assert_true(session_reads_nothing(c.s));
	hit(&p, "snap");
	assert_int_equal(c.clone_hits, 0);
	hit(&p, "snap");
	fixture_wait(f, all_told, &c);
	assert_int_equal(c.clone_hits, 2);
	assert_false(c.disabled);
	assert_true(session_reads_nothing(c.s));
	/* Some are under way when the session goes; how many is bounded. */
	for (i = 0; i < 2 * TRIGGER_DELAYED_MAX; i++)
		hit(&p, "later");
	assert_int_equal(c.s->n_delayed_clones, TRIGGER_DELAYED_MAX);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
stop_triggers_clone_where_the_config_prefers_that(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	begin(&p, f);
	assert_non_null(fake_enable(f, &c, MODE("STOP_TRACING")
	    "use_clone_snapshot_if_available: true triggers { name: "
	    "\"snap\" } }", -1));
	hit(&p, "snap");
	fixture_wait(f, all_told, &c);
	assert_int_equal(c.clone_hits, 1);
	assert_int_equal(c.s->state, SESSION_STARTED);
	session_free(c.s);
	assert_null(fake_enable(f, &c, MODE("START_TRACING")
	    "use_clone_snapshot_if_available: true triggers { name: "
	    "\"snap\" } }", -1));
	assert_non_null(strstr(c.error, "use_clone_snapshot_if_available"));
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
	fixture_wait(f, all_told, &c);
	assert_int_equal(c.clone_hits, 0);
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
		assert_int_equal(c.clone_hits, 0);
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

#define HOUR (3600ull * 1000000000)

/* Whether a new session with this trigger is started by a hit. */
static bool
starts(struct fixture *f, struct fake_producer *p, const char *trigger,
    const char *name)
{
	struct fake_consumer c;
	char text[400];
	bool started;

	snprintf(text, sizeof(text), MODE("START_TRACING")
	    "triggers { %s stop_delay_ms: 3600000 } }", trigger);
	assert_non_null(fake_enable(f, &c, text, -1));
	hit(p, name);
	started = c.s->state == SESSION_STARTED;
	session_free(c.s);
	return started;
}

static void
a_trigger_counts_only_so_often_a_day_over_all_sessions(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;

	begin(&p, f);
	assert_true(starts(f, &p, "name: \"a\" max_per_24_h: 2", "a"));
	world.now += HOUR;
	/* Counted for whoever sets no limit, too. */
	assert_true(starts(f, &p, "name: \"a\"", "a"));
	assert_false(starts(f, &p, "name: \"a\" max_per_24_h: 2", "a"));
	assert_true(starts(f, &p, "name: \"a\" max_per_24_h: 3", "a"));
	assert_true(starts(f, &p, "name: \"b\" max_per_24_h: 2", "b"));
	/* What was refused, or waited for by nobody, was not counted. */
	hit(&p, "a");
	assert_true(starts(f, &p, "name: \"a\" max_per_24_h: 4", "a"));
	/* A day later than the first there is room for one again. */
	world.now += 23 * HOUR;
	assert_false(starts(f, &p, "name: \"a\" max_per_24_h: 4", "a"));
	world.now++;
	assert_true(starts(f, &p, "name: \"a\" max_per_24_h: 4", "a"));
	assert_false(starts(f, &p, "name: \"a\" max_per_24_h: 4", "a"));
	fake_producer_done(&p);
}

static void
one_hit_of_two_sessions_counts_once(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer a, b;

	begin(&p, f);
	assert_non_null(fake_enable(f, &a, MODE("STOP_TRACING")
	    "triggers { name: \"t\" stop_delay_ms: 3600000 } }", -1));
	assert_non_null(fake_enable(f, &b, MODE("STOP_TRACING")
	    "triggers { name: \"t\" stop_delay_ms: 3600000 } }", -1));
	hit(&p, "t");
	session_free(a.s);
	session_free(b.s);
	assert_true(starts(f, &p, "name: \"t\" max_per_24_h: 2", "t"));
	assert_false(starts(f, &p, "name: \"t\" max_per_24_h: 2", "t"));
	fake_producer_done(&p);
}

/* More than are remembered are not told from each other. */
static void
a_limit_above_what_is_remembered_is_that(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	unsigned i;

	begin(&p, f);
	assert_non_null(fake_enable(f, &c, MODE("STOP_TRACING")
	    "triggers { name: \"t\" stop_delay_ms: 3600000 "
	    "max_per_24_h: 5000 } }", -1));
	for (i = 0; i < 6000; i++)
		hit(&p, "t");
	assert_int_equal(c.s->n_triggers_hit, TRIGGER_HISTORY_HITS_MAX);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
chance_skips_as_many_as_the_config_says(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;

	begin(&p, f);
	world.drawn = 0.25;
	assert_false(starts(f, &p, "name: \"a\" skip_probability: 0.26",
	    "a"));
	assert_true(starts(f, &p, "name: \"a\" skip_probability: 0.25",
	    "a"));
	world.drawn = 0.999999;
	assert_false(starts(f, &p, "name: \"a\" skip_probability: 1", "a"));
	world.drawn = 0;
	assert_true(starts(f, &p, "name: \"a\" skip_probability: 0", "a"));
	assert_int_equal(world.n_drawn, 4);
	/* Skipped ones did not count: two have been. */
	assert_true(starts(f, &p, "name: \"a\" max_per_24_h: 3", "a"));
	fake_producer_done(&p);
}

/* Without injection: about as often as it says. */
static void
the_daemons_own_chance_is_even(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	unsigned i;

	fake_producer_init(&p, f, "prod-7", true);
	assert_non_null(fake_enable(f, &c, MODE("CLONE_SNAPSHOT")
	    "triggers { name: \"t\" skip_probability: 0.5 } }", -1));
	for (i = 0; i < 4000; i++)
		hit(&p, "t");
	/* Forty standard deviations. */
	assert_in_range(c.s->n_triggers_hit, 740, 3260);
	session_free(c.s);
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
	assert_int_equal(c.s->state, SESSION_AWAITS_TRIGGER);
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
		T(a_start_trigger_without_delay_has_no_end),
		T(a_session_that_waits_for_its_trigger_may_be_started_by_hand),
		T(the_time_to_stop_counts_from_the_start),
		T(a_stop_trigger_stops_after_its_delay_and_is_in_the_trace),
		T(each_clone_trigger_is_told_after_its_delay),
		T(stop_triggers_clone_where_the_config_prefers_that),
		T(a_clone_trigger_may_outlive_its_consumer),
		T(a_trigger_that_never_comes_times_out),
		T(a_pattern_says_whose_trigger_counts),
		T(a_trigger_counts_only_so_often_a_day_over_all_sessions),
		T(one_hit_of_two_sessions_counts_once),
		T(a_limit_above_what_is_remembered_is_that),
		T(chance_skips_as_many_as_the_config_says),
		T(the_daemons_own_chance_is_even),
		T(one_name_reaches_every_session_that_waits_for_it),
		T(names_from_outside_may_be_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
