#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/front/dialler.h"
#include "service/settings/settings.h"
#include "transport/loop/loop.h"

static void
pauses_double_up_to_the_longest(void **state)
{
	assert_int_equal(dialler_pause_ms(1, 30000, 0), 500);
	assert_int_equal(dialler_pause_ms(2, 30000, 0), 1000);
	assert_int_equal(dialler_pause_ms(3, 30000, 0), 2000);
	assert_int_equal(dialler_pause_ms(7, 30000, 0), 30000);
	assert_int_equal(dialler_pause_ms(1000000, 30000, 0), 30000);
	assert_int_equal(dialler_pause_ms(1, 100, 0), 100);
	assert_int_equal(dialler_pause_ms(5, 1, 0), 1);
}

static void
chance_takes_off_up_to_half(void **state)
{
	uint32_t random;
	uint64_t ms;

	assert_int_equal(dialler_pause_ms(2, 30000, UINT32_MAX), 500);
	for (random = 0; random < UINT32_MAX - 100000007u;
	    random += 100000007u) {
		ms = dialler_pause_ms(9, 30000, random);
		assert_in_range(ms, 15000, 30000);
	}
}

/* As most do, when the process that was to take over cannot. */
static void
who_calls_nobody_can_stop_and_go_on(void **state)
{
	struct loop *l = loop_new();
	struct settings settings;
	struct dialler *d;
	char err[160];

	assert_non_null(l);
	assert_int_equal(settings_init(&settings), 0);
	d = dialler_new(l, &settings, NULL, err, sizeof(err));
	assert_non_null(d);
	dialler_stop(d);
	dialler_resume(d);
	dialler_free(d);
	settings_done(&settings);
	loop_free(l);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pauses_double_up_to_the_longest),
		cmocka_unit_test(chance_takes_off_up_to_half),
		cmocka_unit_test(who_calls_nobody_can_stop_and_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
