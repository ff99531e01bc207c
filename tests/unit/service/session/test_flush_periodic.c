/*
 * Flushes that come faster than they are answered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "service/session/flush.h"
#include "tests/unit/fake_time.h"
#include "tests/unit/service/session/fixture.h"

#define ONE_SOURCE                                                             \
	"buffers { size_kb: 64 } data_sources { config { name: \"src\" } } "
#define PERIOD_MS 50u
#define HOURS_MS 10000000u
/* So many may be under way. */
#define MOST 16u

struct bed {
	struct fixture *f;
	struct fake_producer p;
	struct fake_consumer c;
	uint64_t now_ms;
	struct {
		uint64_t id, at_ms;
	} asked[MOST]; /* and not answered, the first first */
	size_t n_asked;
	unsigned told, told_true;
	uint64_t first_told_ms;
};

static void
note(struct session *s, bool success, void *arg)
{
	struct bed *b = arg;

	if (b->told++ == 0)
		b->first_told_ms = b->now_ms;
	b->told_true += success;
}

static void
bed_init(struct bed *b, void **state)
{
	memset(b, 0, sizeof(*b));
	b->f = *state;
	fake_producer_init(&b->p, b->f, "p", true);
	b->p.quiet = true;
	fake_producer_register(&b->p, "src", false, false);
	assert_non_null(fake_enable(b->f, &b->c, ONE_SOURCE, -1));
}

static void
bed_done(struct bed *b)
{
	session_free(b->c.s);
	fake_producer_done(&b->p);
}

static uint64_t
under_way(const struct session *s)
{
	return s->flushes_requested - s->flushes_succeeded -
	    s->flushes_failed;
}

/* Those that were asked `after_ms` ago are answered. */
static void
answer(struct bed *b, uint64_t after_ms)
{
	size_t n;

	for (n = 0; n < b->n_asked &&
	    b->asked[n].at_ms + after_ms <= b->now_ms; n++)
		flush_ack(b->p.p, b->asked[n].id);
	b->n_asked -= n;
	memmove(b->asked, b->asked + n, b->n_asked * sizeof(b->asked[0]));
}

/* A period; its flush is left out, or asks the producer. */
static void
period(struct bed *b, flush_fn done)
{
	uint64_t before = b->p.last_flush;

	flush_start(b->c.s, HOURS_MS, FLUSH_PERIODIC, done, b);
	loop_run_once(b->f->loop);
	if (b->p.last_flush != before) {
		assert_true(b->n_asked < MOST);
		b->asked[b->n_asked].id = b->p.last_flush;
		b->asked[b->n_asked++].at_ms = b->now_ms;
	}
	fake_time_pass(PERIOD_MS, NULL);
	b->now_ms += PERIOD_MS;
	loop_run_once(b->f->loop);
	assert_in_range(under_way(b->c.s), 0, MOST);
}

static void
those_that_nobody_answers_do_not_pile_up(void **state)
{
	struct bed b;
	unsigned i;

	bed_init(&b, state);
	period(&b, note);
	for (i = 0; i < 1000; i++) {
		b.n_asked = 0;
		period(&b, NULL);
	}
	/* The oldest was given up, not before its time, and told so. */
	assert_int_equal(b.told, 1);
	assert_int_equal(b.told_true, 0);
	assert_in_range(b.first_told_ms, 5000, 10000);
	/* And the producer was asked again and again. */
	assert_in_range(b.c.s->flushes_requested, 50, 1000);
	bed_done(&b);
}

static void
those_that_are_answered_late_do_not_fail(void **state)
{
	struct bed b;
	unsigned i;

	bed_init(&b, state);
	for (i = 0; i < 2000; i++) {
		period(&b, NULL);
		answer(&b, 4500);
	}
	assert_int_equal(b.c.s->flushes_failed, 0);
	assert_in_range(b.c.s->flushes_succeeded, 100, 2000);
	bed_done(&b);
}

static void
those_that_are_answered_in_time_are_all_asked(void **state)
{
	struct bed b;
	unsigned i;

	bed_init(&b, state);
	for (i = 0; i < 100; i++) {
		period(&b, note);
		answer(&b, PERIOD_MS);
	}
	assert_int_equal(b.c.s->flushes_succeeded, 100);
	assert_int_equal(b.told, 100);
	assert_int_equal(b.told_true, 100);
	bed_done(&b);
}

static void
one_that_is_left_out_is_told_at_once_and_not_counted(void **state)
{
	uint64_t before;
	struct bed b;

	bed_init(&b, state);
	do {
		before = b.c.s->flushes_requested;
		flush_start(b.c.s, HOURS_MS, FLUSH_PERIODIC, note, &b);
		assert_true(before < MOST);
	} while (b.c.s->flushes_requested > before);
	assert_int_equal(b.told, 1);
	assert_int_equal(b.told_true, 0);
	assert_int_equal(b.c.s->flushes_failed, 0);
	/* Who asks for one has it all the same. */
	flush_start(b.c.s, HOURS_MS, FLUSH_EXPLICIT, note, &b);
	loop_run_once(b.f->loop);
	flush_ack(b.p.p, b.p.last_flush);
	assert_int_equal(b.told, 2 + before);
	assert_int_equal(b.told_true, 1 + before);
	bed_done(&b);
}

#define T(name)                                                                \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(those_that_nobody_answers_do_not_pile_up),
		T(those_that_are_answered_late_do_not_fail),
		T(those_that_are_answered_in_time_are_all_asked),
		T(one_that_is_left_out_is_told_at_once_and_not_counted),
	};

	fixture_pass_time = fake_time_tick;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
