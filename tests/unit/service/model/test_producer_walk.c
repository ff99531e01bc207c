#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/model/producer_walk.h"
#include "service/packet/sequence_map.h"
#include "service/session/flush.h"
#include "service/session/instance.h"
#include "tests/unit/service/session/fixture.h"
#include "transport/buffer/trace_buffer.h"

#define MANY (PRODUCER_WALK_TURN * 2u + 10u)
#define LONG_MS 3600000u
#define CONFIG "buffers { size_kb: 64 } data_sources { config { name: \"src\" " \
	"} } "

/* Many producers of one data source each. */
struct crowd {
	struct fixture *f;
	struct fake_producer *p;
	size_t n;
	size_t visited;
	size_t over;
	size_t done;
	bool ok;
};

static void
crowd_init(struct crowd *c, void **state, size_t n)
{
	size_t i;

	*c = (struct crowd){ .f = *state, .n = n };
	c->p = calloc(n, sizeof(*c->p));
	assert_non_null(c->p);
	for (i = 0; i < n; i++) {
		fake_producer_init(&c->p[i], c->f, "one of many", true);
		fake_producer_register(&c->p[i], "src", true, true);
	}
}

static void
crowd_done(struct crowd *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->p[i].p != NULL)
			fake_producer_done(&c->p[i]);
	free(c->p);
}

/* How many have heard that. */
static size_t
heard(const struct crowd *c, const char *command)
{
	size_t i, n = 0;

	for (i = 0; i < c->n; i++)
		if (c->p[i].p != NULL)
			n += fake_producer_count(&c->p[i], command) > 0;
	return n;
}

static bool
visit(struct producer *p, void *arg)
{
	((struct crowd *)arg)->visited++;
	return true;
}

static bool
look_only(struct producer *p, void *arg)
{
	((struct crowd *)arg)->visited++;
	return false;
}

static void
over(void *arg)
{
	((struct crowd *)arg)->over++;
}

static void
a_few_are_visited_at_once(void **state)
{
	struct producer_walk w = { .under_way = false };
	struct crowd c;

	crowd_init(&c, state, 5);
	producer_walk_begin(&w, c.f->service, visit, over, &c);
	assert_int_equal(c.visited, 5);
	assert_int_equal(c.over, 1);
	assert_false(w.under_way);
	crowd_done(&c);
}

static void
many_are_visited_some_in_each_turn(void **state)
{
	struct producer_walk w = { .under_way = false };
	struct crowd c;

	crowd_init(&c, state, MANY);
	producer_walk_begin(&w, c.f->service, visit, over, &c);
	assert_int_equal(c.visited, PRODUCER_WALK_TURN);
	loop_run_once(c.f->loop);
	assert_int_equal(c.visited, 2 * PRODUCER_WALK_TURN);
	assert_int_equal(c.over, 0);
	loop_run_once(c.f->loop);
	assert_int_equal(c.visited, MANY);
	assert_int_equal(c.over, 1);
	loop_run_once(c.f->loop);
	assert_int_equal(c.over, 1);
	crowd_done(&c);
}

static void
those_with_whom_nothing_is_done_take_less_of_a_turn(void **state)
{
	struct producer_walk w = { .under_way = false };
	struct crowd c;

	crowd_init(&c, state, MANY);
	producer_walk_begin(&w, c.f->service, look_only, over, &c);
	assert_int_equal(c.visited, MANY);
	assert_int_equal(c.over, 1);
	crowd_done(&c);
}

static void
who_leaves_is_not_visited_and_who_joins_is_no_endless_work(void **state)
{
	struct producer_walk w = { .under_way = false };
	struct fake_producer late[3];
	struct crowd c;
	size_t i;

	crowd_init(&c, state, MANY);
	producer_walk_begin(&w, c.f->service, visit, over, &c);
	/* The very next one, and the last. */
	fake_producer_done(&c.p[PRODUCER_WALK_TURN]);
	c.p[PRODUCER_WALK_TURN].p = NULL;
	fake_producer_done(&c.p[MANY - 1]);
	c.p[MANY - 1].p = NULL;
	for (i = 0; i < 3; i++)
		fake_producer_init(&late[i], c.f, "late", true);
	while (c.over == 0)
		loop_run_once(c.f->loop);
	assert_in_range(c.visited, MANY - 2, MANY);
	for (i = 0; i < 3; i++)
		fake_producer_done(&late[i]);
	crowd_done(&c);
}

