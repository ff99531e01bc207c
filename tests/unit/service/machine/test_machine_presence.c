#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "service/machine/machine_presence.h"

static struct machine m;
static struct machine_contact *const c = &m.contact;

static int
setup(void **state)
{
	memset(&m, 0, sizeof(m));
	return 0;
}

static void
came(enum machine_reach reach, const char *address)
{
	struct machine_visitor v = { .reach = reach, .address = address,
		.authenticated = "uid 1", .software = NULL };

	machine_presence_came(&m, &v);
}

static void
a_relay_that_comes_is_there_until_it_goes(void **state)
{
	came(MACHINE_LINK, "10.0.0.1:1");
	assert_true(machine_is_connected(&m));
	assert_false(c->cut);
	assert_int_equal(c->reach, MACHINE_LINK);
	assert_string_equal(c->address, "10.0.0.1:1");
	assert_string_equal(c->authenticated, "uid 1");
	assert_true(c->first_seen_ns > 0);
	assert_true(c->connected_since_ns >= c->first_seen_ns);
	machine_presence_gone(&m, true);
	assert_false(machine_is_connected(&m));
	assert_true(c->cut_since_ns >= c->connected_since_ns);
	assert_int_equal(c->reconnects, 0);
}

static void
one_that_is_cut_off_is_waited_for_until_its_grace_is_over(void **state)
{
	came(MACHINE_LINK, "a");
	machine_presence_cut(&m, true);
	assert_false(machine_is_connected(&m));
	assert_true(c->cut);
	came(MACHINE_LINK, "b");
	assert_true(machine_is_connected(&m));
	assert_false(c->cut);
	assert_int_equal(c->reconnects, 1);
	assert_string_equal(c->address, "b");
	machine_presence_cut(&m, true);
	machine_presence_gone(&m, false);
	assert_false(c->cut);
	assert_int_equal(c->n_relays, 0);
}

static void
one_without_producers_is_gone_and_not_waited_for(void **state)
{
	came(MACHINE_LINK, "a");
	machine_presence_cut(&m, false);
	assert_false(machine_is_connected(&m));
	assert_false(c->cut);
}

static void
of_two_relays_one_may_be_cut_off(void **state)
{
	came(MACHINE_LINK, "a");
	came(MACHINE_LINK, "b");
	machine_presence_cut(&m, true);
	assert_true(machine_is_connected(&m));
	assert_false(c->cut);
	machine_presence_gone(&m, true);
	assert_false(machine_is_connected(&m));
}

static void
producers_that_come_by_themselves_say_less_than_a_relay(void **state)
{
	came(MACHINE_DIRECT, "p1");
	assert_true(machine_is_connected(&m));
	assert_int_equal(c->reach, MACHINE_DIRECT);
	came(MACHINE_CLASSIC, "r");
	came(MACHINE_DIRECT, "p2");
	assert_int_equal(c->reach, MACHINE_CLASSIC);
	assert_string_equal(c->address, "r");
	machine_presence_gone(&m, true);
	assert_true(machine_is_connected(&m));
	machine_presence_left(&m);
	assert_true(machine_is_connected(&m));
	machine_presence_left(&m);
	assert_false(machine_is_connected(&m));
}

static void
long_words_are_cut(void **state)
{
	char word[400];
	struct machine_visitor v = { .address = word, .authenticated = word,
		.software = word };

	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	machine_presence_came(&m, &v);
	assert_int_equal(strlen(c->address), sizeof(c->address) - 1);
	assert_int_equal(strlen(c->authenticated),
	    sizeof(c->authenticated) - 1);
	assert_int_equal(strlen(c->software), sizeof(c->software) - 1);
}

#define CASE(name) cmocka_unit_test_setup(name, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_relay_that_comes_is_there_until_it_goes),
		CASE(one_that_is_cut_off_is_waited_for_until_its_grace_is_over),
		CASE(one_without_producers_is_gone_and_not_waited_for),
		CASE(of_two_relays_one_may_be_cut_off),
		CASE(producers_that_come_by_themselves_say_less_than_a_relay),
		CASE(long_words_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
