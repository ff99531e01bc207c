#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/upload/s3/s3_answer.h"
#include "client/upload/s3/s3_outcome.h"
#include "client/upload/s3/xml_walk.h"

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define NS " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

static void
an_error_has_a_code_and_a_message(void **state)
{
	static const char body[] = HEAD "<Error><Code>SlowDown</Code><Message>"
	    "Reduce &amp; wait</Message><RequestId>1</RequestId></Error>";
	struct s3_error e;

	assert_true(s3_error_read(&e, body, strlen(body)));
	assert_string_equal(e.code, "SlowDown");
	assert_string_equal(e.message, "Reduce & wait");
	assert_false(s3_error_read(&e, "busy", 4));
	assert_string_equal(e.code, "");
	assert_false(s3_error_read(&e, "", 0));
	assert_false(s3_error_read(&e, "<Error>", 7));
}

static void
an_upload_has_an_id_and_an_end(void **state)
{
	static const char begun[] = HEAD "<InitiateMultipartUploadResult" NS
	    "><Bucket>b</Bucket><Key>k</Key><UploadId>2~x&#x2b;y</UploadId>"
	    "</InitiateMultipartUploadResult>";
	static const char done[] = "<CompleteMultipartUploadResult" NS
	    "><ETag>&quot;abc-2&quot;</ETag></CompleteMultipartUploadResult>";
	static const char failed[] = HEAD "<Error><Code>InternalError</Code>"
	    "</Error>";
	char *id;

	assert_null(s3_upload_id_read(failed, strlen(failed)));
	id = s3_upload_id_read(begun, strlen(begun));
	assert_string_equal(id, "2~x+y");
	free(id);
	assert_true(s3_is_completed(done, strlen(done)));
	assert_false(s3_is_completed(failed, strlen(failed)));
}

static void
a_page_of_objects_has_decoded_keys_and_the_way_to_the_next(void **state)
{
	static const char body[] = HEAD "<ListBucketResult" NS "><Name>b"
	    "</Name><EncodingType>url</EncodingType><IsTruncated>true"
	    "</IsTruncated><NextContinuationToken>t%20</NextContinuationToken>"
	    "<Contents><Key>a%20b.json</Key><Size>12</Size>"
	    "<ETag>&quot;e1&quot;</ETag><Owner><ID>o</ID></Owner></Contents>"
	    "<Contents><Key>c</Key><Size>18446744073709551606</Size>"
	    "<ETag>e2</ETag></Contents></ListBucketResult>";
	struct s3_page page;

	assert_int_equal(s3_page_read(&page, S3_OBJECTS, body, strlen(body)),
	    0);
	assert_int_equal(page.n, 2);
	assert_string_equal(page.entries[0].key, "a b.json");
	assert_string_equal(page.entries[0].etag, "e1");
	assert_int_equal(page.entries[0].size, 12);
	assert_string_equal(page.entries[1].key, "c");
	assert_true(page.more);
	assert_string_equal(page.next, "t%20");
	s3_page_done(&page);
}

static void
pages_of_uploads_and_parts_are_read(void **state)
{
	static const char uploads[] = "<ListMultipartUploadsResult" NS
	    "><NextKeyMarker>k</NextKeyMarker><NextUploadIdMarker>9"
	    "</NextUploadIdMarker><IsTruncated>true</IsTruncated><Upload>"
	    "<Key>k</Key><UploadId>9</UploadId></Upload>"
	    "</ListMultipartUploadsResult>";
	static const char parts[] = "<ListPartsResult" NS "><UploadId>9"
	    "</UploadId><IsTruncated>false</IsTruncated><Part><PartNumber>3"
	    "</PartNumber><ETag>&quot;m&quot;</ETag><Size>5242880</Size>"
	    "</Part></ListPartsResult>";
	struct s3_page page;

	assert_int_equal(s3_page_read(&page, S3_UPLOADS, uploads,
	    strlen(uploads)), 0);
	assert_int_equal(page.n, 1);
	assert_string_equal(page.entries[0].id, "9");
	assert_string_equal(page.next, "k");
	assert_string_equal(page.next_id, "9");
	s3_page_done(&page);
	assert_int_equal(s3_page_read(&page, S3_PARTS, parts, strlen(parts)),
	    0);
	assert_int_equal(page.n, 1);
	assert_int_equal(page.entries[0].number, 3);
	assert_int_equal(page.entries[0].size, 5242880);
	assert_false(page.more);
	s3_page_done(&page);
}

