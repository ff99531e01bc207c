#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/archiver/settings.h"

static char file[] = "/tmp/test_archiver_settings.XXXXXX";
static struct archiver_settings s;
static char err[ARCHIVER_ERROR_SIZE];

static int
setup(void **state)
{
	int fd;

	strcpy(file, "/tmp/test_archiver_settings.XXXXXX");
	if ((fd = mkstemp(file)) < 0)
		return -1;
	close(fd);
	archiver_settings_init(&s);
	err[0] = '\0';
	return 0;
}

static int
teardown(void **state)
{
	archiver_settings_done(&s);
	return unlink(file);
}

static int
read_text(const char *text)
{
	FILE *f = fopen(file, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return archiver_settings_read(&s, file, err, sizeof(err));
}

static void
refused(const char *text, const char *with)
{
	assert_int_equal(read_text(text), -1);
	if (strstr(err, with) == NULL)
		fail_msg("\"%s\" says nothing of \"%s\"", err, with);
}

static void
an_empty_file_keeps_everything(void **state)
{
	assert_int_equal(read_text(""), 0);
	assert_null(s.folder);
	assert_int_equal(s.policy.all.bytes, 0);
	assert_int_equal(s.policy.all.age_ms, 0);
	assert_int_equal(s.policy.n_rules, 0);
	assert_int_equal(s.policy.min_free, 0);
	assert_false(s.policy.waits_for_upload);
	assert_int_equal(s.rescan_ms, 3600000);
	assert_int_equal(s.log_level, LOG_LEVEL_INFO);
}

static void
every_field_arrives(void **state)
{
	assert_int_equal(read_text("archive_dir: \"/traces\"\n"
	    "keep { size_mb: 100 hours: 336 }\n"
	    "each_machine { size_mb: 10 }\n"
	    "recording { name: \"always\" keep { hours: 24 } }\n"
	    "recording { name: \"kiosk-*\" keep { size_mb: 1 } }\n"
	    "min_free_mb: 5\n"
	    "upload_required: true\n"
	    "rescan_minutes: 2\n"
	    "log_level: \"warn\"\n"), 0);
	assert_string_equal(s.folder, "/traces");
	assert_int_equal(s.policy.all.bytes, 100u << 20);
	assert_int_equal(s.policy.all.age_ms, 14 * 86400000ll);
	assert_int_equal(s.policy.each_machine.bytes, 10u << 20);
	assert_int_equal(s.policy.each_machine.age_ms, 0);
	assert_int_equal(s.policy.n_rules, 2);
	assert_string_equal(s.policy.rules[0].recording, "always");
	assert_int_equal(s.policy.rules[0].keep.age_ms, 86400000);
	assert_int_equal(s.policy.rules[0].keep.bytes, 0);
	assert_string_equal(s.policy.rules[1].recording, "kiosk-*");
	assert_int_equal(s.policy.rules[1].keep.bytes, 1u << 20);
	assert_int_equal(s.policy.min_free, 5u << 20);
	assert_true(s.policy.waits_for_upload);
	assert_int_equal(s.rescan_ms, 120000);
	assert_int_equal(s.log_level, LOG_LEVEL_WARN);
}

static void
a_limit_of_nothing_is_refused(void **state)
{
	refused("keep { size_mb: 0 }", "keep.size_mb: 0 is not accepted");
	refused("each_machine { hours: 0 }", "each_machine.hours: 0 is not");
	refused("rescan_minutes: 0", "rescan_minutes: 0 is not accepted");
	assert_int_equal(read_text("min_free_mb: 0"), 0);
}

static void
numbers_beyond_any_disk_are_refused(void **state)
{
	refused("keep { size_mb: 18446744073709551615 }", "keep.size_mb");
	refused("keep { hours: 18446744073709551615 }", "keep.hours");
	refused("min_free_mb: 18446744073709551615", "min_free_mb");
}

static void
a_recording_needs_a_name_and_limits(void **state)
{
	refused("recording { keep { hours: 1 } }", "name the recording");
	archiver_settings_done(&s);
	archiver_settings_init(&s);
	refused("recording { name: \"a\" }",
	    "say how much of \"a\" is kept");
}

static void
other_mistakes_name_the_field(void **state)
{
	refused("archive_dir: \"\"", "archive_dir: the name of the folder");
	refused("log_level: \"loud\"", "log_level: must be error, warn");
	refused("keep_all: true", "keep_all");
}

static void
a_collectors_recordings_count_behind_those_of_the_archive(void **state)
{
	char other[] = "/tmp/test_archiver_settings.XXXXXX", text[256];
	FILE *f = fdopen(mkstemp(other), "w");

	assert_non_null(f);
	fputs("archive_dir: '/a' recording { name: 'a' config_file: 'c' keep { "
	    "hours: 2 } } recording { name: 'b' config_file: 'c' } recording { "
	    "name: 'd' config_file: 'c' keep { size_mb: 3 } }", f);
	fclose(f);
	snprintf(text, sizeof(text), "archive_dir: '/a' collector_config: '%s' "
	    "recording { name: 'x' keep { hours: 1 } }", other);
	assert_int_equal(read_text(text), 0);
	assert_int_equal(s.policy.n_rules, 3);
	assert_string_equal(s.policy.rules[0].recording, "x");
	assert_string_equal(s.policy.rules[1].recording, "a");
	assert_int_equal(s.policy.rules[1].keep.age_ms, 7200000);
	assert_int_equal(s.policy.rules[1].keep.bytes, 0);
	assert_string_equal(s.policy.rules[2].recording, "d");
	assert_int_equal(s.policy.rules[2].keep.bytes, 3 << 20);
	archiver_settings_done(&s);
	archiver_settings_init(&s);
	unlink(other);
	assert_int_equal(read_text(text), -1);
	assert_non_null(strstr(err, other));
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(an_empty_file_keeps_everything),
		CASE(every_field_arrives),
		CASE(a_limit_of_nothing_is_refused),
		CASE(numbers_beyond_any_disk_are_refused),
		CASE(a_recording_needs_a_name_and_limits),
		CASE(other_mistakes_name_the_field),
		CASE(a_collectors_recordings_count_behind_those_of_the_archive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
