#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "transport/base/hash_map.h"
#include "transport/base/hash_map_internal.h"

#define ITEMS 4096u

struct item {
	struct hash_link by_number;
	uint64_t number;
	bool is_in;
};

static struct item items[ITEMS];
static struct hash_map map;
/* How many calls of calloc() succeed still. */
static size_t memory_left;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *
__wrap_calloc(size_t n, size_t size)
{
	if (memory_left == 0)
		return NULL;
	memory_left--;
	return __real_calloc(n, size);
}

static int
set_up(void **state)
{
	size_t i;

	memory_left = SIZE_MAX;
	memset(items, 0, sizeof(items));
	for (i = 0; i < ITEMS; i++)
		items[i].number = i;
	return 0;
}

static int
tear_down(void **state)
{
	memory_left = SIZE_MAX;
	hash_map_done(&map);
	return 0;
}

static void
put(struct item *e, uint64_t hash)
{
	hash_map_put(&map, &e->by_number, hash);
	e->is_in = true;
}

static void
take_out(struct item *e)
{
	hash_map_remove(&map, &e->by_number);
	e->is_in = false;
}

static struct item *
find(uint64_t number, uint64_t hash)
{
	struct item *e;

	HASH_MAP_FOREACH_OF(e, &map, hash, by_number)
		if (e->number == number)
			return e;
	return NULL;
}

static void
assert_is_as_modelled(uint64_t (*hash)(uint64_t))
{
	size_t i, n = 0;

	for (i = 0; i < ITEMS; i++) {
		n += items[i].is_in;
		assert_ptr_equal(find(i, hash(i)),
		    items[i].is_in ? &items[i] : NULL);
	}
	assert_int_equal(map.n, n);
}

static void
do_at_random(uint64_t (*hash)(uint64_t), size_t rounds, size_t n)
{
	struct item *e;

	srandom(7);
	while (rounds-- > 0) {
		e = &items[(size_t)random() % n];
		if (e->is_in)
			take_out(e);
		else
			put(e, hash(e->number));
	}
}

static uint64_t
collide(uint64_t v)
{
	return v % 3;
}

static uint64_t
share_low_bits(uint64_t v)
{
	return v << 32;
}

static void
an_empty_map_finds_nothing_and_has_nothing(void **state)
{
	struct hash_cursor c;
	struct item *e;

	assert_null(find(1, hash_number(1)));
	HASH_MAP_FOREACH(e, &map, &c, by_number)
		fail();
	assert_int_equal(map.n, 0);
}

static void
what_is_put_in_at_random_is_found_until_it_is_removed(void **state)
{
	do_at_random(hash_number, 100000, ITEMS);
	assert_is_as_modelled(hash_number);
}

static void
items_of_one_hash_and_of_one_chain_are_told_apart(void **state)
{
	do_at_random(collide, 2000, 300);
	assert_is_as_modelled(collide);
	hash_map_done(&map);
	set_up(state);
	do_at_random(share_low_bits, 2000, 300);
	assert_is_as_modelled(share_low_bits);
}

static void
it_works_without_memory_from_the_start_and_from_the_middle(void **state)
{
	memory_left = 0;
	do_at_random(hash_number, 2000, 200);
	assert_is_as_modelled(hash_number);
	memory_left = 1;
	do_at_random(hash_number, 2001, 200);
	assert_int_equal(memory_left, 0);
	assert_is_as_modelled(hash_number);
}

static void
a_walk_meets_each_item_once_and_may_remove_it(void **state)
{
	bool met[ITEMS] = { false };
	struct hash_cursor c;
	struct item *e;
	size_t i;

	for (i = 0; i < ITEMS; i++)
		put(&items[i], hash_number(i));
	HASH_MAP_FOREACH(e, &map, &c, by_number) {
		assert_false(met[e->number]);
		met[e->number] = true;
		if (e->number % 3 != 0) {
			take_out(e);
			/* As free() would leave it. */
			memset(&e->by_number, 0xff, sizeof(e->by_number));
		}
	}
	for (i = 0; i < ITEMS; i++)
		assert_true(met[i]);
	assert_is_as_modelled(hash_number);
}

static void
a_walk_without_a_table_meets_each_item_once(void **state)
{
	struct hash_cursor c;
	struct item *e;
	size_t n = 0;

	memory_left = 0;
	put(&items[0], hash_number(0));
	put(&items[1], hash_number(1));
	HASH_MAP_FOREACH(e, &map, &c, by_number) {
		take_out(e);
		n++;
	}
	assert_int_equal(n, 2);
	assert_int_equal(map.n, 0);
}

