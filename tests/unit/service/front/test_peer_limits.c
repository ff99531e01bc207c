#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/front/peer_limits.h"
#include "service/settings/settings.h"
#include "transport/socket/peer.h"
#include "transport/tls/tls.h"

struct fixture {
	struct limits limits;
	struct peer_limits *table;
	char why[256];
};

/* The owner is the share itself, and gone_for is to say which. */
static const struct peer_share *gone_for[8];
static size_t n_gone;

static void
crowded_out_cb(void *owner, const char *why)
{
	assert_non_null(strstr(why, "(limits.max_handshakes)"));
	assert_true(n_gone < sizeof(gone_for) / sizeof(gone_for[0]));
	gone_for[n_gone++] = owner;
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	n_gone = 0;

	assert_non_null(f);
	f->limits.max_connections = 5000;
	f->limits.max_connections_per_peer = 5000;
	f->limits.max_handshakes = 100;
	f->limits.max_handshakes_per_peer = 100;
	f->limits.max_connection_memory_kb = 8;
	f->limits.max_connection_memory_per_peer_kb = 2;
	f->limits.max_input_kb_per_s = 40;
	f->limits.max_input_kb_per_s_per_peer = 10;
	f->table = peer_limits_new(&f->limits, crowded_out_cb);
	assert_non_null(f->table);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	peer_limits_free(f->table);
	free(f);
	return 0;
}

static struct peer
unix_peer(uint32_t uid)
{
	return (struct peer){ .kind = ADDR_UNIX, .auth = PEER_UNIX,
		.uid = uid };
}

static struct peer
stranger(uint64_t net_hash)
{
	return (struct peer){ .kind = ADDR_TCP, .auth = PEER_NOBODY,
		.uid = PEER_UID_UNKNOWN, .net_hash = net_hash };
}

static struct peer
certified(uint64_t net_hash, struct tls_identity *id, const char *name)
{
	memset(id, 0, sizeof(*id));
	snprintf(id->name, sizeof(id->name), "%s", name);
	return (struct peer){ .kind = ADDR_TLS, .auth = PEER_CERT,
		.uid = PEER_UID_UNKNOWN, .net_hash = net_hash, .cert = id };
}

static struct peer_share *
enter(struct fixture *f, struct peer p, bool handshake)
{
	struct peer_share *s = peer_limits_enter(f->table, &p, handshake,
	    f->why, sizeof(f->why));

	if (s != NULL)
		peer_limits_set_owner(s, s);
	return s;
}

static struct peer_limits_counts
counts(const struct fixture *f)
{
	struct peer_limits_counts c;

	peer_limits_counts(f->table, &c);
	return c;
}

static void
test_connections_of_one_peer_share_an_entry_that_ends_with_the_last(
    void **state)
{
	struct fixture *f = *state;
	struct peer_share *a = enter(f, unix_peer(1000), false);
	struct peer_share *b = enter(f, unix_peer(1000), false);
	struct peer_share *c = enter(f, unix_peer(1001), false);

	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
	assert_ptr_equal(peer_limits_budget_of(a), peer_limits_budget_of(b));
	assert_ptr_not_equal(peer_limits_budget_of(a),
	    peer_limits_budget_of(c));
	assert_int_equal(counts(f).peers, 2);
	assert_int_equal(counts(f).connections, 3);
	peer_limits_leave(a);
	assert_int_equal(counts(f).peers, 2);
	peer_limits_leave(b);
	assert_int_equal(counts(f).peers, 1);
	peer_limits_leave(c);
	assert_int_equal(counts(f).peers, 0);
	assert_int_equal(counts(f).connections, 0);
	peer_limits_leave(NULL);
}

static void
test_a_uid_is_not_the_address_or_the_name_of_the_same_number(void **state)
{
	struct fixture *f = *state;
	struct tls_identity id;
	struct peer_share *s[3] = {
		enter(f, unix_peer(7), false),
		enter(f, stranger(7), false),
		enter(f, certified(7, &id, "7"), false),
	};
	size_t i;

	assert_int_equal(counts(f).peers, 3);
	for (i = 0; i < 3; i++)
		peer_limits_leave(s[i]);
}

static void
test_the_total_limit_refuses_newcomers_with_its_name(void **state)
{
	struct fixture *f = *state;
	struct peer_share *a, *b;

	f->limits.max_connections = 2;
	a = enter(f, unix_peer(1), false);
	b = enter(f, unix_peer(2), false);
	assert_null(enter(f, unix_peer(3), false));
	assert_non_null(strstr(f->why, "(limits.max_connections)"));
	assert_int_equal(counts(f).peers, 2);
	peer_limits_leave(a);
	a = enter(f, unix_peer(3), false);
	assert_non_null(a);
	peer_limits_leave(a);
	peer_limits_leave(b);
}

