#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/command/machine_filter.h"
#include "protos/trace_config.pb-c.h"
#include "transport/wire/pb_writer.h"

static char err[256];

/* A config of two data sources; the second with fields nobody knows. */
static void
make_config(struct pb_writer *w, const char *filter)
{
	size_t source, config;
	int i;

	for (i = 0; i < 2; i++) {
		source = pb_nest_begin(w, 2);
		config = pb_nest_begin(w, 1);
		pb_put_string(w, 1, i == 0 ? "a" : "b");
		pb_nest_end(w, config);
		if (i == 1)
			pb_put_uint(w, 9999, 7);
		if (i == 1 && filter != NULL)
			pb_put_string(w, 4, filter);
		pb_nest_end(w, source);
	}
	pb_put_uint(w, 3, 1234);
	pb_put_uint(w, 8888, 5);
}

static Perfetto__Protos__TraceConfig *
put(const struct machine_filter *m, const char *filter, size_t *more)
{
	Perfetto__Protos__TraceConfig *t = NULL;
	struct pb_writer in, out;

	pb_writer_init(&in);
	pb_writer_init(&out);
	make_config(&in, filter);
	if (machine_filter_put(m, in.data, in.len, &out, err,
	    sizeof(err)) == 0)
		t = perfetto__protos__trace_config__unpack(NULL, out.len,
		    out.data);
	*more = out.len - in.len;
	pb_writer_done(&in);
	pb_writer_done(&out);
	return t;
}

static void
every_data_source_gets_the_names(void **state)
{
	const struct machine_filter m = { .names = { "car-1", "van-*" },
	    .n_names = 2 };
	Perfetto__Protos__TraceConfig *t;
	size_t i, more;

	t = put(&m, NULL, &more);
	assert_non_null(t);
	assert_int_equal(more, 2 * (7 + 7));
	for (i = 0; i < 2; i++) {
		assert_int_equal(t->data_sources[i]->n_machine_name_filter, 2);
		assert_string_equal(
		    t->data_sources[i]->machine_name_filter[1], "van-*");
	}
	assert_int_equal(t->duration_ms, 1234);
	assert_false(t->trace_all_machines);
	assert_int_equal(t->base.n_unknown_fields, 1);
	perfetto__protos__trace_config__free_unpacked(t, NULL);
}

static void
all_of_them_is_one_field(void **state)
{
	const struct machine_filter m = { .all = true };
	Perfetto__Protos__TraceConfig *t;
	size_t more;

	t = put(&m, NULL, &more);
	assert_non_null(t);
	assert_int_equal(more, 3);
	assert_true(t->trace_all_machines);
	perfetto__protos__trace_config__free_unpacked(t, NULL);
}

static void
a_config_that_says_it_itself_is_left_alone(void **state)
{
	const struct machine_filter m = { .names = { "a" }, .n_names = 1 };
	const struct machine_filter all = { .all = true };
	struct pb_writer in, out;
	size_t more;

	assert_null(put(&m, "x", &more));
	assert_non_null(strstr(err, "machine_name_filter"));
	assert_non_null(strstr(err, "leave out --machine,"));
	pb_writer_init(&in);
	pb_writer_init(&out);
	pb_put_uint(&in, 43, 1);
	assert_int_equal(machine_filter_put(&m, in.data, in.len, &out, err,
	    sizeof(err)), -1);
	assert_non_null(strstr(err, "trace_all_machines"));
	assert_non_null(strstr(err, "leave out --machine,"));
	/* Both say the same, so it is said once. */
	assert_int_equal(machine_filter_put(&all, in.data, in.len, &out, err,
	    sizeof(err)), 0);
	assert_int_equal(out.len, in.len);
	assert_memory_equal(out.data, in.data, in.len);
	pb_writer_done(&in);
	pb_writer_done(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_data_source_gets_the_names),
		cmocka_unit_test(all_of_them_is_one_field),
		cmocka_unit_test(a_config_that_says_it_itself_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
