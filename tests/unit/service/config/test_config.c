#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/text_parse.h"
#include "service/config/config.h"
#include "service/config/name_filter.h"
#include "service/settings/settings.h"
#include "tests/unit/transport/wire/put_fixed64.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define RING "buffers { size_kb: 64 } "
#define TRIGGERS(mode) "trigger_config { trigger_mode: " mode                  \
	" trigger_timeout_ms: 1000 triggers { name: \"t\" } } "

static struct settings settings;

static int
setup(void **state)
{
	return settings_init(&settings);
}

static int
teardown(void **state)
{
	settings_done(&settings);
	return 0;
}

static void
encode(const char *text, uint8_t **bytes, size_t *len)
{
	assert_int_equal(text_parse(&perfetto__protos__trace_config__descriptor,
	    text, strlen(text), bytes, len, NULL), 0);
}

static struct config *
parse(const char *text, bool has_fd, char *err, size_t err_size)
{
	struct config *c;
	uint8_t *bytes;
	size_t len;

	encode(text, &bytes, &len);
	err[0] = '\0';
	c = config_new(bytes, len, has_fd, &settings.limits, err, err_size);
	free(bytes);
	return c;
}

static struct config *
good(const char *text)
{
	struct config *c;
	char err[320];

	if ((c = parse(text, false, err, sizeof(err))) == NULL)
		fail_msg("refused: %s", err);
	return c;
}

static void
refused(const char *text, bool has_fd, const char *why)
{
	struct config *c;
	char err[320];

	c = parse(text, has_fd, err, sizeof(err));
	if (c != NULL)
		fail_msg("taken: %s", text);
	if (strstr(err, why) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err, why);
}

static void
what_is_too_long_or_too_much_is_refused(void **state)
{
	struct pb_writer w;
	char err[320];
	size_t i;

	settings.limits.max_buffers_per_session = 3;
	settings.limits.max_total_buffer_kb = 1000;
	refused(RING "duration_ms: 604800001", false, "too long");
	config_free(good(RING "duration_ms: 604800000"));
	refused(RING RING RING RING, false, "Too many buffers");
	config_free(good(RING RING RING));
	refused("buffers { }", false, "size_kb");
	refused("buffers { size_kb: 0 }", false, "size_kb");
	refused("buffers { size_kb: 1001 }", false, "max_total_buffer_kb");
	refused("buffers { size_kb: 500 } buffers { size_kb: 501 }", false,
	    "max_total_buffer_kb");
	refused("buffers { size_kb: 4294967295 } buffers { size_kb: "
	    "4294967295 } buffers { size_kb: 4294967295 }", false,
	    "max_total_buffer_kb");
	pb_writer_init(&w);
	for (i = 0; i <= CONFIG_MAX_DATA_SOURCES; i++)
		pb_put_bytes(&w, 2, NULL, 0);
	assert_null(config_new(w.data, w.len, false, &settings.limits, err,
	    sizeof(err)));
	assert_non_null(strstr(err, "Too many data sources"));
	pb_writer_done(&w);
}

static void
names_that_are_too_long_are_refused(void **state)
{
	char name[64], text[128];

	settings.limits.max_name_bytes = sizeof(name) - 2;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(text, sizeof(text), RING "unique_session_name: \"%s\"", name);
	refused(text, false, "max_name_bytes");
	name[sizeof(name) - 2] = '\0';
	snprintf(text, sizeof(text), RING "unique_session_name: \"%s\"", name);
	config_free(good(text));
}

static void
buffers_are_found_by_index_or_by_name(void **state)
{
	struct config *c = good("buffers { size_kb: 4 name: \"a\" } "
	    "buffers { size_kb: 4 name: \"b\" } buffers { size_kb: 4 } "
	    "data_sources { config { name: \"default\" } } "
	    "data_sources { config { name: \"index\" target_buffer: 2 } } "
	    "data_sources { config { name: \"name\" "
	    "target_buffer_name: \"b\" } } "
	    "data_sources { config { name: \"both\" target_buffer: 1 "
	    "target_buffer_name: \"b\" } }");

	assert_int_equal(c->n_data_sources, 4);
	assert_int_equal(c->data_sources[0].buffer, 0);
	assert_int_equal(c->data_sources[1].buffer, 2);
	assert_int_equal(c->data_sources[2].buffer, 1);
	assert_int_equal(c->data_sources[3].buffer, 1);
	config_free(c);
}

