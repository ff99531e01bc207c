#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/record/live_line.h"

static const struct record_numbers recording = {
	.phase = "Recording",
	.elapsed_ms = 3200,
	.expected_ms = 10000,
	.bytes = 1468006,
	.packets = 20331,
	.packets_known = true,
	.chunks = 400,
	.producers = 9,
};
static char line[256];

static void
the_line_tells_time_bytes_packets_producers_and_losses(void **state)
{
	record_live_format(line, sizeof(line), &recording, 0);
	assert_string_equal(line, "Recording  3.2 s of 10.0 s  1.4 MiB  20,331 "
	    "packets  9 producers  nothing lost");
}

static void
chunks_stand_in_for_packets_that_are_not_known(void **state)
{
	struct record_numbers n = recording;

	n.packets_known = false;
	n.expected_ms = 0;
	n.producers = 1;
	n.losses = 1200;
	record_live_format(line, sizeof(line), &n, 0);
	assert_string_equal(line, "Recording  3.2 s  1.4 MiB  400 chunks  1 "
	    "producer  1,200 lost");
}

static void
the_line_never_reaches_the_last_column(void **state)
{
	record_live_format(line, sizeof(line), &recording, 20);
	assert_string_equal(line, "Recording  3.2 s of");
	record_live_format(line, sizeof(line), &recording, 1);
	assert_string_equal(line, "");
	record_live_format(line, 11, &recording, 200);
	assert_string_equal(line, "Recording ");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    the_line_tells_time_bytes_packets_producers_and_losses),
		cmocka_unit_test(
		    chunks_stand_in_for_packets_that_are_not_known),
		cmocka_unit_test(the_line_never_reaches_the_last_column),
	};

	return cmocka_run_group_tests_name("record_live", tests, NULL, NULL);
}
