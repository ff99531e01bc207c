#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/base/machine_word.h"

static void
the_collectors_own_machine_is_host_and_has_its_name_besides(void **state)
{
	assert_true(machine_word_means("host", 0, "rack"));
	assert_true(machine_word_means("host", 0, NULL));
	assert_true(machine_word_means("rack", 0, "rack"));
	assert_true(machine_word_means("ra*", 0, "rack"));
	assert_true(machine_word_means("h?st", 0, "rack"));
	assert_true(machine_word_means("*", 0, NULL));
	assert_false(machine_word_means("car", 0, "rack"));
	assert_false(machine_word_means("", 0, ""));
}

static void
another_machine_has_its_name_only(void **state)
{
	assert_true(machine_word_means("car-7", 7, "car-7"));
	assert_true(machine_word_means("car-*", 7, "car-7"));
	assert_false(machine_word_means("car-8", 7, "car-7"));
	assert_false(machine_word_means("*", 7, NULL));
	assert_false(machine_word_means("host", 7, "car-7"));
	/* An impostor. */
	assert_false(machine_word_means("host", 7, "host"));
	assert_true(machine_word_means("*", 7, "host"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    the_collectors_own_machine_is_host_and_has_its_name_besides),
		cmocka_unit_test(another_machine_has_its_name_only),
	};

	return cmocka_run_group_tests_name("machine_word", tests, NULL, NULL);
}