static void
buffers_that_do_not_exist_or_disagree_are_refused(void **state)
{
	refused("data_sources { config { name: \"x\" } }", false,
	    "does not exist (0 buffers)");
	refused(RING "data_sources { config { name: \"x\" target_buffer: 1 } "
	    "}", false, "target_buffer 1 does not exist");
	refused(RING "data_sources { config { name: \"x\" "
	    "target_buffer_name: \"b\" } }", false, "b does not exist");
	refused("buffers { size_kb: 4 name: \"a\" } buffers { size_kb: 4 name:"
	    " \"b\" } data_sources { config { name: \"x\" target_buffer: 0 "
	    "target_buffer_name: \"b\" } }", false, "different buffers");
	refused("buffers { size_kb: 4 name: \"a\" } buffers { size_kb: 4 name:"
	    " \"a\" }", false, "Duplicate buffer name");
}

static void
triggers_that_make_no_sense_are_refused(void **state)
{
	refused(RING "duration_ms: 5 " TRIGGERS("START_TRACING"), false,
	    "duration_ms");
	refused(RING "trigger_config { trigger_mode: STOP_TRACING "
	    "triggers { name: \"t\" } }", false, "trigger_timeout_ms");
	refused(RING "trigger_config { trigger_mode: STOP_TRACING "
	    "trigger_timeout_ms: 604800001 triggers { name: \"t\" } }", false,
	    "trigger_timeout_ms is too long");
	refused(RING "write_into_file: true " TRIGGERS("STOP_TRACING"), true,
	    "write_into_file");
	refused(RING "write_into_file: true " TRIGGERS("CLONE_SNAPSHOT"), true,
	    "write_into_file");
	refused(RING "trigger_config { trigger_mode: STOP_TRACING "
	    "trigger_timeout_ms: 5 }", false, "at least one trigger");
	refused(RING "trigger_config { trigger_mode: STOP_TRACING "
	    "trigger_timeout_ms: 5 triggers { } }", false, "no name");
	refused(RING "trigger_config { trigger_mode: STOP_TRACING "
	    "trigger_timeout_ms: 5 triggers { name: \"t\" } triggers { name: "
	    "\"t\" } }", false, "Duplicate trigger name");
	config_free(good(RING "trigger_config { } duration_ms: 5"));
}

static void
segments_that_make_no_sense_are_refused(void **state)
{
	refused(RING "tributary_segments { every_ms: 999 }", false,
	    "every_ms is 999: it must be 1000");
	refused(RING "tributary_segments { every_ms: 2678400001 }", false,
	    "31 days");
	refused(RING "tributary_segments { at_trigger: \"a\" at_trigger: \"\" "
	    "}", false, "at_trigger is empty");
	config_free(good(RING "tributary_segments { every_ms: 1000 at_trigger:"
	    " \"a\" }"));
}

static void
a_start_trigger_may_write_into_a_file(void **state)
{
	struct config *c;
	char err[320];

	c = parse(RING "write_into_file: true " TRIGGERS("START_TRACING"),
	    true, err, sizeof(err));
	assert_non_null(c);
	assert_int_equal(config_trigger_mode(c),
	    PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__START_TRACING);
	config_free(c);
}

static void
a_file_is_given_by_descriptor_or_path_and_not_both(void **state)
{
	refused(RING "write_into_file: true", false, "file descriptor");
	refused(RING "write_into_file: true output_path: \"\"", false,
	    "file descriptor");
	refused(RING "write_into_file: true output_path: \"a\"", true,
	    "exclude each other");
	refused(RING "output_path: \"a\"", false, "write_into_file was not");
	config_free(good(RING "write_into_file: true output_path: \"a\""));
}

