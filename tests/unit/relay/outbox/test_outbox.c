#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "link.pb-c.h"
#include "relay/outbox/outbox_internal.h"
#include "tests/unit/relay/outbox/outbox_world.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define MEMORY (4u << 20)

static int
setup(void **state)
{
	static struct outbox_world w;

	world_init(&w, MEMORY);
	world_open(&w);
	outbox_set_window(w.o, 1u << 20);
	*state = &w;
	return 0;
}

static int
teardown(void **state)
{
	world_done(*state);
	return 0;
}

static void
put(struct outbox_world *w, uint32_t channel, const char *text)
{
	outbox_put(w->o, channel, LINK_UP_TRIGGER, text, strlen(text), 0);
}

/* The texts of the triggers in a block, with spaces behind. */
static const char *
texts(const struct outbox_block *b)
{
	static char out[256];
	struct pb_reader r;
	struct pb_field f;

	out[0] = '\0';
	pb_init(&r, b->data, b->len);
	while (pb_next(&r, &f)) {
		assert_int_equal(f.number, LINK_UP_TRIGGER);
		strncat(out, (const char *)f.data, f.len);
		strcat(out, " ");
	}
	assert_false(r.bad);
	return out;
}

static void
expect(struct outbox_world *w, uint64_t number, uint32_t channel,
    const char *text)
{
	struct outbox_block b;

	assert_true(outbox_next(w->o, &b));
	assert_int_equal(b.number, number);
	assert_int_equal(b.channel, channel);
	assert_string_equal(texts(&b), text);
}

static void
expect_none(struct outbox_world *w)
{
	struct outbox_block b;

	assert_false(outbox_next(w->o, &b));
}

/* The length of the next block. */
static size_t
next_len(struct outbox_world *w, uint32_t channel)
{
	struct outbox_block b;

	assert_true(outbox_next(w->o, &b));
	assert_int_equal(b.channel, channel);
	return b.len;
}

static void
messages_of_a_channel_share_a_block_in_their_order(void **state)
{
	struct outbox_world *w = *state;

	expect_none(w);
	put(w, 1, "a");
	put(w, 1, "b");
	put(w, 2, "x");
	put(w, 1, "c");
	expect(w, 1, 1, "a b c ");
	expect(w, 2, 2, "x ");
	expect_none(w);
	put(w, 1, "d");
	expect(w, 3, 1, "d ");
}

static void
ready_is_said_on_a_later_turn(void **state)
{
	struct outbox_world *w = *state;

	world_turn(w);
	w->ready = 0;
	put(w, 1, "a");
	put(w, 1, "b");
	assert_int_equal(w->ready, 0);
	world_turn(w);
	assert_int_equal(w->ready, 1);
}

static void
kinds_that_are_a_number_are_written_as_one(void **state)
{
	static const uint8_t want[] = { LINK_UP_STARTED << 3, 0xac, 2 };
	struct outbox_world *w = *state;
	struct outbox_block b;

	outbox_put(w->o, 1, LINK_UP_STARTED, NULL, 0, 300);
	assert_true(outbox_next(w->o, &b));
	assert_int_equal(b.len, sizeof(want));
	assert_memory_equal(b.data, want, sizeof(want));
}

static void
a_reserved_commit_is_a_message_of_its_length(void **state)
{
	struct outbox_world *w = *state;
	struct outbox_block b;
	struct pb_reader r;
	struct pb_field f;
	uint8_t *p;

	assert_non_null(p = outbox_reserve(w->o, 1, LINK_MESSAGE_MAX, true));
	memcpy(p, "hello", 5);
	outbox_commit(w->o, 1, 5);
	put(w, 1, "behind");
	assert_true(outbox_next(w->o, &b));
	pb_init(&r, b.data, b.len);
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.number, LINK_UP_COMMIT);
	assert_int_equal(f.len, 5);
	assert_memory_equal(f.data, "hello", 5);
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.number, LINK_UP_TRIGGER);
	assert_false(pb_next(&r, &f));
	assert_false(r.bad);
}

