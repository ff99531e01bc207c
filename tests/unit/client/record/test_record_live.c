#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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

static void
losses_are_the_end_of_the_line(void **state)
{
	struct record_numbers n = recording;
	size_t at;

	n.losses = 7;
	at = record_live_format(line, sizeof(line), &n, 0);
	assert_string_equal(line + at, "7 lost");
	/* Cut off before them. */
	at = record_live_format(line, sizeof(line), &n, 20);
	assert_int_equal(at, strlen(line));
}

/* What the line of these numbers is on a terminal. */
static const char *
on_a_terminal(const struct record_numbers *n, const char *no_color)
{
	static char text[512];
	int err = dup(STDERR_FILENO), master, slave;
	struct record_live *l;
	size_t len = 0;
	ssize_t got;

	assert_true((master = posix_openpt(O_RDWR | O_NOCTTY)) >= 0);
	assert_int_equal(grantpt(master), 0);
	assert_int_equal(unlockpt(master), 0);
	assert_true((slave = open(ptsname(master), O_RDWR | O_NOCTTY)) >= 0);
	setenv("TERM", "xterm", 1);
	setenv("NO_COLOR", no_color, 1);
	dup2(slave, STDERR_FILENO);
	assert_non_null(l = record_live_new(false));
	record_live_show(l, n);
	record_live_free(l);
	dup2(err, STDERR_FILENO);
	do {
		got = read(master, text + len, sizeof(text) - 1 - len);
		assert_true(got > 0);
		text[len += (size_t)got] = '\0';
	} while (strstr(text, "\r\033[K") == NULL);
	close(slave);
	close(master);
	close(err);
	return text;
}

static void
losses_have_a_colour_where_it_is_wanted(void **state)
{
	struct record_numbers n = recording;

	assert_non_null(strstr(on_a_terminal(&n, ""), "nothing lost\033[K"));
	n.losses = 7;
	assert_non_null(strstr(on_a_terminal(&n, ""),
	    "producers  \033[31m7 lost\033[0m\033[K"));
	assert_non_null(strstr(on_a_terminal(&n, "1"),
	    "producers  7 lost\033[K"));
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
		cmocka_unit_test(losses_are_the_end_of_the_line),
		cmocka_unit_test(losses_have_a_colour_where_it_is_wanted),
	};

	return cmocka_run_group_tests_name("record_live", tests, NULL, NULL);
}
