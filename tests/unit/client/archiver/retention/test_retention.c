/* retention, by cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/archiver/retention/retention.h"

#define NOW  1000000u
#define MUCH 1000000000u

static struct retention_segment segments[8];
static size_t n;
static struct retention_policy policy;
static struct retention_plan plan;

static int
setup(void **state)
{
	n = 0;
	memset(&policy, 0, sizeof(policy));
	memset(&plan, 0, sizeof(plan));
	return 0;
}

static int
teardown(void **state)
{
	retention_plan_done(&plan);
	return 0;
}

static struct retention_segment *
add(const char *recording, const char *machine, uint64_t end_ms,
    uint64_t bytes)
{
	assert_true(n < 8);
	segments[n] = (struct retention_segment){
		.id = n,
		.recording = recording,
		.machine = machine,
		.end_ms = end_ms,
		.bytes = bytes,
	};
	return &segments[n++];
}

static void
make_with_free(uint64_t free_bytes)
{
	assert_int_equal(retention_plan_make(&plan, &policy, segments, n, NOW,
	    free_bytes), 0);
}

static void
make(void)
{
	make_with_free(MUCH);
}

/* The deletions by their places, as "021". */
static void
assert_deletions(const char *places)
{
	char got[16] = "";
	size_t i;

	for (i = 0; i < plan.n_deletions; i++)
		got[i] = (char)('0' + plan.deletions[i].segment);
	assert_string_equal(got, places);
}

static const char *
reason(size_t i)
{
	static char text[RETENTION_TEXT_MAX];

	assert_true(i < plan.n_deletions);
	return retention_reason_text(text, &plan.deletions[i].why);
}

static const char *
excess(size_t i)
{
	static char text[RETENTION_TEXT_MAX];

	assert_true(i < plan.n_excesses);
	return retention_excess_text(text, &plan.excesses[i]);
}

/* ---- limits ---- */

static void
without_limits_everything_stays(void **state)
{
	add("a", "m", 1, 10);
	make();
	assert_deletions("");
	assert_int_equal(plan.bytes, 10);
	assert_int_equal(plan.free, MUCH);
	assert_int_equal(plan.due_ms, UINT64_MAX);
	assert_int_equal(plan.n_excesses, 0);
	assert_false(plan.near);
}

static void
an_empty_archive_has_nothing_to_delete(void **state)
{
	policy.all = (struct retention_limit){ 1, 1 };
	make();
	assert_deletions("");
	assert_int_equal(plan.n_excesses, 0);
}

static void
the_oldest_go_until_the_bytes_fit(void **state)
{
	policy.all.bytes = 4096;
	add("a", "m", 30, 2048);
	add("a", "m", 10, 2048);
	add("a", "m", 20, 2048);
	add("a", "m", 40, 2048);
	make();
	assert_deletions("12");
	assert_int_equal(plan.bytes, 4096);
	assert_int_equal(plan.free, MUCH + 4096);
	assert_string_equal(reason(0), "the archive has 8.0 KiB of segments, "
	    "and keeps 4.0 KiB");
	assert_string_equal(reason(1), "the archive has 6.0 KiB of segments, "
	    "and keeps 4.0 KiB");
}

static void
of_equal_ends_the_lower_id_goes(void **state)
{
	policy.all.bytes = 1;
	add("a", "m", 10, 1)->id = 2;
	add("a", "m", 10, 1)->id = 1;
	make();
	assert_deletions("1");
}

static void
an_age_that_is_reached_exactly_is_kept(void **state)
{
	policy.all.age_ms = 1000;
	add("a", "m", NOW - 1001, 1);
	add("a", "m", NOW - 1000, 1);
	add("a", "m", NOW + 5, 1);
	make();
	assert_deletions("0");
	assert_string_equal(reason(0),
	    "it is 1.0 s old, and the archive keeps 1.0 s");
	assert_int_equal(plan.due_ms, NOW + 1);
}

static void
an_end_beyond_all_clocks_is_never_due(void **state)
{
	policy.all.age_ms = 1000;
	add("a", "m", UINT64_MAX, 1);
	make();
	assert_deletions("");
	assert_int_equal(plan.due_ms, UINT64_MAX);
}

static void
each_machine_has_the_limit_for_itself(void **state)
{
	policy.each_machine.bytes = 2048;
	add("a", "kiosk-1", 1, 2048);
	add("a", "kiosk-2", 2, 2048);
	add("b", "kiosk-1", 3, 2048);
	make();
	assert_deletions("0");
	assert_string_equal(reason(0), "machine kiosk-1 has 4.0 KiB of "
	    "segments, and keeps 2.0 KiB");
}

static void
segments_of_several_machines_are_of_no_machines_limit(void **state)
{
	policy.each_machine = (struct retention_limit){ 1, 1 };
	add("a", "", 1, 10);
	make();
	assert_deletions("");
}

