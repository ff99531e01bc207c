#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/metrics/metrics_text.h"
#include "protos/control.pb-c.h"

typedef Tributary__QueryMetricsReply reply;
typedef Tributary__QueryMetricsReply__Count count;
typedef Tributary__QueryMetricsReply__Delay delay;

static const struct metrics_answers answers[] = { { 200, 12 }, { 404, 3 } };

/* To be freed. */
static char *
print(const reply *r, enum metrics_form form)
{
	Tributary__ProcessMetrics own = TRIBUTARY__PROCESS_METRICS__INIT;
	const struct metrics_page page = { .collector = r, .own = &own,
		.answers = answers, .n_answers = 2, .connections = 5 };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	own.has_cpu_ns = own.has_start_ns = 1;
	own.cpu_ns = 1500000000;
	own.start_ns = 1700000000123456789;
	assert_non_null(out);
	metrics_text_print(out, &page, form);
	fclose(out);
	return text;
}

static void
assert_has(const char *text, const char *lines)
{
	if (strstr(text, lines) == NULL)
		fail_msg("no \"%s\" in:\n%s", lines, text);
}

static void
without_a_collector_only_what_is_known_is_printed(void **state)
{
	char *text = print(NULL, METRICS_PROMETHEUS);

	assert_has(text, "# TYPE tributary_collector_up gauge\n"
	    "tributary_collector_up 0\n");
	assert_has(text, "# TYPE process_cpu_seconds_total counter\n"
	    "process_cpu_seconds_total 1.500000000\n");
	assert_has(text, "process_start_time_seconds 1700000000.123456789\n");
	assert_has(text, "tributary_web_answers_total{code=\"404\"} 3\n");
	assert_null(strstr(text, "tributary_build_info"));
	assert_null(strstr(text, "tributary_sessions"));
	assert_null(strstr(text, "# EOF"));
	free(text);
}

static void
what_an_older_collector_does_not_say_is_left_out(void **state)
{
	reply r = TRIBUTARY__QUERY_METRICS_REPLY__INIT;
	char *text;

	r.version = (char *)"0.0.9";
	r.has_received_bytes = 1;
	r.received_bytes = 123;
	text = print(&r, METRICS_PROMETHEUS);
	assert_has(text, "tributary_build_info{version=\"0.0.9\"} 1\n");
	assert_has(text, "tributary_received_bytes_total 123\n");
	assert_null(strstr(text, "tributary_chunks_written"));
	assert_null(strstr(text, "tributary_event_loop_lag"));
	free(text);
}

static void
openmetrics_names_a_family_without_its_suffix(void **state)
{
	reply r = TRIBUTARY__QUERY_METRICS_REPLY__INIT;
	char *text;

	r.has_received_bytes = 1;
	text = print(&r, METRICS_OPENMETRICS);
	assert_has(text, "# TYPE tributary_received_bytes counter\n"
	    "tributary_received_bytes_total 0\n");
	assert_has(text, "# TYPE tributary_build info\n"
	    "tributary_build_info{version=\"\"} 1\n");
	assert_string_equal(text + strlen(text) - 6, "# EOF\n");
	free(text);
}

static void
a_histogram_adds_up(void **state)
{
	reply r = TRIBUTARY__QUERY_METRICS_REPLY__INIT;
	delay d[3] = { TRIBUTARY__QUERY_METRICS_REPLY__DELAY__INIT,
		TRIBUTARY__QUERY_METRICS_REPLY__DELAY__INIT,
		TRIBUTARY__QUERY_METRICS_REPLY__DELAY__INIT };
	delay *all[3] = { &d[0], &d[1], &d[2] };
	char *text;

	d[0].has_most_ns = d[1].has_most_ns = 1;
	d[0].most_ns = 250000;
	d[1].most_ns = 1000000000;
	d[0].count = 10;
	d[1].count = 5;
	d[2].count = 1;
	r.loop_delays = all;
	r.n_loop_delays = 3;
	r.loop_delay_sum_ns = 2000000001;
	text = print(&r, METRICS_PROMETHEUS);
	assert_has(text,
	    "# TYPE tributary_event_loop_lag_seconds histogram\n"
	    "tributary_event_loop_lag_seconds_bucket{le=\"0.000250000\"} 10\n"
	    "tributary_event_loop_lag_seconds_bucket{le=\"1.000000000\"} 15\n"
	    "tributary_event_loop_lag_seconds_bucket{le=\"+Inf\"} 16\n"
	    "tributary_event_loop_lag_seconds_sum 2.000000001\n"
	    "tributary_event_loop_lag_seconds_count 16\n");
	free(text);
}

static void
labels_are_escaped_and_cut(void **state)
{
	reply r = TRIBUTARY__QUERY_METRICS_REPLY__INIT;
	count c = TRIBUTARY__QUERY_METRICS_REPLY__COUNT__INIT, *all = &c;
	char name[200], *text;

	r.links = &all;
	r.n_links = 1;
	c.value = 9;
	c.label = (char *)"a\"b\\c\nd\xff\x1b\xc3\xa4";
	text = print(&r, METRICS_PROMETHEUS);
	assert_has(text, "tributary_links{state=\"a\\\"b\\\\c\\nd"
	    "\xef\xbf\xbd\xef\xbf\xbd\xc3\xa4\"} 9\n");
	free(text);
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	c.label = name;
	text = print(&r, METRICS_PROMETHEUS);
	name[METRICS_LABEL_MAX] = '\0';
	strcat(name, "\"} 9\n");
	assert_has(text, name);
	free(text);
}

static void
series_are_bounded_whoever_the_collector_is(void **state)
{
	reply r = TRIBUTARY__QUERY_METRICS_REPLY__INIT;
	count c = TRIBUTARY__QUERY_METRICS_REPLY__COUNT__INIT, *all[1000];
	char label[] = "x", *text, *at;
	size_t i, n = 0;

	c.label = label;
	for (i = 0; i < 1000; i++)
		all[i] = &c;
	r.refused = all;
	r.n_refused = 1000;
	text = print(&r, METRICS_PROMETHEUS);
	for (at = text; (at = strstr(at, "\ntributary_refused_total{")) != NULL;
	    at++)
		n++;
	assert_int_equal(n, METRICS_SERIES_MAX);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    without_a_collector_only_what_is_known_is_printed),
		cmocka_unit_test(
		    what_an_older_collector_does_not_say_is_left_out),
		cmocka_unit_test(openmetrics_names_a_family_without_its_suffix),
		cmocka_unit_test(a_histogram_adds_up),
		cmocka_unit_test(labels_are_escaped_and_cut),
		cmocka_unit_test(series_are_bounded_whoever_the_collector_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
