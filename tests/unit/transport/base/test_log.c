#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/base/log.h"

static void
an_allowance_is_ten_lines_and_then_one_a_second(void **state)
{
	struct log_limit l = { 0 };
	uint32_t swallowed = 99;
	int i;

	for (i = 0; i < 10; i++) {
		assert_true(log_allowed(&l, 5000, &swallowed));
		assert_int_equal(swallowed, 0);
	}
	for (i = 0; i < 7; i++)
		assert_false(log_allowed(&l, 5999, &swallowed));
	assert_true(log_allowed(&l, 6000, &swallowed));
	assert_int_equal(swallowed, 7);
	assert_false(log_allowed(&l, 6000, &swallowed));
	/* A long silence earns ten lines, not more. */
	for (i = 0; i < 10; i++)
		assert_true(log_allowed(&l, 999000, &swallowed));
	assert_false(log_allowed(&l, 999000, &swallowed));
}

static void
an_allowance_survives_a_clock_that_starts_at_zero_or_steps_back(void **state)
{
	struct log_limit l = { 0 };
	uint32_t swallowed;
	int i;

	for (i = 0; i < 10; i++)
		assert_true(log_allowed(&l, 0, &swallowed));
	assert_false(log_allowed(&l, 0, &swallowed));
	assert_true(log_allowed(&l, 1000, &swallowed));
	assert_false(log_allowed(&l, 500, &swallowed));
}

/* Standard error is a pipe that is full, then read, then written again. */
static void
a_log_that_nobody_takes_is_not_waited_for_and_says_what_is_missing(
    void **state)
{
	static char text[1 << 20];
	int fds[2], saved = dup(STDERR_FILENO), i;
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	log_never_wait();
	for (i = 0; i < 5000; i++)
		log_warn("a line like many others, number %d", i);
	assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	assert_true(read(fds[0], text, sizeof(text)) > 0);
	log_warn("the last line");
	n = read(fds[0], text, sizeof(text) - 1);
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "lines of this log are lost"));
	assert_non_null(strstr(text, "the last line"));
	close(saved);
	close(fds[0]);
	close(fds[1]);
}

static void
control_characters_quotes_and_odd_bytes_are_escaped(void **state)
{
	char out[64];

	log_escape(out, sizeof(out), "a\n\"\\'\x7f\xc3 z\0b", 11);
	assert_string_equal(out,
	    "a\\x0a\\x22\\x5c\\x27\\x7f\\xc3 z\\x00b");
}

static void
a_text_that_does_not_fit_ends_in_dots(void **state)
{
	char out[8];

	assert_string_equal(log_escape(out, 8, "1234567", 7), "1234567");
	assert_string_equal(log_escape(out, 8, "12345678", 8), "1234...");
	assert_string_equal(log_escape(out, 8, "12\n45678", 8), "12...");
	assert_string_equal(log_escape(out, 3, "12345678", 8), "..");
	assert_string_equal(log_escape(out, 1, "12345678", 8), "");
	assert_string_equal(log_escape(out, 8, "", 0), "");
}

static void
levels_are_known_by_name(void **state)
{
	enum log_level l = LOG_LEVEL_ERROR;

	assert_int_equal(log_level_parse("debug", &l), 0);
	assert_int_equal(l, LOG_LEVEL_DEBUG);
	assert_int_equal(log_level_parse("warn", &l), 0);
	assert_int_equal(l, LOG_LEVEL_WARN);
	assert_int_equal(log_level_parse("loud", &l), -1);
	assert_int_equal(l, LOG_LEVEL_WARN);
}

/* What standard error got from f(). */
static size_t
captured(void (*f)(void), char *out, size_t size)
{
	int pipe_fds[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe(pipe_fds), 0);
	dup2(pipe_fds[1], STDERR_FILENO);
	f();
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(pipe_fds[1]);
	n = read(pipe_fds[0], out, size - 1);
	close(pipe_fds[0]);
	assert_true(n >= 0);
	out[n] = '\0';
	return (size_t)n;
}

static void
log_three(void)
{
	log_debug("not shown");
	log_info("first\nline %d", 1);
	log_error("second");
}

static void
a_line_is_one_line_and_below_the_level_there_is_none(void **state)
{
	char out[512];

	unsetenv("JOURNAL_STREAM");
	log_init("prog", LOG_LEVEL_INFO);
	captured(log_three, out, sizeof(out));
	assert_non_null(strstr(out, " prog info  first\\x0aline 1\n"));
	assert_non_null(strstr(out, " prog error second\n"));
	assert_null(strstr(out, "not shown"));
}

static void
the_journal_gets_priorities_and_no_times(void **state)
{
	char out[512];

	setenv("JOURNAL_STREAM", "8:1", 1);
	log_init("prog", LOG_LEVEL_INFO);
	captured(log_three, out, sizeof(out));
	assert_string_equal(out, "<6>first\\x0aline 1\n<3>second\n");
	unsetenv("JOURNAL_STREAM");
	log_init("prog", LOG_LEVEL_ERROR);
}