/* With the path as bytes: the text form takes no NUL. */
static struct config *
with_path(const char *path, size_t n, char *err, size_t err_size)
{
	struct config *c;
	struct pb_writer w;
	uint8_t *bytes;
	size_t len;

	encode(RING "write_into_file: true", &bytes, &len);
	pb_writer_init(&w);
	pb_put_raw(&w, bytes, len);
	pb_put_bytes(&w, 29, path, n);
	err[0] = '\0';
	c = config_new(w.data, w.len, false, &settings.limits, err, err_size);
	pb_writer_done(&w);
	free(bytes);
	return c;
}

static void
a_path_is_text_that_can_be_shown(void **state)
{
	static const struct {
		const char *path;
		size_t len;
	} bad[] = {
		{ "a\0b", 3 }, { "a\nb", 3 }, { "\033[1m", 4 },
		{ "a\342\200\256b", 5 }, { "a\377b", 3 },
	};
	static const char good_path[] = "gr\303\266\303\237e 1/a";
	struct config *c;
	char err[320];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_null(with_path(bad[i].path, bad[i].len, err,
		    sizeof(err)));
		assert_non_null(strstr(err, "printable"));
	}
	c = with_path(good_path, strlen(good_path), err, sizeof(err));
	assert_non_null(c);
	config_free(c);
}

static void
semaphores_without_number_are_refused(void **state)
{
	struct pb_writer w;
	char err[320];
	size_t i;

	pb_writer_init(&w);
	for (i = 0; i <= CONFIG_MAX_SEMAPHORES; i++)
		pb_put_bytes(&w, 39, "\x0a\x01s", 3);
	assert_null(config_new(w.data, w.len, false, &settings.limits, err,
	    sizeof(err)));
	assert_non_null(strstr(err, "semaphores"));
	pb_writer_done(&w);
}

static void
bytes_that_are_no_config_are_refused(void **state)
{
	static const char *const cases[] = { "\x0a\x05" "a", "\x12\x02\x0a\x09",
		"\xff\xff\xff", "\x0b" };
	char err[320];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_null(config_new((const uint8_t *)cases[i],
		    strlen(cases[i]), false, &settings.limits, err,
		    sizeof(err)));
		assert_non_null(strstr(err, "does not parse"));
	}
}

static void
an_empty_config_is_taken(void **state)
{
	char err[320];
	struct config *c = config_new((const uint8_t *)"", 0, false,
	    &settings.limits, err, sizeof(err));

	assert_non_null(c);
	assert_int_equal(c->n_data_sources, 0);
	config_free(c);
}

static void
filters_are_names_and_patterns_together(void **state)
{
	struct config *c = good(RING "data_sources { config { name: \"x\" } "
	    "producer_name_filter: \"exact\" producer_name_filter: \"two\" "
	    "producer_name_regex_filter: \"re.*\" }");
	struct name_filter *m = c->data_sources[0].producers;

	assert_true(name_filter_test(m, "exact"));
	assert_true(name_filter_test(m, "two"));
	assert_true(name_filter_test(m, "regular"));
	assert_false(name_filter_test(m, "exactly"));
	config_free(c);
	refused(RING "data_sources { config { name: \"x\" } "
	    "producer_name_regex_filter: \"a(\" }", false, "a(");
}

