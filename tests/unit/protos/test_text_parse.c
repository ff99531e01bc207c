/*
 * Text format to wire format: what is read, and what is said of errors.
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

#include "protos/consumer_port.pb-c.h"
#include "protos/data_source_config.pb-c.h"
#include "protos/profiling_config.pb-c.h"
#include "protos/settings.pb-c.h"
#include "protos/text_error.h"
#include "protos/text_parse.h"
#include "protos/text_print.h"
#include "protos/trace_config.pb-c.h"
#include "protos/trace_stats.pb-c.h"
#include "protos/track_event.pb-c.h"
#include "tests/unit/protos/print_string.h"

#define CONFIG   (&perfetto__protos__trace_config__descriptor)
#define DUMMY    (&perfetto__protos__test_config__dummy_fields__descriptor)
#define CLONE    (&perfetto__protos__clone_session_request__descriptor)
#define STATS    (&perfetto__protos__trace_stats__descriptor)
#define SETTINGS (&tributary__settings__descriptor)
#define N(a)     (sizeof(a) / sizeof((a)[0]))

/* The text encodes to these bytes. */
static void
expect_bytes(const ProtobufCMessageDescriptor *d, const char *text,
    const void *bytes, size_t len)
{
	struct text_error err = { .line = 0 };
	uint8_t *out;
	size_t n;

	if (text_parse(d, text, strlen(text), &out, &n, &err) < 0)
		fail_msg("%s: %u:%u: %s", text, err.line, err.column,
		    err.message);
	assert_int_equal(n, len);
	assert_memory_equal(out, bytes, len);
	free(out);
}

/* The text means the same as this one, which is as text_print writes it. */
static void
expect_text(const ProtobufCMessageDescriptor *d, const char *text,
    const char *printed)
{
	struct text_error err = { .line = 0 };
	ProtobufCMessage *m;
	char *s;

	m = text_parse_message(d, text, strlen(text), &err);
	if (m == NULL)
		fail_msg("%s: %u:%u: %s", text, err.line, err.column,
		    err.message);
	s = print_string(m);
	assert_non_null(s);
	assert_string_equal(s, printed);
	free(s);
	protobuf_c_message_free_unpacked(m, NULL);
}

struct wrong {
	const char *text;
	unsigned line, column;
	const char *word;
	const char *message;
};

static void
expect_errors(const ProtobufCMessageDescriptor *d, const struct wrong *w,
    size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		struct text_error err;
		uint8_t *out = (uint8_t *)&err;
		size_t len = 77;

		memset(&err, 0x55, sizeof(err));
		if (text_parse(d, w[i].text, strlen(w[i].text), &out, &len,
		    &err) == 0)
			fail_msg("accepted: %s", w[i].text);
		assert_string_equal(err.message, w[i].message);
		assert_string_equal(err.word, w[i].word);
		if (err.line != w[i].line || err.column != w[i].column)
			fail_msg("%s: error at %u:%u, expected %u:%u",
			    w[i].text, err.line, err.column, w[i].line,
			    w[i].column);
		/* Left alone. */
		assert_ptr_equal(out, &err);
		assert_int_equal(len, 77);
	}
}

