#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "service/machine/machine.h"

static struct machine_table *t;

static size_t
count_machines(const struct machine_table *table)
{
	static uint32_t ids[MACHINES_MAX];

	return machine_table_ids(table, ids);
}

static int
setup(void **state)
{
	t = machine_table_new();
	return t == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	machine_table_free(t);
	return 0;
}

static struct machine *
claim(uint32_t id, const char *name, const char *owner, uint64_t peer)
{
	struct machine_claim c = { .id = id, .name = name, .owner = owner,
		.peer = peer, .named = true, .relay = true };

	return machine_claim(t, &c);
}

static void
the_same_claim_is_the_same_machine_under_its_newest_name(void **state)
{
	struct machine *m = claim(7, "phone", NULL, 1);

	assert_int_equal(m->id, 7);
	assert_ptr_equal(claim(7, "tablet", NULL, 2), m);
	assert_string_equal(m->name, "tablet");
	assert_ptr_equal(machine_find(t, 7), m);
	assert_null(machine_find(t, 8));
	assert_int_equal(count_machines(t), 1);
}

static void
a_name_that_is_none_changes_no_name(void **state)
{
	struct machine *m = claim(7, "phone", NULL, 1);
	struct machine_claim by_address = { .id = 7, .name = "10.0.0.7",
		.relay = true };

	assert_ptr_equal(machine_claim(t, &by_address), m);
	assert_string_equal(m->name, "phone");
}

static void
beside_a_relay_producers_do_not_name_its_machine(void **state)
{
	struct machine *m = claim(7, "phone", NULL, 1);
	struct machine_claim producer = { .id = 7, .name = "probes",
		.named = true };

	m->contact.n_relays = 1;
	assert_ptr_equal(machine_claim(t, &producer), m);
	assert_string_equal(m->name, "phone");
	m->contact.n_relays = 0;
	assert_ptr_equal(machine_claim(t, &producer), m);
	assert_string_equal(m->name, "probes");
}

static void
one_owner_cannot_take_anothers_machine(void **state)
{
	struct machine *a = claim(7, "a", "certificate a", 1);
	struct machine *b = claim(7, "b", "certificate b", 2);
	struct machine *nobody = claim(7, "x", NULL, 3);

	assert_ptr_not_equal(a, b);
	assert_ptr_not_equal(a, nobody);
	assert_ptr_not_equal(b, nobody);
	assert_int_equal(a->id, 7);
	assert_int_not_equal(b->id, 7);
	assert_int_not_equal(nobody->id, 7);
	assert_int_not_equal(nobody->id, b->id);
	assert_string_equal(a->name, "a");
	/* Each finds its own again. */
	assert_ptr_equal(claim(7, "b", "certificate b", 2), b);
	assert_ptr_equal(claim(7, "x", NULL, 4), nobody);
	assert_int_equal(count_machines(t), 3);
}

static void
an_owner_with_one_machine_in_use_has_that_one(void **state)
{
	static const uint8_t sync[] = { 1, 2 };
	struct machine *m = claim(7, "device", "dial device", 1), *other;

	assert_null(machine_of_owner(t, "dial device"));
	machine_ref(m);
	assert_ptr_equal(machine_of_owner(t, "dial device"), m);
	assert_null(machine_of_owner(t, "dial another"));
	other = claim(8, "device", "dial device", 1);
	assert_ptr_equal(machine_of_owner(t, "dial device"), m);
	machine_ref(other);
	assert_null(machine_of_owner(t, "dial device"));
	/* One of whose clocks nobody knows stands in nobody's way. */
	assert_int_equal(machine_set_clock_sync(other, sync, sizeof(sync)), 0);
	assert_ptr_equal(machine_of_owner(t, "dial device"), other);
	assert_int_equal(machine_set_clock_sync(m, sync, sizeof(sync)), 0);
	assert_null(machine_of_owner(t, "dial device"));
	machine_unref(m);
	assert_ptr_equal(machine_of_owner(t, "dial device"), other);
	machine_unref(other);
}

