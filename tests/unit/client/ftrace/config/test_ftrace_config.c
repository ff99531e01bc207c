/*
 * Encoded configs of linux.ftrace, defaults, and what is said of values that
 * make no sense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/ftrace/config/ftrace_config.h"
#include "protos/wire_out.h"

/* Numbers of FtraceConfig, typed from Perfetto's schema. */
enum {
	EVENTS = 1,
	ATRACE_CATEGORIES = 2,
	BUFFER_KB = 10,
	DRAIN_MS = 11,
	COMPACT = 12,
	SYMBOLIZE = 13,
	THROTTLE = 15,
	NO_GENERIC = 16,
	KSYMS_POLICY = 17,
	SYSCALLS = 18,
	FUNCTION_GRAPH = 19,
	PRINT_FILTER = 22,
	PRESERVE = 23,
	MONOTONIC_RAW = 24,
	INSTANCE = 25,
	AT_LEAST = 27,
	DRAIN_PERCENT = 29,
	DENSER = 32,
	TIDS = 35,
	OPTIONS = 36,
	CPUMASK = 37,
};
#define FTRACE_CONFIG 100 /* of DataSourceConfig */

static char why[FTRACE_CONFIG_WHY_MAX];
static struct wire_out ftrace;

static int
set_up(void **state)
{
	wire_out_init(&ftrace, 4096);
	why[0] = '\0';
	return 0;
}

static int
tear_down(void **state)
{
	wire_out_done(&ftrace);
	return 0;
}

static void
put_bytes(struct wire_out *o, uint32_t field, const void *data, size_t len)
{
	wire_out_varint(o, field << 3 | 2);
	wire_out_varint(o, len);
	memcpy(wire_out_reserve(o, len), data, len);
	wire_out_add(o, len);
}

static void
put_text(uint32_t field, const char *text)
{
	put_bytes(&ftrace, field, text, strlen(text));
}

static void
put_number(uint32_t field, uint64_t v)
{
	wire_out_varint(&ftrace, field << 3);
	wire_out_varint(&ftrace, v);
}

#define PUT(field, literal) \
	put_bytes(&ftrace, field, literal, sizeof(literal) - 1)

/* From what was put; a copy that ends where it ends. */
static struct ftrace_config *
made(void)
{
	struct ftrace_config *c;
	struct wire_out o;
	uint8_t *copy;

	wire_out_init(&o, 4096);
	put_bytes(&o, FTRACE_CONFIG, ftrace.data, ftrace.len);
	assert_non_null(copy = malloc(o.len));
	memcpy(copy, o.data, o.len);
	c = ftrace_config_new(copy, o.len, why);
	free(copy);
	wire_out_done(&o);
	return c;
}

static void
assert_warns(const struct ftrace_config *c, const char *part)
{
	assert_int_equal(c->n_warnings, 1);
	if (strstr(c->warnings[0], part) == NULL)
		fail_msg("no \"%s\" in: %s", part, c->warnings[0]);
}

static void
an_event_alone_has_the_defaults(void **state)
{
	struct ftrace_config *c;

	put_text(EVENTS, "sched/sched_switch");
	assert_non_null(c = made());
	assert_null(c->instance);
	assert_int_equal(c->n_events, 1);
	assert_string_equal(c->events[0].group, "sched");
	assert_string_equal(c->events[0].name, "sched_switch");
	assert_string_equal(c->events[0].text, "sched/sched_switch");
	assert_int_equal(c->n_syscalls + c->n_tids + c->n_print_rules, 0);
	assert_int_equal(c->buffer_kb, 0);
	assert_int_equal(c->drain_ms, 100);
	assert_int_equal(c->drain_percent, 0);
	assert_true(c->compact_sched);
	assert_false(c->preserve_buffer || c->monotonic_raw || c->symbolize ||
	    c->keep_symbols || c->leave_out_generic || c->dense_generic ||
	    c->throttle_rss_stat || c->buffer_at_least);
	assert_null(c->cpumask);
	assert_int_equal(c->n_warnings, 0);
	ftrace_config_free(c);
}

