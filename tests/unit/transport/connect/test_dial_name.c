#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "transport/connect/dial.h"
#include "transport/connect/dial_name.h"
#include "transport/socket/addr.h"

static char name[DIAL_NAME_MAX], err[DIAL_TEXT_MAX];

static int
ask(const struct dial_options *how, const char *address)
{
	struct addr a;

	assert_int_equal(addr_parse(&a, address, err, sizeof(err)), 0);
	err[0] = '\0';
	strcpy(name, "as it was");
	return dial_server_name(how, &a, name, err, sizeof(err));
}

static void
is_called(const struct dial_options *how, const char *address,
    const char *expected)
{
	assert_int_equal(ask(how, address), 0);
	assert_string_equal(name, expected);
}

static void
is_refused(const struct dial_options *how, const char *address,
    const char *why)
{
	assert_int_equal(ask(how, address), -1);
	assert_non_null(strstr(err, why));
	assert_string_equal(name, "as it was");
}

static void
without_the_flag_the_name_is_that_of_the_collector(void **state)
{
	struct dial_options plain = { .machine_name = "kiosk-7" };
	struct dial_options named = { .tls_name = "c.example",
		.machine_name = "kiosk-7" };

	is_called(&plain, "tls://kiosk-9.collectors.example:7443",
	    "kiosk-9.collectors.example");
	is_called(&plain, "tls://10.0.0.1:7443", "10.0.0.1");
	is_called(&plain, "tls://[::1]:7443", "::1");
	is_called(&named, "tls://10.0.0.1:7443", "c.example");
}

static void
the_machine_stands_in_front_of_the_host(void **state)
{
	struct dial_options how = { .sni_machine = true,
		.machine_name = "kiosk-7" };

	is_called(&how, "tls://collectors.example:7443",
	    "kiosk-7.collectors.example");
	/* a port that is forwarded */
	how.tls_name = "c.example";
	is_called(&how, "tls://10.0.0.1:7443", "kiosk-7.c.example");
}

static void
a_machine_without_a_name_has_that_of_the_environment(void **state)
{
	struct dial_options how = { .sni_machine = true };

	assert_int_equal(setenv("PERFETTO_MACHINE_NAME", "Robot7", 1), 0);
	is_called(&how, "tls://c.example:1", "Robot7.c.example");
	assert_int_equal(unsetenv("PERFETTO_MACHINE_NAME"), 0);
}

/* What is_refused() says of each is why it cannot be a label. */
static void
what_is_no_label_is_refused(void **state)
{
	static const char *const wrong[] = { "", "kiosk.7", "-a", "a-", "a_b",
		"a b", "k\xc3\xb6ln", "*",
		"a123456789b123456789c123456789d123456789e123456789f123456789"
		"abcd" };
	struct dial_options how = { .sni_machine = true };
	char longest[64];
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		how.machine_name = wrong[i];
		is_refused(&how, "tls://c.example:1", "cannot stand there");
		assert_non_null(strstr(err, "--machine-name"));
	}
	how.machine_name = longest;
	memset(longest, 'a', 63);
	longest[63] = '\0';
	assert_int_equal(ask(&how, "tls://c.example:1"), 0);
	assert_int_equal(strlen(name), 63 + strlen(".c.example"));
}

static void
an_address_has_no_names_below_it(void **state)
{
	struct dial_options how = { .sni_machine = true,
		.machine_name = "kiosk-7" };

	is_refused(&how, "tls://10.0.0.1:7443", "10.0.0.1 is an address");
	is_refused(&how, "tls://[::1]:7443", "::1 is an address");
	how.tls_name = "fe80::1%eth0";
	is_refused(&how, "tls://c.example:1", "is an address");
}

static void
a_name_that_is_too_long_is_refused(void **state)
{
	struct dial_options how = { .sni_machine = true,
		.machine_name = "kiosk-7" };
	char host[247];

	/* with "kiosk-7." 253 bytes, then one more */
	memset(host, 'h', sizeof(host));
	host[245] = '\0';
	how.tls_name = host;
	assert_int_equal(ask(&how, "tls://c.example:1"), 0);
	assert_int_equal(strlen(name), 253);
	host[245] = 'h';
	host[246] = '\0';
	is_refused(&how, "tls://c.example:1", "253 bytes");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    without_the_flag_the_name_is_that_of_the_collector),
		cmocka_unit_test(the_machine_stands_in_front_of_the_host),
		cmocka_unit_test(
		    a_machine_without_a_name_has_that_of_the_environment),
		cmocka_unit_test(what_is_no_label_is_refused),
		cmocka_unit_test(an_address_has_no_names_below_it),
		cmocka_unit_test(a_name_that_is_too_long_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