static void
whoever_came_first_a_later_owner_has_a_machine_of_its_own(void **state)
{
	struct machine *squatter = claim(7, "a", NULL, 1);
	struct machine *a = claim(7, "a", "certificate a", 2);

	assert_ptr_not_equal(a, squatter);
	assert_int_not_equal(a->id, squatter->id);
	/* Its id stays when what stood in its way is gone. */
	machine_ref(a);
	assert_int_equal(squatter->refs, 0);
	assert_ptr_equal(claim(7, "a", "certificate a", 2), a);
	machine_unref(a);
}

static void
ids_wrap_around_nothing(void **state)
{
	struct machine *a = claim(UINT32_MAX, "a", "a", 1);
	struct machine *b = claim(UINT32_MAX, "b", "b", 1);

	assert_int_equal(a->id, UINT32_MAX);
	/* Wherever the next one lies, it is not the host's. */
	assert_int_not_equal(b->id, UINT32_MAX);
	assert_int_not_equal(b->id, 0);
}

static void
an_id_that_too_many_own_is_refused(void **state)
{
	char owner[16];
	unsigned i;

	/* The last try may come by 0, once in 2^26 runs. */
	for (i = 0; i < 63; i++) {
		snprintf(owner, sizeof(owner), "%u", i);
		assert_non_null(claim(7, "m", owner, i));
	}
	(void)!claim(7, "m", "the last", i);
	assert_null(claim(7, "m", "one more", 99));
}

static void
in_a_full_table_the_longest_idle_gives_way(void **state)
{
	struct machine *first, *second, *m;
	uint32_t id;

	for (id = 1; id <= MACHINES_MAX; id++)
		assert_non_null(claim(id, "m", NULL, id));
	first = machine_find(t, 1);
	second = machine_find(t, 2);
	machine_ref(first);
	machine_ref(second);
	machine_unref(second); /* idle since just now */
	m = claim(100000, "new", NULL, 0);
	assert_non_null(m);
	assert_int_equal(count_machines(t), MACHINES_MAX);
	assert_ptr_equal(machine_find(t, 1), first);
	assert_ptr_equal(machine_find(t, 2), second);
	assert_null(machine_find(t, 3));
	assert_non_null(machine_find(t, 4));
	machine_unref(first);
}

static void
one_peer_gets_a_part_of_the_table_and_gives_up_its_own(void **state)
{
	struct machine *other = claim(1, "other", NULL, 1);
	uint32_t id;

	for (id = 2; id < MACHINES_PER_PEER_MAX + 2; id++)
		assert_non_null(claim(id, "m", NULL, 2));
	assert_non_null(claim(id, "m", NULL, 2));
	assert_null(machine_find(t, 2));
	assert_ptr_equal(machine_find(t, 1), other);
	assert_int_equal(count_machines(t), MACHINES_PER_PEER_MAX + 1);
	/* With all of its own in use it gets no more; others do. */
	for (id = 3; id < MACHINES_PER_PEER_MAX + 3; id++)
		machine_ref(machine_find(t, id));
	assert_null(claim(id, "m", NULL, 2));
	assert_non_null(claim(id, "m", NULL, 3));
	for (id = 3; id < MACHINES_PER_PEER_MAX + 3; id++)
		machine_unref(machine_find(t, id));
}

static struct machine *
claim_together(uint32_t id, const char *owner, uint64_t peer)
{
	struct machine_claim c = { .id = id, .name = "m", .owner = owner,
		.peer = peer, .together = true };

	return machine_claim(t, &c);
}

static void
what_one_owner_claims_together_has_one_account(void **state)
{
	struct machine *a = claim_together(1, "certificate a", 9);
	struct machine *b = claim_together(2, "certificate a", 9);
	/* Of another name with the same number. */
	struct machine *c = claim_together(3, "certificate c", 9);
	struct machine *own = claim(4, "x", "certificate a", 9);

	assert_ptr_equal(machine_account(a), machine_account(b));
	assert_ptr_not_equal(machine_account(a), machine_account(c));
	assert_int_not_equal(machine_account(a)->share,
	    machine_account(c)->share);
	assert_ptr_equal(machine_account(own), &own->own);
	assert_int_equal(machine_account(own)->share, own->id);
	/* No id of a machine is so large. */
	assert_true(machine_account(a)->share > UINT32_MAX);
	assert_ptr_equal(claim_together(1, "certificate a", 9), a);
	assert_int_equal(machine_account(a)->n_machines, 2);
}

