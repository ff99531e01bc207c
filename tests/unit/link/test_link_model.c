/*
 * Both ends of a link under a random schedule.  In the environment: `count`
 * (schedules), `seed` (of the first), `steps` (of each); a failing one is named
 * and can be run alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/link/model_world.h"

#define COUNT 40
#define STEPS 1500
#define FLOOD_STEPS 200
/* What a channel may send in a turn, besides the block that ends it. */
#define TURN_BYTES (16u * 1024u)

static void
every_message_arrives_once_in_order_or_is_counted(void **state)
{
	uint64_t seed = model_number("seed", 1), count, i;
	unsigned steps = (unsigned)model_number("steps", STEPS);
	uint64_t chunks = 0, lost = 0, old = 0, again = 0, commands = 0;
	struct world w;

	count = model_count(COUNT);
	for (i = 0; i < count; i++) {
		model_srand(seed + i);
		world_init(&w, false);
		for (model_step = 0; model_step < steps; model_step++)
			world_step(&w);
		world_settle(&w);
		book_check_all(&w.book);
		chunks += w.book.chunks_arrived;
		lost += w.book.chunks_lost;
		old += w.book.old_chunks;
		commands += w.book.commands_arrived;
		again += relay_sent_again(w.relay);
		world_done(&w);
	}
	print_message("%llu schedules from seed %llu: %llu chunks arrived, "
	    "%llu counted as lost, %llu more of old links, %llu blocks sent "
	    "again, %llu commands\n", (unsigned long long)count,
	    (unsigned long long)seed, (unsigned long long)chunks,
	    (unsigned long long)lost, (unsigned long long)old,
	    (unsigned long long)again, (unsigned long long)commands);
	/* The schedules are worth something. */
	if (count >= COUNT && steps >= STEPS) {
		assert_true(chunks > 10000);
		assert_true(lost > 100);
		assert_true(old > 100);
		assert_true(again > 100);
		assert_true(commands > 100);
	}
}

/* All of them flood but the first; those up to `stuck` are never consumed. */
static uint64_t
flood(unsigned producers, uint32_t stuck, uint64_t window_kb, uint32_t bytes,
    uint64_t *waits)
{
	struct relay_plan plan = { .memory_bytes = 8u << 20,
		.chunk_max = 100 };
	struct world w = { .cuts = 0 };
	uint64_t longest;
	unsigned i;

	book_init(&w.book);
	w.relay = relay_new(&w.book, &plan);
	w.collector = collector_new(&w.book, window_kb * 1024);
	for (i = 0; i < producers; i++)
		relay_begin_producer(w.relay);
	world_connect(&w);
	for (model_step = 0; model_step < FLOOD_STEPS; model_step++) {
		relay_flood(w.relay, 300000, bytes);
		relay_send(w.relay, 1 + model_below(3));
		world_move(&w, true);
		collector_consume_all_but(w.collector, 2, stuck);
		collector_send(w.collector, 10);
		world_move(&w, true);
	}
	longest = relay_longest_wait(w.relay, waits);
	world_done(&w);
	return longest;
}

static void
who_says_little_waits_for_one_block_of_each_at_most(void **state)
{
	static const unsigned producers[] = { 2, 4, 11 };
	static const uint64_t windows_kb[] = { 256, 1024 };
	static const uint32_t bytes[] = { 100, 4000, 30000 };
	uint64_t longest, waits;
	uint32_t stuck;
	size_t i;

	model_srand(model_number("seed", 1));
	for (i = 0; i < 3 * 2 * 3 * 2; i++) {
		stuck = i % 2 == 0 ? 1 : 1 + producers[i / 12] / 2;
		longest = flood(producers[i / 12], stuck,
		    windows_kb[i / 6 % 2], bytes[i / 2 % 3], &waits);
		assert_true(longest <= (producers[i / 12] - 1) *
		    (uint64_t)(LINK_BLOCK_MAX + TURN_BYTES));
		/* and whoever waits for ever at the collector holds up nobody */
		assert_true(waits > FLOOD_STEPS / 3);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    every_message_arrives_once_in_order_or_is_counted),
		cmocka_unit_test(
		    who_says_little_waits_for_one_block_of_each_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
