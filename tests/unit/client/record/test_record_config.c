#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/record/config.h"
#include "client/record/options.h"
#include "protos/trace_config.pb-c.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static char err[2048];
static char path[64];

/* Loads a file with these bytes, as -c does. */
static struct record_config *
load(const void *data, size_t len)
{
	struct record_options o = { .config = path };
	struct record_config *c;
	int fd;

	snprintf(path, sizeof(path), "/tmp/test_record_config.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
	err[0] = '\0';
	c = record_config_load(&o, err, sizeof(err));
	unlink(path);
	return c;
}

static struct record_config *
load_text(const char *text)
{
	return load(text, strlen(text));
}

/* The last value of a top-level field; 0: there is none. */
static uint64_t
sent(const struct record_config *c, uint32_t number)
{
	struct pb_reader r;
	struct pb_field f;
	uint64_t v = 0;
	size_t len;

	pb_init(&r, record_config_bytes(c, &len), 0);
	r.end += len;
	while (pb_next(&r, &f)) {
		if (f.number == number)
			v = f.value;
	}
	assert_false(r.bad);
	return v;
}

static void
text_and_binary_are_told_apart(void **state)
{
	static const char text[] = "buffers { size_kb: 1024 }\n"
				   "data_sources { config { name: \"a\" } }\n"
				   "duration_ms: 1500\n";
	struct record_config *c = load_text(text), *again;
	const uint8_t *bytes;
	size_t len;

	assert_non_null(c);
	assert_true(record_config_longest_ms(c) == 1500);
	assert_string_equal(record_config_message(c)->data_sources[0]->config
	    ->name, "a");
	bytes = record_config_bytes(c, &len);
	again = load(bytes, len);
	assert_non_null(again);
	assert_true(record_config_longest_ms(again) == 1500);
	record_config_free(again);
	record_config_free(c);
}

static void
an_error_points_at_the_word_and_suggests_the_field(void **state)
{
	assert_null(load_text("buffers {\n  size_kbs: 10\n}\n"));
	assert_non_null(strstr(err, path));
	assert_non_null(strstr(err, ":2:3: error:"));
	assert_non_null(strstr(err, "size_kbs: 10\n"));
	assert_non_null(strstr(err, "size_kb"));
	assert_non_null(strstr(err, "^"));
}

static void
an_empty_or_missing_config_is_a_sentence(void **state)
{
	struct record_options o = { .config = "/nonexistent/config" };

	assert_null(load_text(""));
	assert_non_null(strstr(err, "is empty"));
	assert_null(record_config_load(&o, err, sizeof(err)));
	assert_non_null(strstr(err, "cannot read the config "
	    "/nonexistent/config: No such file"));
}

static void
fields_from_the_future_are_sent_as_they_came(void **state)
{
	struct record_config *c;
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 3, 1500);
	pb_put_uint(&w, 900, 4711);
	pb_put_uint(&w, 8, 1);
	c = load(w.data, w.len);
	assert_non_null(c);
	assert_int_equal(sent(c, 900), 4711);
	assert_int_equal(record_config_stream_instead(c), 0);
	assert_int_equal(sent(c, 900), 4711);
	assert_int_equal(sent(c, 3), 1500);
	record_config_free(c);
	pb_writer_done(&w);
}

static void
a_trace_gets_an_id_unless_it_has_one(void **state)
{
	struct record_config *a = load_text("duration_ms: 1"), *b;

	b = load_text("trace_uuid_msb: 5 trace_uuid_lsb: 6");
	assert_true(sent(a, 27) != 0 && sent(a, 28) != 0);
	assert_int_equal(sent(b, 27), 5);
	assert_int_equal(sent(b, 28), 6);
	record_config_free(a);
	record_config_free(b);
}

static void
streaming_takes_the_file_out_of_the_config(void **state)
{
	struct record_config *c = load_text("write_into_file: true "
	    "file_write_period_ms: 1000 max_file_size_bytes: 5 "
	    "fflush_post_write: FFLUSH_ENABLED duration_ms: 9");

	assert_true(record_config_service_writes(c));
	assert_null(record_config_output_path(c));
	assert_int_equal(record_config_stream_instead(c), 0);
	assert_int_equal(sent(c, 8), 0);
	assert_int_equal(sent(c, 9), 0);
	assert_int_equal(sent(c, 10), 0);
	assert_int_equal(sent(c, 45), 0);
	assert_int_equal(sent(c, 3), 9);
	record_config_free(c);
}