static void
a_walk_that_is_ended_visits_nobody_more(void **state)
{
	struct producer_walk w = { .under_way = false };
	struct crowd c;

	crowd_init(&c, state, MANY);
	producer_walk_begin(&w, c.f->service, visit, over, &c);
	producer_walk_end(&w);
	producer_walk_end(&w);
	loop_run_once(c.f->loop);
	loop_run_once(c.f->loop);
	assert_int_equal(c.visited, PRODUCER_WALK_TURN);
	assert_int_equal(c.over, 0);
	crowd_done(&c);
}

/* ---- sessions ---- */

static void
acknowledge_start(struct crowd *c)
{
	struct ds_instance *i;
	size_t k;

	for (k = 0; k < c->n; k++)
		if (c->p[k].p != NULL &&
		    (i = TAILQ_FIRST(&c->p[k].p->instances)) != NULL)
			instance_ack_started(i);
}

static void
acknowledge_stop(struct crowd *c)
{
	struct ds_instance *i;
	size_t k;

	for (k = 0; k < c->n; k++)
		if (c->p[k].p != NULL &&
		    (i = TAILQ_FIRST(&c->p[k].p->instances)) != NULL &&
		    i->state == INSTANCE_STOPPING)
			instance_ack_stopped(i);
}

static void
a_session_is_set_up_then_started_in_turns(void **state)
{
	struct fake_consumer consumer;
	struct crowd c;
	size_t turns = 0;

	crowd_init(&c, state, MANY);
	assert_non_null(fake_enable(c.f, &consumer, CONFIG, -1));
	assert_int_equal(heard(&c, "setup "), PRODUCER_WALK_TURN);
	assert_int_equal(heard(&c, "start "), 0);
	assert_int_equal(consumer.s->state, SESSION_STARTING);
	while (heard(&c, "start ") < MANY) {
		size_t before = heard(&c, "setup ") + heard(&c, "start ");

		loop_run_once(c.f->loop);
		assert_true(heard(&c, "setup ") + heard(&c, "start ") <=
		    before + 2 * PRODUCER_WALK_TURN);
		assert_true(++turns < 20);
		/* Nobody is started before all are set up. */
		if (heard(&c, "start ") > 0)
			assert_int_equal(heard(&c, "setup "), MANY);
	}
	assert_false(consumer.all_started);
	acknowledge_start(&c);
	assert_true(consumer.all_started);
	session_free(consumer.s);
	while (c.f->service->n_sessions > 0)
		loop_run_once(c.f->loop);
	assert_int_equal(heard(&c, "stop "), MANY);
	crowd_done(&c);
}

static void
a_session_that_is_stopped_while_it_is_set_up_ends(void **state)
{
	struct fake_consumer consumer;
	struct crowd c;

	crowd_init(&c, state, MANY);
	assert_non_null(fake_enable(c.f, &consumer, CONFIG, -1));
	session_disable(consumer.s, NULL);
	while (!consumer.disabled) {
		loop_run_once(c.f->loop);
		acknowledge_stop(&c);
	}
	/* Those that were not set up by then never hear of it. */
	assert_int_equal(heard(&c, "stop "), heard(&c, "setup "));
	assert_int_equal(heard(&c, "start "), 0);
	session_free(consumer.s);
	crowd_done(&c);
}

static void
a_session_that_is_freed_while_it_is_started_is_gone_soon(void **state)
{
	struct fake_consumer consumer;
	struct crowd c;

	crowd_init(&c, state, MANY);
	assert_non_null(fake_enable(c.f, &consumer, CONFIG, -1));
	while (heard(&c, "start ") == 0)
		loop_run_once(c.f->loop);
	assert_true(heard(&c, "start ") < MANY);
	session_free(consumer.s);
	while (c.f->service->n_sessions > 0)
		loop_run_once(c.f->loop);
	assert_int_equal(heard(&c, "stop "), MANY);
	crowd_done(&c);
}

static void
note(struct session *s, bool success, void *arg)
{
	struct crowd *c = arg;

	c->done++;
	c->ok = success;
}