static void
an_account_goes_with_its_last_machine(void **state)
{
	struct machine *a = claim_together(1, "certificate a", 9);
	uint64_t share = machine_account(a)->share;
	uint32_t id;

	machine_ref(a);
	for (id = 2; id <= MACHINES_PER_PEER_MAX; id++)
		assert_non_null(claim_together(id, "certificate a", 9));
	assert_int_equal(machine_account(a)->n_machines,
	    MACHINES_PER_PEER_MAX);
	/* Each makes room for the next one, and the account stays. */
	for (; id < 2 * MACHINES_PER_PEER_MAX; id++)
		assert_non_null(claim_together(id, "certificate a", 9));
	assert_int_equal(machine_account(a)->n_machines,
	    MACHINES_PER_PEER_MAX);
	assert_int_equal(machine_account(a)->share, share);
	machine_unref(a);
}

static void
the_host_is_in_no_table(void **state)
{
	struct machine host = { .id = 0 };

	assert_int_equal(machine_rename(&host, "here"), 0);
	machine_ref(&host);
	machine_unref(&host);
	machine_unref(&host);
	assert_string_equal(host.name, "here");
	machine_done(&host);
	machine_table_free(NULL);
}

static void
what_is_said_of_a_machine_has_a_most(void **state)
{
	static uint8_t big[MACHINE_INFO_MAX + 1];
	char name[2 * MACHINE_NAME_MAX];
	struct machine *m;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	m = claim(7, name, NULL, 1);
	assert_int_equal(strlen(m->name), MACHINE_NAME_MAX);
	assert_int_equal(machine_set_system_info(m, big, sizeof(big) - 1), 0);
	assert_int_equal(machine_set_system_info(m, big, sizeof(big)), -1);
	assert_int_equal(m->system_info_len, sizeof(big) - 1);
	assert_int_equal(machine_set_clock_sync(m, big, sizeof(big)), -1);
	assert_int_equal(m->clock_sync_generation, 0);
}

static void
clocks_are_forgotten_with_the_last_who_refers_to_the_machine(void **state)
{
	static const uint8_t sync[] = { 1, 2, 3 };
	struct machine *m = claim(7, "a", NULL, 1);

	machine_ref(m);
	machine_ref(m);
	assert_int_equal(machine_set_clock_sync(m, sync, sizeof(sync)), 0);
	assert_int_equal(machine_keep_clock_sync(m), 0);
	assert_int_equal(machine_set_clock_sync(m, sync, sizeof(sync)), 0);
	m->clock.known = true;
	/* A session has its data still. */
	machine_unref(m);
	assert_true(m->clock.known);
	assert_int_equal(m->n_past_clocks, 1);
	machine_unref(m);
	assert_false(m->clock.known);
	assert_null(m->clock_sync);
	assert_int_equal(m->n_past_clocks, 0);
	assert_int_equal(m->clock_sync_generation, 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_same_claim_is_the_same_machine_under_its_newest_name),
		CASE(a_name_that_is_none_changes_no_name),
		CASE(beside_a_relay_producers_do_not_name_its_machine),
		CASE(one_owner_cannot_take_anothers_machine),
		CASE(an_owner_with_one_machine_in_use_has_that_one),
		CASE(whoever_came_first_a_later_owner_has_a_machine_of_its_own),
		CASE(ids_wrap_around_nothing),
		CASE(an_id_that_too_many_own_is_refused),
		CASE(in_a_full_table_the_longest_idle_gives_way),
		CASE(one_peer_gets_a_part_of_the_table_and_gives_up_its_own),
		CASE(what_one_owner_claims_together_has_one_account),
		CASE(an_account_goes_with_its_last_machine),
		CASE(the_host_is_in_no_table),
		CASE(what_is_said_of_a_machine_has_a_most),
		CASE(clocks_are_forgotten_with_the_last_who_refers_to_the_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
