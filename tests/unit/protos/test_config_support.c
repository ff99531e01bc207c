/*
 * The table of what is served: every field of the schema, nothing else; and
 * what a config is warned about.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/config_support.h"
#include "protos/trace_config.pb-c.h"
#include "protos/wire_out.h"

#define PATH_BYTES 160
#define ROWS_MAX 512
#define FTRACE "data_sources.config.ftrace_config"
#define PROTOVM "data_sources.config.protovm_config"

static size_t
row_of(const char *path)
{
	size_t n, i;
	const struct config_support *t = config_support_table(&n);

	for (i = 0; i < n; i++)
		if (strcmp(t[i].path, path) == 0)
			return i;
	fail_msg("%s is not in the table", path);
	return n;
}

/* Fields below data_sources.config are the producer's, but for two. */
static bool
is_in_table(const char *path)
{
	return strncmp(path, "data_sources.config.", 20) != 0 ||
	    strncmp(path, PROTOVM, sizeof(PROTOVM) - 1) == 0 ||
	    strncmp(path, FTRACE, sizeof(FTRACE) - 1) == 0;
}

static void
visit(const ProtobufCMessageDescriptor *d, const char *prefix, char *seen)
{
	char path[PATH_BYTES];
	unsigned i;
	size_t row;

	for (i = 0; i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];

		snprintf(path, sizeof(path), "%s%s%s", prefix,
		    prefix[0] != '\0' ? "." : "", f->name);
		if (!is_in_table(path))
			continue;
		row = row_of(path);
		assert_true(row < ROWS_MAX);
		assert_int_equal(seen[row]++, 0);
		if (f->type == PROTOBUF_C_TYPE_MESSAGE)
			visit(f->descriptor, path, seen);
	}
}

static void
the_table_has_every_field_of_the_schema_and_nothing_else(void **state)
{
	char seen[ROWS_MAX] = { 0 };
	size_t n, i;
	const struct config_support *t = config_support_table(&n);

	visit(&perfetto__protos__trace_config__descriptor, "", seen);
	for (i = 0; i < n; i++)
		if (!seen[i])
			fail_msg("%s is not in the schema", t[i].path);
}

static void
what_is_in_a_message_follows_it(void **state)
{
	size_t n, i, len;
	const struct config_support *t = config_support_table(&n);
	const char *dot;

	for (i = 0; i < n; i++) {
		if ((dot = strrchr(t[i].path, '.')) == NULL)
			continue;
		len = (size_t)(dot - t[i].path);
		/* Its message, or something else of that. */
		assert_true(i > 0);
		assert_memory_equal(t[i - 1].path, t[i].path, len);
	}
}

static void
each_row_says_since_when_or_why_not(void **state)
{
	size_t n, i;
	const struct config_support *t = config_support_table(&n);

	for (i = 0; i < n; i++) {
		assert_non_null(t[i].note);
		assert_true(strlen(t[i].note) > 0);
		assert_int_not_equal(t[i].note[strlen(t[i].note) - 1], '.');
		switch (t[i].kind) {
		case CONFIG_SERVED:
		case CONFIG_CLIENT:
		case CONFIG_PROBES:
			assert_non_null(t[i].since);
			break;
		case CONFIG_ANDROID:
		case CONFIG_IGNORED:
			assert_null(t[i].since);
			break;
		}
	}
}

/* ---- docs/config.md ---- */

static const char *
word_of(enum config_support_kind kind)
{
	switch (kind) {
	case CONFIG_SERVED:
		return "yes";
	case CONFIG_CLIENT:
		return "by the command";
	case CONFIG_PROBES:
		return "by the probes";
	case CONFIG_ANDROID:
		return "Android only";
	case CONFIG_IGNORED:
		return "no";
	}
	return NULL;
}

/* The next item of the list, its lines joined; false: none. */
static bool
next_item(FILE *f, char *item, size_t size)
{
	char line[128];
	size_t n;
	int c;

	do {
		if (fgets(line, sizeof(line), f) == NULL)
			return false;
	} while (strncmp(line, "* `", 3) != 0);
	n = (size_t)snprintf(item, size, "%s", line);
	while ((c = fgetc(f)) == ' ' && fgets(line, sizeof(line), f) != NULL)
		n += (size_t)snprintf(item + n - 1, size - n, "%s", line) - 1;
	ungetc(c, f);
	return true;
}

