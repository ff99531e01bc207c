#include <errno.h>
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

#include "client/ftrace/tracefs/changes.h"
#include "client/ftrace/tracefs/tracefs.h"
#include "tests/unit/client/ftrace/tracefs/fake_tracefs.h"

static struct tracefs *t;
static struct changes *c;
static char notes[256], failed[256];

static int
setup(void **state)
{
	char why[TRACEFS_WHY_MAX];
	const char *root = fake_tracefs_make();

	snprintf(notes, sizeof(notes), "%s/notes", root);
	t = tracefs_open(root, why);
	c = changes_new(t, notes);
	return t == NULL || c == NULL;
}

static int
teardown(void **state)
{
	changes_free(c);
	tracefs_close(t);
	fake_tracefs_remove();
	return 0;
}

/* As after kill -9: nothing of this process is left but its notes. */
static void
begin_anew(void)
{
	changes_free(c);
	assert_non_null(c = changes_new(t, notes));
}

static void
everything_is_put_back_at_the_end(void **state)
{
	assert_int_equal(changes_set(c, "tracing_on", "0"), 0);
	assert_int_equal(changes_set(c, "trace_clock", "boot"), 0);
	assert_int_equal(changes_set(c, "buffer_size_kb", "4096"), 0);
	assert_int_equal(changes_set(c, "buffer_size_kb", "8192"), 0);
	assert_int_equal(changes_set(c, "tracing_on", "1"), 0);
	fake_tracefs_holds("trace_clock", "boot");
	fake_tracefs_holds("buffer_size_kb", "8192");
	assert_int_equal(changes_undo_all(c, failed, sizeof(failed)), 0);
	fake_tracefs_holds("trace_clock", "global");
	fake_tracefs_holds("buffer_size_kb", "7");
	fake_tracefs_holds("tracing_on", "1");
	assert_int_equal(access(notes, F_OK), -1);
	/* and is changed by others afterwards */
	fake_tracefs_put("trace_clock", "local\n");
	assert_int_equal(changes_undo_all(c, failed, sizeof(failed)), 0);
	fake_tracefs_holds("trace_clock", "local\n");
}

static void
one_file_is_put_back_early_and_again(void **state)
{
	fake_tracefs_put("events/g/e/enable", "0\n");
	assert_int_equal(changes_set(c, "events/g/e/enable", "1"), 0);
	changes_undo(c, "events/g/e/enable");
	fake_tracefs_holds("events/g/e/enable", "0");
	changes_undo(c, "tracing_on");
	fake_tracefs_holds("tracing_on", "1\n");
	assert_int_equal(changes_set(c, "events/g/e/enable", "1"), 0);
	assert_int_equal(changes_undo_all(c, failed, sizeof(failed)), 0);
	fake_tracefs_holds("events/g/e/enable", "0");
}

static void
the_next_process_puts_back_what_a_killed_one_left(void **state)
{
	fake_tracefs_put("set_event_pid", "5\n6\n");
	assert_int_equal(changes_set(c, "trace_clock", "boot"), 0);
	assert_int_equal(changes_set(c, "set_event_pid", "77"), 0);
	assert_int_equal(changes_noted(c), 0);
	begin_anew();
	assert_int_equal(changes_recover(c, failed, sizeof(failed)), 2);
	fake_tracefs_holds("trace_clock", "global");
	fake_tracefs_holds("set_event_pid", "5 6");
	assert_int_equal(changes_recover(c, failed, sizeof(failed)), 0);
	assert_int_equal(access(notes, F_OK), -1);
}

static void
notes_that_are_cut_or_strange_are_obeyed_as_far_as_they_go(void **state)
{
	fake_tracefs_put("notes", "trace_clock\tmono_raw\nno tab\n"
	    "../outside\t1\n/etc/passwd\tx\ngone/file\t1\ntracing_on\t0");
	assert_int_equal(changes_recover(c, failed, sizeof(failed)), 2);
	fake_tracefs_holds("trace_clock", "mono_raw");
	fake_tracefs_holds("tracing_on", "1\n"); /* its line is cut */
}

