#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/loop/delays.h"
#include "transport/loop/loop.h"

static void
a_delay_counts_in_the_first_row_that_has_it(void **state)
{
	struct delays d = { .sum_ns = 0 };

	delays_note(&d, 0);
	delays_note(&d, delays_most_ns(0));
	delays_note(&d, delays_most_ns(0) + 1);
	delays_note(&d, UINT64_C(1) << 60);
	assert_int_equal(d.n[0], 2);
	assert_int_equal(d.n[1], 1);
	assert_int_equal(d.n[DELAYS - 1], 1);
	assert_true(d.sum_ns == delays_most_ns(0) * 2 + 1 + (UINT64_C(1) << 60));
	assert_true(delays_most_ns(DELAYS - 1) == UINT64_MAX);
}

static void
stop_cb(void *arg)
{
	loop_stop(arg);
}

static void
burn_cb(void *arg)
{
	uint64_t end = loop_now_ms() + 5;

	while (loop_now_ms() < end)
		;
}

/* The second timer is due while the callback of the first one runs. */
static void
a_timer_behind_a_busy_loop_counts_as_late(void **state)
{
	struct loop *l = loop_new();
	struct loop_timer *burn, *stop;
	const struct delays *d;
	uint64_t n = 0;
	size_t i;

	assert_non_null(l);
	burn = loop_timer_new(l, burn_cb, NULL);
	stop = loop_timer_new(l, stop_cb, l);
	assert_true(burn != NULL && stop != NULL);
	loop_timer_set(burn, 0, 0);
	loop_timer_set(stop, 1, 0);
	loop_run(l);
	d = loop_delays(l);
	for (i = 0; i < DELAYS; i++)
		n += d->n[i];
	assert_int_equal(n, 2);
	assert_true(d->sum_ns >= 2000000);
	loop_timer_free(burn);
	loop_timer_free(stop);
	loop_free(l);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_delay_counts_in_the_first_row_that_has_it),
		cmocka_unit_test(a_timer_behind_a_busy_loop_counts_as_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
