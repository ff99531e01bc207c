#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "transport/connect/placement.h"

#define NAMES 100000
#define N(a)  (sizeof(a) / sizeof((a)[0]))

static const char *const fleet[] = { "c1", "c2", "c3", "c4", "c5" };

/* The place in the list of the collector that the machine belongs to. */
static size_t
first(const char *machine, const char *const *collectors, size_t n)
{
	size_t order[PLACEMENT_MAX];
	char err[256];

	assert_int_equal(placement_order(machine, collectors, n, order, err,
	    sizeof(err)), 0);
	return order[0];
}

static const char *
device(int i)
{
	static char name[32];

	snprintf(name, sizeof(name), "device-%d", i);
	return name;
}

/*
 * Computed by another program, as sha256sum does:
 *	printf 'kiosk-7\0c1.example' | sha256sum | cut -c 1-16
 * says bae39c680c20a810; for c2 46461283af4d98ad, for c3 b5a998bbb2c4826f.
 */
static void
the_order_is_that_of_the_published_hash(void **state)
{
	static const char *const three[] = { "c1.example", "c2.example",
		"c3.example" };
	static const struct {
		const char *machine;
		size_t order[3];
	} vectors[] = {
		{ "kiosk-7", { 0, 2, 1 } },
		{ "kiosk-8", { 2, 1, 0 } },
		{ "kiosk-9", { 2, 1, 0 } },
		{ "host", { 0, 1, 2 } },
		/* bytes of UTF-8, as they are */
		{ "\xc3\xa4", { 0, 1, 2 } },
	};
	size_t order[3], i;
	char err[256];

	for (i = 0; i < N(vectors); i++) {
		assert_int_equal(placement_order(vectors[i].machine, three, 3,
		    order, err, sizeof(err)), 0);
		assert_memory_equal(order, vectors[i].order, sizeof(order));
	}
}

/* Five standard deviations of a fair draw are 632. */
static void
collectors_get_equal_shares(void **state)
{
	int shares[N(fleet)] = { 0 }, i;
	size_t c;

	for (i = 0; i < NAMES; i++)
		shares[first(device(i), fleet, N(fleet))]++;
	for (c = 0; c < N(fleet); c++)
		assert_in_range(shares[c], NAMES / 5 - 632, NAMES / 5 + 632);
}

/* Read backwards, this is a collector that is added. */
static void
only_machines_of_a_removed_collector_move(void **state)
{
	int moved[N(fleet)] = { 0 }, i;
	size_t before, after, order[N(fleet)];
	char err[256];

	for (i = 0; i < NAMES; i++) {
		assert_int_equal(placement_order(device(i), fleet, N(fleet),
		    order, err, sizeof(err)), 0);
		before = order[0];
		/* c5 is gone */
		after = first(device(i), fleet, N(fleet) - 1);
		if (before != N(fleet) - 1) {
			assert_int_equal(after, before);
			continue;
		}
		/* to the second in the order, and so evenly to all others */
		assert_int_equal(after, order[1]);
		moved[after]++;
	}
	for (i = 0; i < (int)N(fleet) - 1; i++)
		assert_in_range(moved[i], NAMES / 20 - 350, NAMES / 20 + 350);
}

static void
the_order_of_the_list_does_not_matter(void **state)
{
	static const char *const turned[] = { "c4", "c1", "c5", "c3", "c2" };
	size_t a[N(fleet)], b[N(fleet)], j;
	char err[256];
	int i;

	for (i = 0; i < 1000; i++) {
		assert_int_equal(placement_order(device(i), fleet, N(fleet), a,
		    err, sizeof(err)), 0);
		assert_int_equal(placement_order(device(i), turned, N(turned),
		    b, err, sizeof(err)), 0);
		for (j = 0; j < N(fleet); j++)
			assert_string_equal(fleet[a[j]], turned[b[j]]);
	}
}

static void
refused(const char *machine, const char *const *collectors, size_t n,
    const char *why)
{
	size_t order[1] = { 4711 };
	char err[512];

	assert_int_equal(placement_order(machine, collectors, n, order, err,
	    sizeof(err)), -1);
	assert_non_null(strstr(err, why));
	assert_int_equal(order[0], 4711);
}

static void
lists_that_mean_nothing_are_refused(void **state)
{
	static const char *const twice[] = { "c1", "c2", "c1" };
	static const char *const gap[] = { "c1", "" };
	const char *many[PLACEMENT_MAX + 1];
	size_t i;

	for (i = 0; i < N(many); i++)
		many[i] = "c";
	refused("m", NULL, 0, "at least one");
	refused("m", twice, 3, "the collector c1 is named twice");
	refused("m", gap, 2, "collector 2 is empty");
	refused("", fleet, 5, "machine's name");
	refused("m", many, N(many), "257 collectors");
}

static void
a_list_may_be_as_long_as_it_says(void **state)
{
	static char names[PLACEMENT_MAX][8];
	const char *many[PLACEMENT_MAX];
	size_t order[PLACEMENT_MAX], i;
	bool seen[PLACEMENT_MAX] = { false };
	char err[256];

	for (i = 0; i < PLACEMENT_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "c%zu", i);
		many[i] = names[i];
	}
	assert_int_equal(placement_order("m", many, PLACEMENT_MAX, order, err,
	    sizeof(err)), 0);
	for (i = 0; i < PLACEMENT_MAX; i++) {
		assert_false(seen[order[i]]);
		seen[order[i]] = true;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_order_is_that_of_the_published_hash),
		cmocka_unit_test(collectors_get_equal_shares),
		cmocka_unit_test(only_machines_of_a_removed_collector_move),
		cmocka_unit_test(the_order_of_the_list_does_not_matter),
		cmocka_unit_test(lists_that_mean_nothing_are_refused),
		cmocka_unit_test(a_list_may_be_as_long_as_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