static void
the_longest_time_counts_triggers(void **state)
{
	struct record_config *c = load_text("trigger_config { trigger_mode: "
	    "STOP_TRACING trigger_timeout_ms: 5000 triggers { name: \"a\" "
	    "stop_delay_ms: 300 } triggers { name: \"b\" } }");

	assert_true(record_config_longest_ms(c) == 5300);
	assert_false(record_config_wants_start(c));
	record_config_free(c);
	c = load_text("deferred_start: true");
	assert_true(record_config_longest_ms(c) == 0);
	assert_true(record_config_wants_start(c));
	record_config_free(c);
}

static void
the_grace_is_what_the_service_may_take_to_end(void **state)
{
	struct record_config *c = load_text("duration_ms: 1");

	assert_true(record_config_grace_ms(c) == 10000);
	record_config_free(c);
	c = load_text("flush_timeout_ms: 1 data_source_stop_timeout_ms: 2");
	assert_true(record_config_grace_ms(c) == 3);
	record_config_free(c);
}

/* The delay that chance brings; UINT64_MAX: it is refused. */
static uint64_t
delay(const char *text, uint64_t random)
{
	struct record_config *c = load_text(text);
	uint64_t ms = 0;
	int ret;

	assert_non_null(c);
	ret = record_config_start_delay(c, random, &ms, err, sizeof(err));
	record_config_free(c);
	return ret == 0 ? ms : UINT64_MAX;
}

static void
the_delay_is_within_its_bounds(void **state)
{
	static const char wide[] = "cmd_trace_start_delay { min_delay_ms: 5 "
				   "max_delay_ms: 4294967295 }";
	static const char both[] = "cmd_trace_start_delay { min_delay_ms: 5 "
				   "max_delay_ms: 7 }";

	assert_true(delay("duration_ms: 1", 9) == 0);
	assert_true(delay("cmd_trace_start_delay {}", 9) == 0);
	assert_true(delay(both, 0) == 5);
	assert_true(delay(both, 2) == 7);
	assert_true(delay(both, 3) == 5);
	assert_true(delay(wide, UINT32_MAX - 5u) == UINT32_MAX);
	assert_true(delay("cmd_trace_start_delay { max_delay_ms: 7 }", 0) ==
	    UINT64_MAX);
	assert_non_null(strstr(err, "both"));
	assert_true(delay("cmd_trace_start_delay { min_delay_ms: 8 "
	    "max_delay_ms: 7 }", 0) == UINT64_MAX);
}

static void
what_takes_snapshots_is_known(void **state)
{
	static const struct {
		const char *text;
		bool takes, only;
	} configs[] = {
		{ "duration_ms: 1", false, false },
		{ "trigger_config { trigger_mode: STOP_TRACING }", false,
		    false },
		{ "trigger_config { trigger_mode: CLONE_SNAPSHOT }", true,
		    true },
		{ "trigger_config { trigger_mode: STOP_TRACING "
		    "use_clone_snapshot_if_available: true }", true, false },
	};
	struct record_config *c;
	size_t i;

	for (i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		c = load_text(configs[i].text);
		assert_non_null(c);
		assert_int_equal(record_config_takes_snapshots(c),
		    configs[i].takes);
		assert_int_equal(record_config_only_snapshots(c),
		    configs[i].only);
		record_config_free(c);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_and_binary_are_told_apart),
		cmocka_unit_test(
		    an_error_points_at_the_word_and_suggests_the_field),
		cmocka_unit_test(an_empty_or_missing_config_is_a_sentence),
		cmocka_unit_test(fields_from_the_future_are_sent_as_they_came),
		cmocka_unit_test(a_trace_gets_an_id_unless_it_has_one),
		cmocka_unit_test(streaming_takes_the_file_out_of_the_config),
		cmocka_unit_test(the_longest_time_counts_triggers),
		cmocka_unit_test(the_grace_is_what_the_service_may_take_to_end),
		cmocka_unit_test(the_delay_is_within_its_bounds),
		cmocka_unit_test(what_takes_snapshots_is_known),
	};

	return cmocka_run_group_tests_name("record_config", tests, NULL, NULL);
}
