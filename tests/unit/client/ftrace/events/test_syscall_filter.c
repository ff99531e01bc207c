#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "client/ftrace/events/syscall_filter.h"

static char text[SYSCALL_FILTER_TEXT_MAX + 1];

static void
names_are_known_with_and_without_their_prefix(void **state)
{
	struct syscall_filter f = { 0 };

	assert_true(syscall_filter_add(&f, "sys_read"));
	assert_true(syscall_filter_add(&f, "openat"));
	assert_true(syscall_filter_has(&f, SYS_read));
	assert_true(syscall_filter_has(&f, SYS_openat));
	assert_false(syscall_filter_has(&f, SYS_write));
	assert_false(syscall_filter_has(&f, -1));
	assert_false(syscall_filter_has(&f, INT64_MAX));
	assert_false(syscall_filter_has(&f, INT64_MIN));
	assert_false(syscall_filter_has(&f, SYSCALL_FILTER_MAX));
	/* Defined by way of another name on some machines. */
	assert_true(syscall_filter_add(&f, "sys_lseek"));
	assert_true(syscall_filter_has(&f, SYS_lseek));
	assert_true(syscall_filter_add(&f, "sys_futex_waitv"));
	assert_true(syscall_filter_has(&f, SYS_futex_waitv));
}

static void
names_of_no_call_are_refused(void **state)
{
	struct syscall_filter f = { 0 };

	assert_false(syscall_filter_add(&f, "sys_no_such_call"));
	assert_false(syscall_filter_add(&f, "sys_"));
	assert_false(syscall_filter_add(&f, ""));
	assert_false(syscall_filter_add(&f, "syscalls"));
	assert_false(syscall_filter_add(&f, "sys_sys_read"));
	assert_false(syscall_filter_text(&f, text));
	assert_string_equal(text, "0");
}

static void
the_kernels_filter_names_each_number(void **state)
{
	struct syscall_filter f = { 0 }, g = { 0 };

	f.bits[0] = 1u << 3 | 1u;
	assert_true(syscall_filter_text(&f, text));
	assert_string_equal(text, "id == 0 || id == 3");
	g.bits[SYSCALL_FILTER_MAX / 64 - 1] = UINT64_C(1) << 63;
	syscall_filter_join(&f, &g);
	assert_true(syscall_filter_text(&f, text));
	assert_string_equal(text, "id == 0 || id == 3 || id == 1023");
}

static void
more_numbers_than_the_kernel_takes_are_no_filter(void **state)
{
	struct syscall_filter f = { 0 };
	unsigned id, n = 0;

	for (id = 0; id < SYSCALL_FILTER_MAX; id++) {
		f.bits[id / 64] |= UINT64_C(1) << id % 64;
		if (!syscall_filter_text(&f, text))
			break;
		n = (unsigned)strlen(text);
	}
	/* As many as there is room for. */
	assert_in_range(n, SYSCALL_FILTER_TEXT_MAX - 20,
	    SYSCALL_FILTER_TEXT_MAX);
	assert_string_equal(text, "0");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_known_with_and_without_their_prefix),
		cmocka_unit_test(names_of_no_call_are_refused),
		cmocka_unit_test(the_kernels_filter_names_each_number),
		cmocka_unit_test(
		    more_numbers_than_the_kernel_takes_are_no_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
