/* What the next collector is told of producers, and flushes before it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/fields.h"
#include "protos/link.pb-c.h"
#include "relay/producers/producers_internal.h"
#include "tests/unit/relay/producers/local_fixture.h"

enum { FLUSH = 5, CLEAR = 7 };

static const uint8_t digest[LINK_ORIGIN_BYTES] = "of some config..";

/* LinkMoves, as they were told. */
static struct {
	Tributary__LinkMove *m[16];
	size_t n;
} told;

static void
tell(void *arg, uint32_t channel, const uint8_t *move, size_t len)
{
	Tributary__LinkMove *m = tributary__link_move__unpack(NULL, len, move);

	assert_non_null(m);
	assert_true(len <= LINK_MESSAGE_MAX);
	assert_int_equal(m->channel, channel);
	assert_true(told.n < sizeof(told.m) / sizeof(told.m[0]));
	told.m[told.n++] = m;
}

static void
forget_told(void)
{
	while (told.n > 0)
		tributary__link_move__free_unpacked(told.m[--told.n], NULL);
}

static void
tell_all(struct locals *t)
{
	forget_told();
	assert_int_equal(producers_tell_moves(t->producers, tell, NULL), 0);
}

static int
teardown(void **state)
{
	forget_told();
	return locals_teardown(state);
}

static void
say_origin(struct locals *t, uint32_t channel, uint64_t instance)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, LinkOrigin_instance, instance);
	pb_put_bytes(&w, LinkOrigin_session, digest, sizeof(digest));
	pb_put_uint(&w, LinkOrigin_source, 3);
	pb_put_uint(&w, LinkOrigin_buffer, 2);
	producers_origin(t->producers, channel, w.data, w.len);
	pb_writer_done(&w);
}

/* "p" on channel 1, whose "ds" runs and whose writer 3 is bound. */
static struct started
begin(struct locals *t, struct client *c)
{
	struct started s;

	producers_announce(t->producers, 0);
	client_ready(c, t, "p");
	say_origin(t, 1, 777);
	up_start(t, 1, 777, 9, 4242, "ds");
	s = client_started(c);
	assert_true(client_call(c, P_REGISTER_WRITER,
	    args_two(3, s.buffer))->ok);
	said_forget(t);
	return s;
}

static void
client_gone(struct client *c)
{
	struct locals *t = c->t;
	uint64_t end = loop_now_ms() + 10000;

	client_close(c);
	while (t->producers->n_connections > 0) {
		assert_true(loop_now_ms() < end);
		loop_run_once(t->loop);
	}
}

/* ---- what is told ---- */

static void
a_producer_is_told_with_all_that_it_has(void **state)
{
	struct locals *t = *state;
	struct client c;
	Tributary__LinkMove *m;
	struct started s = begin(t, &c);

	tell_all(t);
	assert_int_equal(told.n, 1);
	m = told.m[0];
	assert_int_equal(m->channel, 1);
	assert_int_equal(m->n_buffer, 1);
	assert_int_equal(m->buffer[0]->id, 4242);
	assert_int_equal(m->buffer[0]->session.len, sizeof(digest));
	assert_memory_equal(m->buffer[0]->session.data, digest,
	    sizeof(digest));
	assert_int_equal(m->buffer[0]->index, 2);
	assert_int_equal(m->n_register_writer, 1);
	assert_int_equal(m->register_writer[0]->writer, 3);
	assert_int_equal(m->register_writer[0]->buffer, 4242);
	assert_int_equal(m->n_instance, 1);
	assert_int_equal(m->instance[0]->id, 777);
	assert_int_equal(m->instance[0]->buffer, 4242);
	assert_int_equal(m->instance[0]->source, 3);
	assert_false(m->instance[0]->started);
	assert_true(m->instance[0]->runs);
	assert_int_equal(m->n_register_source, 1);
	/* Once it has said that it started, so is that. */
	assert_true(client_call(&c, P_STARTED, args_uint(1, s.id))->ok);
	tell_all(t);
	assert_true(told.m[0]->instance[0]->started);
	/* One that stops is not told. */
	up_stop(t, 1, 777);
	tell_all(t);
	assert_int_equal(told.m[0]->n_instance, 0);
	assert_int_equal(told.m[0]->n_buffer, 1);
	client_close(&c);
}