static void
every_field_arrives(void **state)
{
	struct ftrace_config *c;

	put_text(EVENTS, "irq/*");
	put_text(EVENTS, "sched_waking");
	put_number(BUFFER_KB, 512);
	put_number(DRAIN_MS, 7);
	put_number(DRAIN_PERCENT, 50);
	PUT(COMPACT, "\x08\x00");
	put_number(SYMBOLIZE, 1);
	put_number(THROTTLE, 1);
	put_number(NO_GENERIC, 1);
	put_number(KSYMS_POLICY, 2);
	put_text(SYSCALLS, "sys_read");
	put_number(PRESERVE, 1);
	put_number(MONOTONIC_RAW, 1);
	put_text(INSTANCE, "mine");
	put_number(AT_LEAST, 1);
	put_number(DENSER, 1);
	put_number(TIDS, 11);
	put_number(TIDS, 12);
	PUT(OPTIONS, "\x0a\x0a" "event-fork\x10\x01");
	PUT(OPTIONS, "\x0a\x0a" "record-cmd\x10\x02");
	put_text(CPUMASK, "f,00000001");
	assert_non_null(c = made());
	assert_int_equal(c->n_warnings, 0);
	assert_int_equal(c->n_events, 2);
	assert_string_equal(c->events[0].group, "irq");
	assert_string_equal(c->events[0].name, "*");
	assert_string_equal(c->events[1].group, "*");
	assert_string_equal(c->events[1].name, "sched_waking");
	assert_int_equal(c->buffer_kb, 512);
	assert_int_equal(c->drain_ms, 7);
	assert_int_equal(c->drain_percent, 50);
	assert_false(c->compact_sched);
	assert_true(c->symbolize && c->keep_symbols && c->throttle_rss_stat &&
	    c->leave_out_generic && c->preserve_buffer && c->monotonic_raw &&
	    c->buffer_at_least && c->dense_generic);
	assert_int_equal(c->n_syscalls, 1);
	assert_string_equal(c->syscalls[0], "sys_read");
	assert_string_equal(c->instance, "mine");
	assert_int_equal(c->n_tids, 2);
	assert_int_equal(c->tids[1], 12);
	assert_int_equal(c->n_options, 2);
	assert_string_equal(c->options[0].name, "event-fork");
	assert_true(c->options[0].on);
	assert_string_equal(c->options[1].name, "record-cmd");
	assert_false(c->options[1].on);
	assert_string_equal(c->cpumask, "f,00000001");
	ftrace_config_free(c);
}

static void
rules_of_the_print_filter_keep_their_order(void **state)
{
	struct ftrace_config *c;

	put_text(EVENTS, "ftrace/print");
	/* prefix: "ab" allow: true; atrace_msg { type: "C" prefix: "x" } */
	PUT(PRINT_FILTER, "\x0a\x06\x0a\x02" "ab\x10\x01"
	    "\x0a\x08\x1a\x06\x0a\x01" "C\x12\x01x");
	assert_non_null(c = made());
	assert_int_equal(c->n_print_rules, 2);
	assert_int_equal(c->print_rules[0].match, FTRACE_PRINT_PREFIX);
	assert_string_equal(c->print_rules[0].prefix, "ab");
	assert_string_equal(c->print_rules[0].type, "");
	assert_true(c->print_rules[0].allow);
	assert_int_equal(c->print_rules[1].match, FTRACE_PRINT_ATRACE);
	assert_string_equal(c->print_rules[1].type, "C");
	assert_string_equal(c->print_rules[1].prefix, "x");
	assert_false(c->print_rules[1].allow);
	ftrace_config_free(c);
}

static void
a_rule_about_nothing_is_left_out_and_said(void **state)
{
	struct ftrace_config *c;

	put_text(EVENTS, "ftrace/print");
	/* allow: true; then atrace_msg {} */
	PUT(PRINT_FILTER, "\x0a\x02\x10\x01\x0a\x02\x1a\x00");
	assert_non_null(c = made());
	assert_int_equal(c->n_print_rules, 1);
	assert_int_equal(c->print_rules[0].match, FTRACE_PRINT_ATRACE);
	assert_string_equal(c->print_rules[0].prefix, "");
	assert_warns(c, "without prefix and atrace_msg");
	ftrace_config_free(c);
}

/* What becomes part of a path stays in its folder. */
static void
names_that_are_none_are_left_out_and_said(void **state)
{
	static const char *const bad[] = {
		"", "/", "sched/", "/sched_switch", "../trace", "sched/..",
		"sched/sched_switch/enable", "sched/a b", "sched/a\n",
	};
	struct ftrace_config *c;
	size_t i;

	put_text(EVENTS, "irq/*");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		put_text(EVENTS, bad[i]);
	assert_non_null(c = made());
	assert_int_equal(c->n_events, 1);
	assert_int_equal(c->n_warnings, sizeof(bad) / sizeof(bad[0]));
	for (i = 0; i < c->n_warnings; i++)
		assert_non_null(strstr(c->warnings[i], "is not recorded: an "
		    "event is named group/name"));
	ftrace_config_free(c);
}

static void
no_event_at_all_is_said(void **state)
{
	struct ftrace_config *c = ftrace_config_new(NULL, 0, why);

	assert_non_null(c);
	assert_warns(c, "names no event");
	ftrace_config_free(c);
	put_text(SYSCALLS, "sys_read");
	assert_non_null(c = made());
	assert_int_equal(c->n_warnings, 0);
	ftrace_config_free(c);
}

