#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/record/options.h"

#define MAX_ARGS 16

static struct record_options o;
static char err[300];

/* Parses a line of words. */
static enum flags_verdict
parse(const char *line)
{
	static char words[300];
	static char *argv[MAX_ARGS + 1];
	char *p, *save = NULL;
	int argc = 0;

	snprintf(words, sizeof(words), "record %s", line);
	for (p = strtok_r(words, " ", &save); p != NULL;
	    p = strtok_r(NULL, " ", &save)) {
		assert_true(argc < MAX_ARGS);
		argv[argc++] = p;
	}
	argv[argc] = NULL;
	err[0] = '\0';
	return record_options_parse(&o, argc, argv, err, sizeof(err));
}

static void
assert_refused(const char *line, const char *why)
{
	assert_int_equal(parse(line), FLAGS_BAD);
	if (strstr(err, why) == NULL)
		fail_msg("\"%s\" was refused with: %s", line, err);
}

static void
a_config_and_a_file_are_enough(void **state)
{
	assert_int_equal(parse("-c cfg.pbtx -o out"), FLAGS_RUN);
	assert_string_equal(o.config, "cfg.pbtx");
	assert_string_equal(o.out, "out");
	assert_int_equal(o.n_names, 0);
	assert_int_equal(o.notify_fd, -1);
	assert_false(o.background || o.no_clobber || o.quiet);
}

static void
names_come_with_the_defaults_of_perfetto(void **state)
{
	assert_int_equal(parse("linux.sys_stats -o out sched/sched_switch"),
	    FLAGS_RUN);
	assert_null(o.config);
	assert_int_equal(o.n_names, 2);
	assert_string_equal(o.names[0], "linux.sys_stats");
	assert_string_equal(o.names[1], "sched/sched_switch");
	assert_int_equal(o.duration_ms, 10000);
	assert_true(o.buffer_bytes == 32 << 20);
	assert_true(o.max_file_bytes == 0);
}

static void
every_flag_is_known_in_its_short_and_long_form(void **state)
{
	assert_int_equal(parse("-t 5m -b 64mb -s 1gb -D -q -o f a"),
	    FLAGS_RUN);
	assert_int_equal(o.duration_ms, 300000);
	assert_true(o.buffer_bytes == 64 << 20);
	assert_true(o.max_file_bytes == 1 << 30);
	assert_true(o.background && o.background_wait && o.quiet);
	assert_int_equal(parse("--time=0 --buffer 1mb --size 2mb --background "
	    "--quiet --no-clobber --connect :1 --out f a"),
	    FLAGS_RUN);
	assert_int_equal(o.duration_ms, 0);
	assert_true(o.background && !o.background_wait && o.no_clobber);
	assert_string_equal(o.line.connect, ":1");
	assert_int_equal(parse("--config - --txt --out f --notify-fd 2"),
	    FLAGS_RUN);
	assert_string_equal(o.config, "-");
	assert_int_equal(o.notify_fd, 2);
	assert_int_equal(parse("-d -o f a"), FLAGS_RUN);
	assert_true(o.background && !o.background_wait);
}

static void
several_collectors_are_recorded_in_front(void **state)
{
	assert_int_equal(parse("--fleet f.pbtx --allow-missing -o f a"),
	    FLAGS_RUN);
	assert_true(record_options_fleet(&o) && o.line.allow_missing);
	assert_int_equal(parse("--connect /1 --connect /2 -o f a"), FLAGS_RUN);
	assert_true(record_options_fleet(&o));
	assert_int_equal(parse("--connect /1 -o f a"), FLAGS_RUN);
	assert_false(record_options_fleet(&o));
	assert_int_equal(parse("--fleet f.pbtx -D -o f a"), FLAGS_BAD);
	assert_int_equal(parse("--fleet f.pbtx --attach=k"), FLAGS_BAD);
}

static void
help_wins_over_what_is_missing(void **state)
{
	assert_int_equal(parse("--help"), FLAGS_HELP);
	assert_int_equal(parse("-h"), FLAGS_HELP);
	assert_non_null(strstr(record_options_flags.help, "--notify-fd"));
}

