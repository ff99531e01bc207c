#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "segment_test_folder.h"
#include "split_world.h"
#include "transport/segment/segment_folder.h"
#include "transport/segment/segment_path.h"
#include "transport/segment/segment_writer.h"

static char folder[PATH_MAX];
static char told[1000]; /* "PATH number machine packets last " */

static void
written(void *arg, const struct segment_written *of)
{
	size_t n = strlen(told);

	snprintf(told + n, sizeof(told) - n, "%s %u %s %u %s ", of->path,
	    (unsigned)of->number, of->machine_name, (unsigned)of->packets,
	    of->last ? "last" : "on");
}

static int
setup(void **state)
{
	told[0] = '\0';
	test_folder_make(folder);
	return 0;
}

static int
teardown(void **state)
{
	test_folder_remove(folder);
	return 0;
}

static struct segment_writer *
writer_new(void)
{
	const struct segment_writer_options o = { .pattern = "%n.pftrace",
		.recording = "r", .written = written };
	struct segment_writer *w = segment_writer_new(test_folder_open(folder,
	    NULL), &o);

	assert_non_null(w);
	return w;
}

/* Puts packets, as protobuf text, by way of a splitter that is not used. */
static int
put(struct segment_writer *w, const char *const *texts, size_t n)
{
	struct world *world = world_new(false);
	size_t i;
	int rc;

	for (i = 0; i < n; i++)
		world_add(world, texts[i]);
	rc = segment_writer_put(w, world->input.data, world->input.len);
	world_free(world);
	return rc;
}

#define PUT(w, ...) put(w, (const char *const []){ __VA_ARGS__ },             \
	sizeof((const char *const []){ __VA_ARGS__ }) / sizeof(char *))
#define FIRST SERVICE WORLD_UUID
#define EVENT(t) "trusted_packet_sequence_id: 7 timestamp: " #t

static void
each_segment_is_a_file_that_is_told_when_it_is_whole(void **state)
{
	struct segment_writer *w = writer_new();

	assert_int_equal(PUT(w, FIRST, EVENT(1), EVENT(2)), 0);
	assert_int_equal(segment_writer_number(w), 1);
	assert_int_equal(segment_writer_total(w), 0);
	assert_int_equal(segment_writer_flush(w), 0);
	assert_int_equal(segment_writer_largest(w), 2 * 2 * 6);
	assert_int_equal(PUT(w, CUT_BEGIN(2), CUT_END(2), EVENT(3)), 0);
	assert_string_equal(told, "000001.pftrace 1  2 on ");
	assert_int_equal(segment_writer_number(w), 2);
	assert_int_equal(segment_writer_finish(w), 0);
	assert_string_equal(told,
	    "000001.pftrace 1  2 on 000002.pftrace 2  1 last ");
	assert_int_equal(test_folder_mode(folder, "000002.pftrace.part"), 0);
	segment_writer_free(w);
}

/* Puts a packet of a producer with 2000 bytes. */
static void
put_large(struct segment_writer *w)
{
	char text[2100];

	snprintf(text, sizeof(text), "trusted_packet_sequence_id: 7 "
	    "for_testing { str: \"%01950d\" }", 0);
	assert_int_equal(PUT(w, text), 0);
}

static void
what_is_repeated_does_not_make_a_segment_large(void **state)
{
	struct segment_writer *w = writer_new();
	uint64_t head;
	char config[4100];

	snprintf(config, sizeof(config), SERVICE "tributary_repeated: true "
	    "trace_config { unique_session_name: \"%04000d\" }", 0);
	assert_int_equal(PUT(w, FIRST, CUT_BEGIN(2), CUT_END(2), config), 0);
	assert_int_equal(segment_writer_flush(w), 0);
	head = segment_writer_total(w);
	assert_true(head > 4000);
	assert_int_equal(segment_writer_largest(w), 0);
	put_large(w);
	assert_int_equal(segment_writer_flush(w), 0);
	assert_in_range(segment_writer_largest(w), 3900, 4100);
	put_large(w);
	put_large(w);
	put_large(w);
	assert_int_equal(segment_writer_flush(w), 0);
	assert_in_range(segment_writer_largest(w), 7900, head + 8200);
	assert_int_equal(segment_writer_finish(w), 0);
	segment_writer_free(w);
}

static void
a_writer_that_is_left_leaves_whole_packets(void **state)
{
	struct segment_writer *w = writer_new();
	uint8_t *data;
	size_t len;

	assert_int_equal(PUT(w, FIRST, EVENT(1)), 0);
	assert_int_equal(segment_writer_sync(w), 0);
	assert_int_equal(PUT(w, EVENT(2)), 0);
	segment_writer_free(w);
	data = test_folder_read(folder, "000001.pftrace", &len);
	assert_non_null(data);
	assert_string_equal(told, "");
	free(data);
}

static void
bytes_that_are_no_packets_are_an_error(void **state)
{
	struct segment_writer *w = writer_new();

	assert_int_equal(segment_writer_put(w, (const uint8_t *)"no", 2), -2);
	assert_non_null(strstr(segment_writer_error(w), "no trace"));
	assert_int_equal(segment_writer_put(w, (const uint8_t *)"", 0), -2);
	segment_writer_free(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    each_segment_is_a_file_that_is_told_when_it_is_whole,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(
		    what_is_repeated_does_not_make_a_segment_large, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    a_writer_that_is_left_leaves_whole_packets, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    bytes_that_are_no_packets_are_an_error, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