static void
test_the_limit_of_one_peer_does_not_touch_another(void **state)
{
	struct fixture *f = *state;
	struct peer_share *a, *b;

	f->limits.max_connections_per_peer = 1;
	a = enter(f, stranger(1), false);
	assert_null(enter(f, stranger(1), false));
	assert_non_null(
	    strstr(f->why, "no more than 1 connections of one peer"));
	assert_non_null(
	    strstr(f->why, "(limits.max_connections_per_peer)"));
	b = enter(f, stranger(2), false);
	assert_non_null(b);
	peer_limits_leave(a);
	peer_limits_leave(b);
}

static void
test_handshakes_have_limits_of_their_own(void **state)
{
	struct fixture *f = *state;
	struct peer_share *a, *b, *plain;

	f->limits.max_handshakes = 2;
	f->limits.max_handshakes_per_peer = 1;
	a = enter(f, stranger(1), true);
	assert_non_null(a);
	b = enter(f, stranger(2), true);
	assert_non_null(b);
	assert_null(enter(f, stranger(1), true));
	assert_non_null(strstr(f->why, "(limits.max_handshakes_per_peer)"));
	/* Who is refused has crowded nobody out. */
	assert_int_equal(n_gone, 0);
	assert_int_equal(counts(f).handshakes, 2);
	/* Nobody refused is left in the table. */
	assert_int_equal(counts(f).peers, 2);
	/* Who has no handshake before it is not held back by them. */
	plain = enter(f, stranger(1), false);
	assert_non_null(plain);
	peer_limits_leave(plain);
	peer_limits_leave(a);
	peer_limits_leave(b);
	assert_int_equal(counts(f).handshakes, 0);
}

static void
test_the_oldest_handshake_of_who_has_most_makes_room(void **state)
{
	struct fixture *f = *state;
	struct peer_share *s[6], *third, *fourth;
	size_t i;

	f->limits.max_handshakes = 6;
	s[0] = enter(f, stranger(2), true);
	for (i = 1; i < 6; i++)
		s[i] = enter(f, stranger(i < 3 ? 2 : 1), true);
	third = enter(f, stranger(3), true);
	assert_non_null(third);
	assert_int_equal(n_gone, 1);
	assert_ptr_equal(gone_for[0], s[0]);
	assert_int_equal(counts(f).handshakes, 6);
	/* Until it leaves it has a connection, but no handshake any more. */
	assert_int_equal(counts(f).connections, 7);
	peer_limits_leave(s[0]);
	assert_int_equal(counts(f).handshakes, 6);
	/* Address 1 has 3 now, address 2 has 2. */
	fourth = enter(f, stranger(4), true);
	assert_ptr_equal(gone_for[1], s[3]);
	peer_limits_leave(s[3]);
	/* One that comes from there itself is no better off. */
	s[3] = enter(f, stranger(1), true);
	assert_ptr_equal(gone_for[2], s[1]);
	peer_limits_leave(s[1]);
	for (i = 2; i < 6; i++)
		peer_limits_leave(s[i]);
	peer_limits_leave(third);
	peer_limits_leave(fourth);
	assert_int_equal(counts(f).handshakes, 0);
	assert_int_equal(counts(f).peers, 0);
}

static void
test_among_equals_the_oldest_handshake_makes_room(void **state)
{
	struct fixture *f = *state;
	struct peer_share *s[4];
	struct peer p = stranger(1);
	size_t i;

	f->limits.max_handshakes = 2;
	s[0] = enter(f, stranger(1), true);
	s[1] = enter(f, stranger(2), true);
	s[2] = enter(f, stranger(3), true);
	assert_ptr_equal(gone_for[0], s[0]);
	/* One that is done makes no room, but leaves it. */
	p = stranger(2);
	assert_int_equal(peer_limits_opened(s[1], &p, f->why, sizeof(f->why)),
	    0);
	s[3] = enter(f, stranger(4), true);
	assert_int_equal(n_gone, 1);
	for (i = 0; i < 4; i++)
		peer_limits_leave(s[i]);
	assert_int_equal(counts(f).handshakes, 0);
}

static void
test_after_its_handshake_a_connection_counts_for_its_name(void **state)
{
	struct fixture *f = *state;
	struct tls_identity id;
	struct peer_share *a = enter(f, stranger(1), true);
	struct peer_share *b = enter(f, stranger(2), true);
	struct peer p = certified(1, &id, "device-7");
	struct peer q = p;

	q.net_hash = 2;
	assert_int_equal(counts(f).handshakes, 2);
	assert_int_equal(
	    peer_limits_opened(a, &p, f->why, sizeof(f->why)), 0);
	assert_int_equal(
	    peer_limits_opened(b, &q, f->why, sizeof(f->why)), 0);
	assert_int_equal(counts(f).handshakes, 0);
	assert_int_equal(counts(f).connections, 2);
	/* One name, wherever it comes from; the addresses are forgotten. */
	assert_int_equal(counts(f).peers, 1);
	assert_ptr_equal(peer_limits_budget_of(a), peer_limits_budget_of(b));
	peer_limits_leave(a);
	peer_limits_leave(b);
	assert_int_equal(counts(f).peers, 0);
}

