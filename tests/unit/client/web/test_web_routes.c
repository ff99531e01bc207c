#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/web/web_routes.h"
#include "client/web/web_snapshot.h"

/* The body, to be freed. */
static char *
print(const char *path, const struct web_snapshot *s, unsigned *status)
{
	const struct web_route *r = web_routes_find(path);
	struct web_asked a = { .collector = "unix:/run/c" };
	char *text = NULL;
	size_t size;
	FILE *out;

	assert_non_null(r);
	web_query_init(&a.query);
	out = open_memstream(&text, &size);
	assert_non_null(out);
	*status = r->print(&a, s, out);
	fclose(out);
	return text;
}

static void
paths_are_whole(void **state)
{
	static const char *const none[] = { "", "/metrics/", "/Metrics",
		"/../metrics", "//", "/style.css/x" };
	size_t i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_null(web_routes_find(none[i]));
	assert_string_equal(web_routes_find("/metrics")->path, "/metrics");
}

static void
what_a_token_guards_is_all_that_asks_the_collector(void **state)
{
	static const char *const paths[] = { "/", "/style.css", "/metrics",
		"/healthz", "/readyz" };
	const struct web_route *r;
	size_t i;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_non_null(r = web_routes_find(paths[i]));
		assert_true(r->is_open != r->asks);
	}
}

static void
what_is_of_the_archive_has_a_job_or_is_static(void **state)
{
	const struct web_route *r;

	r = web_routes_find("/archive");
	assert_true(r->is_archive && r->scripts && !r->is_open);
	assert_int_equal(r->job, WEB_JOB_PAGE);
	r = web_routes_find("/archive/trace");
	assert_true(r->is_archive && !r->scripts && !r->is_open);
	assert_int_equal(r->job, WEB_JOB_TRACE);
	r = web_routes_find("/archive.js");
	assert_true(r->is_archive && !r->scripts && r->is_open);
	assert_non_null(r->print);
	/* No other page may run scripts. */
	assert_false(web_routes_find("/")->scripts);
}

static void
readiness_is_the_collectors_and_health_our_own(void **state)
{
	struct web_snapshot s = { .why = "" };
	unsigned status;
	char *text;

	text = print("/readyz", &s, &status);
	assert_int_equal(status, 200);
	assert_string_equal(text, "ready\n");
	free(text);
	strcpy(s.why, "connection refused");
	text = print("/readyz", &s, &status);
	assert_int_equal(status, 503);
	assert_non_null(strstr(text, "connection refused"));
	free(text);
	text = print("/healthz", NULL, &status);
	assert_int_equal(status, 200);
	assert_string_equal(text, "healthy\n");
	free(text);
	text = print("/metrics", &s, &status);
	assert_int_equal(status, 200);
	assert_non_null(strstr(text, "tributary_collector_up 0\n"));
	free(text);
}

static void
the_type_of_metrics_is_that_of_their_form(void **state)
{
	struct web_asked a = { .form = METRICS_OPENMETRICS };

	const struct web_route *metrics = web_routes_find("/metrics");

	assert_string_equal(web_routes_type(metrics, &a, 200),
	    metrics_type(METRICS_OPENMETRICS));
	assert_string_equal(web_routes_type(metrics->of_machine, &a, 404),
	    "text/plain; charset=utf-8");
	assert_string_equal(web_routes_type(web_routes_find("/style.css"), &a,
	    200), "text/css; charset=utf-8");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_whole),
		cmocka_unit_test(what_a_token_guards_is_all_that_asks_the_collector),
		cmocka_unit_test(what_is_of_the_archive_has_a_job_or_is_static),
		cmocka_unit_test(readiness_is_the_collectors_and_health_our_own),
		cmocka_unit_test(the_type_of_metrics_is_that_of_their_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
