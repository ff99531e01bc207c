#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/process/process_stats.h"

static const char text[] = "4711 (a) S (b) S 1 4711 4711 0 -1 4194560 "
    "1 2 3 4 100 50 6 7 20 0 9 0 123456 10000000 250 18446744073709551615 1";

static void
a_name_may_look_like_the_rest(void **state)
{
	struct process_stats s = { 0 };
	uint64_t ticks;

	assert_int_equal(process_stats_parse(text, 4096, &s, &ticks), 0);
	assert_int_equal(s.threads, 9);
	assert_int_equal(s.virtual_bytes, 10000000);
	assert_int_equal(s.resident_bytes, 250 * 4096);
	assert_int_equal(ticks, 123456);
}

static void
anything_else_is_refused(void **state)
{
	struct process_stats s = { 0 };
	char cut[sizeof(text)];
	uint64_t ticks;
	size_t n;

	/* Up to where the last of the numbers begins. */
	for (n = 0; n < (size_t)(strstr(text, "250 1844") - text); n++) {
		memcpy(cut, text, n);
		cut[n] = '\0';
		assert_int_equal(process_stats_parse(cut, 4096, &s, &ticks),
		    -1);
	}
}

static void
this_process_is_alive(void **state)
{
	struct process_stats a, b;
	struct rlimit r;
	int fds[2];

	process_stats_read(&a);
	assert_int_equal(pipe(fds), 0);
	process_stats_read(&b);
	assert_int_equal(b.open_fds, a.open_fds + 2);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	assert_int_equal(b.max_fds, r.rlim_cur);
	assert_true(b.cpu_ns >= a.cpu_ns && b.cpu_ns > 0);
	assert_true(b.resident_bytes > 0);
	assert_true(b.virtual_bytes >= b.resident_bytes);
	assert_true(b.threads >= 1);
	assert_true(b.start_ns > UINT64_C(1600000000) * 1000000000);
	assert_true(b.start_ns / 1000000000 <= (uint64_t)time(NULL));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_may_look_like_the_rest),
		cmocka_unit_test(anything_else_is_refused),
		cmocka_unit_test(this_process_is_alive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