static void
without_an_origin_a_buffer_is_nowhere(void **state)
{
	struct locals *t = *state;
	struct client c;

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	say_origin(t, 1, 778); /* of another, or none */
	producers_origin(t->producers, 99, digest, sizeof(digest));
	up_start(t, 1, 777, 9, 4242, "ds");
	client_started(&c);
	tell_all(t);
	assert_false(told.m[0]->buffer[0]->has_session);
	client_close(&c);
}

static void
buffers_of_two_collectors_are_two(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s, second;
	struct shm_slot slot;
	struct up_chunk up;

	s = begin(t, &c);
	producers_set_buffer_tag(t->producers, 2);
	assert_int_equal(producers_buffer_tag(t->producers), 2);
	/* The other collector has a buffer and a session of the same ids. */
	up_start(t, 1, 779, 9, 4242, "ds");
	second = client_started(&c);
	assert_int_not_equal(second.buffer, s.buffer);
	slot = client_chunk(&c, 4, 0, "text", true);
	client_commit(&c, &slot, second.buffer);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.buffer, 2u << LINK_TAG_SHIFT | 4242);
	tell_all(t);
	assert_int_equal(told.m[0]->n_buffer, 2);
	assert_int_equal(told.m[0]->buffer[0]->id, 4242);
	assert_int_equal(told.m[0]->buffer[1]->id, 2u << LINK_TAG_SHIFT | 4242);
	/* With the link, its tags end. */
	producers_lost(t->producers, 0, 0);
	assert_int_equal(producers_buffer_tag(t->producers), 0);
	client_close(&c);
}

static void
a_producer_that_has_ended_is_told_until_all_of_it_arrived(void **state)
{
	struct locals *t = *state;
	struct client c;
	Tributary__LinkMove *m;

	begin(t, &c);
	client_gone(&c);
	assert_int_equal(said_count(t, LINK_UP_CLOSE), 1);
	tell_all(t);
	assert_int_equal(told.n, 1);
	m = told.m[0];
	assert_int_equal(m->channel, 1);
	assert_int_equal(m->n_buffer, 1);
	assert_int_equal(m->n_register_writer, 1);
	assert_int_equal(m->n_instance, 0);
	assert_int_equal(m->n_register_source, 0);
	t->all_has_arrived = true;
	tell_all(t);
	assert_int_equal(told.n, 0);
	assert_int_equal(t->producers->formers_cost, 0);
}

/* A data source with a descriptor of so many bytes. */
static void
register_long(struct client *c, const char *name, size_t len)
{
	uint8_t *bytes = calloc(1, len);
	struct pb_writer w;
	size_t mark;

	assert_non_null(bytes);
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 1);
	pb_put_string(&w, 1, name);
	pb_put_bytes(&w, 900, bytes, len);
	pb_nest_end(&w, mark);
	assert_true(client_call(c, P_REGISTER, &w)->ok);
	free(bytes);
}

static void
what_is_long_is_told_in_parts(void **state)
{
	struct locals *t = *state;
	struct client c;
	size_t i, sources = 0;

	begin(t, &c);
	register_long(&c, "a", 30000);
	register_long(&c, "b", 30000);
	register_long(&c, "c", 30000);
	tell_all(t);
	assert_int_equal(told.n, 3);
	for (i = 0; i < told.n; i++) {
		sources += told.m[i]->n_register_source;
		assert_int_equal(told.m[i]->has_producer, i == 0);
	}
	assert_int_equal(sources, 4);
	client_close(&c);
}

/* Ends of many producers while nothing arrives. */
static void
too_many_that_have_ended_cannot_be_told(void **state)
{
	struct locals *t = *state;
	struct client c;

	begin(t, &c);
	t->producers->formers_cost = LINK_MOVES_MAX - LINK_MOVE_COST;
	client_gone(&c);
	assert_int_equal(producers_tell_moves(t->producers, tell, NULL), -1);
	assert_int_equal(told.n, 0);
	/* Others do not make up for it. */
	t->producers->formers_cost = 0;
	client_ready(&c, t, "q");
	client_gone(&c);
	assert_int_equal(producers_tell_moves(t->producers, tell, NULL), -1);
	/* They may be moved once nothing of it waits. */
	t->all_has_arrived = true;
	tell_all(t);
	assert_int_equal(told.n, 0);
}