static void
an_unknown_flag_is_refused_with_the_nearest_one(void **state)
{
	assert_refused("--ouput f a", "did you mean --out");
	assert_refused("--noclobber a", "did you mean --no-clobber?");
	assert_refused("--confg=x", "there is no flag --confg; did you mean "
	    "--config?");
	assert_refused("--frobnicate a", "see tributary record --help");
	assert_refused("-x a", "there is no flag -x");
}

static void
a_flag_without_its_value_is_refused(void **state)
{
	assert_refused("-o", "-o wants a value");
	assert_refused("a --time", "--time wants a value");
}

static void
bad_values_are_refused_with_what_is_accepted(void **state)
{
	assert_refused("-t 10 -o f a", "has no unit");
	assert_refused("-b big -o f a", "not a size");
	assert_refused("--notify-fd 987 -o f a", "open descriptor");
	assert_refused("--notify-fd x -o f a", "open descriptor");
}

static void
contradictions_are_refused(void **state)
{
	assert_refused("-o f", "say what to record");
	assert_refused("-c x -t 10s -o f", "either it or names");
	assert_refused("-c x -o f linux.sys_stats", "either it or names");
	assert_refused("-d -o - a", "choose one");
}

static void
machines_are_named_or_all(void **state)
{
	assert_int_equal(parse("-o f a --all-machines"), FLAGS_RUN);
	assert_true(o.machines.all);
	assert_int_equal(parse("-o f -c x --machine a --machine r-*"),
	    FLAGS_RUN);
	assert_false(o.machines.all);
	assert_int_equal(o.machines.n_names, 2);
	assert_string_equal(o.machines.names[1], "r-*");
	assert_refused("-o f a --all-machines --machine b", "leave out");
}

static void
how_an_address_is_reached_is_said_by_flags(void **state)
{
	assert_int_equal(parse("-o f a --connect tls://c:7444 --tls-dir d "
	    "--tls-name n --allow-tls-1.2"), FLAGS_RUN);
	assert_string_equal(o.line.how.tls_dir, "d");
	assert_string_equal(o.line.how.tls_name, "n");
	assert_true(o.line.how.allow_tls12);
	assert_null(o.line.how.ssh_command);
	assert_string_equal(o.line.how.service, "consumer");
	assert_int_equal(parse("-o f a --ssh-command x"), FLAGS_RUN);
	assert_string_equal(o.line.how.ssh_command, "x");
	assert_refused("-o f a --tls-dirr d", "did you mean --tls-dir");
}

static void
a_mode_says_what_is_done(void **state)
{
	assert_int_equal(parse("-o f a"), FLAGS_RUN);
	assert_int_equal(o.mode, RECORD_MODE_RECORD);
	assert_int_equal(parse("--detach=k -c x -o f"), FLAGS_RUN);
	assert_int_equal(o.mode, RECORD_MODE_DETACH);
	assert_string_equal(o.key, "k");
	assert_int_equal(parse("--attach k --stop"), FLAGS_RUN);
	assert_int_equal(o.mode, RECORD_MODE_ATTACH);
	assert_true(o.stop);
	assert_int_equal(parse("--is_detached=k"), FLAGS_RUN);
	assert_int_equal(o.mode, RECORD_MODE_IS_DETACHED);
	assert_int_equal(parse("--is-detached=k"), FLAGS_RUN);
	assert_int_equal(parse("--clone 12 -o f"), FLAGS_RUN);
	assert_int_equal(o.mode, RECORD_MODE_CLONE);
	assert_int_equal(o.clone_id, 12);
	assert_null(o.clone_name);
	assert_int_equal(parse("--clone-by-name n --clone-for-bugreport -o f"),
	    FLAGS_RUN);
	assert_string_equal(o.clone_name, "n");
	assert_true(o.clone_for_bugreport);
	assert_int_equal(parse("--query --long"), FLAGS_RUN);
	assert_true(o.query_long && !o.query_raw);
	assert_int_equal(parse("--version"), FLAGS_VERSION);
}

