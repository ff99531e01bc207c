#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/upload/s3/s3_place.h"

static char err[512];

static void
base_is(const char *url, const char *endpoint, const char *region,
    const char *base, const char *prefix)
{
	struct s3_place p;

	assert_int_equal(s3_place_init(&p, url, endpoint, region, err,
	    sizeof(err)), 0);
	assert_string_equal(p.base, base);
	assert_string_equal(p.prefix, prefix);
	s3_place_done(&p);
}

static void
refused(const char *url, const char *endpoint, const char *why)
{
	struct s3_place p;

	assert_int_equal(s3_place_init(&p, url, endpoint, NULL, err,
	    sizeof(err)), -1);
	assert_non_null(strstr(err, why));
}

static void
an_endpoint_has_the_bucket_in_its_path_or_in_its_name(void **state)
{
	base_is("s3://traces/fleet", "https://store:9000", NULL,
	    "https://store:9000/traces/", "fleet/");
	base_is("s3://traces", "https://store/", NULL,
	    "https://store/traces/", "");
	base_is("s3://traces/a/b/", "https://%bucket.store.example", "x",
	    "https://traces.store.example/", "a/b/");
	base_is("s3://traces", NULL, "eu-central-1",
	    "https://traces.s3.eu-central-1.amazonaws.com/", "");
	base_is("s3://tra.ces", NULL, NULL,
	    "https://s3.us-east-1.amazonaws.com/tra.ces/", "");
}

static void
an_impossible_place_is_refused_with_a_remedy(void **state)
{
	refused("http://traces/x", NULL, "s3://bucket/prefix");
	refused("s3://", NULL, "names no bucket");
	refused("s3://a b c", NULL, "names no bucket");
	refused("s3://traces/a//b", NULL, "prefix");
	refused("s3://traces/a/../b", NULL, "prefix");
	refused("s3://traces", "store", "https://host");
	refused("s3://traces", "https://store/path", "without a path");
	refused("s3://traces", "https://user:word@store", "https://host");
	refused("s3://traces", "https://", "https://host");
}

static void
plain_http_off_this_machine_is_seen(void **state)
{
	static const struct {
		const char *endpoint;
		bool bare;
	} cases[] = {
		{ "https://store", false },
		{ "http://store", true },
		{ "http://localhost:80", false },
		{ "http://127.0.0.1", false },
		{ "http://[::1]:9000", false },
		{ "http://127.0.0.1.example", true },
	};
	struct s3_place p;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(s3_place_init(&p, "s3://traces",
		    cases[i].endpoint, NULL, err, sizeof(err)), 0);
		assert_int_equal(s3_place_is_bare(&p), cases[i].bare);
		s3_place_done(&p);
	}
}

static void
a_request_is_encoded_and_sorted_as_it_is_signed(void **state)
{
	static const struct s3_parameter parameters[] = {
		{ "uploadId", "2~a/b+c=" },
		{ "partNumber", "7" },
	};
	static const struct s3_parameter uploads = { "uploads", NULL };
	struct s3_place p;
	char *url;

	assert_int_equal(s3_place_init(&p, "s3://traces/f", "https://store",
	    NULL, err, sizeof(err)), 0);
	url = s3_place_request(&p, "f/k 7/\xc3\xa9+%~.x", parameters, 2);
	assert_string_equal(url, "https://store/traces/f/k%207/%C3%A9%2B%25~.x"
	    "?partNumber=7&uploadId=2~a%2Fb%2Bc%3D");
	free(url);
	url = s3_place_request(&p, "f/k", &uploads, 1);
	assert_string_equal(url, "https://store/traces/f/k?uploads=");
	free(url);
	url = s3_place_request(&p, "", NULL, 0);
	assert_string_equal(url, "https://store/traces/");
	free(url);
	s3_place_done(&p);
}

static void
a_key_is_the_prefix_and_the_path_in_the_archive(void **state)
{
	char key[S3_KEY_MAX + 1], path[S3_KEY_MAX + 1];
	struct s3_place p;
	char *url;

	assert_int_equal(s3_place_init(&p, "s3://traces/f", NULL, NULL, err,
	    sizeof(err)), 0);
	assert_int_equal(s3_place_key(&p, "kiosk-7/1.pftrace", key, err,
	    sizeof(err)), 0);
	assert_string_equal(key, "f/kiosk-7/1.pftrace");
	url = s3_place_url_of(&p, key);
	assert_string_equal(url, "s3://traces/f/kiosk-7/1.pftrace");
	assert_string_equal(s3_place_key_of(&p, url), key);
	free(url);
	assert_null(s3_place_key_of(&p, "s3://traces2/f"));
	assert_null(s3_place_key_of(&p, "s3://traces/"));

	assert_int_equal(s3_place_key(&p, "a/../b", key, err, sizeof(err)),
	    -1);
	assert_int_equal(s3_place_key(&p, "a\xff", key, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "UTF-8"));
	memset(path, 'x', S3_KEY_MAX);
	path[S3_KEY_MAX] = '\0';
	assert_int_equal(s3_place_key(&p, path, key, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "1026 bytes"));
	s3_place_done(&p);
}

static void
escapes_are_undone_and_what_is_none_stays(void **state)
{
	char text[] = "a%20b%2Fc%zz%4";

	s3_unescape(text);
	assert_string_equal(text, "a b/c%zz%4");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    an_endpoint_has_the_bucket_in_its_path_or_in_its_name),
		cmocka_unit_test(an_impossible_place_is_refused_with_a_remedy),
		cmocka_unit_test(plain_http_off_this_machine_is_seen),
		cmocka_unit_test(
		    a_request_is_encoded_and_sorted_as_it_is_signed),
		cmocka_unit_test(
		    a_key_is_the_prefix_and_the_path_in_the_archive),
		cmocka_unit_test(escapes_are_undone_and_what_is_none_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