static void
bodies_that_are_no_listing_are_refused(void **state)
{
	static const char *const bodies[] = {
		"",
		"<html><body>It works!</body></html>",
		"<ListBucketResult><Contents></Contents></ListBucketResult>",
		"<ListBucketResult><Contents><Key>a</Key><Size>-1</Size>"
		"</Contents></ListBucketResult>",
		"<ListBucketResult><IsTruncated>true</IsTruncated>"
		"</ListBucketResult>",
		"<ListBucketResult><Contents><Key>a</Key></Contents>",
		"<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult/>",
	};
	struct s3_page page;
	size_t i;

	for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		assert_int_equal(s3_page_read(&page, S3_OBJECTS, bodies[i],
		    strlen(bodies[i])), -1);
		assert_int_equal(page.n, 0);
	}
}

static int
no_cb(void *arg, const char *path, const char *text)
{
	return 0;
}

static void
a_document_without_bounds_is_refused(void **state)
{
	static char deep[3 * 1000 + 1], long_text[XML_WALK_TEXT_MAX + 32];
	size_t i;

	for (i = 0; i < 1000; i++)
		memcpy(deep + 3 * i, "<a>", 3);
	assert_int_equal(xml_walk(deep, strlen(deep), no_cb, NULL), -1);
	memset(long_text, 'x', sizeof(long_text));
	memcpy(long_text, "<a>", 3);
	memcpy(long_text + sizeof(long_text) - 5, "</a>", 5);
	assert_int_equal(xml_walk(long_text, strlen(long_text), no_cb, NULL),
	    -1);
}

static void
an_answer_says_whether_to_try_again(void **state)
{
	static const struct {
		long status;
		const char *code;
		enum s3_outcome outcome;
	} cases[] = {
		{ 200, "", S3_OK },
		{ 204, "", S3_OK },
		{ 200, "InternalError", S3_BUSY },
		{ 0, "", S3_BUSY },
		{ 500, "InternalError", S3_BUSY },
		{ 503, "", S3_BUSY },
		{ 429, "", S3_BUSY },
		{ 400, "RequestTimeout", S3_BUSY },
		{ 409, "ConditionalRequestConflict", S3_BUSY },
		{ 403, "SignatureDoesNotMatch", S3_DENIED },
		{ 400, "ExpiredToken", S3_DENIED },
		{ 404, "NoSuchKey", S3_ABSENT },
		{ 404, "NoSuchUpload", S3_ABSENT },
		{ 404, "NoSuchBucket", S3_REFUSED },
		{ 412, "PreconditionFailed", S3_EXISTS },
		{ 400, "XAmzContentSHA256Mismatch", S3_DAMAGED },
		{ 400, "BadDigest", S3_DAMAGED },
		{ 400, "EntityTooLarge", S3_REFUSED },
		{ 301, "PermanentRedirect", S3_REFUSED },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(s3_outcome_of(cases[i].status, cases[i].code),
		    cases[i].outcome);
	assert_string_equal(s3_outcome_name(S3_DENIED), "denied");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_has_a_code_and_a_message),
		cmocka_unit_test(an_upload_has_an_id_and_an_end),
		cmocka_unit_test(
		    a_page_of_objects_has_decoded_keys_and_the_way_to_the_next),
		cmocka_unit_test(pages_of_uploads_and_parts_are_read),
		cmocka_unit_test(bodies_that_are_no_listing_are_refused),
		cmocka_unit_test(a_document_without_bounds_is_refused),
		cmocka_unit_test(an_answer_says_whether_to_try_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
