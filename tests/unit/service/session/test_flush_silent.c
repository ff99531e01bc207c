/*
 * Flushes that not all answer in time: a producer that hangs, and one whose
 * relay is cut off.
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
#define TIMEOUT_MS 5000u /* of the flush at the end, where nothing is said */

struct bed {
	struct fixture *f;
	struct fake_producer quick, p;
	struct fake_consumer c;
	unsigned told;
};

static void
note(struct session *s, bool success, void *arg)
{
	((struct bed *)arg)->told++;
}

static void
bed_init(struct bed *b, void **state, bool linked)
{
	struct producer_hello hello = { .name = "p", .emulated = true,
		.linked = linked, .scrape = true };

	memset(b, 0, sizeof(*b));
	b->f = *state;
	fake_time_pass(1, NULL);
	fake_producer_init(&b->quick, b->f, "quick", true);
	b->quick.ack_flushes = true;
	fake_producer_register(&b->quick, "src", false, false);
	fake_producer_hello(&b->p, b->f, &hello);
	fake_producer_register(&b->p, "src", false, false);
	assert_non_null(fake_enable(b->f, &b->c, ONE_SOURCE, -1));
}

static void
bed_done(struct bed *b)
{
	session_free(b->c.s);
	fake_producer_done(&b->quick);
	fake_producer_done(&b->p);
}

/* A flush that the other does not answer; returns when its time is up. */
static void
flush_in_vain(struct bed *b, uint32_t ms, uint64_t flags)
{
	unsigned before = b->told;

	flush_start(b->c.s, ms, flags, note, b);
	loop_run_once(b->f->loop);
	fake_time_pass(ms - 1, NULL);
	assert_int_equal(b->told, before);
	fake_time_pass(1, NULL);
	assert_int_equal(b->told, before + 1);
}

/* How long the session takes to end. */
static uint64_t
end_ms(struct bed *b)
{
	uint64_t began = loop_now_ms();

	session_disable(b->c.s, NULL);
	fixture_wait(b->f, fake_disabled, &b->c);
	return loop_now_ms() - began;
}

static void
who_let_a_client_wait_is_not_waited_for_again_at_the_end(void **state)
{
	struct bed b;

	bed_init(&b, state, false);
	flush_in_vain(&b, TIMEOUT_MS, FLUSH_EXPLICIT);
	assert_true(end_ms(&b) < TIMEOUT_MS / 2);
	/* It has not answered, though. */
	assert_int_equal(b.c.s->flushes_failed, 2);
	assert_int_equal(b.c.s->final_flush, FINAL_FLUSH_FAILED);
	assert_true(fake_producer_count(&b.p, "flush") == 2);
	bed_done(&b);
}

static void
who_was_asked_for_a_moment_alone_is_waited_for(void **state)
{
	struct bed b;

	bed_init(&b, state, false);
	flush_in_vain(&b, 10, FLUSH_EXPLICIT);
	assert_true(end_ms(&b) >= TIMEOUT_MS);
	bed_done(&b);
}

static void
who_answered_late_is_waited_for(void **state)
{
	struct bed b;

	bed_init(&b, state, false);
	flush_in_vain(&b, TIMEOUT_MS, FLUSH_EXPLICIT);
	flush_ack(b.p.p, b.p.last_flush);
	assert_true(end_ms(&b) >= TIMEOUT_MS);
	bed_done(&b);
}

static void
who_answers_an_older_one_is_waited_for(void **state)
{
	uint64_t first;
	struct bed b;

	bed_init(&b, state, false);
	flush_in_vain(&b, TIMEOUT_MS, FLUSH_EXPLICIT);
	first = b.p.last_flush;
	flush_in_vain(&b, TIMEOUT_MS, FLUSH_EXPLICIT);
	flush_ack(b.p.p, first);
	assert_true(end_ms(&b) >= TIMEOUT_MS);
	bed_done(&b);
}

static void
what_a_relay_answers_late_did_not_fail(void **state)
{
	struct bed b;
	unsigned i;

	bed_init(&b, state, true);
	producer_set_state(b.p.p, PRODUCER_CUT);
	for (i = 0; i < 100; i++)
		flush_in_vain(&b, TIMEOUT_MS, FLUSH_PERIODIC);
	assert_int_equal(b.c.s->flushes_requested, 100);
	assert_int_equal(b.c.s->flushes_succeeded, 0);
	assert_int_equal(b.c.s->flushes_failed, 0);
	producer_set_state(b.p.p, PRODUCER_CONNECTED);
	flush_ack(b.p.p, b.p.last_flush);
	assert_int_equal(b.c.s->flushes_succeeded, 100);
	assert_int_equal(b.c.s->flushes_failed, 0);
	bed_done(&b);
}

static void
what_a_relay_never_answers_failed(void **state)
{
	struct bed b;

	bed_init(&b, state, true);
	producer_set_state(b.p.p, PRODUCER_CUT);
	flush_in_vain(&b, TIMEOUT_MS, FLUSH_PERIODIC);
	flush_in_vain(&b, TIMEOUT_MS, FLUSH_PERIODIC);
	(void)end_ms(&b);
	assert_int_equal(b.c.s->flushes_succeeded, 0);
	assert_int_equal(b.c.s->flushes_failed, 3);
	bed_done(&b);
}

static void
a_producer_without_a_relay_fails_at_once(void **state)
{
	struct bed b;

	bed_init(&b, state, false);
	flush_in_vain(&b, TIMEOUT_MS, FLUSH_PERIODIC);
	assert_int_equal(b.c.s->flushes_failed, 1);
	flush_ack(b.p.p, b.p.last_flush);
	assert_int_equal(b.c.s->flushes_succeeded, 0);
	bed_done(&b);
}

#define T(name)                                                                \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(who_let_a_client_wait_is_not_waited_for_again_at_the_end),
		T(who_was_asked_for_a_moment_alone_is_waited_for),
		T(who_answered_late_is_waited_for),
		T(who_answers_an_older_one_is_waited_for),
		T(what_a_relay_answers_late_did_not_fail),
		T(what_a_relay_never_answers_failed),
		T(a_producer_without_a_relay_fails_at_once),
	};

	fixture_pass_time = fake_time_tick;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