static void
what_is_reserved_and_given_back_leaves_nothing(void **state)
{
	struct outbox_world *w = *state;

	assert_non_null(outbox_reserve(w->o, 1, 100, true));
	outbox_commit(w->o, 1, 0);
	expect_none(w);
	assert_true(outbox_channel_is_empty(w->o, 1));
	put(w, 1, "a");
	assert_non_null(outbox_reserve(w->o, 1, 100, true));
	outbox_commit(w->o, 1, 0);
	expect(w, 1, 1, "a ");
	assert_null(outbox_reserve(w->o, 1, LINK_MESSAGE_MAX + 1, true));
}

static void
what_was_acknowledged_is_gone(void **state)
{
	struct outbox_world *w = *state;
	struct outbox_stats s;

	put(w, 1, "a");
	expect(w, 1, 1, "a ");
	put(w, 1, "b");
	expect(w, 2, 1, "b ");
	assert_false(outbox_channel_is_empty(w->o, 1));
	assert_int_equal(outbox_acked(w->o, 3), -1);
	assert_int_equal(outbox_acked(w->o, 1), 0);
	assert_int_equal(outbox_acked(w->o, 1), 0);
	outbox_stats(w->o, &s);
	assert_int_equal(s.blocks_on_the_way, 1);
	assert_int_equal(outbox_acked(w->o, 2), 0);
	assert_true(outbox_channel_is_empty(w->o, 1));
	outbox_stats(w->o, &s);
	assert_int_equal(s.blocks_on_the_way, 0);
	assert_int_equal(s.memory_bytes, 0);
}

static void
after_a_cut_what_did_not_arrive_is_sent_again_first(void **state)
{
	struct outbox_world *w = *state;

	put(w, 1, "a");
	expect(w, 1, 1, "a ");
	put(w, 2, "b");
	expect(w, 2, 2, "b ");
	put(w, 1, "c");
	expect(w, 3, 1, "c ");
	put(w, 1, "d");
	assert_int_equal(outbox_resume(w->o, 4), -1);
	assert_int_equal(outbox_resume(w->o, 1), 0);
	expect(w, 2, 2, "b ");
	expect(w, 3, 1, "c ");
	expect(w, 4, 1, "d ");
	assert_int_equal(outbox_acked(w->o, 2), 0);
	assert_int_equal(outbox_resume(w->o, 1), -1);
	assert_int_equal(outbox_resume(w->o, 3), 0);
	expect(w, 4, 1, "d ");
	expect_none(w);
}

static void
a_later_process_goes_on_where_this_one_ended(void **state)
{
	struct outbox_world *w = *state;
	static const uint8_t collector[LINK_ID_BYTES] = "the collector";
	struct outbox_state before, after;

	outbox_state(w->o, &before);
	outbox_linked(w->o, before.link_id, collector);
	assert_int_equal(outbox_new_channel(w->o), 1);
	assert_int_equal(outbox_new_channel(w->o), 2);
	put(w, 1, "a");
	expect(w, 1, 1, "a ");
	put(w, 1, "b");
	expect(w, 2, 1, "b ");
	assert_int_equal(outbox_acked(w->o, 1), 0);
	outbox_set_received(w->o, 77);
	put(w, 1, "c");
	put(w, 2, "d");
	outbox_state(w->o, &before);

	world_reopen(w);
	outbox_state(w->o, &after);
	assert_true(after.resumable);
	assert_memory_equal(after.link_id, before.link_id, LINK_ID_BYTES);
	assert_memory_equal(after.relay_id, before.relay_id, LINK_ID_BYTES);
	assert_memory_equal(after.collector_id, collector, LINK_ID_BYTES);
	assert_int_equal(after.last_sent, 2);
	assert_int_equal(after.last_acked, 1);
	assert_int_equal(after.received, 77);
	assert_int_equal(after.last_channel, 2);
	assert_int_equal(outbox_new_channel(w->o), 3);

	outbox_set_window(w->o, 1u << 20);
	put(w, 1, "e");
	assert_int_equal(outbox_resume(w->o, 1), 0);
	expect(w, 2, 1, "b ");
	expect(w, 3, 1, "c ");
	expect(w, 4, 1, "e ");
	expect(w, 5, 2, "d ");
	assert_int_equal(outbox_acked(w->o, 5), 0);
	/* "a" to "e" of channel 1 are 12 bytes, of "d" 3. */
	assert_int_equal(outbox_consumed(w->o, 1, 13), -1);
	assert_int_equal(outbox_consumed(w->o, 1, 12), 0);
	assert_int_equal(outbox_consumed_in_all(w->o, 16), -1);
	assert_int_equal(outbox_consumed_in_all(w->o, 15), 0);
}

