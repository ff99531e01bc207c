#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "link.pb-c.h"
#include "relay/producers/producers_internal.h"
#include "tests/unit/relay/producers/local_fixture.h"

/* A producer with an instance that writes to (the collector's) buffer 4242. */
static struct started
begin(struct locals *t, struct client *c)
{
	struct started s;

	producers_announce(t->producers, 0);
	client_ready(c, t, "p");
	up_start(t, 1, 777, 9, 4242, "ds");
	s = client_started(c);
	said_forget(t);
	return s;
}

static const struct local *
the_local(const struct locals *t)
{
	return TAILQ_FIRST(&t->producers->locals);
}

/* CommitDataRequest with moves made of (page, chunk) pairs. */
static void
put_move(struct pb_writer *w, uint64_t page, uint64_t chunk, uint64_t buffer,
    const void *data, size_t len)
{
	size_t mark = pb_nest_begin(w, 1);

	pb_put_uint(w, 1, page);
	pb_put_uint(w, 2, chunk);
	pb_put_uint(w, 3, buffer);
	if (data != NULL)
		pb_put_bytes(w, 4, data, len);
	pb_nest_end(w, mark);
}

static void
put_patch(struct pb_writer *w, uint64_t buffer, uint64_t writer,
    uint64_t chunk)
{
	size_t mark = pb_nest_begin(w, 2), one;

	pb_put_uint(w, 1, buffer);
	pb_put_uint(w, 2, writer);
	pb_put_uint(w, 3, chunk);
	one = pb_nest_begin(w, 4);
	pb_put_uint(w, 1, 6);
	pb_put_bytes(w, 2, "abcd", 4);
	pb_nest_end(w, one);
	pb_put_uint(w, 5, 1);
	pb_nest_end(w, mark);
}

static void
chunks_that_break_the_rules_are_discarded_and_counted(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);
	struct shm_slot free_one, begun, other;
	struct pb_writer w;

	begun = client_chunk(&c, 3, 0, "begun", false);
	other = client_chunk(&c, 0x8001, 1, "writer over the limit", true);
	free_one = client_chunk(&c, 3, 2, "free", true);
	client_commit(&c, &free_one, s.buffer);
	assert_int_equal(said_chunks(t), 1);
	pb_writer_init(&w);
	put_move(&w, 1u << 20, 0, s.buffer, NULL, 0);  /* no such page */
	put_move(&w, UINT64_MAX, 0, s.buffer, NULL, 0);
	put_move(&w, begun.page, 14, s.buffer, NULL, 0); /* no such chunk */
	put_move(&w, free_one.page, 0, s.buffer, NULL, 0); /* free again */
	put_move(&w, begun.page, 0, s.buffer, NULL, 0);  /* not complete */
	put_move(&w, other.page, 0, s.buffer, NULL, 0);
	put_move(&w, 0, 0, s.buffer, "short", 5);
	assert_true(client_call(&c, P_COMMIT, &w)->ok);
	assert_int_equal(said_chunks(t), 1);
	assert_int_equal(the_local(t)->discarded, 7);

	/* What is not for its buffers, or not for the writer's. */
	other = client_chunk(&c, 4, 0, "for another", true);
	client_commit(&c, &other, 9999);
	other = client_chunk(&c, 4, 1, "for none", true);
	client_commit(&c, &other, 0);
	up_start(t, 1, 778, 9, 4243, "ds");
	assert_true(client_call(&c, P_REGISTER_WRITER,
	    args_two(4, client_started(&c).buffer))->ok);
	other = client_chunk(&c, 4, 2, "bound elsewhere", true);
	client_commit(&c, &other, s.buffer);
	assert_int_equal(said_chunks(t), 1);
	assert_int_equal(the_local(t)->discarded, 10);
	client_close(&c);
}

static void
a_request_that_does_not_parse_is_not_applied_in_part(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);
	struct shm_slot slot = client_chunk(&c, 3, 0, "one", true);
	struct pb_writer w;

	pb_writer_init(&w);
	put_move(&w, slot.page, slot.index, s.buffer, NULL, 0);
	pb_put_raw(&w, "\x0a\x7f", 2);
	assert_false(client_call(&c, P_COMMIT, &w)->ok);
	assert_int_equal(said_chunks(t), 0);
	client_commit(&c, &slot, s.buffer);
	assert_int_equal(said_chunks(t), 1);
	client_close(&c);
}

static void
what_comes_after_its_session_is_late_and_not_a_fault(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);
	struct shm_slot slot = client_chunk(&c, 3, 0, "old", true);

	/* The collector gives its id to another session. */
	up_start(t, 1, 778, 10, 4242, "ds");
	assert_int_not_equal(client_started(&c).buffer, s.buffer);
	client_commit(&c, &slot, s.buffer);
	assert_int_equal(said_chunks(t), 0);
	assert_int_equal(the_local(t)->late, 1);
	assert_int_equal(the_local(t)->discarded, 0);
	/* Its page is free again. */
	slot = client_chunk(&c, 3, 1, "old", true);
	assert_int_equal(slot.page, 1);
	client_close(&c);
}

