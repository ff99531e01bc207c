#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/web/web_request.h"

static void
a_query_takes_what_makes_sense(void **state)
{
	struct web_query q;

	web_query_init(&q);
	assert_int_equal(q.page, 1);
	assert_int_equal(q.refresh_s, WEB_REFRESH_S);
	web_query_take(&q, "page=7");
	web_query_take(&q, "refresh=0");
	web_query_take(&q, "q=robot-\xc3\xa4");
	web_query_take(&q, "utm_source=x");
	assert_int_equal(q.page, 7);
	assert_int_equal(q.refresh_s, 0);
	assert_string_equal(q.search, "robot-\xc3\xa4");
}

static void
nonsense_in_a_query_is_skipped(void **state)
{
	static const char *const parts[] = { "page=", "page=0", "page=-1",
		"page=1x", "page=99999999999999999999", "page=100001",
		"refresh=3601", "refresh= 5", "page", "", "=", "pages=3" };
	struct web_query q;
	size_t i;

	web_query_init(&q);
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		web_query_take(&q, parts[i]);
		assert_int_equal(q.page, 1);
		assert_int_equal(q.refresh_s, WEB_REFRESH_S);
	}
}

static void
a_search_is_cut_between_characters_and_keeps_no_controls(void **state)
{
	char long_one[3 + 2 * WEB_SEARCH_MAX];
	struct web_query q;
	size_t i;

	web_query_init(&q);
	web_query_take(&q, "q=a\x1b[31m\xff" "b\xe2\x80\xae");
	assert_string_equal(q.search, "a[31mb");
	strcpy(long_one, "q=");
	for (i = 2; i + 2 < sizeof(long_one); i += 2)
		memcpy(long_one + i, "\xc3\xa4", 2);
	long_one[i] = '\0';
	web_query_take(&q, long_one);
	assert_int_equal(strlen(q.search), (WEB_SEARCH_MAX - 1) / 2 * 2);
}

static void
a_machine_is_meant_by_its_whole_name(void **state)
{
	char part[1000] = "machine=";
	struct web_query q;

	web_query_init(&q);
	assert_false(q.of_machine);
	web_query_take(&q, "machine=");
	assert_true(q.of_machine);
	assert_string_equal(q.machine, "");
	web_query_take(&q, "machine=bus 1\n\xff");
	assert_string_equal(q.machine, "bus 1\n\xff");
	/* Longer than any name, whatever is left of it. */
	memset(part + strlen(part), 'x', 900);
	web_query_take(&q, part);
	assert_int_equal(strlen(q.machine), 256);
}

static void
only_its_own_names_are_a_host(void **state)
{
	struct web_hosts h = { .tls = false };

	assert_int_equal(web_hosts_add(&h, "localhost", 8037), 0);
	assert_int_equal(web_hosts_add(&h, "[::1]", 8037), 0);
	assert_true(web_hosts_has(&h, "localhost:8037"));
	assert_true(web_hosts_has(&h, "LocalHost:8037"));
	assert_true(web_hosts_has(&h, "[::1]:8037"));
	assert_false(web_hosts_has(&h, NULL));
	assert_false(web_hosts_has(&h, ""));
	assert_false(web_hosts_has(&h, "localhost"));
	assert_false(web_hosts_has(&h, "localhost:80"));
	assert_false(web_hosts_has(&h, "localhost:8037.evil.example"));
	assert_false(web_hosts_has(&h, "localhost:8037, localhost:8037"));
}

static void
the_schemes_own_port_may_be_left_out(void **state)
{
	struct web_hosts plain = { .tls = false }, tls = { .tls = true };

	assert_int_equal(web_hosts_add(&plain, "a", 80), 0);
	assert_int_equal(web_hosts_add(&tls, "a", 443), 0);
	assert_true(web_hosts_has(&plain, "a"));
	assert_true(web_hosts_has(&plain, "a:80"));
	assert_true(web_hosts_has(&tls, "a"));
	assert_true(web_hosts_is_origin(&tls, "https://a"));
	assert_false(web_hosts_is_origin(&tls, "http://a"));
	/* Behind a mapping of ports, and behind a proxy. */
	assert_int_equal(web_hosts_add(&plain, "b:8443", 8037), 0);
	assert_true(web_hosts_has(&plain, "b:8443"));
	assert_false(web_hosts_has(&plain, "b:8037"));
	assert_false(web_hosts_has(&plain, "b"));
	assert_int_equal(web_hosts_add(&tls, "b:443", 8037), 0);
	assert_true(web_hosts_is_origin(&tls, "https://b"));
}