static void
two_relays_cannot_share_a_folder(void **state)
{
	struct outbox_world *w = *state;
	char err[256] = "";

	assert_null(outbox_open(&w->setup, err, sizeof(err)));
	assert_non_null(strstr(err, "another relay"));
}

static void
without_a_folder_it_is_plain_memory(void **state)
{
	struct outbox_world *w = *state;
	struct outbox_setup s = w->setup;
	struct outbox *o;
	char err[256];

	s.state_dirfd = -1;
	assert_non_null(o = outbox_open(&s, err, sizeof(err)));
	outbox_set_window(o, 1000);
	outbox_put(o, 1, LINK_UP_TRIGGER, "a", 1, 0);
	outbox_close(o);
}

static void
a_channel_leaves_half_of_the_window_to_others(void **state)
{
	struct outbox_world *w = *state;
	struct chunk c = { .writer = 1, .fragments = 1, .payload = 4000 };
	uint64_t sent = 0, window = 400000;
	struct outbox_block b;
	unsigned i;

	outbox_set_window(w->o, window);
	for (i = 0; i < 200; i++)
		assert_true(world_chunk(w, 1, &c));
	while (outbox_next(w->o, &b))
		sent += b.len;
	assert_in_range(sent, window / 2 - LINK_BLOCK_MAX, window / 2);
	/* Another may have half of what is left. */
	put(w, 2, "x");
	expect(w, b.number + 1, 2, "x ");
	assert_int_equal(outbox_consumed(w->o, 1, sent), 0);
	/* It has nothing there, so one more, whatever half of the rest is. */
	assert_true(next_len(w, 1) > window / 6);
	expect_none(w);
	assert_int_equal(outbox_consumed_in_all(w->o, sent), 0);
	assert_true(next_len(w, 1) > 0);
}

static void
nothing_is_sent_without_a_window(void **state)
{
	struct outbox_world *w = *state;

	outbox_set_window(w->o, 0);
	put(w, 1, "a");
	expect_none(w);
	outbox_set_window(w->o, 2);
	expect_none(w);
	outbox_set_window(w->o, 3);
	expect(w, 1, 1, "a ");
}

static void
a_flood_does_not_hold_up_a_small_message(void **state)
{
	struct outbox_world *w = *state;
	struct chunk c = { .writer = 1, .fragments = 1, .payload = 4000 };
	unsigned i;

	for (i = 0; i < 200; i++)
		assert_true(world_chunk(w, 1, &c));
	assert_true(next_len(w, 1) > 4000);
	put(w, 2, "now");
	expect(w, 2, 2, "now ");
}

static void
floods_get_equal_shares_by_bytes(void **state)
{
	struct outbox_world *w = *state;
	struct chunk large = { .writer = 1, .fragments = 1, .payload = 30000 };
	struct chunk small = { .writer = 1, .fragments = 1, .payload = 3000 };
	uint64_t sent[3] = { 0 };
	struct outbox_block b;
	unsigned i;

	for (i = 0; i < 20; i++)
		assert_true(world_chunk(w, 1, &large));
	for (i = 0; i < 200; i++)
		assert_true(world_chunk(w, 2, &small));
	for (i = 0; i < 8; i++) {
		assert_true(outbox_next(w->o, &b));
		sent[b.channel] += b.len;
	}
	assert_in_range(sent[1], sent[2] - LINK_BLOCK_MAX,
	    sent[2] + LINK_BLOCK_MAX);
}