static void
a_request_that_finds_no_room_goes_on_where_it_was(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);
	struct shm_slot slot;
	struct shm_chunk chunk;
	struct up_chunk up;
	struct pb_writer w;
	uint64_t request, sync;
	uint32_t i;

	pb_writer_init(&w);
	for (i = 0; i < 40; i++) {
		slot = client_chunk(&c, 3, i, "n", true);
		put_move(&w, slot.page, slot.index, s.buffer, NULL, 0);
	}
	put_patch(&w, s.buffer, 3, 39);
	t->room = UPSTREAM_LATER;
	t->room_left = 35;
	request = client_send(&c, P_COMMIT, &w, -1);
	sync = client_send(&c, P_SYNC, NULL, -1);
	while (said_chunks(t) < 35)
		client_turn(&c);
	for (i = 0; i < 20; i++)
		client_turn(&c);
	assert_int_equal(said_chunks(t), 35);
	/* Should the relay be killed now, it is still complete. */
	assert_int_equal(shm_take(c.shm, 35, 0, &chunk), SHM_TAKEN);
	shm_put_back(c.shm, 35, 0);

	t->room = UPSTREAM_ROOM;
	producers_resume(t->producers, 1);
	assert_true(client_wait(&c, request, 0)->ok);
	assert_true(client_wait(&c, sync, 0)->ok);
	assert_int_equal(said_chunks(t), 40);
	for (i = 0; i < 40; i++) {
		said_chunk(said_next(t, LINK_UP_COMMIT), &up);
		assert_int_equal(up.chunk.chunk_id, i);
	}
	/* Behind all of them. */
	assert_false(said_next(t, LINK_UP_COMMIT)->is_data);
	assert_int_equal(t->n_losses, 0);
	client_close(&c);
}

static void
what_is_dropped_is_told_and_its_memory_is_free_again(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);
	struct shm_slot slot;
	uint32_t i;

	t->room = UPSTREAM_DROPPED;
	for (i = 0; i < 40; i++) {
		slot = client_chunk(&c, 3, i, "gone", true);
		client_commit(&c, &slot, s.buffer);
		/* 64 pages are never used up. */
		assert_int_equal(slot.page, i);
	}
	assert_int_equal(t->n_losses, 40);
	assert_int_equal(t->losses[0].writer, 3);
	assert_int_equal(t->losses[0].buffer, 4242);
	assert_int_equal(t->losses[0].chunks, 1);
	assert_int_equal(t->losses[0].packets, 1);
	assert_int_equal(t->losses[0].cause, 0);
	client_close(&c);
}

static void
patches_go_up_behind_the_chunks_with_the_collectors_buffer(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);
	struct shm_slot slot = client_chunk(&c, 3, 7, "one", true);
	const struct said *said;
	struct pb_field patch, one, f;
	struct pb_writer w;

	pb_writer_init(&w);
	/* In whatever order they stand. */
	put_patch(&w, s.buffer, 3, 7);
	put_patch(&w, 0, 3, 7);
	put_patch(&w, s.buffer + 1, 3, 7);
	put_patch(&w, s.buffer, 0, 7);
	put_move(&w, slot.page, slot.index, s.buffer, NULL, 0);
	assert_true(client_call(&c, P_COMMIT, &w)->ok);
	assert_int_equal(t->n_said, 2);
	assert_true(t->said[0].is_data);
	said = &t->said[1];
	assert_true(has_field(said->data, said->len, 2, &patch));
	assert_int_equal(uint_in(patch.data, patch.len, 1), 4242);
	assert_int_equal(uint_in(patch.data, patch.len, 2), 3);
	assert_int_equal(uint_in(patch.data, patch.len, 3), 7);
	assert_int_equal(uint_in(patch.data, patch.len, 5), 1);
	assert_true(has_field(patch.data, patch.len, 4, &one));
	assert_int_equal(uint_in(one.data, one.len, 1), 6);
	assert_true(has_field(one.data, one.len, 2, &f));
	assert_memory_equal(f.data, "abcd", 4);
	assert_int_equal(the_local(t)->discarded, 3);
	client_close(&c);
}

static void
patches_without_chunks_come_to_an_end(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);
	struct pb_writer w;
	size_t i, k, bytes = 0;

	for (i = 0; i < 200; i++) {
		pb_writer_init(&w);
		for (k = 0; k < 60; k++)
			put_patch(&w, s.buffer, 3, 7);
		bytes += w.len;
		assert_true(client_call(&c, P_COMMIT, &w)->ok);
	}
	assert_true(bytes > 2 * LOCAL_PATCH_CREDIT);
	assert_true(the_local(t)->discarded > 2000);
	assert_true(t->n_said < LOCAL_PATCH_CREDIT / 16);
	client_close(&c);
}