static void
who_frees_a_session_may_begin_the_same_at_once(void **state)
{
	static const char config[] = "buffers { size_kb: 64 } exclusive_prio: 1 "
	    "unique_session_name: 'mine' session_semaphores { name: 'one' } "
	    "data_sources { config { name: 'src' } } ";
	struct fake_consumer first, second, third;
	struct crowd c;

	crowd_init(&c, state, MANY);
	c.f->settings.limits.max_sessions = 1;
	c.f->settings.limits.max_sessions_per_uid = 1;
	c.f->settings.limits.max_total_buffer_kb = 64;
	assert_non_null(fake_enable(c.f, &first, config, -1));
	while (heard(&c, "start ") < MANY)
		loop_run_once(c.f->loop);
	session_free(first.s);
	assert_int_equal(c.f->service->n_sessions, 1);
	assert_null(session_find(c.f->service, 1));
	assert_non_null(fake_enable(c.f, &second, config, -1));
	assert_int_equal(c.f->service->n_sessions, 2);
	/* But those that go do not pile up. */
	loop_run_once(c.f->loop);
	session_free(second.s);
	assert_int_equal(c.f->service->n_sessions, 2);
	assert_null(fake_enable(c.f, &third, config, -1));
	assert_non_null(strstr(third.error, "limits.max_sessions"));
	while (c.f->service->n_sessions > 0)
		loop_run_once(c.f->loop);
	assert_non_null(fake_enable(c.f, &third, config, -1));
	while (heard(&c, "stop ") < MANY)
		loop_run_once(c.f->loop);
	session_free(third.s);
	crowd_done(&c);
}

static void
a_flush_is_not_over_before_all_were_asked(void **state)
{
	struct fake_consumer consumer;
	struct crowd c;
	size_t i, at = 0;

	crowd_init(&c, state, MANY);
	assert_non_null(fake_enable(c.f, &consumer, CONFIG, -1));
	while (heard(&c, "start ") < MANY)
		loop_run_once(c.f->loop);
	acknowledge_start(&c);
	flush_start(consumer.s, LONG_MS, FLUSH_EXPLICIT, note, &c);
	assert_int_equal(heard(&c, "flush "), PRODUCER_WALK_TURN);
	/* Whoever was asked answers before the next are. */
	while (heard(&c, "flush ") < MANY) {
		assert_int_equal(c.done, 0);
		for (i = at; i < MANY && c.p[i].last_flush != 0; i++)
			flush_ack(c.p[i].p, c.p[i].last_flush);
		at = i;
		loop_run_once(c.f->loop);
	}
	assert_int_equal(c.done, 0);
	for (i = at; i < MANY - 1; i++)
		flush_ack(c.p[i].p, c.p[i].last_flush);
	assert_int_equal(c.done, 0);
	flush_ack(c.p[MANY - 1].p, c.p[MANY - 1].last_flush);
	assert_int_equal(c.done, 1);
	assert_true(c.ok);
	session_free(consumer.s);
	while (c.f->service->n_sessions > 0)
		loop_run_once(c.f->loop);
	crowd_done(&c);
}

static void
ignore_unanswered(struct session *s, const struct producer *p, void *arg)
{
}

/* Commits of others are not to stand behind the answers to a cut. */
static void
a_cut_asks_few_at_a_time(void **state)
{
	struct fake_consumer consumer;
	unsigned now, before;
	struct crowd c;
	size_t i;

	crowd_init(&c, state, MANY);
	assert_non_null(fake_enable(c.f, &consumer, CONFIG, -1));
	while (heard(&c, "start ") < MANY)
		loop_run_once(c.f->loop);
	acknowledge_start(&c);
	flush_start_cut(consumer.s, LONG_MS, note, ignore_unanswered, &c);
	for (before = 0; before < MANY; before = now) {
		now = (unsigned)heard(&c, "flush ");
		assert_in_range(now - before, 0, PRODUCER_WALK_PACED);
		loop_run_once(c.f->loop);
	}
	for (i = 0; i < MANY; i++)
		flush_ack(c.p[i].p, c.p[i].last_flush);
	assert_int_equal(c.done, 1);
	assert_true(c.ok);
	session_free(consumer.s);
	while (c.f->service->n_sessions > 0)
		loop_run_once(c.f->loop);
	crowd_done(&c);
}

static void
a_flush_whose_time_is_up_before_all_were_asked_fails(void **state)
{
	struct fake_consumer consumer;
	struct crowd c;
	size_t i;

	crowd_init(&c, state, MANY);
	assert_non_null(fake_enable(c.f, &consumer, CONFIG, -1));
	while (heard(&c, "start ") < MANY)
		loop_run_once(c.f->loop);
	acknowledge_start(&c);
	flush_start(consumer.s, 0, FLUSH_EXPLICIT, note, &c);
	/* Whoever was asked has answered. */
	for (i = 0; i < MANY && c.p[i].last_flush != 0; i++)
		flush_ack(c.p[i].p, c.p[i].last_flush);
	assert_int_equal(i, PRODUCER_WALK_TURN);
	while (c.done == 0)
		loop_run_once(c.f->loop);
	assert_false(c.ok);
	session_free(consumer.s);
	while (c.f->service->n_sessions > 0)
		loop_run_once(c.f->loop);
	crowd_done(&c);
}

