#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "service/limits/refusals.h"

static uint64_t
counted(const char *sentence, const char *name)
{
	struct refusals r = { .n = { 0 } };
	uint64_t sum = 0, of_name = 0;
	size_t i;

	refusals_count(&r, sentence);
	for (i = 0; i < REFUSALS; i++) {
		sum += r.n[i];
		if (refusals_name(i) != NULL &&
		    strcmp(refusals_name(i), name) == 0)
			of_name = r.n[i];
		assert_true((r.last_ms[i] != 0) == (r.n[i] != 0));
	}
	assert_int_equal(sum, 1);
	return of_name;
}

static void
a_refusal_counts_for_the_setting_that_it_names(void **state)
{
	assert_int_equal(counted("limits.max_producers is reached",
	    "limits.max_producers"), 1);
	assert_int_equal(counted("no more than 4 connections of one peer may "
	    "be open (limits.max_connections_per_peer)",
	    "limits.max_connections_per_peer"), 1);
	assert_int_equal(counted("no more than 4 connections may be open "
	    "(limits.max_connections)", "limits.max_connections"), 1);
	assert_int_equal(counted("too many producers of this machine: "
	    "quota.each_machine.max_producers is reached",
	    "quota.each_machine.max_producers"), 1);
	assert_int_equal(counted("a longer name than limits.max_name_bytes.",
	    "limits.max_name_bytes"), 1);
}

static void
any_other_reason_is_other(void **state)
{
	assert_int_equal(counted("its certificate is revoked", "other"), 1);
	assert_int_equal(counted("limits.max_producersx", "other"), 1);
	assert_int_equal(counted("", "other"), 1);
}

static void
a_peer_called_like_a_setting_changes_nothing(void **state)
{
	assert_int_equal(counted("There are too many sessions (5) for "
	    "certificate limits.max_producers (limits.max_sessions_per_uid)",
	    "limits.max_sessions_per_uid"), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refusal_counts_for_the_setting_that_it_names),
		cmocka_unit_test(any_other_reason_is_other),
		cmocka_unit_test(a_peer_called_like_a_setting_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
