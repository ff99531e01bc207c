/* Switches and wakings as columns, read back by protobuf-c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bundle_fixture.h"

typedef Perfetto__Protos__FtraceEventBundle__CompactSched compact_message;

static int
begin(void **state)
{
	bundle_fixture_begin(EVENT_PLAN_GENERIC, true);
	return 0;
}

static enum translate_verdict
add_switch(uint64_t time, const char *comm, int32_t pid, int64_t state)
{
	new_record("sched_switch");
	set_text("next_comm", comm);
	set("next_pid", (uint64_t)pid);
	set("next_prio", (uint64_t)-51);
	set("prev_state", (uint64_t)state);
	return add_at(time, format->size);
}

static enum translate_verdict
add_waking(uint64_t time, const char *comm, int32_t pid, uint8_t flags)
{
	new_record("sched_waking");
	set_text("comm", comm);
	set("pid", (uint64_t)pid);
	set("prio", 120);
	set("target_cpu", 2);
	record[2] = flags;
	return add_at(time, format->size);
}

static void
columns_have_what_the_records_had(void **state)
{
	const compact_message *c;

	assert_int_equal(add_switch(1000, "bash", 12, 1), EVENT_DONE);
	assert_int_equal(add_waking(1010, "sshd", 13, 0x18), EVENT_DONE);
	assert_int_equal(add_switch(1500, "sshd", 13, -256), EVENT_DONE);
	assert_int_equal(add_waking(3000, "bash", 12, 0), EVENT_DONE);
	assert_int_equal(add_switch(UINT64_C(1) << 62, "bash", 12, 0),
	    EVENT_DONE);
	assert_int_equal(bundle.n_events, 5);
	c = finish()->compact_sched;
	assert_int_equal(read_back->n_event, 0);
	assert_non_null(c);
	assert_int_equal(c->n_intern_table, 2);
	assert_string_equal(c->intern_table[0], "bash");
	assert_string_equal(c->intern_table[1], "sshd");

	assert_int_equal(c->n_switch_timestamp, 3);
	assert_int_equal(c->switch_timestamp[0], 1000);
	assert_int_equal(c->switch_timestamp[1], 500);
	assert_true(c->switch_timestamp[2] == (UINT64_C(1) << 62) - 1500);
	assert_int_equal(c->n_switch_prev_state, 3);
	assert_int_equal(c->switch_prev_state[0], 1);
	assert_int_equal(c->switch_prev_state[1], -256);
	assert_int_equal(c->n_switch_next_pid, 3);
	assert_int_equal(c->switch_next_pid[1], 13);
	assert_int_equal(c->n_switch_next_prio, 3);
	assert_int_equal(c->switch_next_prio[2], -51);
	assert_int_equal(c->n_switch_next_comm_index, 3);
	assert_int_equal(c->switch_next_comm_index[0], 0);
	assert_int_equal(c->switch_next_comm_index[1], 1);
	assert_int_equal(c->switch_next_comm_index[2], 0);

	assert_int_equal(c->n_waking_timestamp, 2);
	assert_int_equal(c->waking_timestamp[0], 1010);
	assert_int_equal(c->waking_timestamp[1], 1990);
	assert_int_equal(c->waking_pid[0], 13);
	assert_int_equal(c->waking_target_cpu[0], 2);
	assert_int_equal(c->waking_prio[1], 120);
	assert_int_equal(c->waking_comm_index[0], 1);
	assert_int_equal(c->waking_common_flags[0], 0x18);
	assert_int_equal(c->n_waking_common_flags, 2);
}

static void
the_next_bundle_begins_anew(void **state)
{
	const compact_message *c;

	assert_int_equal(add_switch(1000, "bash", 12, 1), EVENT_DONE);
	finish();
	bundle_fixture_begin_again();
	assert_int_equal(add_switch(5000, "make", 14, 1), EVENT_DONE);
	c = finish()->compact_sched;
	assert_int_equal(c->n_intern_table, 1);
	assert_string_equal(c->intern_table[0], "make");
	assert_int_equal(c->n_switch_timestamp, 1);
	assert_int_equal(c->switch_timestamp[0], 5000);
	assert_int_equal(c->n_waking_timestamp, 0);
	bundle_fixture_begin_again();
	assert_null(finish()->compact_sched);
}

/* A longer name that the kernel has overwritten with a shorter one. */
static void
bytes_behind_the_end_of_a_name_make_no_other_name(void **state)
{
	const compact_message *c;
	uint16_t at;

	assert_int_equal(add_switch(1, "ab", 1, 0), EVENT_DONE);
	new_record("sched_switch");
	at = event_format_field(format, "next_comm")->offset;
	memcpy(record + at, "ab\0defghijklmnop", 16);
	assert_int_equal(add_at(2, format->size), EVENT_DONE);
	/* And a name whose end is missing. */
	memcpy(record + at, "0123456789abcdef", 16);
	assert_int_equal(add_at(3, format->size), EVENT_DONE);
	c = finish()->compact_sched;
	assert_int_equal(c->n_intern_table, 2);
	assert_string_equal(c->intern_table[1], "0123456789abcdef");
}