static void
filters_can_be_added_to_sources_that_have_some(void **state)
{
	struct config *c = good(RING "data_sources { config { name: \"x\" } "
	    "producer_name_filter: \"a\" } data_sources { config { name: "
	    "\"open\" } }");
	uint8_t *bytes;
	size_t len;
	char err[320];

	encode("duration_ms: 9 buffers { size_kb: 0 } data_sources { config { "
	    "name: \"x\" } producer_name_filter: \"b\" } "
	    "data_sources { config { name: \"open\" } "
	    "producer_name_filter: \"b\" } "
	    "data_sources { config { name: \"new\" } }", &bytes, &len);
	assert_int_equal(config_add_filters(c, bytes, len, err, sizeof(err)),
	    0);
	free(bytes);
	assert_int_equal(c->n_data_sources, 2);
	assert_int_equal(c->pb->duration_ms, 0);
	assert_true(name_filter_test(c->data_sources[0].producers, "a"));
	assert_true(name_filter_test(c->data_sources[0].producers, "b"));
	assert_false(name_filter_test(c->data_sources[0].producers, "c"));
	/* One that lets everybody in is not narrowed. */
	assert_true(name_filter_test(c->data_sources[1].producers, "c"));
	assert_int_equal(config_add_filters(c, (const uint8_t *)"\x0a\x09", 2,
	    err, sizeof(err)), -1);
	encode("data_sources { config { name: \"x\" } "
	    "producer_name_regex_filter: \"(\" }", &bytes, &len);
	assert_int_equal(config_add_filters(c, bytes, len, err, sizeof(err)),
	    -1);
	free(bytes);
	config_free(c);
}

static void
filters_cannot_be_added_without_end(void **state)
{
	struct pb_writer w, source;
	struct config *c;
	char err[320];
	size_t mark;
	int i, refusals = 0;

	/* 1000 sources of one name: each takes all that is added. */
	pb_writer_init(&w);
	pb_writer_init(&source);
	mark = pb_nest_begin(&source, 1);
	pb_put_string(&source, 1, "x");
	pb_nest_end(&source, mark);
	pb_put_string(&source, 2, "a");
	mark = pb_nest_begin(&w, 1);
	pb_put_uint(&w, 1, 64);
	pb_nest_end(&w, mark);
	for (i = 0; i < 1000; i++)
		pb_put_bytes(&w, 2, source.data, source.len);
	c = config_new(w.data, w.len, false, &settings.limits, err,
	    sizeof(err));
	assert_non_null(c);
	pb_writer_reset(&w);
	for (i = 0; i < 100; i++)
		pb_put_string(&source, 2, "some_producer_or_other");
	pb_put_bytes(&w, 2, source.data, source.len);
	for (i = 0; i < 10; i++)
		refusals += config_add_filters(c, w.data, w.len, err,
		    sizeof(err)) != 0;
	assert_true(refusals > 0);
	assert_non_null(strstr(err, "Too many producer name filters"));
	pb_writer_done(&source);
	pb_writer_done(&w);
	config_free(c);
}

/* ---- what a producer gets ---- */

/* A config of one source; body holds the DataSourceConfig's fields. */
static struct config *
with_source(const struct pb_writer *body, const char *rest)
{
	struct pb_writer w;
	struct config *c;
	uint8_t *bytes;
	char err[320];
	size_t mark, len;

	encode(rest, &bytes, &len);
	pb_writer_init(&w);
	pb_put_raw(&w, bytes, len);
	free(bytes);
	mark = pb_nest_begin(&w, 2);
	pb_put_bytes(&w, 1, body->data, body->len);
	pb_nest_end(&w, mark);
	c = config_new(w.data, w.len, false, &settings.limits, err,
	    sizeof(err));
	assert_non_null(c);
	pb_writer_done(&w);
	return c;
}

static void
every_field_that_is_not_ours_reaches_the_producer_unchanged(void **state)
{
	struct pb_writer body, out;
	struct config *c;

	pb_writer_init(&body);
	pb_put_string(&body, 1, "x");
	pb_put_bytes(&body, 100, "\x0a\x01x", 3);   /* ftrace_config */
	pb_put_string(&body, 77777, "the future");
	put_fixed64(&body, 536870911, 1);        /* the largest number */
	pb_put_raw(&body, "\xa8\x1f\x80\x00", 4);   /* overlong varint */
	pb_put_string(&body, 1000, "legacy");
	c = with_source(&body, RING);
	pb_writer_init(&out);
	config_for_producer(c, &c->data_sources[0], 5, 6, &out);
	assert_true(out.len > body.len);
	assert_memory_equal(out.data, body.data, body.len);
	pb_writer_done(&out);
	pb_writer_done(&body);
	config_free(c);
}

