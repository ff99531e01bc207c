#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/cert/index.h"
#include "transport/socket/roles.h"

#define HEADER "# tributary certificates 1\n"
#define DATES  "\t2026-11-21T07:30:00Z\t2029-02-23T07:30:00Z\t"

static char err[256];

static int
parse(struct cert_index *x, const char *text)
{
	*x = (struct cert_index){ 0 };
	err[0] = '\0';
	return cert_index_parse(x, text, strlen(text), err, sizeof(err));
}

static void
assert_refused(const char *line, const char *why)
{
	struct cert_index x;
	char text[1024];

	snprintf(text, sizeof(text), HEADER "%s", line);
	assert_int_equal(parse(&x, text), -1);
	if (strstr(err, why) == NULL || strstr(err, "line 2") == NULL)
		fail_msg("\"%s\" was refused with: %s", line, err);
	cert_index_done(&x);
}

static void
what_is_printed_is_parsed_again(void **state)
{
	static const char text[] = HEADER
	    "AB01\thost\tcollector" DATES "valid\t-\t-\n"
	    "AB02\tAnn O'Hara\tconsumer" DATES "replaced\t-\t-\n"
	    "AB03\tj\xc3\xbcrgen\tadmin" DATES
	    "revoked\t2026-12-01T00:00:00Z\tkey-compromise\n";
	struct cert_index x;
	char *again;
	size_t len;

	assert_int_equal(parse(&x, text), 0);
	assert_int_equal(x.n, 3);
	assert_int_equal(x.entries[0].role, 0);
	assert_int_equal(x.entries[0].from, 1795246200);
	assert_string_equal(x.entries[1].name, "Ann O'Hara");
	assert_int_equal(x.entries[1].role, ROLE_CONSUMER);
	assert_int_equal(x.entries[1].state, CERT_REPLACED);
	assert_int_equal(x.entries[2].reason, CERT_REASON_KEY_COMPROMISE);
	again = cert_index_text(&x, &len);
	assert_int_equal(len, strlen(text));
	assert_string_equal(again, text);
	free(again);
	cert_index_done(&x);
}

static void
an_empty_index_and_comments_are_fine(void **state)
{
	struct cert_index x;

	assert_int_equal(parse(&x, HEADER), 0);
	assert_int_equal(x.n, 0);
	cert_index_done(&x);
	assert_int_equal(parse(&x, HEADER "# by hand\n"), 0);
	assert_int_equal(x.n, 0);
	cert_index_done(&x);
}

static void
another_file_is_not_taken_for_an_index(void **state)
{
	struct cert_index x;

	assert_int_equal(parse(&x, ""), -1);
	cert_index_done(&x);
	assert_int_equal(parse(&x, "# tributary certificates 2\n"), -1);
	assert_non_null(strstr(err, "line 1"));
	cert_index_done(&x);
}

static void
each_field_is_checked(void **state)
{
	assert_refused("AB\tn\tproducer" DATES "valid\t-\n", "eight fields");
	assert_refused("AB\tn\tproducer" DATES "valid\t-\t-\t-\n",
	    "eight fields");
	assert_refused("xy\tn\tproducer" DATES "valid\t-\t-\n", "serial");
	assert_refused("ab\tn\tproducer" DATES "valid\t-\t-\n", "serial");
	assert_refused("\tn\tproducer" DATES "valid\t-\t-\n", "serial");
	assert_refused("AB\t../n\tproducer" DATES "valid\t-\t-\n", "a name");
	assert_refused("AB\t\tproducer" DATES "valid\t-\t-\n", "a name");
	assert_refused("AB\tn\tking" DATES "valid\t-\t-\n", "role");
	assert_refused("AB\tn\tPRODUCER" DATES "valid\t-\t-\n", "role");
	assert_refused("AB\tn\tproducer\t2026-02-31T00:00:00Z\t"
	    "2029-02-23T07:30:00Z\tvalid\t-\t-\n", "time");
	assert_refused("AB\tn\tproducer\t2026-11-21\t2029-02-23T07:30:00Z\t"
	    "valid\t-\t-\n", "time");
	assert_refused("AB\tn\tproducer" DATES "good\t-\t-\n", "state");
	assert_refused("AB\tn\tproducer" DATES "valid\t-\tsuperseded\n",
	    "state");
	assert_refused("AB\tn\tproducer" DATES "revoked\t-\t-\n", "state");
	assert_refused("AB\tn\tproducer" DATES
	    "revoked\t2026-12-01T00:00:00Z\twhim\n", "state");
	assert_refused("AB\tn\tproducer" DATES "valid\t-\t-", "complete");
	assert_refused("\n", "eight fields");
}

static void
a_line_that_is_too_long_is_refused(void **state)
{
	char line[400];

	memset(line, 'A', sizeof(line));
	line[sizeof(line) - 2] = '\n';
	line[sizeof(line) - 1] = '\0';
	assert_refused(line, "not of our making");
}

static void
the_newest_of_a_name_is_found(void **state)
{
	static const char text[] = HEADER
	    "01\ta\tproducer" DATES "valid\t-\t-\n"
	    "02\ta\tproducer" DATES "valid\t-\t-\n"
	    "03\thost\tcollector" DATES "replaced\t-\t-\n"
	    "04\thost\tcollector" DATES "valid\t-\t-\n";
	struct cert_index x;

	assert_int_equal(parse(&x, text), 0);
	assert_string_equal(cert_index_find(&x, "a", CERT_VALID)->serial, "02");
	assert_null(cert_index_find(&x, "a", CERT_REVOKED));
	assert_null(cert_index_find(&x, "host", CERT_VALID));
	assert_string_equal(cert_index_collector(&x)->serial, "04");
	assert_string_equal(cert_index_by_serial(&x, "01")->name, "a");
	assert_null(cert_index_by_serial(&x, "0"));
	assert_null(cert_index_by_serial(&x, "011"));
	cert_index_done(&x);
}

static void
serial_numbers_are_found_however_they_are_written(void **state)
{
	static const char text[] = HEADER
	    "AB01CD\ta\tproducer" DATES "valid\t-\t-\n";
	struct cert_index x;

	assert_int_equal(parse(&x, text), 0);
	assert_non_null(cert_index_by_serial(&x, "ab01cd"));
	assert_non_null(cert_index_by_serial(&x, "ab:01:CD"));
	assert_null(cert_index_by_serial(&x, "ab:01"));
	cert_index_done(&x);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_printed_is_parsed_again),
		cmocka_unit_test(an_empty_index_and_comments_are_fine),
		cmocka_unit_test(another_file_is_not_taken_for_an_index),
		cmocka_unit_test(each_field_is_checked),
		cmocka_unit_test(a_line_that_is_too_long_is_refused),
		cmocka_unit_test(the_newest_of_a_name_is_found),
		cmocka_unit_test(
		    serial_numbers_are_found_however_they_are_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