static void
the_documentation_has_the_same_list(void **state)
{
	size_t n, i;
	const struct config_support *t = config_support_table(&n);
	const char *path = getenv("CONFIG_MD");
	char item[512], expected[512];
	FILE *f;

	if (path == NULL)
		skip();
	assert_non_null(f = fopen(path, "r"));
	for (i = 0; i < n; i++) {
		snprintf(expected, sizeof(expected), "* `%s` (%s, %s): %s\n", t[i].path, word_of(t[i].kind),
		    t[i].since != NULL ? t[i].since : "-", t[i].note);
		assert_true(next_item(f, item, sizeof(item)));
		assert_string_equal(item, expected);
	}
	assert_false(next_item(f, item, sizeof(item)));
	fclose(f);
}

/* ---- warnings ---- */

struct told {
	char path[CONFIG_SUPPORT_MAX + 1][PATH_BYTES];
	char text[CONFIG_SUPPORT_MAX + 1][512];
	size_t n;
};

static void
tell(void *arg, const char *path, const char *text)
{
	struct told *t = arg;

	assert_true(t->n <= CONFIG_SUPPORT_MAX);
	snprintf(t->path[t->n], sizeof(t->path[0]), "%s", path);
	snprintf(t->text[t->n++], sizeof(t->text[0]), "%s", text);
}

static struct told
check(const void *bytes, size_t len)
{
	struct told t = { .n = 0 };
	uint8_t *copy = malloc(len + 1); /* with its end where it is */

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	copy = realloc(copy, len > 0 ? len : 1);
	assert_non_null(copy);
	config_support_check(copy, len, tell, &t);
	free(copy);
	return t;
}

#define CHECK(literal) check(literal, sizeof(literal) - 1)

static void
what_is_served_or_android_only_gives_no_warning(void **state)
{
	/* buffers { size_kb: 4 fill_policy: DISCARD } duration_ms: 5 */
	assert_int_equal(CHECK("\x0a\x04\x08\x04\x20\x02\x18\x05").n, 0);
	/* statsd_metadata { triggering_alert_id: 3 } notify_traceur: true */
	assert_int_equal(CHECK("\x3a\x02\x08\x03\x80\x01\x01").n, 0);
	assert_int_equal(check("", 0).n, 0);
}

static void
discard_and_a_file_contradict_each_other(void **state)
{
	/* buffers { fill_policy: DISCARD } write_into_file: true, both ways */
	struct told t = CHECK("\x0a\x02\x20\x02\x40\x01");

	assert_int_equal(t.n, 1);
	assert_string_equal(t.path[0], "buffers.fill_policy");
	assert_non_null(strstr(t.text[0], "RING_BUFFER goes on"));
	assert_int_equal(CHECK("\x40\x01\x0a\x02\x20\x02").n, 1);
	/* write_into_file: false; a ring; no file; nothing to write from */
	assert_int_equal(CHECK("\x0a\x02\x20\x02\x40\x00").n, 0);
	assert_int_equal(CHECK("\x0a\x02\x20\x01\x40\x01").n, 0);
	assert_int_equal(CHECK("\x0a\x02\x20\x02").n, 0);
	assert_int_equal(CHECK("\x40\x01").n, 0);
}

static void
an_unknown_field_is_named_once(void **state)
{
	/* field 4711: 1, twice; buffers { field 99: 1 }, twice */
	struct told t = CHECK("\xb8\xa6\x02\x01\xb8\xa6\x02\x01"
	    "\x0a\x03\x98\x06\x01\x0a\x03\x98\x06\x01");

	assert_int_equal(t.n, 2);
	assert_string_equal(t.path[0], "field 4711");
	assert_string_equal(t.path[1], "buffers field 99");
	assert_string_equal(t.text[1], "buffers field 99 of the trace config "
	    "has no effect: this version does not know it");
}

static void
an_unknown_field_far_inside_is_named_with_its_way(void **state)
{
	/* trigger_config { triggers { field 15: "x" } } */
	struct told t = CHECK("\x8a\x01\x05\x12\x03\x7a\x01x");

	assert_int_equal(t.n, 1);
	assert_string_equal(t.path[0], "trigger_config.triggers field 15");
}