static void
exactly_the_service_s_fields_are_replaced(void **state)
{
	struct pb_writer body, out;
	struct pb_reader r;
	struct pb_field f;
	struct config *c;
	uint64_t value[9] = { 0 };
	unsigned seen[9] = { 0 };

	pb_writer_init(&body);
	/* All of them as a consumer may try to set them, some twice. */
	pb_put_uint(&body, 2, 0);
	pb_put_uint(&body, 3, 111);
	pb_put_uint(&body, 4, 222);
	pb_put_uint(&body, 4, 223);
	pb_put_string(&body, 1, "x");
	pb_put_uint(&body, 6, 0);
	pb_put_uint(&body, 7, 444);
	pb_put_uint(&body, 8, 1);
	c = with_source(&body, RING "duration_ms: 1000 "
	    "data_source_stop_timeout_ms: 700 enable_extra_guardrails: true");
	pb_writer_init(&out);
	config_for_producer(c, &c->data_sources[0], 65535, 1ull << 40, &out);
	pb_init(&r, out.data, out.len);
	while (pb_next(&r, &f)) {
		assert_true(f.number <= 8);
		seen[f.number]++;
		value[f.number] = f.value;
	}
	assert_false(r.bad);
	assert_int_equal(seen[1], 1);
	assert_int_equal(seen[2], 1);
	assert_int_equal(value[2], 65535);
	assert_int_equal(seen[3], 1);
	assert_int_equal(value[3], 1000);
	assert_int_equal(seen[4], 1);
	assert_int_equal(value[4], 1ull << 40);
	assert_int_equal(value[6], 1);
	assert_int_equal(seen[7], 1);
	assert_int_equal(value[7], 700);
	assert_int_equal(seen[8], 1);
	assert_int_equal(value[8], 0);
	pb_writer_done(&out);
	pb_writer_done(&body);
	config_free(c);
}

static void
a_config_in_several_pieces_is_one(void **state)
{
	struct pb_writer w, out, body;
	struct config *c;
	size_t mark;
	char err[320];

	pb_writer_init(&body);
	pb_put_string(&body, 1, "joined");
	pb_put_string(&body, 9999, "tail");
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 1);
	pb_put_uint(&w, 1, 64);
	pb_nest_end(&w, mark);
	mark = pb_nest_begin(&w, 2);
	pb_put_string(&w, 2, "only this producer");
	pb_put_bytes(&w, 1, body.data, 3);
	pb_put_bytes(&w, 1, body.data + 3, 0);
	pb_nest_end(&w, mark);
	/* Cut between fields is legal, inside one is not. */
	assert_null(config_new(w.data, w.len, false, &settings.limits, err,
	    sizeof(err)));
	pb_writer_reset(&w);
	mark = pb_nest_begin(&w, 1);
	pb_put_uint(&w, 1, 64);
	pb_nest_end(&w, mark);
	mark = pb_nest_begin(&w, 2);
	pb_put_bytes(&w, 1, body.data, 8);
	pb_put_string(&w, 2, "only this producer");
	pb_put_bytes(&w, 1, body.data + 8, body.len - 8);
	pb_nest_end(&w, mark);
	c = config_new(w.data, w.len, false, &settings.limits, err,
	    sizeof(err));
	assert_non_null(c);
	assert_string_equal(c->data_sources[0].name, "joined");
	pb_writer_init(&out);
	config_for_producer(c, &c->data_sources[0], 1, 1, &out);
	assert_memory_equal(out.data, body.data, body.len);
	pb_writer_done(&out);
	pb_writer_done(&body);
	pb_writer_done(&w);
	config_free(c);
}