static void
many_names_fill_a_bundle_and_none_is_lost(void **state)
{
	const compact_message *c;
	char comm[16];
	uint32_t i;

	for (i = 0; i < 1000; i++) {
		snprintf(comm, sizeof(comm), "task-%u", i % 500);
		assert_int_equal(add_switch(i, comm, 1 + (int32_t)i, 0),
		    EVENT_DONE);
		assert_true(ftrace_bundle_is_full(&bundle) == (i >= 63));
	}
	c = finish()->compact_sched;
	assert_int_equal(c->n_switch_next_comm_index, 1000);
	for (i = 0; i < 1000; i++) {
		snprintf(comm, sizeof(comm), "task-%u", i % 500);
		assert_true(c->switch_next_comm_index[i] < c->n_intern_table);
		assert_string_equal(
		    c->intern_table[c->switch_next_comm_index[i]], comm);
	}
	assert_false(ftrace_bundle_is_full(&bundle));
}

static void
other_events_are_written_beside_the_columns(void **state)
{
	assert_int_equal(add_switch(1, "ab", 1, 0), EVENT_DONE);
	new_record("sched_wakeup");
	assert_int_equal(add_at(2, format->size), EVENT_DONE);
	finish();
	assert_int_equal(read_back->n_event, 1);
	assert_non_null(read_back->event[0]->sched_wakeup);
	assert_int_equal(read_back->compact_sched->n_switch_timestamp, 1);
}

static void
a_record_that_is_too_short_is_told(void **state)
{
	new_record("sched_waking");
	assert_int_equal(add_at(5, (size_t)format->size - 1), EVENT_BROKEN);
	finish();
	assert_null(read_back->compact_sched);
	assert_int_equal(read_back->n_error, 1);
	assert_int_equal(read_back->error[0]->status, 16);
}

static void
the_next_task_is_noted(void **state)
{
	assert_int_equal(add_switch(1, "ab", 100, 0), EVENT_DONE);
	assert_int_equal(add_waking(1, "cd", 200, 0), EVENT_DONE);
	assert_int_equal(kernel->pids.n, 2);
	assert_int_equal(kernel->pids.pids[0], 100);
	assert_int_equal(kernel->pids.pids[1], 200);
	finish();
}

/* Pages of a real kernel have the same switches in both forms. */
static void
a_real_kernels_events_are_the_same_in_columns(void **state)
{
	uint64_t times[1024], time = 0;
	const compact_message *c;
	size_t i, n = 0, len, at;
	uint8_t *pages;

	pages = real_pages(getenv("FTRACE_DATA"), "sched.pages", &len);
	for (at = 0; at < len; at += REAL_PAGE)
		real_page_add(kernel, &bundle, pages + at);
	c = finish()->compact_sched;
	assert_int_equal(c->n_switch_timestamp, 143);
	assert_int_equal(c->n_waking_timestamp, 82);
	assert_int_equal(read_back->n_event, 81);
	for (i = 0; i < 143; i++)
		times[i] = time += c->switch_timestamp[i];

	bundle_fixture_done();
	bundle_fixture_begin(EVENT_PLAN_GENERIC, false);
	for (at = 0; at < len; at += REAL_PAGE)
		real_page_add(kernel, &bundle, pages + at);
	free(pages);
	finish();
	assert_int_equal(read_back->n_event, 306);
	for (i = 0; i < read_back->n_event; i++)
		if (read_back->event[i]->event_case ==
		    PERFETTO__PROTOS__FTRACE_EVENT__EVENT_SCHED_SWITCH)
			assert_int_equal(read_back->event[i]->timestamp,
			    times[n++]);
	assert_int_equal(n, 143);
}

static int
done(void **state)
{
	bundle_fixture_done();
	return 0;
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, done)
	const struct CMUnitTest tests[] = {
		CASE(columns_have_what_the_records_had),
		CASE(the_next_bundle_begins_anew),
		CASE(bytes_behind_the_end_of_a_name_make_no_other_name),
		CASE(many_names_fill_a_bundle_and_none_is_lost),
		CASE(other_events_are_written_beside_the_columns),
		CASE(a_record_that_is_too_short_is_told),
		CASE(the_next_task_is_noted),
		CASE(a_real_kernels_events_are_the_same_in_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
