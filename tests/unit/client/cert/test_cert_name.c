#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "client/cert/name.h"

static char err[256];

static void
host_names_addresses_and_others_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		enum cert_name_kind kind;
	} all[] = {
		{ "host", CERT_NAME_DNS },
		{ "a-b.example.org", CERT_NAME_DNS },
		{ "device_7", CERT_NAME_DNS },
		{ "*.example.org", CERT_NAME_DNS },
		{ "10.0.0.7", CERT_NAME_IP },
		{ "::1", CERT_NAME_IP },
		{ "fd00::7", CERT_NAME_IP },
		{ "spiffe://example.org/x", CERT_NAME_URI },
		{ "urn:a:b", CERT_NAME_URI },
		{ "ann@example.org", CERT_NAME_EMAIL },
		{ "", CERT_NAME_NONE },
		{ "10.0.0", CERT_NAME_NONE },
		{ "10.0.0.700", CERT_NAME_NONE },
		{ "-host", CERT_NAME_NONE },
		{ "host-", CERT_NAME_NONE },
		{ "a..b", CERT_NAME_NONE },
		{ "a.", CERT_NAME_NONE },
		{ "a b", CERT_NAME_NONE },
		{ "a*.example.org", CERT_NAME_NONE },
		{ "*.", CERT_NAME_NONE },
		{ "urn:a b", CERT_NAME_NONE },
		{ "urn:\n", CERT_NAME_NONE },
		{ "@example.org", CERT_NAME_NONE },
		{ "a@b@c", CERT_NAME_NONE },
		{ "host,DNS:other", CERT_NAME_NONE },
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (cert_name_kind(all[i].text) != all[i].kind)
			fail_msg("\"%s\" is taken for %d", all[i].text,
			    (int)cert_name_kind(all[i].text));
}

static void
names_of_people_in_any_script_are_taken(void **state)
{
	assert_int_equal(cert_name_check("Ann O'Hara", err, sizeof(err)), 0);
	assert_int_equal(cert_name_check("j\xc3\xbcrgen", err, sizeof(err)), 0);
	assert_int_equal(cert_name_check("\xe6\x9d\xb1", err, sizeof(err)), 0);
	assert_int_equal(cert_name_check("a.b:c", err, sizeof(err)), 0);
}

static void
what_cannot_be_seen_is_refused(void **state)
{
	static const char *const names[] = { "a\tb", "a\x1b[1m", "a\xc2\x85",
		"a\xe2\x80\xae" "b", "a\xe2\x80\x8b", "\xc0\xaf", "\xed\xa0\x80",
		"\xf5\x80\x80\x80", "\xe2\x80", "\x80" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(cert_name_check(names[i], err, sizeof(err)),
		    -1);
}

static void
a_role_in_any_case_of_letters_is_no_alternative_name(void **state)
{
	assert_int_equal(cert_name_check_alternative("URN:Tributary:role:admin",
	    err, sizeof(err)), -1);
	assert_non_null(strstr(err, "--role"));
	assert_int_equal(cert_name_check_alternative("urn:tributary:roles:x", err,
	    sizeof(err)), -1);
	assert_non_null(strstr(err, "--role x"));
	assert_int_equal(cert_name_check_alternative("urn:tributary-x:y", err,
	    sizeof(err)), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_names_addresses_and_others_are_told_apart),
		cmocka_unit_test(names_of_people_in_any_script_are_taken),
		cmocka_unit_test(what_cannot_be_seen_is_refused),
		cmocka_unit_test(
		    a_role_in_any_case_of_letters_is_no_alternative_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
