#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "relay/producers/producers_internal.h"
#include "tests/unit/relay/producers/local_fixture.h"
#include "tests/unit/transport/shm/patched.h"

static const uint64_t instances[] = { 777 };

/* As in test_local_commit.c, with writer 3 bound. */
static struct started
begin(struct locals *t, struct client *c)
{
	struct started s;

	producers_announce(t->producers, 0);
	client_ready(c, t, "p");
	up_start(t, 1, 777, 9, 4242, "ds");
	s = client_started(c);
	assert_true(client_call(c, P_REGISTER_WRITER,
	    args_two(3, s.buffer))->ok);
	said_forget(t);
	return s;
}

static uint64_t
flush_command(struct client *c)
{
	struct pb_field f;

	assert_int_equal(client_command(c, &f, NULL), 5);
	return uint_in(f.data, f.len, 2);
}

static void
acknowledge(struct client *c, uint64_t id)
{
	assert_true(client_call(c, P_COMMIT, args_uint(3, id))->ok);
}

/* The relay has seen the end of its (only) connection. */
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

static void
only_writers_that_named_their_buffer_are_scraped(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct up_chunk up;

	begin(t, &c);
	client_chunk(&c, 3, 0, "known", true);
	client_chunk(&c, 4, 0, "unknown", true);
	up_flush(t, 1, 55, instances, 1);
	acknowledge(&c, flush_command(&c));
	assert_int_equal(t->n_said, 2);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.chunk.writer_id, 3);
	assert_int_equal(said_flush(said_next(t, LINK_UP_COMMIT)), 55);
	client_close(&c);
}

static void
a_chunk_in_the_making_goes_up_as_it_is_and_again_when_complete(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);
	struct shm_slot slot = client_chunk(&c, 3, 0, "first", false);
	struct up_chunk up;

	/* With one fragment there is nothing whole in it. */
	up_flush(t, 1, 55, instances, 1);
	acknowledge(&c, flush_command(&c));
	assert_int_equal(said_chunks(t), 0);
	memcpy(slot.payload + 6, "\6second", 7);
	shm_add_fragment(c.shm, &slot);
	up_flush(t, 1, 56, instances, 1);
	acknowledge(&c, flush_command(&c));
	assert_int_equal(said_chunks(t), 1);
	assert_int_equal(said_flush(said_next(t, LINK_UP_COMMIT)), 55);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_true(up.incomplete);
	assert_int_equal(up.chunk.num_fragments, 2);
	assert_memory_equal(up.chunk.payload, "\5first\6second", 13);

	shm_complete(c.shm, &slot);
	client_commit(&c, &slot, s.buffer);
	assert_int_equal(said_flush(said_next(t, LINK_UP_COMMIT)), 56);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_false(up.incomplete);
	client_close(&c);
}

static void
what_is_behind_a_chunk_still_to_come_follows_it(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);
	struct shm_slot first = client_chunk(&c, 3, 0, "first", false);
	struct shm_slot second = client_chunk(&c, 3, 1, "second", true);
	struct up_chunk up;

	up_flush(t, 1, 55, instances, 1);
	acknowledge(&c, flush_command(&c));
	assert_int_equal(said_chunks(t), 0);
	shm_complete(c.shm, &first);
	client_commit(&c, &first, s.buffer);
	client_commit(&c, &second, s.buffer);
	assert_int_equal(said_flush(said_next(t, LINK_UP_COMMIT)), 55);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.chunk.chunk_id, 0);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.chunk.chunk_id, 1);
	client_close(&c);
}

static void
what_is_behind_a_gap_goes_up_when_its_producer_is_gone(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct up_chunk up;

	begin(t, &c);
	client_chunk(&c, 3, 0, "first", false);
	client_chunk(&c, 3, 1, "second", true);
	client_gone(&c);
	assert_int_equal(said_chunks(t), 1);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.chunk.chunk_id, 1);
}