static void
time_outs_and_memory_sizes_have_defaults(void **state)
{
	struct config *c = good(RING "producers { producer_name: \"big\" "
	    "shm_size_kb: 1024 page_size_kb: 8 }");
	uint32_t shm = 1, page = 1;

	assert_int_equal(config_stop_timeout_ms(c), 5000);
	assert_int_equal(config_flush_timeout_ms(c), 5000);
	config_shm_sizes(c, "other", &shm, &page);
	assert_int_equal(shm, 0);
	assert_int_equal(page, 0);
	config_shm_sizes(c, "big", &shm, &page);
	assert_int_equal(shm, 1024);
	assert_int_equal(page, 8);
	config_free(c);
	c = good(RING "flush_timeout_ms: 1 data_source_stop_timeout_ms: 2");
	assert_int_equal(config_flush_timeout_ms(c), 1);
	assert_int_equal(config_stop_timeout_ms(c), 2);
	config_free(c);
}

static void
a_copy_has_the_bytes_and_no_sources(void **state)
{
	struct config *c = good(RING "data_sources { config { name: \"x\" } } "
	    "unique_session_name: \"n\""), *copy = config_copy(c);

	assert_non_null(copy);
	assert_int_equal(copy->len, c->len);
	assert_memory_equal(copy->bytes, c->bytes, c->len);
	config_free(c);
	assert_string_equal(copy->pb->unique_session_name, "n");
	assert_int_equal(copy->n_data_sources, 0);
	config_free(copy);
}

static void
patterns_are_bounded_over_all_data_sources(void **state)
{
	char *text = malloc(64 * 1024), err[320];
	size_t n, i;

	n = (size_t)sprintf(text, RING);
	for (i = 0; i < CONFIG_MAX_PATTERNS + 1; i++)
		n += (size_t)sprintf(text + n, "data_sources { config { name: "
		    "\"s%zu\" } producer_name_regex_filter: \"a\" } ", i);
	assert_null(parse(text, false, err, sizeof(err)));
	assert_non_null(strstr(err, "producer_name_regex_filter"));
	free(text);
}

static bool
same_digest(const char *one, const char *other)
{
	struct config *a = good(one), *b = good(other);
	bool same = memcmp(a->digest, b->digest, sizeof(a->digest)) == 0;

	config_free(a);
	config_free(b);
	return same;
}

static void
a_digest_is_of_all_but_the_place_of_its_files(void **state)
{
	const char a[] = RING "write_into_file: true output_path: \"a\" "
	    "file_write_period_ms: 500";

	assert_true(same_digest(a, a));
	assert_true(same_digest(a, RING "write_into_file: true "
	    "output_path: \"/srv/b\" file_write_period_ms: 500"));
	assert_false(same_digest(a, RING "write_into_file: true "
	    "output_path: \"a\" file_write_period_ms: 501"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(patterns_are_bounded_over_all_data_sources),
		T(what_is_too_long_or_too_much_is_refused),
		T(names_that_are_too_long_are_refused),
		T(buffers_are_found_by_index_or_by_name),
		T(buffers_that_do_not_exist_or_disagree_are_refused),
		T(triggers_that_make_no_sense_are_refused),
		T(segments_that_make_no_sense_are_refused),
		T(a_start_trigger_may_write_into_a_file),
		T(a_file_is_given_by_descriptor_or_path_and_not_both),
		T(a_path_is_text_that_can_be_shown),
		T(semaphores_without_number_are_refused),
		T(bytes_that_are_no_config_are_refused),
		T(an_empty_config_is_taken),
		T(filters_are_names_and_patterns_together),
		T(filters_can_be_added_to_sources_that_have_some),
		T(filters_cannot_be_added_without_end),
		T(every_field_that_is_not_ours_reaches_the_producer_unchanged),
		T(exactly_the_service_s_fields_are_replaced),
		T(a_config_in_several_pieces_is_one),
		T(time_outs_and_memory_sizes_have_defaults),
		T(a_copy_has_the_bytes_and_no_sources),
		T(a_digest_is_of_all_but_the_place_of_its_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