static void
a_config_as_people_write_it_is_read_whole(void **state)
{
	expect_text(CONFIG,
	    "# Ten seconds of everything.\n"
	    "buffers: {\n"
	    "    size_kb: 63488\n"
	    "    fill_policy: DISCARD\n"
	    "}\n"
	    "buffers {\n"
	    "    size_kb: 0x800;  # small\n"
	    "    fill_policy: 1,\n"
	    "}\n"
	    "data_sources: {\n"
	    "    config {\n"
	    "        name: \"linux.process_stats\"\n"
	    "        target_buffer: 1\n"
	    "        process_stats_config {\n"
	    "            scan_all_processes_on_start: true\n"
	    "            proc_stats_poll_ms: 1000\n"
	    "            quirks: [ DISABLE_ON_DEMAND ]\n"
	    "        }\n"
	    "    }\n"
	    "}\n"
	    "data_sources: { config: {\n"
	    "    name: 'linux.' 'sys_stats'\n"
	    "    sys_stats_config <\n"
	    "        stat_period_ms: 250\n"
	    "        stat_counters: STAT_CPU_TIMES\n"
	    "        stat_counters: STAT_FORK_COUNT\n"
	    "        meminfo_counters: [MEMINFO_MEM_TOTAL, MEMINFO_MEM_FREE]\n"
	    "    >\n"
	    "} producer_name_filter: [] }\n"
	    "data_sources { config { name: \"linux.ftrace\" ftrace_config {\n"
	    "    ftrace_events: [\"sched/sched_switch\", 'power/' \"*\"]\n"
	    "    print_filter { rules { prefix: \"x\" allow: f } }\n"
	    "} } }\n"
	    "write_into_file: true, duration_ms: 10000\n"
	    "trigger_config { triggers { skip_probability: .25 } }\n"
	    "trace_uuid_msb: -9223372036854775808",
	    "buffers {\n"
	    "  size_kb: 63488\n"
	    "  fill_policy: DISCARD\n"
	    "}\n"
	    "buffers {\n"
	    "  size_kb: 2048\n"
	    "  fill_policy: RING_BUFFER\n"
	    "}\n"
	    "data_sources {\n"
	    "  config {\n"
	    "    name: \"linux.process_stats\"\n"
	    "    target_buffer: 1\n"
	    "    process_stats_config {\n"
	    "      quirks: DISABLE_ON_DEMAND\n"
	    "      scan_all_processes_on_start: true\n"
	    "      proc_stats_poll_ms: 1000\n"
	    "    }\n"
	    "  }\n"
	    "}\n"
	    "data_sources {\n"
	    "  config {\n"
	    "    name: \"linux.sys_stats\"\n"
	    "    sys_stats_config {\n"
	    "      meminfo_counters: MEMINFO_MEM_TOTAL\n"
	    "      meminfo_counters: MEMINFO_MEM_FREE\n"
	    "      stat_period_ms: 250\n"
	    "      stat_counters: STAT_CPU_TIMES\n"
	    "      stat_counters: STAT_FORK_COUNT\n"
	    "    }\n"
	    "  }\n"
	    "}\n"
	    "data_sources {\n"
	    "  config {\n"
	    "    name: \"linux.ftrace\"\n"
	    "    ftrace_config {\n"
	    "      ftrace_events: \"sched/sched_switch\"\n"
	    "      ftrace_events: \"power/*\"\n"
	    "      print_filter {\n"
	    "        rules {\n"
	    "          prefix: \"x\"\n"
	    "          allow: false\n"
	    "        }\n"
	    "      }\n"
	    "    }\n"
	    "  }\n"
	    "}\n"
	    "duration_ms: 10000\n"
	    "write_into_file: true\n"
	    "trigger_config {\n"
	    "  triggers {\n"
	    "    skip_probability: 0.25\n"
	    "  }\n"
	    "}\n"
	    "trace_uuid_msb: -9223372036854775808\n");
}

