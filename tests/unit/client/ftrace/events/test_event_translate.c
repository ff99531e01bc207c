/*
 * Records as the kernel writes them, turned into events and read back by
 * protobuf-c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bundle_fixture.h"
#include "client/ftrace/events/printk_strings.h"

#define TIME UINT64_C(123456789012)

/* Counted by another program: events of the pages, and well-known ones. */
#define SCHED_EVENTS 306
#define TASKS_EVENTS 486
#define TASKS_KNOWN  429
#define DISK_EVENTS  507
#define DISK_KNOWN   391

typedef Perfetto__Protos__FtraceEvent event_message;

static int
begin(void **state)
{
	bundle_fixture_begin(EVENT_PLAN_GENERIC, false);
	return 0;
}

static int
done(void **state)
{
	bundle_fixture_done();
	return 0;
}

static enum translate_verdict
add(size_t len)
{
	return add_at(TIME, len);
}

static const event_message *
only_event(void)
{
	finish();
	assert_int_equal(read_back->n_event, 1);
	assert_int_equal(read_back->event[0]->timestamp, TIME);
	assert_int_equal(read_back->event[0]->pid, TID);
	return read_back->event[0];
}

static void
a_bundle_says_its_processor_and_the_end_of_the_one_before(void **state)
{
	finish();
	assert_int_equal(read_back->cpu, 3);
	assert_int_equal(read_back->previous_bundle_end_timestamp, 7);
	assert_true(read_back->has_previous_bundle_end_timestamp);
	assert_false(read_back->has_lost_events);
	assert_false(read_back->has_ftrace_clock);
	assert_int_equal(bundle.end, 7);
}

static void
a_switch_has_all_of_its_fields(void **state)
{
	const Perfetto__Protos__SchedSwitchFtraceEvent *e;

	new_record("sched_switch");
	set_text("prev_comm", "bash");
	set("prev_pid", 12);
	set("prev_prio", 120);
	set("prev_state", UINT64_MAX - 1);
	set_text("next_comm", "a_name_of_15_by");
	set("next_pid", 13);
	set("next_prio", (uint64_t)-1);
	assert_int_equal(add(format->size), EVENT_DONE);
	e = only_event()->sched_switch;
	assert_non_null(e);
	assert_string_equal(e->prev_comm, "bash");
	assert_int_equal(e->prev_pid, 12);
	assert_int_equal(e->prev_prio, 120);
	assert_int_equal(e->prev_state, -2);
	assert_string_equal(e->next_comm, "a_name_of_15_by");
	assert_int_equal(e->next_pid, 13);
	assert_int_equal(e->next_prio, -1);
	assert_int_equal(bundle.end, TIME);
}

/* Typed here: what Perfetto's schema says of bytes. */
static void
the_bytes_of_a_switch_are_those_of_perfetto(void **state)
{
	static const uint8_t expected[] = {
		0x0a, 54,                   /* TracePacket.ftrace_events */
		0x08, 3,                    /* cpu */
		0x50, 7,                    /* previous_bundle_end_timestamp */
		0x12, 48,                   /* event */
		0x08, 0x94, 0xb4, 0xe4, 0xf4, 0xcb, 0x03, /* timestamp */
		0x10, 0x92, 0x21,           /* pid */
		0x22, 36,                   /* sched_switch */
		0x0a, 4, 'b', 'a', 's', 'h', 0x10, 12, 0x18, 120, 0x20, 2,
		0x2a, 9, 's', 'w', 'a', 'p', 'p', 'e', 'r', '/', '3',
		0x30, 0, 0x38, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0x01,
	};

	new_record("sched_switch");
	set_text("prev_comm", "bash");
	set("prev_pid", 12);
	set("prev_prio", 120);
	set("prev_state", 2);
	set_text("next_comm", "swapper/3");
	set("next_prio", (uint64_t)-1);
	assert_int_equal(add(format->size), EVENT_DONE);
	finish();
	assert_int_equal(packet_len(&packet), sizeof(expected));
	assert_memory_equal(packet.data, expected, sizeof(expected));
}