static void
test_a_name_over_its_limit_is_refused_after_the_handshake(void **state)
{
	struct fixture *f = *state;
	struct tls_identity id;
	struct peer p = certified(1, &id, "device-7");
	struct peer_share *a, *b;

	f->limits.max_connections_per_peer = 1;
	a = enter(f, stranger(1), true);
	assert_int_equal(
	    peer_limits_opened(a, &p, f->why, sizeof(f->why)), 0);
	b = enter(f, stranger(1), true);
	assert_non_null(b);
	assert_int_equal(
	    peer_limits_opened(b, &p, f->why, sizeof(f->why)), -1);
	assert_non_null(
	    strstr(f->why, "(limits.max_connections_per_peer)"));
	/* It has no handshake any more, but still a place until it leaves. */
	assert_int_equal(counts(f).handshakes, 0);
	assert_int_equal(counts(f).connections, 2);
	peer_limits_leave(b);
	assert_int_equal(counts(f).connections, 1);
	peer_limits_leave(a);
}

static void
test_nobody_after_a_handshake_stays_its_address(void **state)
{
	struct fixture *f = *state;
	struct peer p = stranger(1);
	struct peer_share *a;
	struct budget *before;

	f->limits.max_connections_per_peer = 1;
	a = enter(f, p, true);
	before = peer_limits_budget_of(a);
	assert_int_equal(
	    peer_limits_opened(a, &p, f->why, sizeof(f->why)), 0);
	assert_ptr_equal(peer_limits_budget_of(a), before);
	assert_int_equal(counts(f).handshakes, 0);
	peer_limits_leave(a);
}

static void
test_budgets_carry_the_limits(void **state)
{
	struct fixture *f = *state;
	struct peer_share *a = enter(f, unix_peer(1), false);

	assert_int_equal(peer_limits_budget_of(a)->memory_max, 2 * 1024);
	assert_int_equal(peer_limits_budget_of(a)->bytes_per_second, 10 * 1024);
	assert_int_equal(peer_limits_budget_of_all(f->table)->memory_max,
	    8 * 1024);
	assert_int_equal(
	    peer_limits_budget_of_all(f->table)->bytes_per_second, 40 * 1024);
	peer_limits_leave(a);
}

static void
test_thousands_of_peers_are_found_again(void **state)
{
	enum { N = 3000 };
	struct fixture *f = *state;
	struct peer_share *first[N], *second[N];
	struct tls_identity id;
	char name[32];
	size_t i;

	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "device-%zu", i);
		first[i] = enter(f, certified(1, &id, name), false);
		assert_non_null(first[i]);
	}
	assert_int_equal(counts(f).peers, N);
	f->limits.max_connections = 2 * N;
	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "device-%zu", i);
		second[i] = enter(f, certified(2, &id, name), false);
		assert_non_null(second[i]);
		assert_ptr_equal(
		    peer_limits_budget_of(first[i]),
		    peer_limits_budget_of(second[i]));
	}
	assert_int_equal(counts(f).peers, N);
	for (i = 0; i < N; i++)
		peer_limits_leave(first[i]);
	assert_int_equal(counts(f).peers, N);
	for (i = 0; i < N; i++)
		peer_limits_leave(second[N - 1 - i]);
	assert_int_equal(counts(f).peers, 0);
	assert_int_equal(counts(f).connections, 0);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_connections_of_one_peer_share_an_entry_that_ends_with_the_last),
		CASE(test_a_uid_is_not_the_address_or_the_name_of_the_same_number),
		CASE(test_the_total_limit_refuses_newcomers_with_its_name),
		CASE(test_the_limit_of_one_peer_does_not_touch_another),
		CASE(test_handshakes_have_limits_of_their_own),
		CASE(test_the_oldest_handshake_of_who_has_most_makes_room),
		CASE(test_among_equals_the_oldest_handshake_makes_room),
		CASE(test_after_its_handshake_a_connection_counts_for_its_name),
		CASE(test_a_name_over_its_limit_is_refused_after_the_handshake),
		CASE(test_nobody_after_a_handshake_stays_its_address),
		CASE(test_budgets_carry_the_limits),
		CASE(test_thousands_of_peers_are_found_again),
	};
#undef CASE

	return cmocka_run_group_tests(tests, NULL, NULL);
}
