#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "transport/socket/roles.h"

static uint32_t
given_by(const char *uri)
{
	return role_from_uri(uri, strlen(uri));
}

static void
each_role_has_its_uri(void **state)
{
	(void)state;
	assert_int_equal(given_by("urn:tributary:role:producer"),
	    ROLE_PRODUCER);
	assert_int_equal(given_by("urn:tributary:role:relay"), ROLE_RELAY);
	assert_int_equal(given_by("urn:tributary:role:consumer"),
	    ROLE_CONSUMER);
	assert_int_equal(given_by("urn:tributary:role:admin"), ROLE_ADMIN);
}

static void
a_role_that_is_none_is_unknown(void **state)
{
	static const char *const uris[] = {
		"urn:tributary:role:emperor",
		"urn:tributary:role:",
		"urn:tributary:role:Admin",
		"urn:tributary:role:produce",
		"URN:TRIBUTARY:ROLE:CONSUMER",
		"URN:Tributary:Role:consumer",
		"urn:tributary:roles:consumer",
		"urn:tributary:role",
		"urn:tributary:consumer",
		"urn:tributary:",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(uris) / sizeof(uris[0]); i++)
		assert_int_equal(given_by(uris[i]), ROLE_UNKNOWN);
}

static void
nothing_may_stand_behind_a_role(void **state)
{
	static const char *const uris[] = {
		"urn:tributary:role:consumers",
		"urn:tributary:role:consumer ",
		"urn:tributary:role:consumer?x",
		"urn:tributary:role:consumer:x",
		"urn:tributary:role:producer,consumer",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(uris) / sizeof(uris[0]); i++)
		assert_int_equal(given_by(uris[i]), ROLE_UNKNOWN);
	assert_int_equal(role_from_uri("urn:tributary:role:consumer\0x", 29),
	    ROLE_UNKNOWN);
}

static void
a_role_is_read_no_further_than_its_uri_goes(void **state)
{
	(void)state;
	assert_int_equal(role_from_uri("urn:tributary:role:producers", 27),
	    ROLE_PRODUCER);
	assert_int_equal(role_from_uri("urn:tributary:role:producer", 26),
	    ROLE_UNKNOWN);
	assert_int_equal(role_from_uri("urn:tributary:role:producer", 18),
	    ROLE_UNKNOWN);
	assert_int_equal(role_from_uri("urn:tributary:role:producer", 13), 0);
	assert_int_equal(role_from_uri("", 0), 0);
}

static void
other_uris_ask_for_no_role(void **state)
{
	(void)state;
	assert_int_equal(given_by("spiffe://lab/urn:tributary:role:admin"), 0);
	assert_int_equal(given_by(" urn:tributary:role:admin"), 0);
	assert_int_equal(given_by("urn:tributaryx:role:admin"), 0);
	assert_int_equal(given_by("urn:tributary"), 0);
	assert_int_equal(given_by("https://example.org/"), 0);
}

static void
an_unknown_role_is_told(void **state)
{
	char text[48];

	(void)state;
	assert_string_equal(roles_text(0, text, sizeof(text)), "nothing");
	assert_string_equal(roles_text(ROLE_UNKNOWN, text, sizeof(text)),
	    "unknown");
	assert_string_equal(roles_text(ROLE_PRODUCER | ROLE_UNKNOWN, text,
	    sizeof(text)), "producer, unknown");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_role_has_its_uri),
		cmocka_unit_test(a_role_that_is_none_is_unknown),
		cmocka_unit_test(nothing_may_stand_behind_a_role),
		cmocka_unit_test(a_role_is_read_no_further_than_its_uri_goes),
		cmocka_unit_test(other_uris_ask_for_no_role),
		cmocka_unit_test(an_unknown_role_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