static void
an_instance_of_ours_goes_and_one_of_others_stays(void **state)
{
	fake_tracefs_put("instances/theirs/tracing_on", "1\n");
	assert_int_equal(changes_make_instance(c, "instances/theirs"), 0);
	assert_int_equal(changes_make_instance(c, "instances/ours"), 0);
	assert_true(tracefs_exists(t, "instances/ours"));
	begin_anew();
	assert_int_equal(changes_recover(c, failed, sizeof(failed)), 1);
	assert_false(tracefs_exists(t, "instances/ours"));
	assert_true(tracefs_exists(t, "instances/theirs"));
}

static void
each_instance_is_put_back_by_itself(void **state)
{
	fake_tracefs_put("instances/a/tracing_on", "1\n");
	fake_tracefs_put("instances/ab/tracing_on", "1\n");
	assert_int_equal(changes_make_instance(c, "instances/b"), 0);
	assert_int_equal(changes_set(c, "instances/a/tracing_on", "0"), 0);
	assert_int_equal(changes_set(c, "instances/ab/tracing_on", "0"), 0);
	assert_int_equal(changes_set(c, "tracing_on", "0"), 0);
	assert_int_equal(changes_undo_below(c, "instances/a/", failed,
	    sizeof(failed)), 0);
	fake_tracefs_holds("instances/a/tracing_on", "1");
	fake_tracefs_holds("instances/ab/tracing_on", "0");
	fake_tracefs_holds("tracing_on", "0");
	assert_int_equal(changes_undo_below(c, "", failed, sizeof(failed)), 0);
	fake_tracefs_holds("instances/ab/tracing_on", "0");
	fake_tracefs_holds("tracing_on", "1");
	/* changed by others since: a crash now must not undo that */
	fake_tracefs_put("tracing_on", "0\n");
	begin_anew();
	assert_int_equal(changes_recover(c, failed, sizeof(failed)), 2);
	fake_tracefs_holds("tracing_on", "0\n");
	fake_tracefs_holds("instances/ab/tracing_on", "1");
	assert_false(tracefs_exists(t, "instances/b"));
}

static void
a_file_that_cannot_be_changed_is_no_change(void **state)
{
	assert_int_equal(changes_set(c, "no/such", "1"), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(changes_undo_all(c, failed, sizeof(failed)), 0);
}

static void
what_cannot_be_put_back_is_told(void **state)
{
	char path[256];

	assert_int_equal(changes_set(c, "trace_clock", "boot"), 0);
	assert_int_equal(changes_set(c, "tracing_on", "0"), 0);
	/* a folder cannot be written */
	snprintf(path, sizeof(path), "%s/trace_clock", tracefs_root(t));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(changes_undo_all(c, failed, sizeof(failed)), 1);
	assert_non_null(strstr(failed, "trace_clock ("));
	fake_tracefs_holds("tracing_on", "1");
	/* nor by the next process, which does not count it */
	fake_tracefs_put("notes", "trace_clock\tglobal\ntracing_on\t0\n");
	assert_int_equal(changes_recover(c, failed, sizeof(failed)), 1);
	assert_non_null(strstr(failed, "trace_clock ("));
	fake_tracefs_holds("tracing_on", "0");
	assert_int_equal(changes_recover(c, failed, sizeof(failed)), 0);
	assert_string_equal(failed, "");
}

static void
changes_are_made_without_notes_and_that_is_known(void **state)
{
	changes_free(c);
	assert_non_null(c = changes_new(t, "/nowhere/notes"));
	assert_int_equal(changes_set(c, "trace_clock", "boot"), 0);
	assert_int_equal(changes_noted(c), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(changes_undo_all(c, failed, sizeof(failed)), 0);
	fake_tracefs_holds("trace_clock", "global");
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(everything_is_put_back_at_the_end),
		T(one_file_is_put_back_early_and_again),
		T(the_next_process_puts_back_what_a_killed_one_left),
		T(notes_that_are_cut_or_strange_are_obeyed_as_far_as_they_go),
		T(an_instance_of_ours_goes_and_one_of_others_stays),
		T(each_instance_is_put_back_by_itself),
		T(a_file_that_cannot_be_changed_is_no_change),
		T(what_cannot_be_put_back_is_told),
		T(changes_are_made_without_notes_and_that_is_known),
	};

	return cmocka_run_group_tests_name("changes", tests, NULL, NULL);
}
