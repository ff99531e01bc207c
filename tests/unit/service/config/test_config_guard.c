#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/text_parse.h"
#include "service/access/principal.h"
#include "service/config/config_guard.h"
#include "service/limits/free_memory.h"

#define GUARDED "enable_extra_guardrails: true "
#define NAMED(name) GUARDED "unique_session_name: \"" name "\""

static const struct principal ann = { .auth = PEER_UNIX, .uid = 1 };
static const struct principal bob = { .auth = PEER_UNIX, .uid = 2 };

static Perfetto__Protos__TraceConfig *
parse(const char *text)
{
	Perfetto__Protos__TraceConfig *pb;
	uint8_t *bytes;
	size_t len;

	assert_int_equal(text_parse(&perfetto__protos__trace_config__descriptor,
	    text, strlen(text), &bytes, &len, NULL), 0);
	pb = perfetto__protos__trace_config__unpack(NULL, len, bytes);
	free(bytes);
	assert_non_null(pb);
	return pb;
}

/* expected NULL: it is fine. */
static void
check(const char *text, const char *expected)
{
	Perfetto__Protos__TraceConfig *pb = parse(text);
	char err[320] = "";
	int ret = config_guard_check(pb, err, sizeof(err));

	perfetto__protos__trace_config__free_unpacked(pb, NULL);
	if (expected == NULL && ret != 0)
		fail_msg("%s: %s", text, err);
	if (expected != NULL && (ret == 0 || strstr(err, expected) == NULL))
		fail_msg("%s: %s", text, err);
}

static void
guardrails_hold_where_they_are_asked_for(void **state)
{
	check("duration_ms: 86400001 deferred_start: true "
	    "buffers { size_kb: 131073 }", NULL);
	check(GUARDED "duration_ms: 86400000 buffers { size_kb: 131072 }",
	    NULL);
	check(GUARDED "duration_ms: 86400001", "86400001 ms > 86400000 ms");
	check(GUARDED "trigger_config { trigger_timeout_ms: 86400001 }",
	    "86400001 ms > 86400000 ms");
	check(GUARDED "deferred_start: true", "deferred_start");
	check(GUARDED "buffers { size_kb: 6 }", "multiple of 4");
	check(GUARDED "buffers { size_kb: 65536 } buffers { size_kb: 65540 }",
	    "131076 KiB > 131072 KiB");
}

static void
overrides_allow_more_but_never_less(void **state)
{
	check(GUARDED "buffers { size_kb: 200000 } guardrail_overrides { "
	    "max_tracing_buffer_size_kb: 200000 }", NULL);
	check(GUARDED "buffers { size_kb: 131072 } guardrail_overrides { "
	    "max_tracing_buffer_size_kb: 4 }", NULL);
}

static void
a_name_for_a_file_has_no_way_in_it(void **state)
{
	check("bugreport_filename: \"systrace-1_a.Z\"", NULL);
	check("bugreport_filename: \"a/b\"", "bugreport_filename");
	check("bugreport_filename: \"a b\"", "bugreport_filename");
	check("bugreport_filename: \"\\303\\244\"", "bugreport_filename");
}

static void
boosts_have_their_ranges(void **state)
{
	check("priority_boost { policy: POLICY_SCHED_OTHER }", NULL);
	check("priority_boost { policy: POLICY_SCHED_OTHER priority: 20 }",
	    NULL);
	check("priority_boost { policy: POLICY_SCHED_FIFO priority: 99 }",
	    NULL);
	check("priority_boost { policy: POLICY_SCHED_OTHER priority: 21 }",
	    "from 0 to 20 with POLICY_SCHED_OTHER, got 21");
	check("priority_boost { policy: POLICY_SCHED_FIFO }",
	    "from 1 to 99 with POLICY_SCHED_FIFO, got 0");
	check("priority_boost { priority: 3 }", "the policy must be");
}