static void
every_scalar_type_is_encoded_as_the_wire_wants(void **state)
{
	static const struct {
		const char *text;
		const char *bytes;
		size_t len;
	} c[] = {
		{ "field_uint32: 300", "\x08\xac\x02", 3 },
		{ "field_int32: -1",
		    "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },
		{ "field_uint64: 18446744073709551615",
		    "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },
		{ "field_int64: -9223372036854775808",
		    "\x20\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11 },
		{ "field_fixed64: 0x0102030405060708",
		    "\x29\x08\x07\x06\x05\x04\x03\x02\x01", 9 },
		{ "field_sfixed64: -2",
		    "\x31\xfe\xff\xff\xff\xff\xff\xff\xff", 9 },
		{ "field_fixed32: 010", "\x3d\x08\x00\x00\x00", 5 },
		{ "field_sfixed32: -2147483648", "\x45\x00\x00\x00\x80", 5 },
		{ "field_double: 1.5",
		    "\x49\x00\x00\x00\x00\x00\x00\xf8\x3f", 9 },
		{ "field_float: -1", "\x55\x00\x00\x80\xbf", 5 },
		{ "field_float: 1e39", "\x55\x00\x00\x80\x7f", 5 },
		{ "field_float: -inf", "\x55\x00\x00\x80\xff", 5 },
		{ "field_double: 2.5e-1f",
		    "\x49\x00\x00\x00\x00\x00\x00\xd0\x3f", 9 },
		{ "field_sint64: -1", "\x58\x01", 2 },
		{ "field_sint64: -9223372036854775808",
		    "\x58\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },
		{ "field_sint32: 2147483647", "\x60\xfe\xff\xff\xff\x0f", 6 },
		{ "field_string: 'a'", "\x6a\x01\x61", 3 },
		{ "field_bytes: '\\0\\xff'", "\x72\x02\x00\xff", 4 },
		{ "", "", 0 },
		{ " \t\r\n\f\v# nothing", "", 0 },
		{ "\xef\xbb\xbf" "field_uint32: 1", "\x08\x01", 2 },
	};
	size_t i;

	for (i = 0; i < N(c); i++)
		expect_bytes(DUMMY, c[i].text, c[i].bytes, c[i].len);
}

static void
a_value_of_zero_is_a_value(void **state)
{
	expect_bytes(CONFIG, "duration_ms: 0", "\x18\x00", 2);
	expect_bytes(CONFIG, "unique_session_name: ''", "\xb2\x01\x00", 3);
	expect_bytes(CONFIG, "buffers {}", "\x0a\x00", 2);
}

static void
bools_are_written_in_many_ways(void **state)
{
	static const char *const yes[] = { "true", "True", "t", "1", "0x1" };
	static const char *const no[] = { "false", "False", "f", "0", "00" };
	char text[64];
	size_t i;

	for (i = 0; i < N(yes); i++) {
		snprintf(text, sizeof(text), "write_into_file:%s", yes[i]);
		expect_bytes(CONFIG, text, "\x40\x01", 2);
		snprintf(text, sizeof(text), "write_into_file :%s;", no[i]);
		expect_bytes(CONFIG, text, "\x40\x00", 2);
	}
}

static void
escapes_of_strings_are_decoded(void **state)
{
	static const struct {
		const char *text;
		const char *bytes;
		size_t len;
	} c[] = {
		{ "'\\a\\b\\f\\n\\r\\t\\v\\\\\\?\\'\\\"'",
		    "\a\b\f\n\r\t\v\\?'\"", 11 },
		{ "\"it's\" 'a \"b\"'", "it'sa \"b\"", 9 },
		{ "'\\1\\12\\1234\\377'", "\x01\x0a\x53" "4\xff", 5 },
		{ "'\\x1\\x41\\X4a1'", "\x01\x41\x4a" "1", 4 },
		{ "'\\u00e9\\u20AC\\u0041'", "\xc3\xa9\xe2\x82\xac" "A", 6 },
		{ "'\\U0001F600\\ud83d\\ude00'",
		    "\xf0\x9f\x98\x80\xf0\x9f\x98\x80", 8 },
		{ "'\xc3\xa9'", "\xc3\xa9", 2 },
		{ "'#' # '\n'{}'", "#{}", 3 },
	};
	char text[128], bytes[32];
	size_t i;

	for (i = 0; i < N(c); i++) {
		snprintf(text, sizeof(text), "field_bytes: %s", c[i].text);
		bytes[0] = 0x72;
		bytes[1] = (char)c[i].len;
		memcpy(bytes + 2, c[i].bytes, c[i].len);
		expect_bytes(DUMMY, text, bytes, c[i].len + 2);
	}
}

static void
packed_fields_are_written_packed(void **state)
{
	expect_bytes(STATS, "writer_stats { chunk_payload_histogram_counts: "
	    "[1, 300] sequence_id: 5 }", "\x92\x01\x07\x12\x03\x01\xac\x02"
	    "\x08\x05", 10);
	expect_bytes(STATS, "writer_stats { chunk_payload_histogram_sum: -1 }",
	    "\x92\x01\x0c\x1a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	    15);
}

static void
lists_of_messages_are_read(void **state)
{
	expect_bytes(CONFIG, "buffers: [{size_kb: 1}, <size_kb: 2>,{}]",
	    "\x0a\x02\x08\x01\x0a\x02\x08\x02\x0a\x00", 10);
	expect_bytes(CONFIG, "buffers [{}]; buffers: []", "\x0a\x00", 2);
}

static void
fields_without_schema_take_their_bytes(void **state)
{
	static const struct wrong w[] = {
		{ "data_sources {\n config { qnx_config { x: 1 } } }", 2, 11,
		    "qnx_config",
		    "this build has no schema for 'qnx_config', so it cannot be "
		    "written as a message: give its encoded bytes in quotes, "
		    "or the whole in binary" },
	};

	expect_bytes(CONFIG, "data_sources{config{qnx_config:'\\10\\1'}}",
	    "\x12\x07\x0a\x05\xb2\x09\x02\x08\x01", 9);
	expect_errors(CONFIG, w, N(w));
}

/* Those that nobody has published the fields of. */
static bool
has_no_schema(const char *name)
{
	static const char *const names[] = {
		"etw_config", "inputmethod_config",
		"chromium_stack_sampling_profiler",
		"chromium_sampling_heap_profiler", "qnx_config",
	};
	size_t i;

	for (i = 0; i < N(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static void
configs_of_data_sources_can_be_written_as_text(void **state)
{
	const ProtobufCMessageDescriptor *d =
	    &perfetto__protos__data_source_config__descriptor;
	unsigned i, messages = 0;
	char text[200];
	uint8_t *out;
	size_t len;

	for (i = 0; i < d->n_fields; i++) {
		if (d->fields[i].type == PROTOBUF_C_TYPE_BYTES)
			assert_true(has_no_schema(d->fields[i].name));
		if (d->fields[i].type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		snprintf(text, sizeof(text), "data_sources { config { %s {} } "
		    "}", d->fields[i].name);
		assert_int_equal(text_parse(CONFIG, text, strlen(text), &out,
		    &len, NULL), 0);
		free(out);
		messages++;
	}
	assert_true(messages > 40);
	expect_bytes(CONFIG, "data_sources{config{java_hprof_config{pid:7 "
	    "smaps_config{vma_fields:VMA_FIELD_PSS}}}}",
	    "\x12\x0b\x0a\x09\xf2\x06\x06\x10\x07\x42\x02\x08\x0a", 13);
	expect_bytes(CONFIG, "data_sources{config{statsd_tracing_config{"
	    "pull_config{pull_atom_id:[1,2]}}}}",
	    "\x12\x0b\x0a\x09\xaa\x07\x06\x1a\x04\x08\x01\x08\x02", 13);
}

static void
unknown_fields_are_named_with_the_nearest_one(void **state)
{
	static const struct wrong w[] = {
		{ "duration_msx: 5", 1, 1, "duration_msx",
		    "TraceConfig has no field 'duration_msx'; "
		    "did you mean 'duration_ms'?" },
		{ "duration: 5", 1, 1, "duration",
		    "TraceConfig has no field 'duration'; "
		    "did you mean 'duration_ms'?" },
		{ "\n\n  buffer { size_kb: 4 }", 3, 3, "buffer",
		    "TraceConfig has no field 'buffer'; "
		    "did you mean 'buffers'?" },
		{ "buffers {\n\tsize_mb: 4\n}", 2, 2, "size_mb",
		    "TraceConfig.BufferConfig has no field 'size_mb'; "
		    "did you mean 'size_kb'?" },
		{ "Duration_MS: 5", 1, 1, "Duration_MS",
		    "TraceConfig has no field 'Duration_MS'; "
		    "did you mean 'duration_ms'?" },
		{ "wirte_into_file: 1", 1, 1, "wirte_into_file",
		    "TraceConfig has no field 'wirte_into_file'; "
		    "did you mean 'write_into_file'?" },
		{ "data_sources { name: 'x' }", 1, 16, "name",
		    "TraceConfig.DataSource has no field 'name'; "
		    "it belongs inside 'config { }'" },
		{ "size_kb: 4", 1, 1, "size_kb",
		    "TraceConfig has no field 'size_kb'; "
		    "it belongs inside 'buffers { }'" },
		{ "xyzzy: 4", 1, 1, "xyzzy",
		    "TraceConfig has no field 'xyzzy'" },
		{ "data_sources { config { sys_stats_config {\n"
		    "  stat_period: 4 } } }", 2, 3, "stat_period",
		    "SysStatsConfig has no field 'stat_period'; "
		    "did you mean 'stat_period_ms'?" },
	};

	expect_errors(CONFIG, w, N(w));
}

static void
unknown_enum_values_are_named_with_the_nearest_one(void **state)
{
	static const struct wrong w[] = {
		{ "buffers { fill_policy: RINGBUFFER }", 1, 24, "RINGBUFFER",
		    "'RINGBUFFER' is not a value of "
		    "TraceConfig.BufferConfig.FillPolicy; "
		    "did you mean 'RING_BUFFER'?" },
		{ "buffers { fill_policy: KEEP }", 1, 24, "KEEP",
		    "'KEEP' is not a value of "
		    "TraceConfig.BufferConfig.FillPolicy, which can be "
		    "UNSPECIFIED, RING_BUFFER or DISCARD" },
		{ "buffers { fill_policy: 'DISCARD' }", 1, 24, "'DISCARD'",
		    "fill_policy wants the name of a value of "
		    "TraceConfig.BufferConfig.FillPolicy, without quotes, "
		    "not ''DISCARD''" },
		{ "buffers { fill_policy: 77 }", 1, 24, "77",
		    "TraceConfig.BufferConfig.FillPolicy has no value 77" },
		{ "buffers { fill_policy: -1 }", 1, 24, "-1",
		    "TraceConfig.BufferConfig.FillPolicy has no value -1" },
		{ "buffers { fill_policy: -99999999999 }", 1, 24,
		    "-99999999999", "fill_policy wants a value of "
		    "TraceConfig.BufferConfig.FillPolicy, "
		    "not '-99999999999'" },
		{ "buffers { fill_policy: -'x' }", 1, 24, "-'x'",
		    "fill_policy wants a value of "
		    "TraceConfig.BufferConfig.FillPolicy, not '-'x''" },
		{ "data_sources { config { sys_stats_config {\n"
		    "meminfo_counters: [MEMINFO_MEM_TOTAL, MEM_FREE] } } }",
		    2, 39, "MEM_FREE",
		    "'MEM_FREE' is not a value of MeminfoCounters" },
	};

	expect_errors(CONFIG, w, N(w));
}

static void
a_value_of_the_wrong_type_says_what_is_wanted(void **state)
{
	static const struct wrong w[] = {
		{ "duration_ms: '10'", 1, 14, "'10'",
		    "duration_ms wants a whole number from 0 to 4294967295, "
		    "not ''10''" },
		{ "duration_ms: 10s", 1, 14, "10s",
		    "duration_ms wants a whole number from 0 to 4294967295; "
		    "'10s' is not a number" },
		{ "duration_ms: 10.5", 1, 14, "10.5",
		    "duration_ms wants a whole number from 0 to 4294967295, "
		    "not '10.5'" },
		{ "duration_ms: 4294967296", 1, 14, "4294967296",
		    "duration_ms wants a whole number from 0 to 4294967295, "
		    "not '4294967296'" },
		{ "duration_ms: - 5", 1, 14, "- 5",
		    "duration_ms wants a whole number from 0 to 4294967295, "
		    "not '- 5'" },
		{ "bugreport_score: 2147483648", 1, 18, "2147483648",
		    "bugreport_score wants a whole number from -2147483648 to "
		    "2147483647, not '2147483648'" },
		{ "bugreport_score: -2147483649", 1, 18, "-2147483649",
		    "bugreport_score wants a whole number from -2147483648 to "
		    "2147483647, not '-2147483649'" },
		{ "trace_uuid_msb: 18446744073709551616", 1, 17,
		    "18446744073709551616",
		    "trace_uuid_msb wants a whole number from "
		    "-9223372036854775808 to 9223372036854775807, "
		    "not '18446744073709551616'" },
		{ "write_into_file: yes", 1, 18, "yes",
		    "write_into_file wants true or false, not 'yes'" },
		{ "write_into_file: 2", 1, 18, "2",
		    "write_into_file wants true or false, not '2'" },
		{ "unique_session_name: abc", 1, 22, "abc",
		    "unique_session_name wants a string in quotes, "
		    "not 'abc'" },
		{ "unique_session_name: ", 1, 22, "",
		    "unique_session_name wants a string in quotes, "
		    "but the text ends here" },
		{ "buffers: 5", 1, 10, "5",
		    "buffers is a message: '{' is wanted, not '5'" },
		{ "duration_ms { }", 1, 13, "{",
		    "duration_ms is no message: it wants ':' and a whole "
		    "number" },
		{ "duration_ms 5", 1, 13, "5",
		    "':' is wanted after 'duration_ms', not '5'" },
		{ "duration_ms: [5]", 1, 14, "[",
		    "duration_ms is one value, not a list" },
		{ "trigger_config { triggers { skip_probability: 0x1 } }", 1,
		    47, "0x1", "skip_probability wants a number, not '0x1'" },
		{ "unique_session_name: 'a\\0b'", 1, 22, "'a\\0b'",
		    "unique_session_name cannot hold a NUL byte" },
		{ "duration_ms: 08", 1, 14, "08",
		    "duration_ms wants a whole number from 0 to 4294967295; "
		    "'08' begins with 0 and so is octal, digits 0 to 7" },
		{ "trigger_config { triggers { skip_probability: 1e } }", 1,
		    47, "1e", "skip_probability wants a number; '1e' is not a "
		    "number" },
		{ "duration_ms: 1.2.3", 1, 14, "1.2.3",
		    "duration_ms wants a whole number from 0 to 4294967295; "
		    "'1.2.3' is not a number" },
		{ "duration_ms: 0x", 1, 14, "0x",
		    "duration_ms wants a whole number from 0 to 4294967295; "
		    "'0x' is a hexadecimal number without digits" },
	};

	expect_errors(CONFIG, w, N(w));
}

static void
a_second_value_of_a_singular_field_is_an_error(void **state)
{
	static const struct wrong config[] = {
		{ "duration_ms: 5\nduration_ms: 5", 2, 1, "duration_ms",
		    "'duration_ms' is given twice, and TraceConfig has only "
		    "one" },
		{ "builtin_data_sources {} builtin_data_sources {}", 1, 25,
		    "builtin_data_sources",
		    "'builtin_data_sources' is given twice, and TraceConfig "
		    "has only one" },
	};
	static const struct wrong clone[] = {
		{ "session_id: 4\n unique_session_name: 'x'", 2, 2,
		    "unique_session_name",
		    "CloneSessionRequest has either 'session_id' or "
		    "'unique_session_name', and 'session_id' is given "
		    "already" },
		{ "session_id: 4 session_id: 4", 1, 15, "session_id",
		    "'session_id' is given twice, and CloneSessionRequest has "
		    "only one" },
	};

	expect_errors(CONFIG, config, N(config));
	expect_errors(CLONE, clone, N(clone));
}

static void
broken_structure_is_placed_and_explained(void **state)
{
	static const struct wrong w[] = {
		{ "buffers {\n  size_kb: 4\n", 3, 1, "",
		    "'}' is wanted for the '{' of line 1, column 9, but the "
		    "text ends here" },
		{ "buffers { size_kb: 4 >", 1, 22, ">",
		    "'}' is wanted for the '{' of line 1, column 9, not '>'" },
		{ "duration_ms: 5 }", 1, 16, "}", "'}' closes nothing" },
		{ "buffers: [{}, ", 1, 15, "",
		    "buffers is a message: '{' is wanted, but the text ends "
		    "here" },
		{ "activate_triggers: ['a' ;", 1, 25, ";",
		    "',' or ']' is wanted in the list of line 1, column 20, "
		    "not ';'" },
		{ "duration_ms: 5;;", 1, 16, ";",
		    "a field of TraceConfig is wanted, not ';'" },
		{ "3: 5", 1, 1, "3",
		    "a field is given by its name, not by its number" },
		{ "[perfetto.ext]: 5", 1, 1, "[",
		    "extensions and Any, in '[ ]', are not known here" },
		{ "// what\nduration_ms: 5", 1, 1, "//",
		    "a field of TraceConfig is wanted; '//' begins no "
		    "comment: '#' does" },
		{ "unique_session_name: 'abc\n'", 1, 22, "'abc",
		    "unique_session_name wants a string in quotes; ''abc' is "
		    "a string that its line does not close" },
		{ "unique_session_name: 'ab\\qc'", 1, 25, "\\q",
		    "unique_session_name wants a string in quotes; '\\q' is "
		    "not an escape that strings know" },
		{ "unique_session_name: '\\ud83d'", 1, 23, "\\u",
		    "unique_session_name wants a string in quotes; '\\u' is "
		    "not an escape that strings know" },
		{ "unique_session_name: '\\400'", 1, 23, "\\4",
		    "unique_session_name wants a string in quotes; '\\4' is "
		    "not an escape that strings know" },
		{ "unique_session_name: '\\U00110000'", 1, 23, "\\U",
		    "unique_session_name wants a string in quotes; '\\U' is "
		    "not an escape that strings know" },
		{ "unique_session_name: '\\u12g4'", 1, 23, "\\u",
		    "unique_session_name wants a string in quotes; '\\u' is "
		    "not an escape that strings know" },
		{ "unique_session_name: '\\x'", 1, 23, "\\x",
		    "unique_session_name wants a string in quotes; '\\x' is "
		    "not an escape that strings know" },
		{ "unique_session_name: '\\\xc3\xa9'", 1, 23, "\\\xc3\xa9",
		    "unique_session_name wants a string in quotes; "
		    "'\\\xc3\xa9' is not an escape that strings know" },
		{ "unique_session_name: 'ab\\", 1, 25, "\\",
		    "unique_session_name wants a string in quotes; '\\' is "
		    "not an escape that strings know" },
		{ "# \xc3\xa9\xe2\x82\xac\n \xc3\xa9", 2, 2, "\xc3\xa9",
		    "a field of TraceConfig is wanted; '\xc3\xa9' has no "
		    "meaning here" },
		{ "unique_session_name: '\xc3\xa9\xe2\x82\xac' $", 1, 27, "$",
		    "a field of TraceConfig is wanted; '$' has no meaning "
		    "here" },
		{ "duration_ms: 5 \x1b[0m", 1, 16, "\\x1b",
		    "a field of TraceConfig is wanted; '\\x1b' has no meaning "
		    "here" },
	};

	expect_errors(CONFIG, w, N(w));
}

static void
a_nul_byte_is_an_error_wherever_it_stands(void **state)
{
	static const char between[] = "duration_ms: 5\n\0";
	static const char quoted[] = "unique_session_name: 'a\0'";
	struct text_error err;
	uint8_t *out;
	size_t n;

	assert_int_equal(text_parse(CONFIG, between, sizeof(between) - 1, &out,
	    &n, &err), -1);
	assert_int_equal(err.line, 2);
	assert_int_equal(err.column, 1);
	assert_int_equal(text_parse(CONFIG, quoted, sizeof(quoted) - 1, &out,
	    &n, &err), -1);
	assert_non_null(strstr(err.message, "holds a NUL byte"));
}

static void
lines_are_counted_with_any_line_end(void **state)
{
	static const struct wrong w[] = {
		{ "duration_ms: 5\r\n\r\n  x: 5\r\n", 3, 3, "x",
		    "TraceConfig has no field 'x'" },
		{ "\xef\xbb\xbfx: 5", 1, 1, "x",
		    "TraceConfig has no field 'x'" },
	};

	expect_errors(CONFIG, w, N(w));
}

/* depth messages inside of each other; returns what text_parse does. */
static int
parse_nested(unsigned depth, struct text_error *err)
{
	static const char in[] = "dict_values<";
	char text[8192];
	size_t n = 0, out_len;
	uint8_t *out;
	unsigned i;
	int ret;

	for (i = 0; i < depth; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", in);
	for (i = 0; i < depth; i++)
		text[n++] = '>';
	ret = text_parse(
	    &perfetto__protos__debug_annotation__nested_value__descriptor,
	    text, n, &out, &out_len, err);
	if (ret == 0)
		free(out);
	return ret;
}

static void
nesting_has_a_limit(void **state)
{
	struct text_error err;

	assert_int_equal(parse_nested(TEXT_PARSE_MAX_DEPTH, &err), 0);
	assert_int_equal(parse_nested(TEXT_PARSE_MAX_DEPTH + 1, &err), -1);
	assert_string_equal(err.message,
	    "messages are nested more than 64 deep");
	assert_string_equal(err.word, "<");
}

static void
input_has_a_limit(void **state)
{
	size_t size = TEXT_PARSE_MAX_INPUT + 1, n;
	struct text_error err;
	uint8_t *out;
	char *text;

	text = malloc(size);
	assert_non_null(text);
	memset(text, ' ', size);
	assert_int_equal(text_parse(CONFIG, text, size, &out, &n, &err), -1);
	assert_int_equal(err.line, 0);
	assert_string_equal(err.message, "the text is longer than 4 MiB");
	assert_int_equal(text_parse(CONFIG, text, size - 1, &out, &n, &err),
	    0);
	assert_int_equal(n, 0);
	free(out);
	free(text);
}

/*
 * A list of count times -1, which takes 3 bytes of text and 11 of wire format
 * each; returns what text_parse does.
 */
static int
parse_negative_pids(size_t count, size_t *out_len, struct text_error *err)
{
	static const char head[] = "scope { target_pid: [";
	size_t n = sizeof(head) - 1, i;
	uint8_t *out;
	char *text;
	int ret;

	text = malloc(n + 3 * count + 2);
	assert_non_null(text);
	memcpy(text, head, n);
	for (i = 0; i < count; i++, n += 3)
		memcpy(text + n, "-1,", 3);
	text[n - 1] = ']';
	text[n++] = '}';
	ret = text_parse(
	    &perfetto__protos__perf_event_config__callstack_sampling__descriptor,
	    text, n, &out, out_len, err);
	if (ret == 0)
		free(out);
	free(text);
	return ret;
}

static void
output_has_a_limit(void **state)
{
	/* Around the list: a tag and a length of 4 bytes. */
	size_t most = (TEXT_PARSE_MAX_OUTPUT - 5) / 11, n;
	struct text_error err;

	assert_int_equal(parse_negative_pids(most, &n, &err), 0);
	assert_int_equal(n, most * 11 + 5);
	assert_int_equal(parse_negative_pids(most + 1, &n, &err), -1);
	assert_string_equal(err.message,
	    "the message is larger than 4194304 bytes");
	assert_string_equal(err.word, "scope");
}

static void
a_settings_file_is_read_by_the_same_parser(void **state)
{
	static const struct wrong w[] = {
		{ "limits { max_session: 4 }", 1, 10, "max_session",
		    "Limits has no field 'max_session'; "
		    "did you mean 'max_sessions'?" },
		{ "listen { address: '[::]:9000' port: PRODUCERS }", 1, 37,
		    "PRODUCERS", "'PRODUCERS' is not a value of Listen.Port; "
		    "did you mean 'PRODUCER'?" },
	};

	expect_text(SETTINGS,
	    "producer_socket: ['/run/p.sock', '@p']\n"
	    "listen { address: 'tap:9000' port: PRODUCER allow_remote: 1 }\n"
	    "limits { max_sessions: 100 } log_level: 'debug'",
	    "producer_socket: \"/run/p.sock\"\n"
	    "producer_socket: \"@p\"\n"
	    "listen {\n"
	    "  address: \"tap:9000\"\n"
	    "  port: PRODUCER\n"
	    "  allow_remote: true\n"
	    "}\n"
	    "log_level: \"debug\"\n"
	    "limits {\n"
	    "  max_sessions: 100\n"
	    "}\n");
	expect_errors(SETTINGS, w, N(w));
}

static void
an_error_is_optional(void **state)
{
	uint8_t *out;
	size_t n;

	assert_int_equal(text_parse(CONFIG, "x", 1, &out, &n, NULL), -1);
	assert_null(text_parse_message(CONFIG, "duration_ms: x", 14, NULL));
}

static void
expect_format(const char *text, const char *expected)
{
	char buf[TEXT_ERROR_FORMAT_SIZE];
	struct text_error err;
	uint8_t *out;
	size_t n;

	assert_int_equal(text_parse(CONFIG, text, strlen(text), &out, &n,
	    &err), -1);
	text_error_format(&err, "trace.cfg", text, strlen(text), buf,
	    sizeof(buf));
	assert_string_equal(buf, expected);
}

static void
errors_are_shown_with_their_line_and_a_caret(void **state)
{
	expect_format("buffers {\n\tsize_kb: 4 fill: 5\n}\n",
	    "trace.cfg:2:13: error: TraceConfig.BufferConfig has no field "
	    "'fill'; did you mean 'fill_policy'?\n"
	    "\tsize_kb: 4 fill: 5\n"
	    "\t           ^");
	/* One column per character; a control character shows as '?'. */
	expect_format("# a\nunique_session_name: '\xc3\xa9\x1b' x\r\n",
	    "trace.cfg:2:27: error: TraceConfig has no field 'x'\n"
	    "unique_session_name: '\xc3\xa9?' x\n"
	    "                          ^");
	expect_format("buffers {\n",
	    "trace.cfg:2:1: error: '}' is wanted for the '{' of line 1, "
	    "column 9, but the text ends here");
	/* Bytes that are no UTF-8, next to some that are. */
	expect_format("buffers {\n\t\xbd" "a: 4\n}\n",
	    "trace.cfg:2:2: error: a field of TraceConfig.BufferConfig is "
	    "wanted; '\\xbd' has no meaning here\n"
	    "\t?a: 4\n"
	    "\t^");
	expect_format("\xef\xbb\xbf!",
	    "trace.cfg:1:1: error: a field of TraceConfig is wanted; '!' has "
	    "no meaning here\n!\n^");
}

static void
of_a_long_line_the_part_around_the_error_is_shown(void **state)
{
	char text[2000], buf[TEXT_ERROR_FORMAT_SIZE], *line, *caret;
	struct text_error err;
	uint8_t *out;
	size_t n;

	memset(text, ' ', sizeof(text));
	text[1000] = '$';
	assert_int_equal(text_parse(CONFIG, text, sizeof(text), &out, &n,
	    &err), -1);
	assert_int_equal(err.column, 1001);
	text_error_format(&err, "f", text, sizeof(text), buf, sizeof(buf));
	assert_non_null(line = strchr(buf, '\n'));
	assert_non_null(caret = strchr(++line, '\n'));
	caret++;
	assert_int_equal(caret - 1 - line, 80);
	assert_int_equal(strlen(caret), 61);
	assert_int_equal(line[60], '$');
	assert_int_equal(caret[60], '^');
	/* However small the room. */
	for (n = 1; n < 200; n++) {
		text_error_format(&err, "f", text, sizeof(text), buf, n);
		assert_true(strlen(buf) < n);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_config_as_people_write_it_is_read_whole),
		cmocka_unit_test(
		    every_scalar_type_is_encoded_as_the_wire_wants),
		cmocka_unit_test(a_value_of_zero_is_a_value),
		cmocka_unit_test(bools_are_written_in_many_ways),
		cmocka_unit_test(escapes_of_strings_are_decoded),
		cmocka_unit_test(packed_fields_are_written_packed),
		cmocka_unit_test(lists_of_messages_are_read),
		cmocka_unit_test(fields_without_schema_take_their_bytes),
		cmocka_unit_test(
		    configs_of_data_sources_can_be_written_as_text),
		cmocka_unit_test(
		    unknown_fields_are_named_with_the_nearest_one),
		cmocka_unit_test(
		    unknown_enum_values_are_named_with_the_nearest_one),
		cmocka_unit_test(
		    a_value_of_the_wrong_type_says_what_is_wanted),
		cmocka_unit_test(
		    a_second_value_of_a_singular_field_is_an_error),
		cmocka_unit_test(broken_structure_is_placed_and_explained),
		cmocka_unit_test(a_nul_byte_is_an_error_wherever_it_stands),
		cmocka_unit_test(lines_are_counted_with_any_line_end),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(input_has_a_limit),
		cmocka_unit_test(output_has_a_limit),
		cmocka_unit_test(a_settings_file_is_read_by_the_same_parser),
		cmocka_unit_test(an_error_is_optional),
		cmocka_unit_test(
		    errors_are_shown_with_their_line_and_a_caret),
		cmocka_unit_test(
		    of_a_long_line_the_part_around_the_error_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