static void
an_unknown_value_of_an_enum_is_named(void **state)
{
	/* buffers { fill_policy: 77 } write_flush_mode: 3 */
	struct told t = CHECK("\x0a\x02\x20\x4d\xe0\x02\x03");

	assert_int_equal(t.n, 1);
	assert_string_equal(t.path[0], "buffers.fill_policy");
	assert_non_null(strstr(t.text[0], "its value 77"));
}

static void
what_else_is_in_a_data_sources_config_is_not_looked_at(void **state)
{
	/* data_sources { config { field 4711: 1 } field 99: 1 } */
	struct told t = CHECK("\x12\x09\x0a\x04\xb8\xa6\x02\x01\x98\x06\x01");

	assert_int_equal(t.n, 1);
	assert_string_equal(t.path[0], "data_sources field 99");
}

static void
what_is_without_effect_in_an_ftrace_config_is_named(void **state)
{
	/* atrace_categories: "gfx"  buffer_size_kb: 4  field 99: 1 */
	static const char ftrace[] = "\x12\x03gfx\x50\x04\x98\x06\x01";
	/* data_sources { config { ftrace_config { those } } } */
	struct told t = CHECK("\x12\x0f\x0a\x0d\xa2\x06\x0a"
	    "\x12\x03gfx\x50\x04\x98\x06\x01");

	assert_int_equal(t.n, 2);
	assert_string_equal(t.path[0], FTRACE ".atrace_categories");
	assert_string_equal(t.text[0], FTRACE ".atrace_categories of the trace "
	    "config has no effect with tributary-probes: atrace is a part of "
	    "Android; name the events in ftrace_events");
	assert_string_equal(t.path[1], FTRACE " field 99");
	assert_string_equal(t.text[1], FTRACE " field 99 of the trace config "
	    "has no effect with tributary-probes: this version does not know "
	    "it");

	t = (struct told){ .n = 0 };
	config_support_check_ftrace((const uint8_t *)ftrace,
	    sizeof(ftrace) - 1, tell, &t);
	assert_int_equal(t.n, 2);
	assert_string_equal(t.path[0], FTRACE ".atrace_categories");
	assert_string_equal(t.path[1], FTRACE " field 99");
	t.n = 0;
	config_support_check_ftrace(NULL, 0, tell, &t);
	assert_int_equal(t.n, 0);
}

static void
malformed_bytes_give_what_was_found_before(void **state)
{
	struct told t = CHECK("\xb8\xa6\x02\x01\x0a\x7f\x01");

	assert_int_equal(t.n, 1);
	assert_string_equal(t.path[0], "field 4711");
	assert_int_equal(CHECK("\xff").n, 0);
	assert_int_equal(CHECK("\x00\x01").n, 0);
	assert_int_equal(CHECK("\x0b\x01").n, 0); /* a group */
}

static void
the_last_of_too_many_says_that_there_are_more(void **state)
{
	struct wire_out o;
	struct told t;
	unsigned i;

	wire_out_init(&o, 4096);
	for (i = 0; i < 3 * CONFIG_SUPPORT_MAX; i++) {
		wire_out_varint(&o, (uint64_t)(1000 + i) << 3);
		wire_out_varint(&o, 1);
	}
	t = check(o.data, o.len);
	assert_int_equal(t.n, CONFIG_SUPPORT_MAX);
	assert_non_null(strstr(t.text[t.n - 1], "more fields"));
	assert_null(strstr(t.text[t.n - 2], "more fields"));
	wire_out_done(&o);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    the_table_has_every_field_of_the_schema_and_nothing_else),
		cmocka_unit_test(what_is_in_a_message_follows_it),
		cmocka_unit_test(each_row_says_since_when_or_why_not),
		cmocka_unit_test(the_documentation_has_the_same_list),
		cmocka_unit_test(
		    what_is_served_or_android_only_gives_no_warning),
		cmocka_unit_test(discard_and_a_file_contradict_each_other),
		cmocka_unit_test(an_unknown_field_is_named_once),
		cmocka_unit_test(
		    an_unknown_field_far_inside_is_named_with_its_way),
		cmocka_unit_test(an_unknown_value_of_an_enum_is_named),
		cmocka_unit_test(
		    what_else_is_in_a_data_sources_config_is_not_looked_at),
		cmocka_unit_test(
		    what_is_without_effect_in_an_ftrace_config_is_named),
		cmocka_unit_test(malformed_bytes_give_what_was_found_before),
		cmocka_unit_test(the_last_of_too_many_says_that_there_are_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