static void
the_first_rule_that_fits_a_recording_counts(void **state)
{
	static const struct retention_rule rules[] = {
		{ "always", { 0, 500 } },
		{ "al*", { 10, 0 } },
	};

	policy.rules = rules;
	policy.n_rules = 2;
	add("always", "m", NOW - 600, 100);
	add("alone", "m", 2, 10);
	add("alone", "m", 3, 10);
	add("also", "m", 4, 10);
	add("other", "m", 1, 100);
	make();
	assert_deletions("01");
	assert_string_equal(reason(0),
	    "it is 0.6 s old, and recording always keeps 0.5 s");
	assert_string_equal(reason(1), "recording alone has 20 bytes of "
	    "segments, and keeps 10 bytes");
}

static void
a_narrow_limit_spares_others_the_wide_one(void **state)
{
	policy.each_machine.bytes = 10;
	policy.all.bytes = 20;
	add("a", "quiet", 1, 10);
	add("a", "loud", 2, 10);
	add("a", "loud", 3, 10);
	make();
	assert_deletions("1");
}

/* ---- the disk ---- */

static void
a_full_disk_takes_the_oldest_of_all(void **state)
{
	policy.min_free = 2048;
	add("a", "m", 2, 1024);
	add("a", "m", 1, 1024);
	add("a", "m", 3, 1024);
	make_with_free(512);
	assert_deletions("10");
	assert_string_equal(reason(0),
	    "the disk has 512 bytes free, and is to have 2.0 KiB");
	assert_int_equal(plan.free, 512 + 2048);
	assert_false(plan.near);
}

static void
a_disk_that_is_nearly_full_is_told_before(void **state)
{
	size_t i;

	policy.min_free = 1000;
	for (i = 0; i < 6; i++)
		add("a", "m", 100 - i, 10)->pinned = i == 4;
	make_with_free(1099);
	assert_deletions("");
	assert_true(plan.near);
	assert_int_equal(plan.n_next, RETENTION_NEXT_MAX);
	assert_int_equal(plan.next[0], 5);
	assert_int_equal(plan.next[1], 3);
	retention_plan_done(&plan);
	make_with_free(1100);
	assert_false(plan.near);
	assert_int_equal(plan.n_next, 0);
}

/* ---- segments that stay ---- */

static void
pinned_segments_stay_and_are_named(void **state)
{
	policy.all = (struct retention_limit){ 1024, 1000 };
	add("a", "m", 1, 2048)->pinned = true;
	add("a", "m", 2, 2048)->pinned = true;
	add("a", "m", 3, 10);
	make();
	assert_deletions("2");
	assert_int_equal(plan.n_excesses, 2);
	assert_string_equal(excess(0), "the archive keeps 1.0 s, but the "
	    "oldest segment is 16 min 39 s old; 2 pinned segments (4.0 KiB) "
	    "are in the way");
	assert_string_equal(excess(1), "the archive has 4.0 KiB of segments, "
	    "and keeps 1.0 KiB; 2 pinned segments (4.0 KiB) are in the way");
	assert_int_equal(plan.due_ms, UINT64_MAX);
}

static void
segments_wait_for_their_upload_where_it_is_wanted(void **state)
{
	policy.min_free = 100;
	add("a", "m", 1, 50);
	add("a", "m", 2, 60)->stored = true;
	make_with_free(10);
	assert_deletions("01");
	retention_plan_done(&plan);
	policy.waits_for_upload = true;
	make_with_free(10);
	assert_deletions("1");
	assert_int_equal(plan.n_excesses, 1);
	assert_string_equal(excess(0), "the disk has 70 bytes free, and is to "
	    "have 100 bytes; 1 not yet uploaded segment (50 bytes) is in the "
	    "way");
}

static void
names_of_any_length_leave_the_sentence_whole(void **state)
{
	static char name[2000];

	memset(name, 'x', sizeof(name) - 1);
	policy.each_machine.bytes = 2;
	add("a", name, 1, 3);
	make();
	assert_deletions("0");
	assert_non_null(strstr(reason(0), "has 3 bytes of segments, and keeps "
	    "2 bytes"));
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(without_limits_everything_stays),
		CASE(an_empty_archive_has_nothing_to_delete),
		CASE(the_oldest_go_until_the_bytes_fit),
		CASE(of_equal_ends_the_lower_id_goes),
		CASE(an_age_that_is_reached_exactly_is_kept),
		CASE(an_end_beyond_all_clocks_is_never_due),
		CASE(each_machine_has_the_limit_for_itself),
		CASE(segments_of_several_machines_are_of_no_machines_limit),
		CASE(the_first_rule_that_fits_a_recording_counts),
		CASE(a_narrow_limit_spares_others_the_wide_one),
		CASE(a_full_disk_takes_the_oldest_of_all),
		CASE(a_disk_that_is_nearly_full_is_told_before),
		CASE(pinned_segments_stay_and_are_named),
		CASE(segments_wait_for_their_upload_where_it_is_wanted),
		CASE(names_of_any_length_leave_the_sentence_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
