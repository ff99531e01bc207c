#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "protos/trace_config.pb-c.h"
#include "protos/trace_config_load.h"
#include "service/recordings/recording_plan.h"
#include "service/settings/settings.h"

#define CONFIG                                                                \
	"buffers { size_kb: 64 } data_sources { config { name: 'src' } } "

static struct settings s;
static char err[SETTINGS_ERROR_SIZE];

static int
setup(void **state)
{
	return settings_init(&s);
}

static int
teardown(void **state)
{
	settings_done(&s);
	return 0;
}

/* The recording of this text, the only one of the settings. */
static const struct recording_setting *
setting(const char *text)
{
	char all[512];

	snprintf(all, sizeof(all), "archive_dir: '/a' recording { name: 'r' "
	    "config_file: 'c' %s }", text);
	settings_done(&s);
	assert_int_equal(settings_init(&s), 0);
	if (settings_parse(&s, all, strlen(all), "/etc/t.pbtx", err,
	    sizeof(err)) != 0)
		fail_msg("%s", err);
	return &s.recordings[0];
}

static struct recording_plan *
try_plan(const char *text, const char *config)
{
	const struct trace_config_input in = { (const uint8_t *)config,
		strlen(config), "c" };
	struct recording_plan *p;
	uint8_t *bytes;
	size_t len;

	if (trace_config_load(&in, &bytes, &len, err, sizeof(err)) != 0)
		fail_msg("%s", err);
	p = recording_plan_of(setting(text), &s, bytes, len, err,
	    sizeof(err));
	free(bytes);
	return p;
}

static struct recording_plan *
plan(const char *text, const char *config)
{
	struct recording_plan *p = try_plan(text, config);

	if (p == NULL)
		fail_msg("%s", err);
	return p;
}

static Perfetto__Protos__TraceConfig *
config_of(const struct recording_plan *p)
{
	Perfetto__Protos__TraceConfig *c;

	c = perfetto__protos__trace_config__unpack(NULL, p->config_len,
	    p->config);
	assert_non_null(c);
	return c;
}