static void
a_channel_that_ended_is_forgotten_when_all_has_arrived(void **state)
{
	struct outbox_world *w = *state;
	uint32_t i, channel;
	struct outbox_block b;

	for (i = 0; i < 20000; i++) {
		channel = outbox_new_channel(w->o);
		outbox_put(w->o, channel, LINK_UP_OPEN, "", 0, 0);
		outbox_put(w->o, channel, LINK_UP_CLOSE, "", 0, 0);
		assert_true(outbox_next(w->o, &b));
		assert_int_equal(outbox_acked(w->o, b.number), 0);
		assert_int_equal(outbox_consumed_in_all(w->o, 4 * (i + 1)), 0);
	}
	world_turn(w);
	assert_int_equal(w->overflows, 0);
	/* Later words about it change nothing. */
	assert_int_equal(outbox_consumed(w->o, 1, 4), 0);
	assert_int_equal(outbox_consumed(w->o, 20001, 4), -1);
}

/* What must not be dropped found no room, and then the process was killed. */
static void
an_overflow_that_nobody_handled_is_the_next_process_s(void **state)
{
	static const char text[30000];
	struct outbox_world *w = *state;
	unsigned i;

	for (i = 0; i < MEMORY / sizeof(text) + 1; i++)
		outbox_put(w->o, 1, LINK_UP_TRIGGER, text, sizeof(text), 0);
	world_reopen(w);
	assert_int_equal(w->overflows, 0);
	world_turn(w);
	assert_int_equal(w->overflows, 1);
	/* Once a link has begun anew, none does without need. */
	outbox_reset(w->o,
	    TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_SPOOL_FULL);
	world_reopen(w);
	world_turn(w);
	assert_int_equal(w->overflows, 1);
}

static struct arena_track *
track_in_use(struct outbox_world *w)
{
	uint32_t i;

	for (i = 0; i < ARENA_TRACKS; i++)
		if (w->o->arena.tracks[i].epoch != 0)
			return &w->o->arena.tracks[i];
	return NULL;
}

/* A version of a chunk that is still written, and has to be remembered. */
static void
put_unfinished(struct outbox_world *w)
{
	struct chunk c = { .writer = 3, .buffer = 9, .id = 5, .fragments = 2,
		.payload = 100, .incomplete = true };

	assert_true(world_chunk(w, 1, &c));
}

/* The file may be damaged: no index in it may lead out of its table. */
static void
what_is_remembered_of_a_writer_is_not_trusted(void **state)
{
	struct outbox_world *w = *state;
	struct arena_track *t;
	unsigned i;

	assert_int_equal(outbox_new_channel(w->o), 1);
	for (i = 0; i < 4; i++) {
		put_unfinished(w);
		assert_non_null(t = track_in_use(w));
		assert_int_equal(t->kept, 1);
		if (i == 0)
			t->n_runs = 1u << 30;
		else if (i == 1)
			t->kept = 1000;
		else if (i == 2)
			t->credits[0].n = 1000;
		else
			memset(&t->whole, 0xbe, 1);
		world_reopen(w);
		t = track_in_use(w);
		/* Of a flag every value says something. */
		if (i < 3)
			assert_null(t);
		else
			assert_non_null(t);
	}
	put_unfinished(w);
	assert_int_equal(t->kept, 2);
}