static void
all_items_of_one_key_are_gone_through(void **state)
{
	struct item *e;
	size_t i, n = 0;

	for (i = 0; i < 100; i++)
		put(&items[i], hash_number(i % 2));
	HASH_MAP_FOREACH_OF(e, &map, hash_number(1), by_number) {
		assert_int_equal(e->number % 2, 1);
		n++;
	}
	assert_int_equal(n, 50);
}

static void
a_map_that_is_done_is_ready_to_use(void **state)
{
	put(&items[0], hash_number(0));
	hash_map_done(&map);
	items[0].is_in = false;
	assert_is_as_modelled(hash_number);
	put(&items[1], hash_number(1));
	assert_is_as_modelled(hash_number);
}

/* ---- the spread of hashes over chains ---- */

/* Numbers that have nothing in common: splitmix64. */
static uint64_t
scatter(uint64_t v)
{
	v += 0x9e3779b97f4a7c15u;
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
	v = (v ^ v >> 27) * 0x94d049bb133111ebu;
	return v ^ v >> 31;
}

static uint64_t
hash_first_of_two(uint64_t v)
{
	return hash_numbers(v, 7);
}

static uint64_t
hash_second_of_two(uint64_t v)
{
	return hash_numbers(7, v);
}

static uint64_t
hash_one_word(uint64_t v)
{
	return hash_bytes(&v, sizeof(v));
}

static uint64_t
hash_last_word(uint64_t v)
{
	uint64_t words[] = { 7, v };

	return hash_bytes(words, sizeof(words));
}

static uint64_t
hash_text(uint64_t v)
{
	char text[40];
	int n = snprintf(text, sizeof(text), "producer %" PRIu64, v);

	return hash_bytes(text, (size_t)n);
}

/* The longest of SPREAD chains of as many keys, which differ from bit `low`. */
#define SPREAD 1024u

static size_t
longest(uint64_t (*hash)(uint64_t), unsigned low)
{
	size_t chains[SPREAD] = { 0 }, i, most = 0, *chain;

	for (i = 0; i < SPREAD; i++) {
		chain = &chains[hash((uint64_t)i << low) % SPREAD];
		if (++*chain > most)
			most = *chain;
	}
	return most;
}

static void
keys_in_a_row_share_no_chain_wherever_they_differ(void **state)
{
	static uint64_t (*const hashes[])(uint64_t) = { hash_number,
		hash_first_of_two, hash_second_of_two, hash_one_word,
		hash_last_word, hash_text };
	unsigned low;
	uint64_t s;
	size_t i;

	for (s = 0; s < 100; s++) {
		hash_seed(scatter(2 * s), scatter(2 * s + 1));
		for (i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++)
			for (low = 0; low <= 54; low += 6)
				assert_in_range(longest(hashes[i], low), 1, 16);
	}
}

static void
every_byte_and_every_number_counts(void **state)
{
	char text[20] = "nineteen characters";
	uint64_t h = hash_bytes(text, 19);
	size_t i;

	assert_true(hash_bytes(text, 19) == h);
	for (i = 0; i < 19; i++) {
		text[i] ^= 1;
		assert_true(hash_bytes(text, 19) != h);
		text[i] ^= 1;
		assert_true(hash_bytes(text, i) != h);
	}
	assert_true(hash_numbers(1, 2) != hash_numbers(2, 1));
	assert_true(hash_numbers(1, 2) != hash_numbers(1, 3));
	assert_true(hash_bytes("\0", 1) != hash_bytes("\0\0", 2));
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(an_empty_map_finds_nothing_and_has_nothing),
		TEST(what_is_put_in_at_random_is_found_until_it_is_removed),
		TEST(items_of_one_hash_and_of_one_chain_are_told_apart),
		TEST(it_works_without_memory_from_the_start_and_from_the_middle),
		TEST(a_walk_meets_each_item_once_and_may_remove_it),
		TEST(a_walk_without_a_table_meets_each_item_once),
		TEST(all_items_of_one_key_are_gone_through),
		TEST(a_map_that_is_done_is_ready_to_use),
		TEST(keys_in_a_row_share_no_chain_wherever_they_differ),
		TEST(every_byte_and_every_number_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