static void
refuse(const char *text, const char *config, const char *part)
{
	assert_null(try_plan(text, config));
	if (strstr(err, part) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", part, err);
}

static void
a_plan_has_the_config_and_what_the_settings_say(void **state)
{
	struct recording_plan *p = plan("rotate { every_ms: 5000 size_kb: 64 "
	    "at_trigger: 'a' at_trigger: 'b' } split: BY_MACHINE "
	    "file_pattern: '%machine/%n.pftrace' keep { size_mb: 3 hours: 2 }", CONFIG
	    "unique_session_name: 'mine' flush_period_ms: 7 ");
	Perfetto__Protos__TraceConfig *c = config_of(p);
	Perfetto__Protos__SegmentConfig *g = c->tributary_segments;

	assert_string_equal(c->unique_session_name, "r");
	assert_int_equal(c->flush_period_ms, 7);
	assert_true(c->write_into_file);
	assert_string_equal(c->output_path, "/a/");
	assert_non_null(g);
	assert_int_equal(g->every_ms, 5000);
	assert_int_equal(g->max_bytes, 65536);
	assert_int_equal(g->n_at_trigger, 2);
	assert_string_equal(g->at_trigger[1], "b");
	assert_int_equal(g->split,
	    PERFETTO__PROTOS__SEGMENT_CONFIG__SPLIT__BY_MACHINE);
	assert_string_equal(g->file_pattern, "%machine/%n.pftrace");
	assert_string_equal(g->recording, "r");
	assert_null(c->trigger_config);
	assert_int_equal(p->keep_bytes, 3 << 20);
	assert_int_equal(p->keep_ms, 7200000);
	perfetto__protos__trace_config__free_unpacked(c, NULL);
	recording_plan_free(p);
}

static void
machines_are_added_to_every_data_source(void **state)
{
	struct recording_plan *p = plan("machines: 'kiosk-*' machines: 'host'",
	    CONFIG "data_sources { config { name: 'two' } "
	    "producer_name_filter: 'p' }");
	Perfetto__Protos__TraceConfig *c = config_of(p);

	assert_int_equal(c->n_data_sources, 2);
	assert_int_equal(c->data_sources[0]->n_machine_name_filter, 2);
	assert_string_equal(c->data_sources[0]->machine_name_filter[0],
	    "kiosk-*");
	assert_int_equal(c->data_sources[1]->n_machine_name_filter, 2);
	assert_string_equal(c->data_sources[1]->producer_name_filter[0], "p");
	perfetto__protos__trace_config__free_unpacked(c, NULL);
	recording_plan_free(p);
	refuse("machines: 'a'", "buffers { size_kb: 4 } data_sources { config "
	    "{ name: 'x' } machine_name_filter: 'b' }", "machine_name_filter");
}

static void
a_flight_recorder_keeps_its_trace_until_a_trigger(void **state)
{
	struct recording_plan *p = plan("flight { before_ms: 8000 after_ms: 50 "
	    "at_trigger: 'drop' }", CONFIG "write_into_file: true");
	Perfetto__Protos__TraceConfig *c = config_of(p);

	assert_false(c->write_into_file);
	assert_null(c->output_path);
	assert_string_equal(c->tributary_segments->recording, "r");
	assert_int_equal(c->tributary_segments->n_at_trigger, 0);
	assert_int_equal(c->trigger_config->n_triggers, 1);
	assert_string_equal(c->trigger_config->triggers[0]->name, "drop");
	assert_int_equal(c->trigger_config->triggers[0]->stop_delay_ms, 50);
	assert_int_equal(c->incremental_state_config->clear_period_ms, 4000);
	perfetto__protos__trace_config__free_unpacked(c, NULL);
	recording_plan_free(p);

	p = plan("flight { at_trigger: 'drop' }", CONFIG
	    "incremental_state_config { clear_period_ms: 3 }");
	c = config_of(p);
	assert_int_equal(c->incremental_state_config->clear_period_ms, 3);
	perfetto__protos__trace_config__free_unpacked(c, NULL);
	recording_plan_free(p);
}

static void
a_config_that_contradicts_a_recording_is_refused(void **state)
{
	refuse("", CONFIG "output_path: 'x'", "output_path");
	refuse("", CONFIG "trigger_config { trigger_mode: START_TRACING }",
	    "trigger_config");
	refuse("", CONFIG "tributary_segments { every_ms: 5 }",
	    "tributary_segments");
	refuse("", CONFIG "deferred_start: true", "deferred_start");
	refuse("", "buffers { size_kb: 64 }", "no data_sources");
	refuse("", "data_sources { config { name: 'src' } }", "");
	refuse("", "buffers { size_kb: 4 fill_policy: DISCARD } data_sources "
	    "{ config { name: 'src' } }", "DISCARD");
	refuse("", "buffers { size_kb: 0 } data_sources { config { name: 'src' "
	    "} }", "size_kb");
	recording_plan_free(plan("", CONFIG "deferred_start: false"));
}

static void
plans_are_equal_as_long_as_their_sessions_are(void **state)
{
	struct recording_plan *a = plan("keep { hours: 1 }", CONFIG);
	struct recording_plan *b = plan("keep { hours: 2 }", CONFIG);
	struct recording_plan *c = plan("rotate { every_ms: 1000 }", CONFIG);
	struct recording_plan *d = plan("", CONFIG "flush_period_ms: 9");

	assert_true(recording_plan_equal(a, b));
	assert_false(recording_plan_equal(a, c));
	assert_false(recording_plan_equal(a, d));
	recording_plan_free(a);
	recording_plan_free(b);
	recording_plan_free(c);
	recording_plan_free(d);
}

static void
a_config_file_is_named_with_its_line(void **state)
{
	char path[] = "/tmp/tributary-test-XXXXXX";
	char text[160];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "buffers {\n  size: 4\n}\n", 22), 22);
	close(fd);
	snprintf(text, sizeof(text), "recording { name: 'r' config_file: '%s' "
	    "} archive_dir: '/a'", path);
	assert_int_equal(settings_parse(&s, text, strlen(text), "t", err,
	    sizeof(err)), 0);
	assert_null(recording_plan_new(&s.recordings[0], &s, err,
	    sizeof(err)));
	snprintf(text, sizeof(text), "%s:2:3: error: ", path);
	assert_int_equal(strncmp(err, text, strlen(text)), 0);
	unlink(path);
	assert_null(recording_plan_new(&s.recordings[0], &s, err,
	    sizeof(err)));
	assert_non_null(strstr(err, path));
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_plan_has_the_config_and_what_the_settings_say),
		CASE(machines_are_added_to_every_data_source),
		CASE(a_flight_recorder_keeps_its_trace_until_a_trigger),
		CASE(a_config_that_contradicts_a_recording_is_refused),
		CASE(plans_are_equal_as_long_as_their_sessions_are),
		CASE(a_config_file_is_named_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
