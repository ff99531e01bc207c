#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/record/config_from_names.h"
#include "protos/trace_config.pb-c.h"
#include "transport/wire/pb_writer.h"

static char err[300];

/* The config of a request, decoded; NULL when it was refused. */
static Perfetto__Protos__TraceConfig *
make(const struct config_from_names *request)
{
	Perfetto__Protos__TraceConfig *m = NULL;
	struct pb_writer w;

	err[0] = '\0';
	pb_writer_init(&w);
	if (config_from_names(request, &w, err, sizeof(err)) == 0) {
		m = perfetto__protos__trace_config__unpack(NULL, w.len,
		    w.data);
		assert_non_null(m);
	}
	pb_writer_done(&w);
	return m;
}

static Perfetto__Protos__TraceConfig *
make_names(const char *const *names, size_t n)
{
	const struct config_from_names request = {
		.names = names, .n_names = n, .duration_ms = 10000,
		.buffer_bytes = 32 << 20,
	};

	return make(&request);
}

static const Perfetto__Protos__DataSourceConfig *
source(const Perfetto__Protos__TraceConfig *m, size_t i)
{
	assert_true(i < m->n_data_sources);
	assert_non_null(m->data_sources[i]->config);
	return m->data_sources[i]->config;
}

static void
a_name_becomes_a_data_source_in_one_ring_buffer(void **state)
{
	const char *const names[] = { "org.example.mine" };
	Perfetto__Protos__TraceConfig *m = make_names(names, 1);

	assert_int_equal(m->n_buffers, 1);
	assert_int_equal(m->buffers[0]->size_kb, 32 << 10);
	assert_int_equal(m->buffers[0]->fill_policy,
	    PERFETTO__PROTOS__TRACE_CONFIG__BUFFER_CONFIG__FILL_POLICY__RING_BUFFER);
	assert_int_equal(m->n_data_sources, 1);
	assert_string_equal(source(m, 0)->name, "org.example.mine");
	assert_int_equal(m->duration_ms, 10000);
	assert_false(m->write_into_file);
	perfetto__protos__trace_config__free_unpacked(m, NULL);
}

static void
known_data_sources_get_a_useful_config(void **state)
{
	const char *const names[] = { "linux.sys_stats", "linux.process_stats",
	    "track_event" };
	Perfetto__Protos__TraceConfig *m = make_names(names, 3);

	assert_int_equal(source(m, 0)->sys_stats_config->meminfo_period_ms,
	    1000);
	assert_int_equal(source(m, 0)->sys_stats_config->vmstat_period_ms,
	    1000);
	assert_int_equal(source(m, 0)->sys_stats_config->stat_period_ms, 1000);
	assert_true(source(m, 1)->process_stats_config
	    ->scan_all_processes_on_start);
	assert_int_equal(source(m, 1)->process_stats_config
	    ->proc_stats_poll_ms, 1000);
	assert_int_equal(source(m, 2)->track_event_config
	    ->n_enabled_categories, 1);
	assert_string_equal(source(m, 2)->track_event_config
	    ->enabled_categories[0], "*");
	perfetto__protos__trace_config__free_unpacked(m, NULL);
}

static void
events_of_the_kernel_share_one_ftrace_source_and_name_processes(void **state)
{
	const char *const names[] = { "sched/sched_switch", "track_event",
	    "power/cpu_idle", "sched/sched_switch" };
	Perfetto__Protos__TraceConfig *m = make_names(names, 4);
	const Perfetto__Protos__FtraceConfig *f;

	assert_int_equal(m->n_data_sources, 3);
	assert_string_equal(source(m, 0)->name, "track_event");
	assert_string_equal(source(m, 1)->name, "linux.ftrace");
	f = source(m, 1)->ftrace_config;
	assert_int_equal(f->n_ftrace_events, 2);
	assert_string_equal(f->ftrace_events[0], "sched/sched_switch");
	assert_string_equal(f->ftrace_events[1], "power/cpu_idle");
	assert_true(f->symbolize_ksyms);
	assert_string_equal(source(m, 2)->name, "linux.process_stats");
	perfetto__protos__trace_config__free_unpacked(m, NULL);
}

static void
a_name_that_is_given_twice_counts_once(void **state)
{
	const char *const names[] = { "linux.ftrace", "linux.process_stats",
	    "linux.process_stats", "sched/sched_switch", "linux.ftrace" };
	Perfetto__Protos__TraceConfig *m = make_names(names, 5);

	assert_int_equal(m->n_data_sources, 2);
	assert_int_equal(source(m, 0)->ftrace_config->n_ftrace_events, 1);
	perfetto__protos__trace_config__free_unpacked(m, NULL);
}

static void
a_file_size_makes_the_service_write_the_file(void **state)
{
	const char *const names[] = { "a" };
	const struct config_from_names request = {
		.names = names, .n_names = 1, .buffer_bytes = 1500,
		.max_file_bytes = 100ull << 30,
	};
	Perfetto__Protos__TraceConfig *m = make(&request);

	assert_true(m->write_into_file);
	assert_true(m->max_file_size_bytes == 100ull << 30);
	assert_int_equal(m->duration_ms, 0);
	assert_int_equal(m->buffers[0]->size_kb, 2); /* rounded up */
	perfetto__protos__trace_config__free_unpacked(m, NULL);
}

static void
bad_requests_are_refused_with_a_sentence(void **state)
{
	const char *const bad[] = { "sched/", "/x", "a/b/c", "" };
	const char *const good[] = { "a" };
	const struct config_from_names none = { .buffer_bytes = 1 };
	const struct config_from_names no_buffer = { .names = good,
	    .n_names = 1 };
	const struct config_from_names huge = { .names = good, .n_names = 1,
	    .buffer_bytes = (1ull << 42) + 1 };
	size_t i;

	for (i = 0; i < 3; i++) {
		assert_null(make_names(&bad[i], 1));
		assert_non_null(strstr(err, "is no event"));
	}
	assert_null(make_names(&bad[3], 1));
	assert_non_null(strstr(err, "empty"));
	assert_null(make(&none));
	assert_non_null(strstr(err, "nothing to record"));
	assert_null(make(&no_buffer));
	assert_non_null(strstr(err, "above 0"));
	assert_null(make(&huge));
	assert_non_null(strstr(err, "4 TiB"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    a_name_becomes_a_data_source_in_one_ring_buffer),
		cmocka_unit_test(known_data_sources_get_a_useful_config),
		cmocka_unit_test(
		    events_of_the_kernel_share_one_ftrace_source_and_name_processes),
		cmocka_unit_test(a_name_that_is_given_twice_counts_once),
		cmocka_unit_test(a_file_size_makes_the_service_write_the_file),
		cmocka_unit_test(bad_requests_are_refused_with_a_sentence),
	};

	return cmocka_run_group_tests_name("config_from_names", tests, NULL,
	    NULL);
}
