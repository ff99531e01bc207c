#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/text/progress.h"

static void
the_line_is_due_after_a_second_and_then_at_times(void **state)
{
	struct progress p = { .enabled = true, .begun_ms = 5000 };

	(void)state;
	assert_false(progress_is_due(&p, 5000));
	assert_false(progress_is_due(&p, 5000 + PROGRESS_AFTER_MS - 1));
	assert_true(progress_is_due(&p, 5000 + PROGRESS_AFTER_MS));
	p.shown_ms = 9000;
	assert_false(progress_is_due(&p, 9000 + PROGRESS_PERIOD_MS - 1));
	assert_true(progress_is_due(&p, 9000 + PROGRESS_PERIOD_MS));
	p.enabled = false;
	assert_false(progress_is_due(&p, 99000));
}

static void
a_terminal_shows_one_line_which_goes(void **state)
{
	static const char expected[] =
	    "\r\033[?7lsegments read: 1 of 4 (25 %)\033[K\033[?7h\r"
	    "\r\033[K";
	int out = dup(STDERR_FILENO), master, slave;
	struct progress p;
	char text[128] = "";
	size_t n = 0;
	ssize_t got;

	(void)state;
	assert_true((master = posix_openpt(O_RDWR | O_NOCTTY)) >= 0);
	assert_int_equal(grantpt(master), 0);
	assert_int_equal(unlockpt(master), 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	setenv("TERM", "xterm", 1);
	dup2(slave, STDERR_FILENO);
	progress_begin(&p, "segments read", 4);
	p.begun_ms -= PROGRESS_AFTER_MS;
	progress_show(&p, 1);
	progress_show(&p, 2); /* too soon */
	progress_clear(&p);
	progress_clear(&p);
	dup2(out, STDERR_FILENO);
	while (n < sizeof(expected) - 1 && (got = read(master, text + n,
	    sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	assert_string_equal(text, expected);
	close(slave);
	close(master);
	close(out);
}

static void
a_file_gets_no_line(void **state)
{
	int out = dup(STDERR_FILENO), pair[2];
	struct progress p;
	char c;

	(void)state;
	assert_int_equal(pipe(pair), 0);
	dup2(pair[1], STDERR_FILENO);
	progress_begin(&p, "segments read", 4);
	p.begun_ms -= PROGRESS_AFTER_MS;
	progress_show(&p, 1);
	progress_clear(&p);
	dup2(out, STDERR_FILENO);
	close(pair[1]);
	assert_int_equal(read(pair[0], &c, 1), 0);
	close(pair[0]);
	close(out);
}

/* Work of 100 parts, of which `done` are done after so many seconds. */
static uint64_t
left_s(uint64_t done, uint64_t moved_s, uint64_t now_s)
{
	struct progress p = { .total = 100, .begun_ms = 7000 };

	progress_note(&p, done, 7000 + moved_s * 1000);
	return progress_left_ms(&p, 7000 + now_s * 1000) / 1000;
}

static void
the_time_left_goes_by_the_rate_since_the_begin(void **state)
{
	(void)state;
	assert_int_equal(left_s(50, 8, 8), 8);
	assert_int_equal(left_s(25, 10, 10), 30);
	assert_int_equal(left_s(10, 20, 20), 180);
	assert_int_equal(left_s(1, 60, 60), 5940);
	/* Not known yet, or not any more. */
	assert_int_equal(left_s(50, 2, 2), 0);
	assert_int_equal(left_s(0, 9, 9), 0);
	assert_int_equal(left_s(100, 9, 9), 0);
	assert_int_equal(left_s(130, 9, 9), 0);
}

/* With few large parts the rate is that of the last one that was done. */
static void
between_two_steps_the_end_comes_nearer(void **state)
{
	(void)state;
	assert_int_equal(left_s(50, 8, 10), 6);
	assert_int_equal(left_s(50, 8, 15), 1);
	assert_int_equal(left_s(50, 8, 17), 0); /* later than it seemed */
}

static void
the_time_left_does_not_flicker(void **state)
{
	struct progress p = { .total = 1000, .begun_ms = 1 };
	uint64_t now, last = UINT64_MAX;

	(void)state;
	/* Each step takes 40 or 60 ms. */
	for (now = 1; p.done < 999; now += p.done % 2 == 0 ? 40 : 60) {
		progress_note(&p, p.done + 1, now);
		p.left_ms = progress_left_ms(&p, now);
		if (p.left_ms == 0)
			continue;
		assert_true(p.left_ms <= last);
		last = p.left_ms;
	}
	assert_int_equal(last, 1000);
	/* Much slower than it seemed is told. */
	p = (struct progress){ .total = 100, .begun_ms = 1, .left_ms = 10000 };
	progress_note(&p, 10, 9001);
	assert_int_equal(progress_left_ms(&p, 9001), 90000);
}

static void
absurd_totals_do_no_harm(void **state)
{
	struct progress p = { .total = UINT64_MAX, .begun_ms = 1 };

	(void)state;
	progress_note(&p, 1, 900001);
	assert_true(progress_left_ms(&p, 900001) > 0);
}

static void
the_text_says_what_is_known(void **state)
{
	struct progress p = { .what = "segments read", .total = 34,
		.done = 12 };
	char out[PROGRESS_TEXT_MAX];

	(void)state;
	progress_text(&p, 20000, out);
	assert_string_equal(out, "segments read: 12 of 34 (35 %), 20 s left");
	progress_text(&p, 190000, out);
	assert_string_equal(out, "segments read: 12 of 34 (35 %), 3 min 10 s "
	    "left");
	progress_text(&p, 0, out);
	assert_string_equal(out, "segments read: 12 of 34 (35 %)");
	p.done = 99;
	progress_text(&p, 0, out);
	assert_string_equal(out, "segments read: 34 of 34 (100 %)");
	p = (struct progress){ .what = "sent", .in_bytes = true,
		.total = 4 << 20, .done = 1 << 20 };
	progress_text(&p, 9000, out);
	assert_string_equal(out, "sent: 1.0 MiB of 4.0 MiB (25 %), 9 s left");
	progress_expect(&p, 0);
	progress_text(&p, 0, out);
	assert_string_equal(out, "sent: 1.0 MiB so far");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    the_line_is_due_after_a_second_and_then_at_times),
		cmocka_unit_test(a_terminal_shows_one_line_which_goes),
		cmocka_unit_test(a_file_gets_no_line),
		cmocka_unit_test(
		    the_time_left_goes_by_the_rate_since_the_begin),
		cmocka_unit_test(between_two_steps_the_end_comes_nearer),
		cmocka_unit_test(the_time_left_does_not_flicker),
		cmocka_unit_test(absurd_totals_do_no_harm),
		cmocka_unit_test(the_text_says_what_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