/* ---- ids ---- */

static void
ids_of_producers_begin_again_without_those_in_use(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p[6];
	const struct producer *q;
	uint32_t before = 0;
	size_t i;

	fake_producer_init(&p[0], f, "first", true);
	fake_producer_init(&p[1], f, "second", true);
	f->service->last_producer_id = SERVICE_PRODUCER_IDS - 1;
	for (i = 2; i < 6; i++)
		fake_producer_init(&p[i], f, "later", true);
	assert_int_equal(p[0].p->id, 1);
	assert_int_equal(p[1].p->id, 2);
	assert_int_equal(p[2].p->id, SERVICE_PRODUCER_IDS);
	assert_int_equal(p[3].p->id, 3);
	assert_int_equal(p[4].p->id, 4);
	assert_int_equal(p[5].p->id, 5);
	/* The list stays in their order: flushes look them up by it. */
	TAILQ_FOREACH(q, &f->service->producers, link) {
		assert_true(q->id > before);
		before = q->id;
	}
	for (i = 0; i < 6; i++)
		fake_producer_done(&p[i]);
}

static void
producers_beyond_the_limit_are_refused_and_none_wraps(void **state)
{
	struct fixture *f = *state;
	struct producer_hello hello = { .name = "many", .emulated = true,
		.machine = &f->service->host };
	static const struct producer_ops none;
	struct producer *p, *last = NULL;
	const char *why = NULL;
	uint32_t n = 0;

	assert_int_equal(f->settings.limits.max_producers, 65535);
	while ((p = producer_new(f->service, &hello, &none, NULL, &why)) !=
	    NULL) {
		assert_int_equal(p->id, ++n);
		last = p;
	}
	assert_int_equal(n, 65535);
	assert_string_equal(why, "limits.max_producers is reached");
	producer_gone(last);
	/* One more may come, with an id that 16 bits could not hold. */
	p = producer_new(f->service, &hello, &none, NULL, &why);
	assert_non_null(p);
	assert_int_equal(p->id, 65536);
	assert_null(producer_new(f->service, &hello, &none, NULL, &why));
	while ((p = TAILQ_FIRST(&f->service->producers)) != NULL)
		producer_gone(p);
}

/* Neither ids of producers nor those of sequences end where 16 bits do. */
static void
more_producers_than_16_bits_can_number_are_served_where_the_limit_says(
    void **state)
{
	struct fixture *f = *state;
	struct producer_hello hello = { .name = "many", .emulated = true,
		.machine = &f->service->host };
	struct sequence_map *m = sequence_map_new(false);
	static const struct producer_ops none;
	struct tb_origin o = { .writer = 1 };
	const char *why = NULL;
	struct producer *p;
	uint32_t n = 0;

	assert_non_null(m);
	f->settings.limits.max_producers = 70000;
	while ((p = producer_new(f->service, &hello, &none, NULL, &why)) !=
	    NULL) {
		assert_int_equal(p->id, ++n);
		o.producer = p->id;
		assert_int_equal(sequence_map_id(m, &o), n + 1);
	}
	assert_int_equal(n, 70000);
	assert_string_equal(why, "limits.max_producers is reached");
	o.producer = 1;
	assert_int_equal(sequence_map_id(m, &o), 2);
	o.producer = 65537;
	assert_int_equal(sequence_map_id(m, &o), 65538);
	sequence_map_free(m);
	while ((p = TAILQ_FIRST(&f->service->producers)) != NULL)
		producer_gone(p);
}

#define T(name)                                                               \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_few_are_visited_at_once),
		T(many_are_visited_some_in_each_turn),
		T(those_with_whom_nothing_is_done_take_less_of_a_turn),
		T(who_leaves_is_not_visited_and_who_joins_is_no_endless_work),
		T(a_walk_that_is_ended_visits_nobody_more),
		T(a_session_is_set_up_then_started_in_turns),
		T(a_session_that_is_stopped_while_it_is_set_up_ends),
		T(a_session_that_is_freed_while_it_is_started_is_gone_soon),
		T(who_frees_a_session_may_begin_the_same_at_once),
		T(a_flush_is_not_over_before_all_were_asked),
		T(a_cut_asks_few_at_a_time),
		T(a_flush_whose_time_is_up_before_all_were_asked_fails),
		T(ids_of_producers_begin_again_without_those_in_use),
		T(producers_beyond_the_limit_are_refused_and_none_wraps),
		T(more_producers_than_16_bits_can_number_are_served_where_the_limit_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