static void
put_patch(struct outbox_world *w, uint32_t channel, uint32_t chunk)
{
	struct pb_writer p;
	size_t mark;
	uint8_t *out;

	pb_writer_init(&p);
	mark = pb_nest_begin(&p, 2);
	pb_put_uint(&p, 1, 9);
	pb_put_uint(&p, 2, 1);
	pb_put_uint(&p, 3, chunk);
	pb_nest_end(&p, mark);
	out = outbox_reserve(w->o, channel, p.len, false);
	assert_non_null(out);
	memcpy(out, p.data, p.len);
	outbox_commit(w->o, channel, p.len);
	pb_writer_done(&p);
}

/* Of the patches in a block, all for one chunk; how many there are. */
static unsigned
patches(const struct outbox_block *b, uint32_t chunk)
{
	struct pb_reader r, commit, patch;
	struct pb_field m, f, g;
	unsigned n = 0;

	pb_init(&r, b->data, b->len);
	while (pb_next(&r, &m)) {
		if (m.number != LINK_UP_COMMIT)
			continue;
		pb_init(&commit, m.data, m.len);
		while (pb_next(&commit, &f)) {
			if (f.number != 2)
				continue;
			n++;
			pb_init(&patch, f.data, f.len);
			while (pb_next(&patch, &g))
				if (g.number == 3)
					assert_int_equal(g.value, chunk);
		}
	}
	return n;
}

/* Takes all that waits; how many patches were in it, all for this chunk. */
static unsigned
take_patches(struct outbox_world *w, uint32_t chunk)
{
	struct outbox_block b;
	unsigned n = 0;

	while (outbox_next(w->o, &b)) {
		n += patches(&b, chunk);
		assert_int_equal(outbox_acked(w->o, b.number), 0);
	}
	return n;
}

/* Until one is lost; the id of the chunk behind the last. */
static uint32_t
put_until_lost(struct outbox_world *w, struct chunk c)
{
	struct outbox_stats s = { .memory_bytes = 0 };

	for (; s.chunks_lost[OB_LOSS(SPOOL_FULL)] == 0; c.id++) {
		world_chunk(w, 1, &c);
		outbox_stats(w->o, &s);
	}
	return c.id;
}

/* Its loss is told: a patch that fails at the collector would be another. */
static void
a_patch_goes_with_its_chunk_that_found_no_room(void **state)
{
	struct outbox_world *w = *state;
	struct chunk c = { .writer = 1, .buffer = 9, .id = 10, .fragments = 2,
		.payload = 3000 };

	w->o->drop = RELAY_DROP_NEWEST;
	outbox_set_window(w->o, 4 * MEMORY); /* for all of it */
	c.id = put_until_lost(w, c);
	put_patch(w, 1, c.id - 1);
	put_patch(w, 1, c.id - 2); /* this one is there */
	assert_int_equal(take_patches(w, c.id - 2), 1);
	assert_int_equal(w->overflows, 0);
}

/* The id of a writer is another's, whose chunks have the same ids. */
static void
a_patch_of_a_new_writer_is_not_its_predecessor_s(void **state)
{
	struct outbox_world *w = *state;
	struct chunk c = { .writer = 1, .buffer = 9, .id = 10, .fragments = 2,
		.payload = 3000 };

	w->o->drop = RELAY_DROP_NEWEST;
	outbox_set_window(w->o, 4 * MEMORY); /* for all of it */
	c.id = put_until_lost(w, c) - 1;
	outbox_put(w->o, 1, LINK_UP_UNREGISTER_WRITER, NULL, 0, 1);
	assert_int_equal(take_patches(w, c.id), 0);
	assert_true(world_chunk(w, 1, &c)); /* there is room for it now */
	put_patch(w, 1, c.id);
	assert_int_equal(take_patches(w, c.id), 1);
}