static void
modes_exclude_each_other(void **state)
{
	assert_refused("--detach=k --attach=k -o f -c x", "choose one of");
	assert_refused("--clone 1 --clone-by-name n -o f", "choose one of");
	assert_refused("--query --attach=k", "choose one of");
	assert_refused("--detach=k -d -c x -o f", "leave out -d");
	assert_refused("--stop -c x -o f", "with --attach only");
	assert_refused("--long -c x -o f", "with --query only");
	assert_refused("--clone-for-bugreport -c x -o f", "goes with --clone");
	assert_refused("--attach=k -o f", "leave out -o");
	assert_refused("--attach=k -c x", "has a config already");
	assert_refused("--is_detached=k -d", "leave out -o, -d");
	assert_refused("--query linux.sys_stats", "has a config already");
	assert_refused("--clone 1 -c x -o f", "config of its session");
	assert_refused("--clone 1", "where the copy goes");
	assert_refused("--clone ring -o f", "--clone-by-name");
	assert_refused("--detach= -c x -o f", "empty");
}

static void
what_only_android_has_is_refused_or_has_no_effect(void **state)
{
	assert_refused("--upload -c x", "Android");
	assert_refused("--dropbox perfetto -c x", "Android");
	assert_refused("--app com.example -o f", "atrace");
	assert_refused("--save-for-bugreport", "--clone-for-bugreport");
	assert_refused("--save-all-for-bugreport", "--clone-for-bugreport");
	assert_int_equal(parse("--no-guardrails -o f a"), FLAGS_RUN);
	assert_int_equal(parse("--reset-guardrails"), FLAGS_NOTHING);
	assert_int_equal(parse("-o f a --alert-id 4 --config-uid -1"),
	    FLAGS_RUN);
	assert_true(o.additions.has_statsd[STATSD_ALERT_ID]);
	assert_int_equal(o.additions.statsd[STATSD_CONFIG_UID], -1);
	assert_refused("-o f a --config-uid 4294967296", "wants a number");
}

static void
attributes_have_keys(void **state)
{
	assert_int_equal(parse("-o f a --add-attribute k=v=w "
	    "--add-attribute e"), FLAGS_RUN);
	assert_int_equal(o.additions.n_attributes, 2);
	assert_string_equal(o.additions.attributes[0], "k=v=w");
	assert_refused("-o f a --add-attribute =v", "no key");
	assert_refused("-o f a --add-attribute k=\x80", "UTF-8");
}

static void
flags_of_segments_are_for_recordings_without_end(void **state)
{
	assert_int_equal(parse("-o f --rotate-every 5min --rotate-size 256mb "
	    "--keep 100gb --keep-for 14d --split machine --on-segment ls a"),
	    FLAGS_RUN);
	assert_true(o.segments.every_ms == 300000);
	assert_true(o.segments.max_bytes == 256 << 20);
	assert_true(o.segments.keep_bytes == 100ull << 30);
	assert_true(o.segments.keep_ms == 14ull * 24 * 3600 * 1000);
	assert_true(o.segments.by_machine);
	assert_string_equal(o.segments.command, "ls");
	assert_int_equal(o.duration_ms, 0);
	assert_int_equal(parse("-o f -t 5s --split machine a"), FLAGS_RUN);
	assert_int_equal(o.duration_ms, 5000);
	assert_refused("-o f --rotate-every 1ms a", "--rotate-every: a segment "
	    "has a second at least");
	assert_refused("-o f --keep 0 a", "--keep: \"0\" would keep nothing");
	assert_refused("--attach=k --keep-for 1d", "stays with");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_config_and_a_file_are_enough),
		cmocka_unit_test(names_come_with_the_defaults_of_perfetto),
		cmocka_unit_test(
		    every_flag_is_known_in_its_short_and_long_form),
		cmocka_unit_test(several_collectors_are_recorded_in_front),
		cmocka_unit_test(help_wins_over_what_is_missing),
		cmocka_unit_test(
		    an_unknown_flag_is_refused_with_the_nearest_one),
		cmocka_unit_test(a_flag_without_its_value_is_refused),
		cmocka_unit_test(bad_values_are_refused_with_what_is_accepted),
		cmocka_unit_test(contradictions_are_refused),
		cmocka_unit_test(
		    machines_are_named_or_all),
		cmocka_unit_test(how_an_address_is_reached_is_said_by_flags),
		cmocka_unit_test(a_mode_says_what_is_done),
		cmocka_unit_test(modes_exclude_each_other),
		cmocka_unit_test(
		    what_only_android_has_is_refused_or_has_no_effect),
		cmocka_unit_test(attributes_have_keys),
		cmocka_unit_test(
		    flags_of_segments_are_for_recordings_without_end),
	};

	return cmocka_run_group_tests_name("record_options", tests, NULL,
	    NULL);
}
