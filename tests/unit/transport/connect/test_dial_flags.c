#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "transport/connect/dial.h"
#include "transport/connect/dial_flags.h"
#include "transport/socket/addr.h"

static char err[1024];

static int
check(const struct dial_options *how, const char *address)
{
	struct addr a;

	assert_int_equal(addr_parse(&a, address, err, sizeof(err)), 0);
	err[0] = '\0';
	return dial_flags_check(how, &a, err, sizeof(err));
}

static void
flags_for_tls_are_refused_where_there_is_none(void **state)
{
	static const char *const others[] = { "host:7444", "/a/socket",
		"ssh://host", "vsock://2:20001" };
	struct dial_options dir = { .tls_dir = "d" };
	struct dial_options name = { .tls_name = "n" };
	struct dial_options machine = { .sni_machine = true,
		.machine_name = "m" };
	struct dial_options old = { .allow_tls12 = true };
	size_t i;

	assert_int_equal(check(&dir, "tls://host:7444"), 0);
	assert_int_equal(check(&name, "tls://host:7444"), 0);
	assert_int_equal(check(&machine, "tls://host:7444"), 0);
	assert_int_equal(check(&old, "tls://host:7444"), 0);
	for (i = 0; i < 4; i++) {
		assert_int_equal(check(&dir, others[i]), -1);
		assert_non_null(strstr(err, "--tls-dir is for tls://"));
		assert_int_equal(check(&name, others[i]), -1);
		assert_non_null(strstr(err, "--tls-name"));
		assert_int_equal(check(&machine, others[i]), -1);
		assert_non_null(strstr(err, "--sni-machine is for tls://"));
		assert_int_equal(check(&old, others[i]), -1);
		assert_non_null(strstr(err, "--allow-tls-1.2"));
	}
	assert_int_equal(check(&dir, "host:7444"), -1);
	assert_non_null(strstr(err, "say tls://host:7444"));
	machine.machine_name = "two.labels";
	assert_int_equal(check(&machine, "tls://host:7444"), -1);
	assert_non_null(strstr(err, "two.labels"));
}

static void
a_command_is_for_ssh_and_for_nothing_that_leads_elsewhere(void **state)
{
	struct dial_options how = { .ssh_command = "tributary connect" };

	assert_int_equal(check(&how, "ssh://host"), 0);
	assert_int_equal(check(&how, "ssh://me@host:22"), 0);
	assert_int_equal(check(&how, "tls://host:7444"), -1);
	assert_int_equal(check(&how, "/a/socket"), -1);
	assert_int_equal(check(&how, "ssh://host/a/socket"), -1);
	assert_non_null(strstr(err, "/a/socket"));
}

static void
without_flags_every_address_is_fine(void **state)
{
	struct dial_options how = { .service = "consumer" };

	assert_int_equal(check(&how, "host:7444"), 0);
	assert_int_equal(check(&how, "tls://host:7444"), 0);
	assert_int_equal(check(&how, "ssh://host/a/socket"), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_for_tls_are_refused_where_there_is_none),
		cmocka_unit_test(
		    a_command_is_for_ssh_and_for_nothing_that_leads_elsewhere),
		cmocka_unit_test(without_flags_every_address_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
