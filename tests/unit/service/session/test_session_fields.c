/*
 * What fields of one session do to the service and to others: priority_boost
 * (the test plays the kernel), lockdown_mode, concurrent session events.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "service/session/thread_priority.h"
#include "tests/unit/service/session/fixture.h"

#define RING "buffers { size_kb: 64 } "
#define OTHER(n) RING "priority_boost { policy: POLICY_SCHED_OTHER "          \
	"priority: " #n " }"
#define FIFO(n) RING "priority_boost { policy: POLICY_SCHED_FIFO "            \
	"priority: " #n " }"

static struct thread_priority_level level;
static int most_rt, nicest, get_error;
static unsigned sets;

static int
play_get(struct thread_priority_level *out)
{
	*out = level;
	return get_error;
}

static int
play_set(const struct thread_priority_level *to)
{
	sets++;
	if (to->rt > most_rt || (to->rt == 0 && to->nice < nicest))
		return EPERM;
	level = *to;
	return 0;
}

static const struct thread_priority_ops play = { play_get, play_set };

static int
setup(void **state)
{
	struct fixture *f;

	if (fixture_setup(state) != 0)
		return -1;
	f = *state;
	thread_priority_free(f->service->priority);
	f->service->priority = thread_priority_new(&play);
	level = (struct thread_priority_level){ .policy = SCHED_OTHER,
	    .nice = -1 };
	most_rt = 99;
	nicest = -20;
	get_error = 0;
	sets = 0;
	return f->service->priority == NULL ? -1 : 0;
}

static void
begin(struct fixture *f, struct fake_consumer *c, const char *text)
{
	if (fake_enable_as(f, c, text, -1, 0) == NULL)
		fail_msg("%s", c->error);
}

static void
assert_level(int rt, int nice)
{
	assert_int_equal(level.rt, rt);
	assert_int_equal(level.policy, rt > 0 ? SCHED_FIFO : SCHED_OTHER);
	if (rt == 0)
		assert_int_equal(level.nice, nice);
}

static void
the_highest_boost_counts_and_the_last_one_gives_it_back(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer plain, a, b, c;

	begin(f, &plain, RING);
	assert_int_equal(sets, 0);
	begin(f, &a, OTHER(4));
	assert_level(0, -4);
	begin(f, &b, FIFO(7));
	assert_level(7, 0);
	begin(f, &c, FIFO(3));
	assert_level(7, 0);
	session_free(b.s);
	assert_level(3, 0);
	session_free(c.s);
	assert_level(0, -4);
	/* It still holds its buffers for who reads them. */
	session_disable(a.s, NULL);
	fixture_wait(f, fake_disabled, &a);
	assert_level(0, -4);
	session_free(a.s);
	assert_level(0, -1);
	session_free(plain.s);
}

static void
nobody_makes_it_worse_than_it_was(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer a;

	begin(f, &a, OTHER(0));
	assert_level(0, -1);
	session_free(a.s);
	assert_level(0, -1);
	assert_int_equal(sets, 0);
}

static void
what_is_refused_is_a_warning_and_the_next_one_counts(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer a, b;

	most_rt = 0;
	begin(f, &a, FIFO(9));
	assert_level(0, -1);
	assert_int_equal(a.s->n_warnings, 1);
	assert_string_equal(a.s->warnings[0], "priority_boost of the trace "
	    "config has no effect: the system refuses the collector "
	    "SCHED_FIFO 9 (Operation not permitted)");
	begin(f, &b, OTHER(5));
	assert_level(0, -5);
	assert_int_equal(b.s->n_warnings, 0);
	/* Once is enough. */
	assert_int_equal(a.s->n_warnings, 1);
	assert_int_equal(sets, 2);
	session_free(a.s);
	assert_level(0, -5);
	session_free(b.s);
	assert_level(0, -1);
}

static void
a_system_that_says_nothing_is_left_alone(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer a;

	get_error = ENOSYS;
	begin(f, &a, FIFO(9));
	assert_int_equal(a.s->n_warnings, 1);
	assert_int_equal(sets, 0);
	session_free(a.s);
	assert_int_equal(sets, 0);
}

