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

#include "client/record/live_line.h"
#include "client/record/segment_command.h"
#include "transport/loop/loop.h"
#include "transport/segment/segment_writer.h"

static struct {
	char folder[64];
	int folder_fd;
	struct loop *loop;
	struct record_live *live;
	struct segment_command *command;
	unsigned idle;
	int stderr_fd; /* the test's */
	char said[4096];
} t;

static void
idle_cb(void *arg)
{
	t.idle++;
	loop_stop(t.loop);
}

/* What is said goes into a file. */
static int
setup(void **state)
{
	char path[100];
	int fd;

	memset(&t, 0, sizeof(t));
	snprintf(t.folder, sizeof(t.folder), "/tmp/segment_command.XXXXXX");
	assert_non_null(mkdtemp(t.folder));
	t.folder_fd = open(t.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(t.folder_fd >= 0);
	snprintf(path, sizeof(path), "%s/said", t.folder);
	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	fflush(stderr);
	t.stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	assert_true(dup2(fd, STDERR_FILENO) >= 0);
	close(fd);
	assert_non_null(t.loop = loop_new());
	assert_non_null(t.live = record_live_new(true));
	return 0;
}

static int
teardown(void **state)
{
	char command[100];

	segment_command_free(t.command);
	record_live_free(t.live);
	loop_free(t.loop);
	fflush(stderr);
	dup2(t.stderr_fd, STDERR_FILENO);
	close(t.stderr_fd);
	close(t.folder_fd);
	snprintf(command, sizeof(command), "rm -r %s", t.folder);
	return system(command) == 0 ? 0 : -1;
}

static const char *
said(void)
{
	ssize_t n;
	int fd;

	fflush(stderr);
	fd = openat(t.folder_fd, "said", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	n = read(fd, t.said, sizeof(t.said) - 1);
	assert_true(n >= 0);
	close(fd);
	t.said[n] = '\0';
	return t.said;
}

static void
begin(const char *command, unsigned backlog, unsigned patience_ms)
{
	const struct segment_command_setup setup = { .loop = t.loop,
		.live = t.live, .command = command, .folder_fd = t.folder_fd,
		.folder = t.folder, .recording = "r", .backlog = backlog,
		.patience_ms = patience_ms, .idle = idle_cb };

	assert_non_null(t.command = segment_command_new(&setup));
}

static void
add(const char *path, uint32_t number)
{
	const struct segment_written of = { .path = path, .bytes = 5,
		.number = number, .machine_name = "kiosk 7" };
	int fd = openat(t.folder_fd, path, O_CREAT | O_CLOEXEC | O_WRONLY,
	    0600);

	assert_true(fd >= 0);
	close(fd);
	segment_command_add(t.command, &of);
}

static void
the_environment_says_which_segment_it_is(void **state)
{
	/* What a recording around us said does not count. */
	setenv("TRIBUTARY_SEGMENT_NUMBER", "98", 1);
	begin("test \"$TRIBUTARY_SEGMENT_RECORDING:$TRIBUTARY_SEGMENT_MACHINE:"
	    "$TRIBUTARY_SEGMENT_NUMBER:$TRIBUTARY_SEGMENT_BYTES:"
	    "$TRIBUTARY_SEGMENT_LAST\" = 'r:kiosk 7:3:5:0' && test -e \"$1\"",
	    0, 0);
	add("a", 3);
	loop_run(t.loop);
	unsetenv("TRIBUTARY_SEGMENT_NUMBER");
	assert_string_equal(said(), "");
}

static void
one_runs_at_a_time_and_those_beyond_the_backlog_are_told(void **state)
{
	begin("until [ -e go ]; do sleep 0.01; done; false", 2, 0);
	add("a", 1);
	add("b", 2);
	assert_string_equal(segment_command_path(t.command), "a");
	assert_int_equal(segment_command_left(t.command), 2);
	add("c", 3);
	add("d", 4);
	assert_int_equal(segment_command_left(t.command), 2);
	assert_non_null(strstr(said(), "/c, as too many wait"));
	assert_null(strstr(said(), "/d, as too many wait"));
	segment_command_give_up(t.command);
	assert_non_null(strstr(said(), "1 other segment had none"));
	assert_int_equal(segment_command_left(t.command), 0);
	assert_null(segment_command_path(t.command));
}

static void
a_long_run_is_told_and_goes_on(void **state)
{
	char command[200];

	snprintf(command, sizeof(command), "until grep -q 'still runs' %s/said;"
	    " do sleep 0.01; done; true", t.folder);
	begin(command, 0, 1);
	add("a", 1);
	add("b", 2);
	loop_run(t.loop);
	assert_int_equal(t.idle, 1);
	assert_non_null(strstr(said(), "/a; 1 other segment waits"));
	assert_null(strstr(said(), "failed"));
}

static void
a_segment_that_is_gone_gets_no_command(void **state)
{
	begin("true", 0, 0);
	add("a", 1);
	add("b", 2);
	add("c", 3);
	assert_int_equal(unlinkat(t.folder_fd, "b", 0), 0);
	loop_run(t.loop);
	assert_non_null(strstr(said(), "/b, which was removed before"));
	assert_null(strstr(said(), "/c"));
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    the_environment_says_which_segment_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    one_runs_at_a_time_and_those_beyond_the_backlog_are_told,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_run_is_told_and_goes_on,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_segment_that_is_gone_gets_no_command, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
