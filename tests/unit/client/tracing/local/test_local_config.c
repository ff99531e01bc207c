#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/tracing/local/local_config.h"
#include "protos/fields.h"
#include "transport/wire/pb_writer.h"

static struct pb_writer w;
static char why[200];

static int
setup(void **state)
{
	pb_writer_init(&w);
	why[0] = '\0';
	return 0;
}

static int
teardown(void **state)
{
	pb_writer_done(&w);
	return 0;
}

static void
put_buffer(uint64_t kb, const char *name)
{
	size_t mark = pb_nest_begin(&w, TraceConfig_buffers);

	if (kb != 0)
		pb_put_uint(&w, BufferConfig_size_kb, kb);
	if (name != NULL)
		pb_put_string(&w, BufferConfig_name, name);
	pb_nest_end(&w, mark);
}

static void
put_source(const char *name, uint64_t buffer, const char *buffer_name)
{
	size_t mark = pb_nest_begin(&w, TraceConfig_data_sources);
	size_t inner = pb_nest_begin(&w, TraceConfig_DataSource_config);

	pb_put_string(&w, DataSourceConfig_name, name);
	if (buffer_name != NULL)
		pb_put_string(&w, DataSourceConfig_target_buffer_name,
		    buffer_name);
	else
		pb_put_uint(&w, DataSourceConfig_target_buffer, buffer);
	pb_nest_end(&w, inner);
	pb_nest_end(&w, mark);
}

static struct local_config *
parse(void)
{
	return local_config_new(w.data, w.len, why, sizeof(why));
}

static void
assert_refused(const char *word)
{
	assert_null(parse());
	assert_non_null(strstr(why, word));
}

static void
a_config_is_read(void **state)
{
	struct local_config *c;

	/* A data source may stand before its buffer. */
	put_source("a", 1, NULL);
	put_buffer(64, NULL);
	put_buffer(128, "second");
	put_source("b", 0, "second");
	pb_put_uint(&w, TraceConfig_duration_ms, 5);
	pb_put_uint(&w, TraceConfig_flush_period_ms, 6);
	c = parse();
	assert_non_null(c);
	assert_int_equal(c->n_buffers, 2);
	assert_int_equal(c->buffers[1].bytes, 128 * 1024);
	assert_false(c->buffers[1].discard);
	assert_int_equal(c->n_sources, 2);
	assert_int_equal(c->sources[0].buffer, 1);
	assert_int_equal(c->sources[1].buffer, 1);
	assert_memory_equal(c->sources[1].name, "b", 1);
	assert_int_equal(c->duration_ms, 5);
	assert_int_equal(c->flush_period_ms, 6);
	assert_int_equal(c->flush_timeout_ms, 5000);
	local_config_free(c);
}

static void
a_config_without_its_parts_is_refused(void **state)
{
	assert_refused("no buffers");
	put_buffer(64, NULL);
	assert_refused("no data sources");
	put_source("a", 1, NULL);
	assert_refused("target_buffer does not exist");
}

static void
a_buffer_without_size_is_refused(void **state)
{
	put_buffer(0, NULL);
	assert_refused("size_kb");
}

static void
a_buffer_name_that_is_none_is_refused(void **state)
{
	put_buffer(64, "one");
	put_source("a", 0, "two");
	assert_refused("target_buffer_name");
}

static void
fields_that_would_matter_are_refused(void **state)
{
	put_buffer(64, NULL);
	put_source("a", 0, NULL);
	/* Without effect. */
	pb_put_uint(&w, TraceConfig_write_into_file, 0);
	local_config_free(parse());
	assert_string_equal(why, "");
	pb_put_uint(&w, TraceConfig_write_into_file, 1);
	assert_refused("tributary_local_write");
}

static void
unknown_fields_are_refused(void **state)
{
	put_buffer(64, NULL);
	put_source("a", 0, NULL);
	pb_put_uint(&w, 4000, 1);
	assert_refused("4000");
}

static void
bytes_that_are_no_message_are_refused(void **state)
{
	put_buffer(64, NULL);
	put_source("a", 0, NULL);
	w.len--;
	assert_refused("no TraceConfig");
}

static void
the_usual_session_needs_no_config(void **state)
{
	static const char *const categories[] = { "net", "io*", NULL };
	struct tributary_session_options o = TRIBUTARY_SESSION_OPTIONS;
	struct local_config *c;

	c = local_config_simple(&o, why, sizeof(why));
	assert_non_null(c);
	assert_int_equal(c->buffers[0].bytes, 4096 * 1024);
	assert_int_equal(c->duration_ms, 0);
	assert_int_equal(c->sources[0].policy, 0);
	local_config_free(c);
	o.categories = categories;
	o.discard = o.stall = true;
	o.seconds = 3;
	c = local_config_simple(&o, why, sizeof(why));
	assert_non_null(c);
	assert_true(c->buffers[0].discard);
	assert_int_equal(c->duration_ms, 3000);
	assert_int_equal(c->sources[0].policy,
	    DataSourceConfig_BUFFER_EXHAUSTED_STALL_THEN_DROP);
	assert_non_null(memmem(c->sources[0].config, c->sources[0].len, "io*",
	    3));
	local_config_free(c);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_config_is_read),
		CASE(a_config_without_its_parts_is_refused),
		CASE(a_buffer_without_size_is_refused),
		CASE(a_buffer_name_that_is_none_is_refused),
		CASE(fields_that_would_matter_are_refused),
		CASE(unknown_fields_are_refused),
		CASE(bytes_that_are_no_message_are_refused),
		CASE(the_usual_session_needs_no_config),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