static void
a_session_that_is_refused_boosts_nothing(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer a;

	f->settings.limits.max_buffer_kb_per_consumer = 1;
	assert_null(fake_enable(f, &a, FIFO(9), -1));
	assert_int_equal(sets, 0);
	assert_level(0, -1);
}

/* ---- lockdown ---- */

static void
lockdown_ends_with_a_session_that_clears_it(void **state)
{
	struct fixture *f = *state;
	struct producer_hello hello = { .name = "own", .own = true };
	struct fake_producer foreign, own;
	struct fake_consumer a, b;

	fake_producer_init(&foreign, f, "foreign", false);
	fake_producer_register(&foreign, "src", false, false);
	fake_producer_hello(&own, f, &hello);
	fake_producer_register(&own, "src", false, false);
	begin(f, &a, RING "lockdown_mode: LOCKDOWN_SET "
	    "data_sources { config { name: \"src\" } }");
	assert_int_equal(fake_producer_count(&own, "start"), 1);
	assert_int_equal(fake_producer_count(&foreign, "start"), 0);
	session_free(a.s);
	begin(f, &a, RING "data_sources { config { name: \"src\" } }");
	assert_int_equal(fake_producer_count(&foreign, "start"), 0);
	begin(f, &b, RING "lockdown_mode: LOCKDOWN_CLEAR "
	    "data_sources { config { name: \"src\" } }");
	assert_int_equal(fake_producer_count(&foreign, "start"), 1);
	session_free(a.s);
	session_free(b.s);
	fake_producer_done(&foreign);
	fake_producer_done(&own);
}

static void
lockdown_of_a_refused_session_does_nothing(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer a;

	f->settings.limits.max_buffer_kb_per_consumer = 1;
	assert_null(fake_enable_as(f, &a, RING "lockdown_mode: LOCKDOWN_SET",
	    -1, 0));
	assert_false(f->service->lockdown);
	f->settings.limits.max_buffer_kb_per_consumer = 1000;
	assert_null(fake_enable_as(f, &a, RING "lockdown_mode: LOCKDOWN_SET",
	    -1, 7));
	assert_non_null(strstr(a.error, "only an admin"));
	assert_false(f->service->lockdown);
}

/* ---- what others do ---- */

#define DATA(name) PERFETTO__PROTOS__TRACE_PACKET__DATA_##name
#define WATCHING "builtin_data_sources { enable_concurrent_session_events: "  \
	"true }"

static size_t
events_of(struct session *s)
{
	struct fake_trace t;
	size_t i, n = 0;

	fake_read(s, &t);
	for (i = 0; i < t.n; i++)
		n += t.packets[i]->data_case == DATA(CONCURRENT_SESSION_EVENT);
	fake_trace_done(&t);
	return n;
}

static void
nobody_learns_of_sessions_that_are_none_of_theirs(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer ann, root, bob;

	assert_non_null(fake_enable_as(f, &ann, RING WATCHING, -1, 7));
	assert_non_null(fake_enable_as(f, &root, RING WATCHING, -1, 0));
	assert_int_equal(events_of(root.s), 1);
	assert_non_null(fake_enable_as(f, &bob, RING, -1, 8));
	session_free(bob.s);
	assert_int_equal(events_of(ann.s), 0);
	/* Made, started, and gone without more ado. */
	assert_int_equal(events_of(root.s), 3);
	assert_null(fake_enable_as(f, &bob, RING "deferred_start: true "
	    "enable_extra_guardrails: true", -1, 8));
	assert_int_equal(events_of(root.s), 0);
	session_free(ann.s);
	session_free(root.s);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_highest_boost_counts_and_the_last_one_gives_it_back),
		T(nobody_makes_it_worse_than_it_was),
		T(what_is_refused_is_a_warning_and_the_next_one_counts),
		T(a_system_that_says_nothing_is_left_alone),
		T(a_session_that_is_refused_boosts_nothing),
		T(lockdown_ends_with_a_session_that_clears_it),
		T(lockdown_of_a_refused_session_does_nothing),
		T(nobody_learns_of_sessions_that_are_none_of_theirs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
