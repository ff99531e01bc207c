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
	    "\rsegments read: 1 of 4 (25 %)\033[K\r\033[K";
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
	p.begun_ms = 0;
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
	p.begun_ms = 0;
	progress_show(&p, 1);
	progress_clear(&p);
	dup2(out, STDERR_FILENO);
	close(pair[1]);
	assert_int_equal(read(pair[0], &c, 1), 0);
	close(pair[0]);
	close(out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    the_line_is_due_after_a_second_and_then_at_times),
		cmocka_unit_test(a_terminal_shows_one_line_which_goes),
		cmocka_unit_test(a_file_gets_no_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