static void
an_origin_is_none_or_its_own(void **state)
{
	struct web_hosts h = { .tls = false };

	assert_int_equal(web_hosts_add(&h, "localhost", 8037), 0);
	assert_true(web_hosts_is_origin(&h, NULL));
	assert_true(web_hosts_is_origin(&h, "http://localhost:8037"));
	assert_false(web_hosts_is_origin(&h, "https://localhost:8037"));
	assert_false(web_hosts_is_origin(&h, "http://localhost:8037/"));
	assert_false(web_hosts_is_origin(&h, "null"));
	assert_false(web_hosts_is_origin(&h, ""));
	assert_false(web_hosts_is_origin(&h, "https://ui.perfetto.dev"));
}

static void
other_sites_fetch_is_not_its_own(void **state)
{
	assert_true(web_is_own_fetch(NULL));
	assert_true(web_is_own_fetch("same-origin"));
	assert_true(web_is_own_fetch("none"));
	assert_false(web_is_own_fetch("same-site"));
	assert_false(web_is_own_fetch("cross-site"));
	assert_false(web_is_own_fetch(""));
}

static void
names_are_bounded(void **state)
{
	struct web_hosts h = { .tls = false };
	char name[WEB_HOST_MAX];
	size_t i;

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(web_hosts_add(&h, name, 1), -1);
	for (i = 0; i < WEB_HOSTS_MAX; i++)
		assert_int_equal(web_hosts_add(&h, "a", 1), 0);
	assert_int_equal(web_hosts_add(&h, "a", 1), -1);
}

static void
a_token_is_a_bearer_or_a_password(void **state)
{
	static const char token[] = "0123456789abcdef";

	assert_true(web_authorized(token, "Bearer 0123456789abcdef"));
	assert_true(web_authorized(token, "bearer 0123456789abcdef"));
	/* me:0123456789abcdef, and with other padding */
	assert_true(web_authorized(token, "Basic bWU6MDEyMzQ1Njc4OWFiY2RlZg=="));
	assert_true(web_authorized(token, "Basic bTowMTIzNDU2Nzg5YWJjZGVm"));
	assert_true(web_authorized(token, "Basic OjAxMjM0NTY3ODlhYmNkZWY="));
}

static void
nothing_else_is(void **state)
{
	static const char *const wrong[] = { "", "Bearer", "Bearer ",
		"Bearer 0123456789abcdeF", "Bearer 0123456789abcdef ",
		"Bearer 0123456789abcde", "Bearer  0123456789abcdef",
		"0123456789abcdef", "Digest 0123456789abcdef", "Basic ",
		"Basic ====", "Basic 0123456789abcdef", "Basic !!!!",
		"Basic bWU6MDEyMzQ1Njc4OWFiY2RlZg=", "Basic bWU=" };
	char huge[4 * WEB_TOKEN_MAX];
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(web_authorized("0123456789abcdef", wrong[i]));
	assert_false(web_authorized("0123456789abcdef", NULL));
	memset(huge, 'A', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	memcpy(huge, "Basic ", 6);
	assert_false(web_authorized("0123456789abcdef", huge));
	memcpy(huge, "Bearer ", 7);
	assert_false(web_authorized("0123456789abcdef", huge));
}

static void
openmetrics_is_for_who_asks(void **state)
{
	assert_int_equal(web_metrics_form(NULL), METRICS_PROMETHEUS);
	assert_int_equal(web_metrics_form("*/*"), METRICS_PROMETHEUS);
	assert_int_equal(web_metrics_form("application/openmetrics-text;"
	    "version=1.0.0,text/plain;q=0.5"), METRICS_OPENMETRICS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_query_takes_what_makes_sense),
		cmocka_unit_test(nonsense_in_a_query_is_skipped),
		cmocka_unit_test(
		    a_search_is_cut_between_characters_and_keeps_no_controls),
		cmocka_unit_test(a_machine_is_meant_by_its_whole_name),
		cmocka_unit_test(only_its_own_names_are_a_host),
		cmocka_unit_test(the_schemes_own_port_may_be_left_out),
		cmocka_unit_test(an_origin_is_none_or_its_own),
		cmocka_unit_test(other_sites_fetch_is_not_its_own),
		cmocka_unit_test(names_are_bounded),
		cmocka_unit_test(a_token_is_a_bearer_or_a_password),
		cmocka_unit_test(nothing_else_is),
		cmocka_unit_test(openmetrics_is_for_who_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
