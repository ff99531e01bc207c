#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "client/cert/options.h"
#include "transport/socket/roles.h"

#define MAX_ARGS 160

static struct cert_options o;
static char err[300];

/* Parses a line of words. */
static enum flags_verdict
parse(const char *line)
{
	static char words[2000];
	static char *argv[MAX_ARGS + 1];
	char *p, *save = NULL;
	int argc = 0;

	snprintf(words, sizeof(words), "cert %s", line);
	for (p = strtok_r(words, " ", &save); p != NULL;
	    p = strtok_r(NULL, " ", &save)) {
		assert_true(argc < MAX_ARGS);
		argv[argc++] = p;
	}
	argv[argc] = NULL;
	err[0] = '\0';
	return cert_options_parse(&o, argc, argv, err, sizeof(err));
}

static void
assert_refused(const char *line, const char *why)
{
	assert_int_equal(parse(line), FLAGS_BAD);
	if (strstr(err, why) == NULL)
		fail_msg("\"%s\" was refused with: %s", line, err);
}

static void
each_command_takes_its_words_and_flags(void **state)
{
	assert_int_equal(parse("init d --name a.example --name 10.0.0.1 "
	    "--days 90 --key ed25519 --org Acme"), FLAGS_RUN);
	assert_int_equal(o.action, CERT_INIT);
	assert_string_equal(o.dir, "d");
	assert_int_equal(o.n_names, 2);
	assert_string_equal(o.names[1], "10.0.0.1");
	assert_int_equal(o.days, 90);
	assert_int_equal(o.key, CERT_KEY_ED25519);
	assert_string_equal(o.organization, "Acme");

	assert_int_equal(parse("issue d dev --role admin --out x --san y"),
	    FLAGS_RUN);
	assert_int_equal(o.action, CERT_ISSUE);
	assert_string_equal(o.name, "dev");
	assert_int_equal(o.role, ROLE_ADMIN);
	assert_string_equal(o.out, "x");
	assert_int_equal(o.key, CERT_KEY_P256);

	assert_int_equal(parse("show --json d"), FLAGS_RUN);
	assert_true(o.json);
	assert_int_equal(parse("renew d dev --keep-key --revoke-old"),
	    FLAGS_RUN);
	assert_true(o.keep_key && o.revoke_old && !o.ca);
	assert_int_equal(parse("renew d --ca --days 30"), FLAGS_RUN);
	assert_true(o.ca);
	assert_null(o.name);
	assert_int_equal(parse("revoke d dev --reason key-compromise"),
	    FLAGS_RUN);
	assert_int_equal(o.reason, CERT_REASON_KEY_COMPROMISE);
}

static void
a_device_is_a_producer_unless_told_otherwise(void **state)
{
	assert_int_equal(parse("issue d dev"), FLAGS_RUN);
	assert_int_equal(o.role, ROLE_PRODUCER);
	assert_int_equal(o.days, 0);
	assert_false(o.key_given);
}

static void
help_is_given_anywhere(void **state)
{
	assert_int_equal(parse("--help"), FLAGS_HELP);
	assert_int_equal(parse("issue -h"), FLAGS_HELP);
}

static void
what_is_missing_or_too_much_is_said(void **state)
{
	assert_refused("", "say what to do");
	assert_refused("init", "wants a folder");
	assert_refused("issue d", "a folder and a name");
	assert_refused("issue d a b", "a folder and a name");
	assert_refused("revoke d", "serial number");
	assert_refused("init d --days", "wants a value");
}

static void
mistyped_words_are_guessed(void **state)
{
	assert_refused("isue d x", "did you mean issue");
	assert_refused("frobnicate d", "say init, issue");
	assert_refused("init d --nmae x", "did you mean --name");
	assert_refused("init d -x", "there is no flag -x");
}

static void
values_that_are_none_are_refused(void **state)
{
	assert_refused("init d --days 0", "--days");
	assert_refused("init d --days -1", "--days");
	assert_refused("init d --days 1x", "--days");
	assert_refused("init d --days 99999999999999999999", "--days");
	assert_refused("init d --key rsa", "p256 or ed25519");
	assert_refused("issue d x --role king", "producer, relay");
	assert_refused("issue d x --san urn:tributary:role:admin", "--role");
	assert_refused("init d --name a_b,c", "no host name");
	assert_refused("revoke d x --reason whim", "key-compromise");
}

static void
flags_of_another_command_are_refused(void **state)
{
	assert_refused("init d --role admin", "--role means nothing");
	assert_refused("show d --days 3", "--days means nothing");
	assert_refused("revoke d x --ca", "--ca means nothing");
	assert_refused("issue d x --name y", "--name means nothing");
}

static void
contradictions_are_refused(void **state)
{
	assert_refused("renew d --keep-key --key p256", "contradict");
	assert_refused("renew d x --ca", "--ca renews");
	assert_refused("renew d --ca --revoke-old", "--ca renews");
	assert_refused("renew d x --name y", "say --san");
	assert_refused("renew d --san y", "say --name");
	assert_refused("renew d --out y", "--out is for a NAME");
}

static void
names_have_a_limit(void **state)
{
	char line[2000] = "init d";
	int i;

	for (i = 0; i < CERT_OPTIONS_MAX_NAMES; i++)
		strcat(line, " --name a");
	assert_int_equal(parse(line), FLAGS_RUN);
	strcat(line, " --name a");
	assert_refused(line, "more than 64 names");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_command_takes_its_words_and_flags),
		cmocka_unit_test(a_device_is_a_producer_unless_told_otherwise),
		cmocka_unit_test(help_is_given_anywhere),
		cmocka_unit_test(what_is_missing_or_too_much_is_said),
		cmocka_unit_test(mistyped_words_are_guessed),
		cmocka_unit_test(values_that_are_none_are_refused),
		cmocka_unit_test(flags_of_another_command_are_refused),
		cmocka_unit_test(contradictions_are_refused),
		cmocka_unit_test(names_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