static void
what_has_no_effect_is_said(void **state)
{
	struct ftrace_config *c;

	put_text(EVENTS, "irq/*");
	put_text(ATRACE_CATEGORIES, "gfx");
	put_number(FUNCTION_GRAPH, 1);
	put_number(4711, 1);
	assert_non_null(c = made());
	assert_int_equal(c->n_warnings, 3);
	assert_non_null(strstr(c->warnings[0], "atrace is a part of Android"));
	assert_non_null(strstr(c->warnings[1], "enable_function_graph"));
	assert_non_null(strstr(c->warnings[2], "field 4711"));
	ftrace_config_free(c);
}

static void
numbers_out_of_range_are_said(void **state)
{
	struct ftrace_config *c;

	put_text(EVENTS, "irq/*");
	put_number(DRAIN_MS, 60000);
	assert_non_null(c = made());
	assert_int_equal(c->n_warnings, 0);
	assert_int_equal(c->drain_ms, 60000);
	ftrace_config_free(c);

	put_number(DRAIN_MS, 60001);
	assert_non_null(c = made());
	assert_int_equal(c->drain_ms, 100);
	assert_warns(c, "drain_period_ms of 60001 is taken as 100");
	ftrace_config_free(c);

	put_number(DRAIN_MS, 0);
	put_number(DRAIN_PERCENT, 101);
	assert_non_null(c = made());
	assert_int_equal(c->drain_ms, 100);
	assert_int_equal(c->drain_percent, 0);
	assert_warns(c, "drain_buffer_percent of 101");
	ftrace_config_free(c);
}

static void
options_and_masks_that_are_none_are_said(void **state)
{
	struct ftrace_config *c;

	put_text(EVENTS, "irq/*");
	PUT(OPTIONS, "\x0a\x04" "../x\x10\x01");
	PUT(OPTIONS, "\x0a\x0a" "record-cmd");
	put_text(CPUMASK, "0x1");
	assert_non_null(c = made());
	assert_int_equal(c->n_options, 0);
	assert_null(c->cpumask);
	assert_int_equal(c->n_warnings, 3);
	assert_non_null(strstr(c->warnings[0], "\"../x\" is not set"));
	assert_non_null(strstr(c->warnings[1], "needs a state"));
	assert_non_null(strstr(c->warnings[2], "\"0x1\" is not set"));
	ftrace_config_free(c);
}

static void
an_instance_that_cannot_be_is_refused(void **state)
{
	static const char *const bad[] = { "..", "../..", "a/b", ".", "a b" };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ftrace.len = 0;
		put_text(EVENTS, "irq/*");
		put_text(INSTANCE, bad[i]);
		assert_null(made());
		assert_string_equal(why, "the instance_name is no name of a "
		    "folder in tracefs/instances");
	}
	put_text(INSTANCE, "hyp");
	assert_null(made());
	assert_non_null(strstr(why, "hypervisor"));
}

static void
malformed_bytes_are_refused(void **state)
{
	assert_null(ftrace_config_new((const uint8_t *)"\xa2\x06\x7f", 3, why));
	assert_string_equal(why, "the config of the data source is malformed");
	PUT(PRINT_FILTER, "\x0a\x7f");
	assert_null(made());
	assert_string_equal(why, "the config of ftrace is malformed");
}

static void
buffers_are_as_large_as_perfettos(void **state)
{
	struct ftrace_config c = { .buffer_kb = 0 };

	assert_int_equal(ftrace_config_buffer_kb(&c, (7ull << 30) - 1), 2048);
	assert_int_equal(ftrace_config_buffer_kb(&c, 7ull << 30), 8192);
	c.buffer_kb = 64;
	assert_int_equal(ftrace_config_buffer_kb(&c, 7ull << 30), 64);
	c.buffer_at_least = true;
	assert_int_equal(ftrace_config_buffer_kb(&c, 7ull << 30), 8192);
	c.buffer_kb = 10000;
	assert_int_equal(ftrace_config_buffer_kb(&c, 7ull << 30), 10000);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_event_alone_has_the_defaults),
		TEST(every_field_arrives),
		TEST(rules_of_the_print_filter_keep_their_order),
		TEST(a_rule_about_nothing_is_left_out_and_said),
		TEST(names_that_are_none_are_left_out_and_said),
		TEST(no_event_at_all_is_said),
		TEST(what_has_no_effect_is_said),
		TEST(numbers_out_of_range_are_said),
		TEST(options_and_masks_that_are_none_are_said),
		TEST(an_instance_that_cannot_be_is_refused),
		TEST(malformed_bytes_are_refused),
		TEST(buffers_are_as_large_as_perfettos),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