/* The same, when the old chunk is only dropped after the new one was put. */
static void
a_patch_of_a_new_writer_survives_a_late_drop(void **state)
{
	struct outbox_world *w = *state;
	struct chunk c = { .writer = 1, .buffer = 9, .id = 10, .fragments = 2,
		.payload = 3000 };
	struct chunk other = { .writer = 2, .buffer = 9, .fragments = 2,
		.payload = 3000 };

	outbox_set_window(w->o, 0); /* what is dropped first is the oldest */
	world_chunk(w, 1, &c);
	for (; other.id < 100; other.id++)
		world_chunk(w, 1, &other);
	outbox_put(w->o, 1, LINK_UP_UNREGISTER_WRITER, NULL, 0, 1);
	world_chunk(w, 1, &c);
	assert_true(ob_drop_in_memory(w->o));
	put_patch(w, 1, c.id);
	outbox_set_window(w->o, 4 * MEMORY);
	assert_int_equal(take_patches(w, c.id), 1);
}

/* What a chunk of the new writer loses is not what the old one's had lost. */
static void
a_chunk_of_a_new_writer_is_lost_by_itself(void **state)
{
	struct outbox_world *w = *state;
	struct chunk c = { .writer = 1, .buffer = 9, .id = 10, .fragments = 2,
		.payload = 3000 };
	struct outbox_stats before, after;

	w->o->drop = RELAY_DROP_NEWEST;
	outbox_set_window(w->o, 4 * MEMORY);
	c.id = put_until_lost(w, c) - 1;
	outbox_put(w->o, 1, LINK_UP_UNREGISTER_WRITER, NULL, 0, 1);
	(void)take_patches(w, c.id);
	outbox_set_window(w->o, 0);
	assert_true(world_chunk(w, 1, &c));
	outbox_stats(w->o, &before);
	assert_true(ob_drop_in_memory(w->o));
	outbox_stats(w->o, &after);
	assert_int_equal(after.chunks_lost[OB_LOSS(SPOOL_FULL)],
	    before.chunks_lost[OB_LOSS(SPOOL_FULL)] + 1);
}

/* The same, where there is no room for that one either. */
static void
a_chunk_of_a_new_writer_without_room_is_lost_too(void **state)
{
	struct outbox_world *w = *state;
	struct chunk c = { .writer = 1, .buffer = 9, .id = 10, .fragments = 2,
		.payload = 3000 };
	struct outbox_stats before, after;

	w->o->drop = RELAY_DROP_NEWEST;
	c.id = put_until_lost(w, c) - 1;
	outbox_put(w->o, 1, LINK_UP_UNREGISTER_WRITER, NULL, 0, 1);
	outbox_stats(w->o, &before);
	world_chunk(w, 1, &c);
	outbox_stats(w->o, &after);
	assert_int_equal(after.chunks_lost[OB_LOSS(SPOOL_FULL)],
	    before.chunks_lost[OB_LOSS(SPOOL_FULL)] + 1);
}

/*
 * A version that is dropped leaves nothing, as the whole chunk may come: the
 * block that was begun for it stood in the way of its channel.
 */
static void
a_version_without_room_is_not_in_the_way_of_its_channel(void **state)
{
	struct outbox_world *w = *state;
	struct chunk c = { .writer = 1, .buffer = 9, .fragments = 2,
		.payload = 3000 };
	struct chunk part = { .writer = 3, .buffer = 9, .id = 5,
		.fragments = 2, .payload = 3000, .incomplete = true };
	struct outbox_stats s = { .memory_bytes = 0 };
	uint8_t text[20000] = { 0 };
	struct outbox_block b;
	unsigned of_two = 0;

	w->o->drop = RELAY_DROP_NEWEST;
	outbox_set_window(w->o, 4u << 20);
	for (; s.chunks_lost[OB_LOSS(SPOOL_FULL)] == 0; c.id++) {
		world_chunk(w, 1, &c);
		outbox_stats(w->o, &s);
	}
	world_chunk(w, 2, &part);
	outbox_put(w->o, 3, LINK_UP_TRIGGER, text, 3000, 0);
	outbox_put(w->o, 4, LINK_UP_TRIGGER, text, 3000, 0);
	outbox_put(w->o, 2, LINK_UP_TRIGGER, text, sizeof(text), 0);
	while (outbox_next(w->o, &b)) {
		of_two += b.channel == 2;
		assert_int_equal(outbox_acked(w->o, b.number), 0);
	}
	assert_int_equal(of_two, 1);
	assert_int_equal(w->overflows, 0);
}

