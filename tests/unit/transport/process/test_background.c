#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/base/log.h"
#include "transport/process/background.h"

static void
a_child_that_a_signal_ends_before_it_serves_is_told(void **state)
{
	FILE *log = tmpfile();
	int before = dup(STDERR_FILENO), fd, status;
	char text[512] = "";
	pid_t child;

	assert_non_null(log);
	assert_true(dup2(fileno(log), STDERR_FILENO) >= 0);
	child = background_fork(&fd);
	if (child == 0) {
		log_info("this goes with it");
		raise(SIGKILL);
	}
	status = background_wait(child, fd, NULL);
	dup2(before, STDERR_FILENO);
	close(before);
	assert_int_equal(status, 1);
	rewind(log);
	assert_true(fread(text, 1, sizeof(text) - 1, log) > 0);
	fclose(log);
	assert_non_null(strstr(text, "signal 9"));
	assert_null(strstr(text, "goes with it"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    a_child_that_a_signal_ends_before_it_serves_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