static void
a_name_without_an_end_has_all_of_its_bytes(void **state)
{
	new_record("sched_switch");
	memset(record + event_format_field(format, "prev_comm")->offset, 'x',
	    16);
	assert_int_equal(add(format->size), EVENT_DONE);
	assert_string_equal(only_event()->sched_switch->prev_comm,
	    "xxxxxxxxxxxxxxxx");
}

static void
a_waking_has_the_fields_that_the_kernel_has(void **state)
{
	const event_message *e;

	new_record("sched_waking");
	set_text("comm", "sshd");
	set("pid", 77);
	set("prio", 120);
	set("target_cpu", 1);
	record[2] = 0x18; /* common_flags: Trace Processor wants none here */
	assert_int_equal(add(format->size), EVENT_DONE);
	e = only_event();
	assert_false(e->has_common_flags);
	assert_string_equal(e->sched_waking->comm, "sshd");
	assert_int_equal(e->sched_waking->pid, 77);
	assert_int_equal(e->sched_waking->target_cpu, 1);
	/* The kernel has not had it for ten years; so it is not there. */
	assert_false(e->sched_waking->has_success);
}

static void
located_text_and_a_disk_are_as_programs_know_them(void **state)
{
	const Perfetto__Protos__BlockRqIssueFtraceEvent *e;
	size_t len;

	new_record("block_rq_issue");
	set("dev", 259u << 20 | 0x12345);
	set("sector", UINT64_C(1) << 40);
	set("nr_sector", 8);
	set_text("rwbs", "WS");
	set_text("comm", "dd");
	len = set_located("cmd", "text");
	assert_int_equal(add(len), EVENT_DONE);
	e = only_event()->block_rq_issue;
	assert_non_null(e);
	/* makedev(259, 0x12345) */
	assert_int_equal(e->dev, UINT64_C(0x12310345));
	assert_int_equal(e->sector, UINT64_C(1) << 40);
	assert_string_equal(e->rwbs, "WS");
	assert_string_equal(e->cmd, "text");
}

static void
functions_are_numbered_and_other_addresses_told(void **state)
{
	const Perfetto__Protos__WorkqueueExecuteStartFtraceEvent *e;

	new_record("workqueue_execute_start");
	set("work", 0xffff888000001234);
	set("function", 0xffffffff81002000);
	assert_int_equal(add(format->size), EVENT_DONE);
	set("function", 0xffffffff81001000);
	assert_int_equal(add(format->size), EVENT_DONE);
	set("function", 0xffffffff81002000);
	assert_int_equal(add(format->size), EVENT_DONE);
	finish();
	assert_int_equal(read_back->n_event, 3);
	e = read_back->event[0]->workqueue_execute_start;
	/* Both are `void *`, and it is not known which is a function. */
	assert_int_equal(e->work, 1);
	assert_int_equal(e->function, 2);
	e = read_back->event[1]->workqueue_execute_start;
	assert_int_equal(e->work, 1);
	assert_int_equal(e->function, 3);
	assert_int_equal(read_back->event[2]->workqueue_execute_start->function,
	    2);
}

static void
a_system_call_has_its_arguments_one_by_one(void **state)
{
	const Perfetto__Protos__SysEnterFtraceEvent *e;
	uint64_t i, arg;
	uint16_t at;

	new_record("sys_enter");
	set("id", (uint64_t)-1);
	at = event_format_field(format, "args")->offset;
	for (i = 0; i < 6; i++) {
		arg = i == 5 ? UINT64_MAX : i * 100;
		memcpy(record + at + i * 8, &arg, 8);
	}
	assert_int_equal(add(format->size), EVENT_DONE);
	e = only_event()->sys_enter;
	assert_int_equal(e->id, -1);
	assert_int_equal(e->n_args, 6);
	assert_int_equal(e->args[1], 100);
	assert_true(e->args[5] == UINT64_MAX);
}