/*
 * A page is left of each block that goes.  They must come to be fewer also when
 * not one is free, or the link ends for want of room to tell what is lost.
 */
static void
what_is_left_of_blocks_is_joined_without_a_free_page(void **state)
{
	struct outbox_world *w = *state;
	struct chunk c = { .writer = 1, .buffer = 9, .fragments = 1,
		.payload = 3000 };
	struct outbox *o = w->o;
	struct outbox_stats s;
	unsigned i;

	o->drop = RELAY_DROP_NEWEST;
	for (c.id = 0; c.id < 200; c.id++) {
		world_chunk(w, 1, &c);
		ob_block_close(o, ob_channel_find(o, 1)->open);
	}
	world_take_every_page(w); /* but the spare one */
	for (i = 0; i < 150; i++)
		assert_true(ob_drop_in_memory(o));
	assert_in_range(o->arena.free_pages, 140, 150);
	outbox_stats(o, &s);
	assert_int_equal(s.chunks_lost[OB_LOSS(SPOOL_FULL)], 150);
}

/* One chunk, and a version of another, with not a page left to tell it. */
static void
what_finds_not_a_page_is_counted_with_its_link(void **state)
{
	struct outbox_world *w = *state;
	struct chunk c = { .writer = 3, .buffer = 9, .id = 4, .fragments = 3,
		.payload = 3000 };
	struct link_loss l;

	world_take_every_page(w);
	world_chunk(w, 1, &c);
	c.id = 5;
	c.incomplete = true; /* its last fragment is being written */
	world_chunk(w, 1, &c);
	world_turn(w);
	assert_int_equal(w->overflows, 1);
	outbox_reset(w->o, OB_LOSS(GRACE));
	assert_int_equal(outbox_take_old_losses(w->o, &l, 1), 1);
	assert_int_equal(l.old_channel, 1);
	assert_int_equal(l.chunks, 2);
	assert_int_equal(l.packets, 3 + 2);
	assert_int_equal(outbox_take_old_losses(w->o, &l, 1), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(messages_of_a_channel_share_a_block_in_their_order),
		T(ready_is_said_on_a_later_turn),
		T(kinds_that_are_a_number_are_written_as_one),
		T(a_reserved_commit_is_a_message_of_its_length),
		T(what_is_reserved_and_given_back_leaves_nothing),
		T(what_was_acknowledged_is_gone),
		T(after_a_cut_what_did_not_arrive_is_sent_again_first),
		T(a_later_process_goes_on_where_this_one_ended),
		T(two_relays_cannot_share_a_folder),
		T(without_a_folder_it_is_plain_memory),
		T(a_channel_leaves_half_of_the_window_to_others),
		T(nothing_is_sent_without_a_window),
		T(a_flood_does_not_hold_up_a_small_message),
		T(floods_get_equal_shares_by_bytes),
		T(a_channel_that_ended_is_forgotten_when_all_has_arrived),
		T(an_overflow_that_nobody_handled_is_the_next_process_s),
		T(what_is_remembered_of_a_writer_is_not_trusted),
		T(a_patch_goes_with_its_chunk_that_found_no_room),
		T(a_patch_of_a_new_writer_is_not_its_predecessor_s),
		T(a_patch_of_a_new_writer_survives_a_late_drop),
		T(a_chunk_of_a_new_writer_is_lost_by_itself),
		T(a_chunk_of_a_new_writer_without_room_is_lost_too),
		T(a_version_without_room_is_not_in_the_way_of_its_channel),
		T(what_is_left_of_blocks_is_joined_without_a_free_page),
		T(what_finds_not_a_page_is_counted_with_its_link),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