static void
log_what_terminals_obey(void)
{
	/* CSI as a byte, and as UTF-8; a letter; what is cut off; U+202E. */
	log_error("%s", "\x9b[2J|\xc2\x9b[2J|\xc3\xa9|\x1b[2J|\xe2\x82\xac\xe2|"
	    "\xe2\x80\xae");
}

static void
no_control_character_of_any_kind_stays_in_a_line(void **state)
{
	char out[512];

	log_init("prog", LOG_LEVEL_INFO);
	captured(log_what_terminals_obey, out, sizeof(out));
	assert_non_null(strstr(out,
	    "error \\x9b[2J|\\xc2\\x9b[2J|\xc3\xa9|\\x1b[2J|"
	    "\xe2\x82\xac\\xe2|\\xe2\\x80\\xae\n"));
}

static struct log_limit limit;

static void
log_a_flood(void)
{
	int i;

	for (i = 0; i < 100; i++)
		log_limited(&limit, 1000, LOG_LEVEL_WARN, "again");
	log_limited(&limit, 1000, LOG_LEVEL_DEBUG, "not shown");
	log_limited(&limit, 3000, LOG_LEVEL_WARN, "%s", "later");
}

static void
a_flood_of_lines_is_counted_not_written(void **state)
{
	const char *at;
	char out[4096];
	int n = 0;

	unsetenv("JOURNAL_STREAM");
	log_init("prog", LOG_LEVEL_INFO);
	captured(log_a_flood, out, sizeof(out));
	for (at = out; (at = strstr(at, "warn  again\n")) != NULL; at++)
		n++;
	assert_int_equal(n, 10);
	assert_non_null(strstr(out,
	    "warn  later (90 more such lines left out)\n"));
}

static void
log_much(void)
{
	static char big[10000];

	memset(big, 'x', sizeof(big) - 1);
	log_error("%s", big);
}

static void
a_huge_line_is_cut_and_still_ends(void **state)
{
	static char out[20000];
	size_t n = captured(log_much, out, sizeof(out));

	assert_true(n > 1000 && n < 4096);
	assert_int_equal(out[n - 1], '\n');
}

/* Standard error is a file of so many bytes now. */
static size_t
size_of(int file)
{
	struct stat st;

	assert_int_equal(fstat(file, &st), 0);
	return (size_t)st.st_size;
}

static void
a_held_log_comes_out_in_order_when_it_is_released(void **state)
{
	char path[] = "/tmp/test_log.XXXXXX", text[LOG_HELD_MAX * 2] = "";
	int saved = dup(STDERR_FILENO), file = mkstemp(path), i, n = 0;

	assert_true(file >= 0 && dup2(file, STDERR_FILENO) == STDERR_FILENO);
	unlink(path);
	log_init("test", LOG_LEVEL_INFO);
	log_hold();
	log_info("first");
	log_info("second");
	assert_int_equal(size_of(file), 0);
	log_release();
	assert_true(size_of(file) > 0);
	log_info("third");
	/* More than is kept is written, and nothing is held from there on. */
	log_hold();
	while (size_of(file) < LOG_HELD_MAX)
		log_info("line %d", n++);
	i = (int)size_of(file);
	log_info("last");
	assert_true((int)size_of(file) > i);
	assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(file);
	assert_true(strstr(text, "first") < strstr(text, "second"));
	assert_true(strstr(text, "second") < strstr(text, "third"));
	assert_true(strstr(text, "third") < strstr(text, "line 0\n"));
	assert_true(strstr(text, "line 0\n") < strstr(text, "line 1\n"));
	assert_non_null(strstr(text, "last"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    a_log_that_nobody_takes_is_not_waited_for_and_says_what_is_missing),
		cmocka_unit_test(an_allowance_is_ten_lines_and_then_one_a_second),
		cmocka_unit_test(
		    an_allowance_survives_a_clock_that_starts_at_zero_or_steps_back),
		cmocka_unit_test(
		    control_characters_quotes_and_odd_bytes_are_escaped),
		cmocka_unit_test(a_text_that_does_not_fit_ends_in_dots),
		cmocka_unit_test(levels_are_known_by_name),
		cmocka_unit_test(
		    a_line_is_one_line_and_below_the_level_there_is_none),
		cmocka_unit_test(the_journal_gets_priorities_and_no_times),
		cmocka_unit_test(
		    no_control_character_of_any_kind_stays_in_a_line),
		cmocka_unit_test(a_flood_of_lines_is_counted_not_written),
		cmocka_unit_test(a_huge_line_is_cut_and_still_ends),
		cmocka_unit_test(
		    a_held_log_comes_out_in_order_when_it_is_released),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