static void
a_print_has_its_text_up_to_the_end_of_the_record(void **state)
{
	new_record("print");
	set("ip", 0xffffffff81234567);
	memcpy(record + format->size, "B|12|name", 9);
	assert_int_equal(add((size_t)format->size + 9), EVENT_DONE);
	assert_string_equal(only_event()->print->buf, "B|12|name");
}

static void
an_event_without_a_message_names_its_fields(void **state)
{
	const Perfetto__Protos__GenericFtraceEvent *e;

	new_record("sched_stat_runtime");
	set_text("comm", "make");
	set("pid", 99);
	set("runtime", 5000000000);
	assert_int_equal(add(format->size), EVENT_DONE);
	e = only_event()->generic;
	assert_non_null(e);
	assert_string_equal(e->event_name, "sched_stat_runtime");
	assert_true(e->n_field >= 3);
	assert_string_equal(e->field[0]->name, "comm");
	assert_string_equal(e->field[0]->str_value, "make");
	assert_string_equal(e->field[1]->name, "pid");
	assert_int_equal(e->field[1]->value_case,
	    PERFETTO__PROTOS__GENERIC_FTRACE_EVENT__FIELD__VALUE_INT_VALUE);
	assert_int_equal(e->field[1]->int_value, 99);
	assert_string_equal(e->field[2]->name, "runtime");
	assert_int_equal(e->field[2]->value_case,
	    PERFETTO__PROTOS__GENERIC_FTRACE_EVENT__FIELD__VALUE_UINT_VALUE);
	assert_int_equal(e->field[2]->uint_value, 5000000000);
}

static void
a_record_that_is_too_short_is_told_and_leaves_no_trace(void **state)
{
	new_record("sched_switch");
	assert_int_equal(add(format->size), EVENT_DONE);
	assert_int_equal(add((size_t)format->size - 1), EVENT_BROKEN);
	assert_int_equal(add(2), EVENT_BROKEN);
	assert_int_equal(add(format->size), EVENT_DONE);
	finish();
	assert_int_equal(read_back->n_event, 2);
	assert_int_equal(read_back->n_error, 2);
	assert_int_equal(read_back->error[0]->timestamp, TIME);
	assert_int_equal(read_back->error[0]->status, 17);
	assert_int_equal(bundle.n_errors, 2);
}

static void
text_outside_of_its_record_breaks_it_halfway(void **state)
{
	size_t len;

	new_record("block_rq_issue");
	len = set_located("cmd", "text");
	assert_int_equal(add(len), EVENT_DONE);
	assert_int_equal(add(len - 1), EVENT_BROKEN);
	set("cmd", 1u << 16 | 0xffff);
	assert_int_equal(add(len), EVENT_BROKEN);
	set("cmd", 0xffffu << 16 | 8);
	assert_int_equal(add(len), EVENT_BROKEN);
	/* Text of no bytes is nowhere. */
	set("cmd", 0xffff);
	assert_int_equal(add(len), EVENT_DONE);
	finish();
	assert_int_equal(read_back->n_event, 2);
	assert_int_equal(read_back->n_error, 3);
}

#define FIELD(name, offset) \
	"\tfield:u64 " name ";\toffset:" #offset ";\tsize:8;\tsigned:0;\n"

/* Constant text of the kernel's may be longer than the record, and of any
 * length beside what a packet has room for. */
static void
text_elsewhere_leaves_room_for_what_follows_it(void **state)
{
	static const char text[] = "name: pointed\nID: 9\nformat:\n"
	    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;"
	    "\tsigned:0;\n"
	    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	    "\tfield:const char * a;\toffset:8;\tsize:8;\tsigned:0;\n"
	    FIELD("b", 16) FIELD("c", 24) FIELD("d", 32) FIELD("e", 40)
	    FIELD("f", 48) FIELD("g", 56) "\nprint fmt: \"\"\n";
	char line[2000], why[256];
	struct event_format *f;
	struct event_plan *plan;
	size_t len;

	f = event_format_parse("mine", text, strlen(text), why, sizeof(why));
	assert_non_null(f);
	plan = event_plan_new(f, EVENT_PLAN_DESCRIBED);
	assert_non_null(plan);
	memset(record, 0xff, sizeof(record));
	memset(record + 8, 0x11, 8);
	strcpy(line, "0x1111111111111111 : \"");
	for (len = 0; len < 1500; len++) {
		strcpy(line + 22 + len, "x\"");
		printk_strings_free(kernel->strings);
		kernel->strings = printk_strings_new(line, strlen(line));
		bundle.setup.env.strings = kernel->strings;
		assert_int_equal(ftrace_bundle_add(&bundle, plan, TIME,
		    record, 64), EVENT_DONE);
		assert_true(packet.at <= packet.end);
		line[22 + len] = 'x';
		finish();
		assert_int_equal(read_back->n_event, 1);
		bundle_fixture_begin_again();
	}
	event_plan_free(plan);
	event_format_free(f);
}

