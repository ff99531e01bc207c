#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "client/record/advice.h"
#include "protos/service_state.pb-c.h"
#include "protos/trace_config.pb-c.h"

/* A service with one local and one remote producer, one data source each. */
static Perfetto__Protos__TracingServiceState__Producer producers[2];
static Perfetto__Protos__DataSourceDescriptor descriptors[2];
static Perfetto__Protos__TracingServiceState__DataSource offers[2];
static Perfetto__Protos__TracingServiceState service;
static Perfetto__Protos__TracingServiceState__Producer *producer_list[2];
static Perfetto__Protos__TracingServiceState__DataSource *offer_list[2];

static Perfetto__Protos__DataSourceConfig wanted_config;
static Perfetto__Protos__TraceConfig__DataSource wanted;
static Perfetto__Protos__TraceConfig__DataSource *wanted_list[1];
static Perfetto__Protos__TraceConfig config;

static char said[600];

static void
say(void *arg, const char *sentence)
{
	size_t n = strlen(said);

	snprintf(said + n, sizeof(said) - n, "%s\n", sentence);
}

static int
setup(void **state)
{
	static char local[] = "linux.sys_stats", remote[] = "linux.ftrace";
	static char machine[] = "vm", ours[] = "Tributary 1", rack[] = "rack";
	int i;

	perfetto__protos__tracing_service_state__init(&service);
	for (i = 0; i < 2; i++) {
		perfetto__protos__tracing_service_state__producer__init(
		    &producers[i]);
		perfetto__protos__tracing_service_state__data_source__init(
		    &offers[i]);
		perfetto__protos__data_source_descriptor__init(
		    &descriptors[i]);
		producers[i].id = i + 1;
		producers[i].machine_id = i == 0 ? 0 : 77;
		descriptors[i].name = i == 0 ? local : remote;
		offers[i].producer_id = i + 1;
		offers[i].ds_descriptor = &descriptors[i];
		producer_list[i] = &producers[i];
		offer_list[i] = &offers[i];
	}
	producers[0].machine_name = rack;
	producers[1].machine_name = machine;
	service.tracing_service_version = ours;
	service.n_producers = service.n_data_sources = 2;
	service.producers = producer_list;
	service.data_sources = offer_list;

	perfetto__protos__data_source_config__init(&wanted_config);
	perfetto__protos__trace_config__data_source__init(&wanted);
	perfetto__protos__trace_config__init(&config);
	wanted.config = &wanted_config;
	wanted_list[0] = &wanted;
	config.n_data_sources = 1;
	config.data_sources = wanted_list;
	said[0] = '\0';
	return 0;
}

static const char *
advice_about(const char *name)
{
	wanted_config.name = (char *)(uintptr_t)name;
	record_advice(&config, &service, say, NULL);
	return said;
}

static void
what_is_offered_here_needs_no_advice(void **state)
{
	assert_string_equal(advice_about("linux.sys_stats"), "");
}

static void
a_name_nobody_offers_is_told_with_the_nearest_one(void **state)
{
	assert_non_null(strstr(advice_about("linux.sys_stat"),
	    "did you mean \"linux.sys_stats\"?\n"
	    "as things are, nothing will be recorded\n"));
}

static void
a_name_like_no_other_may_come_later(void **state)
{
	assert_non_null(strstr(advice_about("org.example"),
	    "no producer offers \"org.example\" now; it is recorded once"));
}

static void
what_only_other_machines_offer_says_what_to_set(void **state)
{
	assert_non_null(strstr(advice_about("linux.ftrace"),
	    "--all-machines or --machine NAME, or set trace_all_machines: true"));
}

static void
machines_that_were_asked_for_need_no_advice(void **state)
{
	static char name[] = "vm";
	char *filter[] = { name };

	config.trace_all_machines = true;
	assert_string_equal(advice_about("linux.ftrace"), "");
	config.trace_all_machines = false;
	wanted.n_machine_name_filter = 1;
	wanted.machine_name_filter = filter;
	assert_string_equal(advice_about("linux.ftrace"), "");
}

static const char *
advice_about_machine(char *machine, const char *source)
{
	char *filter[] = { machine };

	wanted.n_machine_name_filter = 1;
	wanted.machine_name_filter = filter;
	return advice_about(source);
}

static void
a_pattern_of_machines_is_as_good_as_a_name(void **state)
{
	static char pattern[] = "v*";

	assert_string_equal(advice_about_machine(pattern, "linux.ftrace"), "");
}

static void
the_collectors_own_machine_has_two_names(void **state)
{
	static char host[] = "host", own[] = "rack";

	assert_string_equal(advice_about_machine(host, "linux.sys_stats"), "");
	assert_string_equal(advice_about_machine(own, "linux.sys_stats"), "");
}

static void
a_collector_that_knows_no_patterns_is_told_of(void **state)
{
	static char pattern[] = "v*", other[] = "Perfetto v58";

	service.tracing_service_version = other;
	assert_non_null(strstr(advice_about_machine(pattern, "linux.ftrace"),
	    "name each machine"));
}

static void
a_machine_that_is_not_there_is_told_with_the_nearest_name(void **state)
{
	static char machine[] = "vn", source[] = "linux.ftrace";
	char *filter[] = { machine };

	wanted.n_machine_name_filter = 1;
	wanted.machine_name_filter = filter;
	wanted_config.name = source;
	record_advice(&config, &service, say, NULL);
	assert_non_null(strstr(said, "no machine called \"vn\" has a producer "
	    "here now; did you mean \"vm\"?"));
	assert_non_null(strstr(said, "no machine that was asked for offers "
	    "\"linux.ftrace\" now"));
	assert_non_null(strstr(said, "nothing will be recorded"));
}

static void
a_producer_that_the_filter_leaves_out_is_told_of(void **state)
{
	static char here[] = "probes", wants[] = "other";
	char *filter[] = { wants };

	producers[0].name = here;
	wanted.n_producer_name_filter = 1;
	wanted.producer_name_filter = filter;
	assert_non_null(strstr(advice_about("linux.sys_stats"),
	    "producer_name_filter"));
	wants[0] = '\0';
	filter[0] = here;
	said[0] = '\0';
	assert_string_equal(advice_about("linux.sys_stats"), "");
}

static void
count(void *arg, const char *sentence)
{
	++*(int *)arg;
	snprintf(said, sizeof(said), "%s", sentence);
}

static void
a_long_list_is_cut(void **state)
{
	static Perfetto__Protos__TraceConfig__DataSource *many[40];
	static char name[] = "org.example";
	int i, n = 0;

	for (i = 0; i < 40; i++)
		many[i] = &wanted;
	wanted_config.name = name;
	config.n_data_sources = 40;
	config.data_sources = many;
	record_advice(&config, &service, count, &n);
	assert_int_equal(n, RECORD_ADVICE_MAX + 2);
	assert_string_equal(said, "as things are, nothing will be recorded");
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(what_is_offered_here_needs_no_advice),
		T(a_name_nobody_offers_is_told_with_the_nearest_one),
		T(a_name_like_no_other_may_come_later),
		T(what_only_other_machines_offer_says_what_to_set),
		T(machines_that_were_asked_for_need_no_advice),
		T(a_pattern_of_machines_is_as_good_as_a_name),
		T(the_collectors_own_machine_has_two_names),
		T(a_collector_that_knows_no_patterns_is_told_of),
		T(a_machine_that_is_not_there_is_told_with_the_nearest_name),
		T(a_producer_that_the_filter_leaves_out_is_told_of),
		T(a_long_list_is_cut),
	};

	return cmocka_run_group_tests_name("record_advice", tests, NULL, NULL);
}