static void
a_chunk_that_waits_for_a_patch_is_not_taken_for_final(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);
	struct shm_slot slot = client_chunk(&c, 3, 0, "first", false);

	shm_set_flag(c.shm, &slot, SHM_NEEDS_PATCHING);
	shm_complete(c.shm, &slot);
	up_flush(t, 1, 55, instances, 1);
	acknowledge(&c, flush_command(&c));
	assert_int_equal(said_chunks(t), 1);
	slot.payload[1] = 'F';
	clear_flag(&slot, SHM_NEEDS_PATCHING);
	client_commit(&c, &slot, s.buffer);
	assert_int_equal(said_chunks(t), 2);
	client_close(&c);
}

static void
a_producer_that_does_not_answer_is_scraped_all_the_same(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct up_chunk up;
	uint64_t id;

	begin(t, &c);
	t->producers->flush_patience_ms = 20;
	client_chunk(&c, 3, 0, "one", true);
	up_flush(t, 1, 55, instances, 1);
	id = flush_command(&c);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_memory_equal(up.chunk.payload, "\3one", 4);
	/* But nothing is acknowledged that was not. */
	assert_int_equal(t->n_said, 1);
	client_chunk(&c, 3, 1, "two", true);
	acknowledge(&c, id);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.chunk.chunk_id, 1);
	assert_int_equal(said_flush(said_next(t, LINK_UP_COMMIT)), 55);
	/* Once. */
	acknowledge(&c, id);
	assert_int_equal(t->n_said, 3);
	client_close(&c);
}

static void
nothing_waits_for_a_chunk_of_a_producer_that_does_not_answer(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct up_chunk up;

	begin(t, &c);
	t->producers->flush_patience_ms = 20;
	client_chunk(&c, 3, 0, "first", false);
	client_chunk(&c, 3, 1, "second", true);
	up_flush(t, 1, 55, instances, 1);
	flush_command(&c);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.chunk.chunk_id, 1);
	assert_int_equal(t->n_said, 1);
	client_close(&c);
}

static void
an_acknowledgement_counts_for_earlier_flushes_too(void **state)
{
	struct locals *t = *state;
	struct client c;
	uint64_t second;

	begin(t, &c);
	up_flush(t, 1, 55, instances, 1);
	up_flush(t, 1, 60, instances, 1);
	up_flush(t, 1, 61, instances, 1);
	flush_command(&c);
	second = flush_command(&c);
	acknowledge(&c, second);
	assert_int_equal(said_flush(said_next(t, LINK_UP_COMMIT)), 55);
	assert_int_equal(said_flush(said_next(t, LINK_UP_COMMIT)), 60);
	assert_int_equal(t->n_said, 2);
	client_close(&c);
}

static void
sources_that_need_no_flush_are_not_asked(void **state)
{
	struct locals *t = *state;
	const uint64_t both[] = { 777, 778, 999 };
	struct client c;
	struct pb_field f;
	struct started s = begin(t, &c), lazy;

	client_register(&c, "lazy", true, true);
	up_start(t, 1, 778, 9, 4242, "lazy");
	lazy = client_started(&c);
	assert_int_equal(lazy.buffer, s.buffer);
	said_forget(t);

	/* Both: only one of them. */
	up_flush(t, 1, 55, both, 3);
	assert_int_equal(client_command(&c, &f, NULL), 5);
	assert_int_equal(uint_in(f.data, f.len, 1), s.id);
	acknowledge(&c, uint_in(f.data, f.len, 2));
	assert_int_equal(said_flush(said_next(t, LINK_UP_COMMIT)), 55);

	/* That one alone: the relay answers, behind what it finds. */
	client_chunk(&c, 3, 0, "one", true);
	up_flush(t, 1, 56, &both[1], 1);
	assert_true(said_next(t, LINK_UP_COMMIT)->is_data);
	assert_int_equal(said_flush(said_next(t, LINK_UP_COMMIT)), 56);
	assert_false(client_has_command(&c));
	client_close(&c);
}