static void
a_thread_is_noted_once(void **state)
{
	new_record("sched_switch");
	set("next_pid", 13);
	set("prev_pid", TID);
	assert_int_equal(add(format->size), EVENT_DONE);
	assert_int_equal(add(format->size), EVENT_DONE);
	assert_int_equal(kernel->pids.n, 2);
	assert_int_equal(kernel->pids.pids[0], TID);
	assert_int_equal(kernel->pids.pids[1], 13);
	pid_notes_take(&kernel->pids);
	assert_int_equal(add(format->size), EVENT_DONE);
	assert_int_equal(kernel->pids.n, 0);
	pid_notes_renew(&kernel->pids);
	assert_int_equal(add(format->size), EVENT_DONE);
	assert_int_equal(kernel->pids.n, 2);
	finish();
}

/* Each of the real pages, whole. */
static void
add_pages(const char *name, unsigned n_events)
{
	uint8_t *pages;
	size_t len, at;
	unsigned n = 0;

	pages = real_pages(getenv("FTRACE_DATA"), name, &len);
	for (at = 0; at < len; at += REAL_PAGE)
		n += real_page_add(kernel, &bundle, pages + at);
	free(pages);
	assert_int_equal(n, n_events);
	assert_int_equal(bundle.n_errors, 0);
}

static void
pages_of_a_real_kernel_are_translated_whole(void **state)
{
	size_t i, n_known = 0;

	add_pages("sched.pages", SCHED_EVENTS);
	add_pages("tasks.pages", TASKS_EVENTS);
	add_pages("disk.pages", DISK_EVENTS);
	finish();
	assert_int_equal(read_back->n_event,
	    SCHED_EVENTS + TASKS_EVENTS + DISK_EVENTS);
	for (i = 0; i < read_back->n_event; i++) {
		assert_int_not_equal(read_back->event[i]->event_case,
		    PERFETTO__PROTOS__FTRACE_EVENT__EVENT__NOT_SET);
		n_known += read_back->event[i]->event_case !=
		    PERFETTO__PROTOS__FTRACE_EVENT__EVENT_GENERIC;
	}
	assert_int_equal(n_known, SCHED_EVENTS + TASKS_KNOWN + DISK_KNOWN);
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, done)
	const struct CMUnitTest tests[] = {
		CASE(a_bundle_says_its_processor_and_the_end_of_the_one_before),
		CASE(a_switch_has_all_of_its_fields),
		CASE(the_bytes_of_a_switch_are_those_of_perfetto),
		CASE(a_name_without_an_end_has_all_of_its_bytes),
		CASE(a_waking_has_the_fields_that_the_kernel_has),
		CASE(located_text_and_a_disk_are_as_programs_know_them),
		CASE(functions_are_numbered_and_other_addresses_told),
		CASE(a_system_call_has_its_arguments_one_by_one),
		CASE(a_print_has_its_text_up_to_the_end_of_the_record),
		CASE(an_event_without_a_message_names_its_fields),
		CASE(a_record_that_is_too_short_is_told_and_leaves_no_trace),
		CASE(text_outside_of_its_record_breaks_it_halfway),
		CASE(text_elsewhere_leaves_room_for_what_follows_it),
		CASE(a_thread_is_noted_once),
		CASE(pages_of_a_real_kernel_are_translated_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