static int
may_begin(struct guard_book *b, const char *text,
    const struct principal *who, uint64_t now, char *err)
{
	Perfetto__Protos__TraceConfig *pb = parse(text);
	int ret = guard_book_check(b, pb, who, now, err, 320);

	if (ret == 0)
		guard_book_note(b, pb, who, now);
	perfetto__protos__trace_config__free_unpacked(pb, NULL);
	return ret;
}

static void
five_minutes_lie_between_two_of_one_name(void **state)
{
	struct guard_book *b = guard_book_new();
	char err[320] = "";

	assert_non_null(b);
	assert_int_equal(may_begin(b, NAMED("x"), &ann, 1000, err), 0);
	assert_int_equal(may_begin(b, NAMED("x"), &ann, 61000, err), -1);
	assert_string_equal(err, "A trace with unique session name \"x\" began "
	    "less than 300 s ago (60 s): enable_extra_guardrails");
	assert_int_equal(may_begin(b, NAMED("y"), &ann, 61000, err), 0);
	assert_int_equal(may_begin(b, NAMED("x"), &ann, 1000 + GUARD_PAUSE_MS -
	    1, err), -1);
	assert_int_equal(may_begin(b, NAMED("x"), &ann, 1000 + GUARD_PAUSE_MS,
	    err), 0);
	guard_book_free(b);
}

static void
names_are_their_owners(void **state)
{
	struct guard_book *b = guard_book_new();
	char err[320];

	assert_int_equal(may_begin(b, NAMED("x"), &ann, 1, err), 0);
	assert_int_equal(may_begin(b, NAMED("x"), &bob, 2, err), 0);
	assert_int_equal(may_begin(b, NAMED("x"), &bob, 3, err), -1);
	/* No name is one, too; without guardrails there is no book. */
	assert_int_equal(may_begin(b, GUARDED, &ann, 4, err), 0);
	assert_int_equal(may_begin(b, GUARDED, &ann, 5, err), -1);
	assert_int_equal(may_begin(b, "unique_session_name: \"x\"", &ann, 6,
	    err), 0);
	guard_book_free(b);
}

static void
the_book_is_bounded(void **state)
{
	struct guard_book *b = guard_book_new();
	char text[128], err[320];
	unsigned i;

	assert_int_equal(may_begin(b, NAMED("first"), &ann, 1, err), 0);
	for (i = 0; i < GUARD_BOOK_MAX; i++) {
		snprintf(text, sizeof(text), GUARDED "unique_session_name: "
		    "\"%u\"", i);
		assert_int_equal(may_begin(b, text, &ann, 2, err), 0);
	}
	assert_int_equal(may_begin(b, text, &ann, 3, err), -1);
	assert_int_equal(may_begin(b, NAMED("first"), &ann, 3, err), 0);
	guard_book_free(b);
}

static void
available_memory_is_found_or_not_known(void **state)
{
	uint64_t kb = 7;

	assert_int_equal(free_memory_parse("MemTotal:  24684096 kB\n"
	    "MemFree:   20769408 kB\nMemAvailable:   24114784 kB\n", &kb), 0);
	assert_int_equal(kb, 24114784);
	kb = 7;
	assert_int_equal(free_memory_parse("", &kb), -1);
	assert_int_equal(free_memory_parse("MemTotal: 1 kB", &kb), -1);
	assert_int_equal(free_memory_parse("MemAvailable: many kB", &kb), -1);
	assert_int_equal(free_memory_parse("MemAvailable: 12", &kb), -1);
	assert_int_equal(free_memory_parse("MemAvailable: 12 MB\n", &kb), -1);
	assert_int_equal(kb, 7);
	assert_int_equal(free_memory_kb(&kb), 0);
	assert_true(kb > 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guardrails_hold_where_they_are_asked_for),
		cmocka_unit_test(overrides_allow_more_but_never_less),
		cmocka_unit_test(a_name_for_a_file_has_no_way_in_it),
		cmocka_unit_test(boosts_have_their_ranges),
		cmocka_unit_test(five_minutes_lie_between_two_of_one_name),
		cmocka_unit_test(names_are_their_owners),
		cmocka_unit_test(the_book_is_bounded),
		cmocka_unit_test(available_memory_is_found_or_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