static void
chunks_as_data_need_no_memory_and_no_page(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct up_chunk up;
	struct pb_writer w;
	struct pb_field f;
	const struct reply *r;
	uint8_t *big = calloc(1, 120000);
	int fd;

	assert_non_null(big);
	producers_announce(t->producers, 0);
	client_open(&c, t, true);
	r = client_call(&c, P_INITIALIZE, args_string(3, "remote"));
	assert_int_equal(uint_in(r->msg, r->len, 3), 1);
	client_register(&c, "ds", false, true);
	c.commands = client_send(&c, P_COMMANDS, NULL, -1);
	client_sync(&c);
	up_start(t, 1, 777, 9, 4242, "ds");
	assert_int_equal(client_command(&c, &f, &fd), 3);
	assert_int_equal(fd, -1);
	assert_int_equal(uint_in(f.data, f.len, 1), 4);
	said_forget(t);

	pb_writer_init(&w);
	/* chunk 5 of writer 3 with one fragment, and a tail of nothing */
	put_move(&w, 4000000, 13, 1, "\5\0\0\0\3\0\1\0\2hi\0\0\0", 14);
	assert_true(client_call(&c, P_COMMIT, &w)->ok);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.buffer, 4242);
	assert_int_equal(up.chunk.chunk_id, 5);
	assert_int_equal(up.chunk.len, 3);
	assert_memory_equal(up.chunk.payload, "\2hi", 3);

	/* What is longer than a message can be is a loss with a name. */
	memcpy(big, "\6\0\0\0\3\0\2\0", 8);
	pb_writer_init(&w);
	put_move(&w, 0, 0, 1, big, 120000);
	assert_true(client_call(&c, P_COMMIT, &w)->ok);
	assert_int_equal(t->n_losses, 1);
	assert_int_equal(t->losses[0].cause,
	    TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_TOO_LONG);
	assert_int_equal(t->losses[0].packets, 2);
	/* In shared memory there is none. */
	pb_writer_init(&w);
	put_move(&w, 0, 0, 1, NULL, 0);
	assert_true(client_call(&c, P_COMMIT, &w)->ok);
	assert_int_equal(the_local(t)->discarded, 1);
	client_close(&c);
	free(big);
}

static void
memory_that_turns_hostile_is_no_more_than_nonsense(void **state)
{
	struct locals *t = *state;
	struct client c;
	struct started s = begin(t, &c);
	const struct said *said;
	struct shm_slot slot;
	struct up_chunk up;
	size_t i, k;

	/* It can neither be shrunk nor its size be changed. */
	assert_int_equal(ftruncate(shm_fd(c.shm), 0), -1);
	for (i = 0; i < 64; i++) {
		slot = client_chunk(&c, 3, (uint32_t)i, "x", true);
		/* Sizes that point anywhere, more fragments than there are. */
		for (k = 0; k < slot.len; k++)
			slot.payload[k] = (uint8_t)(i * 37 + k * 101);
		memset(slot.payload - 2, (int)(i * 5), 2);
		client_commit(&c, &slot, s.buffer);
	}
	assert_int_equal(said_chunks(t) + the_local(t)->discarded, 64);
	for (i = 0; i < said_chunks(t); i++) {
		said = said_next(t, LINK_UP_COMMIT);
		said_chunk(said, &up);
		assert_int_equal(up.buffer, 4242);
		assert_true(up.chunk.len <= 4096);
	}
	/* A hole where the memory was. */
	fallocate(shm_fd(c.shm), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
	    (off_t)shm_size(c.shm));
	client_commit(&c, &slot, s.buffer);
	client_close(&c);
	said_next(t, LINK_UP_CLOSE);
}

static void
two_producers_cannot_reach_each_others_buffers(void **state)
{
	struct locals *t = *state;
	struct client c, d;
	struct started s = begin(t, &c), other;
	struct shm_slot slot;
	struct up_chunk up;

	client_ready(&d, t, "q");
	up_start(t, 2, 900, 9, 4300, "ds");
	other = client_started(&d);
	assert_int_not_equal(other.id, s.id);
	slot = client_chunk(&d, 3, 0, "mine", true);
	client_commit(&d, &slot, other.buffer);
	said_chunk(said_next(t, LINK_UP_COMMIT), &up);
	assert_int_equal(up.buffer, 4300);
	/* Acknowledgements for an instance of the other one are nothing. */
	assert_true(client_call(&d, P_STOPPED, args_uint(1, s.id))->ok);
	assert_int_equal(said_count(t, LINK_UP_STOPPED), 0);
	client_close(&c);
	client_close(&d);
}

int
main(void)
{
#define T(name) \
	cmocka_unit_test_setup_teardown(name, locals_setup, locals_teardown)
	const struct CMUnitTest tests[] = {
		T(chunks_that_break_the_rules_are_discarded_and_counted),
		T(a_request_that_does_not_parse_is_not_applied_in_part),
		T(what_comes_after_its_session_is_late_and_not_a_fault),
		T(a_request_that_finds_no_room_goes_on_where_it_was),
		T(what_is_dropped_is_told_and_its_memory_is_free_again),
		T(patches_go_up_behind_the_chunks_with_the_collectors_buffer),
		T(patches_without_chunks_come_to_an_end),
		T(chunks_as_data_need_no_memory_and_no_page),
		T(memory_that_turns_hostile_is_no_more_than_nonsense),
		T(two_producers_cannot_reach_each_others_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