static void
under_emulation_all_are_asked_to_flush(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct pb_field f;

	producers_announce(t->producers, 0);
	client_open(&c, t, true);
	assert_true(client_call(&c, P_INITIALIZE, args_string(3, "p"))->ok);
	client_register(&c, "lazy", true, true);
	c.commands = client_send(&c, P_COMMANDS, NULL, -1);
	client_sync(&c);
	up_start(t, 1, 777, 9, 4242, "lazy");
	client_command(&c, &f, NULL);
	client_command(&c, &f, NULL);
	client_command(&c, &f, NULL);
	up_flush(t, 1, 55, instances, 1);
	acknowledge(&c, flush_command(&c));
	assert_int_equal(said_flush(said_next(t, LINK_UP_COMMIT)), 55);
	client_close(&c);
}

static void
a_stop_is_told_behind_what_is_in_memory(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct pb_field f;
	struct started s = begin(t, &c);

	up_stop(t, 1, 777);
	up_stop(t, 1, 777);
	assert_int_equal(client_command(&c, &f, NULL), 2);
	assert_int_equal(uint_in(f.data, f.len, 1), s.id);
	assert_false(client_has_command(&c));
	client_chunk(&c, 3, 0, "last", true);
	assert_true(client_call(&c, P_STOPPED, args_uint(1, s.id))->ok);
	assert_int_equal(t->n_said, 2);
	assert_true(t->said[0].is_data);
	assert_int_equal(t->said[1].kind, LINK_UP_STOPPED);
	assert_int_equal(t->said[1].value, 777);
	/* Once; and what is not known (any more) has stopped. */
	assert_true(client_call(&c, P_STOPPED, args_uint(1, s.id))->ok);
	assert_int_equal(t->n_said, 2);
	up_stop(t, 1, 777);
	assert_int_equal(said_count(t, LINK_UP_STOPPED), 2);
	assert_false(client_has_command(&c));
	client_close(&c);
}

static void
the_end_of_a_connection_is_told_behind_what_is_in_memory(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct shm_slot slot;

	begin(t, &c);
	client_chunk(&c, 3, 0, "whole", true);
	slot = client_chunk(&c, 3, 1, "part", false);
	shm_add_fragment(c.shm, &slot);
	client_close(&c);
	assert_int_equal(said_next(t, LINK_UP_CLOSE)->channel, 1);
	assert_int_equal(t->n_said, 3);
	assert_int_equal(said_chunks(t), 2);
	assert_int_equal(producers_count(t->producers), 0);
	assert_int_equal(t->producers->shm_bytes, 0);
}

static void
a_producer_that_forbids_scraping_is_not_scraped(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct pb_writer w;
	struct started s;

	producers_announce(t->producers, 0);
	client_open(&c, t, false);
	pb_writer_init(&w);
	pb_put_string(&w, 3, "shy");
	pb_put_uint(&w, 4, 2);
	assert_true(client_call(&c, P_INITIALIZE, &w)->ok);
	client_register(&c, "ds", false, true);
	c.commands = client_send(&c, P_COMMANDS, NULL, -1);
	client_sync(&c);
	up_start(t, 1, 777, 9, 4242, "ds");
	s = client_started(&c);
	assert_true(client_call(&c, P_REGISTER_WRITER,
	    args_two(3, s.buffer))->ok);
	client_chunk(&c, 3, 0, "mine", true);
	client_close(&c);
	said_next(t, LINK_UP_CLOSE);
	assert_int_equal(said_chunks(t), 0);
}