/* ---- flushes before it ---- */

static unsigned asked, settled;

static void
on_asked(void *arg, uint32_t channel)
{
	assert_int_equal(channel, 1);
	asked++;
}

static void
on_settled(void *arg, uint32_t channel)
{
	assert_int_equal(channel, 1);
	settled++;
}

static const struct producers_settle settle = { on_asked, on_settled, NULL };

static void
settle_all(struct locals *t)
{
	asked = settled = 0;
	producers_settle(t->producers, &settle);
}

static uint64_t
flush_command(struct client *c, struct started s)
{
	struct pb_field f;

	assert_int_equal(client_command(c, &f, NULL), FLUSH);
	assert_int_equal(uint_in(f.data, f.len, 1), s.id);
	return uint_in(f.data, f.len, 2);
}

static void
acknowledge(struct client *c, uint64_t id)
{
	assert_true(client_call(c, P_COMMIT, args_uint(3, id))->ok);
}

static void
what_is_flushed_goes_up_before_a_producer_has_settled(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);
	struct shm_slot slot;
	struct pb_field f;
	uint64_t id;

	settle_all(t);
	assert_int_equal(asked, 1);
	slot = client_chunk(&c, 3, 0, "text", true);
	/* Not committed: of packets behind the flush. */
	client_chunk(&c, 3, 1, "later", true);
	id = flush_command(&c, s);
	client_commit(&c, &slot, s.buffer);
	assert_int_equal(settled, 0);
	acknowledge(&c, id);
	assert_int_equal(settled, 1);
	assert_int_equal(said_chunks(t), 1);
	/* No collector asked for it: none hears of it. */
	assert_int_equal(t->n_said, 1);
	assert_int_equal(client_command(&c, &f, NULL), CLEAR);
	assert_int_equal(uint_in(f.data, f.len, 1), s.id);
	client_close(&c);
}

static void
a_producer_without_data_sources_is_not_asked(void **state)
{
	struct locals *t = *state;
	struct client c;

	producers_announce(t->producers, 0);
	client_ready(&c, t, "p");
	settle_all(t);
	assert_int_equal(asked, 0);
	assert_false(client_has_command(&c));
	client_close(&c);
}

static void
a_producer_that_ends_has_settled(void **state)
{
	struct locals *t = *state;
	struct client c;

	begin(t, &c);
	settle_all(t);
	client_gone(&c);
	assert_int_equal(asked, 1);
	assert_int_equal(settled, 1);
}

static void
after_its_end_nobody_is_told(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);

	settle_all(t);
	producers_settle_end(t->producers);
	acknowledge(&c, flush_command(&c, s));
	assert_int_equal(settled, 0);
	client_close(&c);
}

static void
a_flush_of_the_time_before_settles_nothing(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);
	uint64_t first, second;

	settle_all(t);
	producers_settle_end(t->producers);
	settle_all(t);
	first = flush_command(&c, s);
	second = flush_command(&c, s);
	acknowledge(&c, first);
	assert_int_equal(settled, 0);
	acknowledge(&c, second);
	assert_int_equal(settled, 1);
	client_close(&c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, locals_setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_producer_is_told_with_all_that_it_has),
		T(without_an_origin_a_buffer_is_nowhere),
		T(buffers_of_two_collectors_are_two),
		T(a_producer_that_has_ended_is_told_until_all_of_it_arrived),
		T(what_is_long_is_told_in_parts),
		T(too_many_that_have_ended_cannot_be_told),
		T(what_is_flushed_goes_up_before_a_producer_has_settled),
		T(a_producer_without_data_sources_is_not_asked),
		T(a_producer_that_ends_has_settled),
		T(after_its_end_nobody_is_told),
		T(a_flush_of_the_time_before_settles_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
