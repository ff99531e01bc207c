#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/bench/load/load_options.h"

static char err[256];

/* Words between blanks. */
static enum load_parsed
parse(struct load_options *o, const char *line)
{
	static char words[512], name[] = "tributary-load";
	char *argv[64] = { name };
	int argc = 1;

	snprintf(words, sizeof(words), "%s", line);
	for (argv[1] = strtok(words, " "); argv[argc] != NULL;
	    argv[argc] = strtok(NULL, " "))
		argc++;
	return load_options_parse(o, argc, argv, err, sizeof(err));
}

static void
what_is_given_is_understood(void **state)
{
	struct load_options o;

	assert_int_equal(parse(&o, "--connect a:1 --connect /x --producers 7 "
	    "--rate 1.5M --size 70-90 --big 2.5:9K --churn 3:cut --slow "
	    "reads:2,never --hostile mute:3,forged --duration 5m "
	    "--control --consumer /c --burst 200ms"), LOAD_PARSED);
	assert_int_equal(o.n_connect, 2);
	assert_int_equal(o.producers, 7);
	assert_int_equal(o.rate, 1500000);
	assert_int_equal(o.size_min, 70);
	assert_int_equal(o.size_max, 90);
	assert_int_equal(o.big_per_mille, 25);
	assert_int_equal(o.big_size, 9000);
	assert_int_equal(o.churn_how, CHURN_CUT);
	assert_int_equal(o.n_slow, 2);
	assert_int_equal(o.slow[1].kind, SLOW_NEVER);
	assert_int_equal(o.slow[1].count, 1);
	assert_int_equal(o.hostile[1].kind, HOSTILE_FORGED);
	assert_int_equal(o.duration_ms, 300000);
	assert_int_equal(o.burst_ms, 200);
}

static void
what_is_wrong_is_refused(void **state)
{
	static const char *const lines[] = {
		"", "--connect a:1 --producers x", "--connect a:1 --rate 5Q",
		"--connect a:1 --size 90-70", "--connect a:1 --size 10",
		"--connect a:1 --churn 3:rudely", "--connect a:1 --slow ill:1",
		"--connect a:1 --slow :1", "--connect a:1 --hostile mute:x",
		"--connect a:1 --session f", "--connect a:1 --config f",
		"--connect a:1 --duration 5d", "--connect a:1 stray",
		"--connect a:1 --first-key 0", "--connect a:1 --big 101:5",
		"--connect a:1 --repeat --ledger f",
		"--connect a:1 --repeat --size 100-5000",
	};
	struct load_options o;
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		err[0] = '\0';
		assert_int_equal(parse(&o, lines[i]), LOAD_PARSED_BAD);
		assert_true(err[0] != '\0');
	}
}

static void
the_fastest_rate_has_a_name(void **state)
{
	struct load_options o;

	assert_int_equal(parse(&o, "--connect a:1 --rate max"), LOAD_PARSED);
	assert_true(o.rate == LOAD_RATE_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_given_is_understood),
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(the_fastest_rate_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
