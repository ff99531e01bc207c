/* The tree beside a plain array, and that it stays shallow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "service/protovm/protovm_state.h"
#include "service/protovm/protovm_tree.h"

#define NODES_N 5000u

static struct protovm_node nodes[NODES_N];
static struct protovm_node *top;
static struct protovm_node *model[NODES_N];
static uint32_t n;
static uint32_t dice;

static uint32_t
below(uint32_t most)
{
	dice = dice * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)dice * most >> 32);
}

/* Levels of the tree, each of whose counts is right. */
static unsigned
levels(const struct protovm_node *t)
{
	unsigned l, r;

	if (t == NULL)
		return 0;
	assert_int_equal(t->count, 1 + protovm_tree_count(t->left) +
	    protovm_tree_count(t->right));
	l = levels(t->left);
	r = levels(t->right);
	return 1 + (l > r ? l : r);
}

/* A node's part is at most 3/4 of the whole, so 1 / log2(4/3) = 2.41 levels. */
static void
check(void)
{
	unsigned bits = 0;
	uint32_t i;

	assert_int_equal(protovm_tree_count(top), n);
	while (n >> bits != 0)
		bits++;
	assert_in_range(levels(top), 0, bits * 241 / 100 + 1);
	for (i = 0; i < n; i++)
		assert_ptr_equal(protovm_tree_at(top, i), model[i]);
}

static void
insert(uint32_t place, struct protovm_node *node)
{
	memmove(&model[place + 1], &model[place],
	    sizeof(model[0]) * (n - place));
	model[place] = node;
	n++;
	protovm_tree_insert(&top, place, node);
}

static struct protovm_node *
take(uint32_t place)
{
	struct protovm_node *gone = protovm_tree_remove(&top, place);

	assert_ptr_equal(gone, model[place]);
	n--;
	memmove(&model[place], &model[place + 1],
	    sizeof(model[0]) * (n - place));
	return gone;
}

static int
setup(void **state)
{
	(void)state;
	top = NULL;
	n = 0;
	dice = 1;
	return 0;
}

static void
test_in_order(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < NODES_N; i++)
		insert(n, &nodes[i]);
	check();
	for (i = 0; i < NODES_N / 2; i++)
		take(0);
	check();
	while (n > 0)
		take(n - 1);
	check();
	for (i = 0; i < NODES_N; i++)
		insert(0, &nodes[i]);
	check();
	/* From the middle outwards. */
	while (n > 10)
		take(n / 2);
	check();
}

static void
test_by_chance(void **state)
{
	uint32_t i, round;

	(void)state;
	for (i = 0; i < NODES_N; i++)
		insert(below(n + 1), &nodes[i]);
	check();
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 200; i++)
			insert(below(n), take(below(n)));
		check();
	}
	while (n > 1)
		take(below(n));
	check();
}

static void
test_by_key(void **state)
{
	struct protovm_node *found;
	uint32_t i, place;

	(void)state;
	assert_null(protovm_tree_find(top, 5, &place));
	assert_int_equal(place, 0);
	for (i = 0; i < NODES_N; i++) {
		/* Each odd key once, in an order of chance. */
		nodes[i].key = 2 * (i * 1237u % NODES_N) + 1;
		assert_null(protovm_tree_find(top, nodes[i].key, &place));
		insert(place, &nodes[i]);
	}
	check();
	for (i = 0; i < NODES_N; i++) {
		found = protovm_tree_find(top, 2 * i + 1, &place);
		assert_non_null(found);
		assert_int_equal(found->key, 2 * i + 1);
		assert_int_equal(place, i);
		assert_null(protovm_tree_find(top, 2 * i, &place));
		assert_int_equal(place, i);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_in_order, setup),
		cmocka_unit_test_setup(test_by_chance, setup),
		cmocka_unit_test_setup(test_by_key, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