static void
what_waits_for_room_keeps_its_order(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);
	uint64_t id;

	up_flush(t, 1, 55, instances, 1);
	id = flush_command(&c);
	up_stop(t, 1, 777);
	client_chunk(&c, 3, 0, "one", true);
	client_chunk(&c, 3, 1, "two", true);
	t->room = UPSTREAM_LATER;
	t->room_left = 1;
	acknowledge(&c, id);
	assert_true(client_call(&c, P_STOPPED, args_uint(1, s.id))->ok);
	assert_int_equal(t->n_said, 1);
	client_gone(&c);
	assert_int_equal(t->n_said, 1);
	assert_int_equal(producers_count(t->producers), 1);

	t->room = UPSTREAM_ROOM;
	producers_resume(t->producers, 1);
	assert_int_equal(t->n_said, 5);
	assert_true(t->said[1].is_data);
	assert_int_equal(said_flush(&t->said[2]), 55);
	assert_int_equal(t->said[3].kind, LINK_UP_STOPPED);
	assert_int_equal(t->said[4].kind, LINK_UP_CLOSE);
	assert_int_equal(producers_count(t->producers), 0);
}

static void
a_scrape_that_finds_no_room_lets_no_chunk_overtake(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct up_chunk up;
	uint64_t id;
	int i;

	(void)begin(t, &c);
	up_flush(t, 1, 55, instances, 1);
	id = flush_command(&c);
	client_chunk(&c, 3, 1, "two", true);
	client_chunk(&c, 3, 0, "one", true);
	t->room = UPSTREAM_LATER;
	t->room_left = 1;
	acknowledge(&c, id);
	assert_int_equal(t->n_said, 1);
	t->room = UPSTREAM_ROOM;
	producers_resume(t->producers, 1);
	assert_int_equal(t->n_said, 3);
	for (i = 0; i < 2; i++) {
		said_chunk(&t->said[i], &up);
		assert_int_equal(up.chunk.chunk_id, i);
	}
	assert_int_equal(said_flush(&t->said[2]), 55);
	client_gone(&c);
}

static void
an_ended_producer_that_waits_for_room_goes_with_the_link(void **state)
{
	struct locals *t = *state;
	struct client c;

	begin(t, &c);
	client_chunk(&c, 3, 0, "one", true);
	t->room = UPSTREAM_LATER;
	client_gone(&c);
	assert_int_equal(producers_count(t->producers), 1);
	producers_lost(t->producers, 0, 4);
	assert_int_equal(producers_count(t->producers), 0);
	assert_int_equal(t->n_said, 0);
}

static void
many_flushes_without_an_answer_forget_the_oldest(void **state)
{
	struct locals *t = *state;
	struct client c;
	uint64_t id = 0;
	size_t i;

	begin(t, &c);
	for (i = 0; i < LOCAL_FLUSHES_MAX + 10; i++) {
		up_flush(t, 1, 100 + i, instances, 1);
		id = flush_command(&c);
	}
	acknowledge(&c, id);
	assert_int_equal(t->n_said, LOCAL_FLUSHES_MAX);
	assert_int_equal(said_flush(&t->said[0]), 110);
	client_close(&c);
}

int
main(void)
{
#define T(name) \
	cmocka_unit_test_setup_teardown(name, locals_setup, locals_teardown)
	const struct CMUnitTest tests[] = {
		T(only_writers_that_named_their_buffer_are_scraped),
		T(a_chunk_in_the_making_goes_up_as_it_is_and_again_when_complete),
		T(what_is_behind_a_chunk_still_to_come_follows_it),
		T(what_is_behind_a_gap_goes_up_when_its_producer_is_gone),
		T(a_chunk_that_waits_for_a_patch_is_not_taken_for_final),
		T(a_producer_that_does_not_answer_is_scraped_all_the_same),
		T(nothing_waits_for_a_chunk_of_a_producer_that_does_not_answer),
		T(an_acknowledgement_counts_for_earlier_flushes_too),
		T(sources_that_need_no_flush_are_not_asked),
		T(under_emulation_all_are_asked_to_flush),
		T(a_stop_is_told_behind_what_is_in_memory),
		T(the_end_of_a_connection_is_told_behind_what_is_in_memory),
		T(a_producer_that_forbids_scraping_is_not_scraped),
		T(what_waits_for_room_keeps_its_order),
		T(a_scrape_that_finds_no_room_lets_no_chunk_overtake),
		T(an_ended_producer_that_waits_for_room_goes_with_the_link),
		T(many_flushes_without_an_answer_forget_the_oldest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
