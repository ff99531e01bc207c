/* Bundles: their heads, descriptors, filters, names and errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bundle_fixture.h"
#include "client/ftrace/config/ftrace_config.h"
#include "client/ftrace/events/kernel_symbols.h"
#include "client/ftrace/events/syscall_filter.h"
#include "protos/trace_packet.pb-c.h"

static bool no_memory;

void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *
__wrap_realloc(void *p, size_t size)
{
	return no_memory ? NULL : __real_realloc(p, size);
}

static int
begin(void **state)
{
	bundle_fixture_begin(EVENT_PLAN_GENERIC, false);
	return 0;
}

static int
begin_described(void **state)
{
	bundle_fixture_begin(EVENT_PLAN_DESCRIBED, false);
	return 0;
}

static int
begin_compact(void **state)
{
	bundle_fixture_begin(EVENT_PLAN_GENERIC, true);
	return 0;
}

static int
done(void **state)
{
	bundle_fixture_done();
	return 0;
}

/* In place of the one that the fixture began. */
static void
begin_with(const struct ftrace_bundle_head *head)
{
	finish();
	bundle_fixture_begin_again();
	packet_done(&packet);
	packet_init(&packet);
	ftrace_bundle_begin(&bundle, &packet, head);
}

static void
a_head_says_what_was_lost_and_which_clock(void **state)
{
	const struct ftrace_bundle_head head = { .cpu = 5, .lost = true,
		.previous_end = 99, .clock = 3, .clock_time = 1000,
		.boot_time = 2000 };

	begin_with(&head);
	finish();
	assert_int_equal(read_back->cpu, 5);
	assert_true(read_back->lost_events);
	assert_int_equal(read_back->previous_bundle_end_timestamp, 99);
	assert_int_equal(read_back->ftrace_clock, 3);
	assert_int_equal(read_back->ftrace_timestamp, 1000);
	assert_int_equal(read_back->boot_timestamp, 2000);
}

static void
without_readings_of_both_clocks_neither_is_said(void **state)
{
	const struct ftrace_bundle_head head = { .clock = 2 };

	begin_with(&head);
	finish();
	assert_true(read_back->has_previous_bundle_end_timestamp);
	assert_int_equal(read_back->previous_bundle_end_timestamp, 0);
	assert_int_equal(read_back->ftrace_clock, 2);
	assert_false(read_back->has_ftrace_timestamp);
	assert_false(read_back->has_boot_timestamp);
}

static void
the_end_is_the_last_events_time(void **state)
{
	new_record("sched_wakeup");
	assert_int_equal(add_at(50, format->size), EVENT_DONE);
	assert_int_equal(add_at(60, format->size), EVENT_DONE);
	assert_int_equal(add_at(70, 4), EVENT_BROKEN);
	assert_int_equal(bundle.end, 60);
	assert_int_equal(bundle.n_events, 2);
	assert_int_equal(bundle.n_errors, 1);
	finish();
}

static void
broken_pages_are_told_with_their_reason(void **state)
{
	ftrace_bundle_error(&bundle, 77, 6);
	finish();
	assert_int_equal(read_back->n_error, 1);
	assert_int_equal(read_back->error[0]->timestamp, 77);
	assert_int_equal(read_back->error[0]->status, 6);
}

/* Typed here: "\n" + the name is field 1 of a DescriptorProto. */
static void
a_descriptor_comes_once_before_the_first_event(void **state)
{
	static const char begins[] = "\x0a\x12sched_stat_runtime\x12";
	const Perfetto__Protos__FtraceEventBundle__GenericEventDescriptor *d;
	const ProtobufCMessageUnknownField *unknown;

	new_record("sched_stat_runtime");
	set_text("comm", "make");
	set("pid", 99);
	assert_int_equal(add_at(1, format->size), EVENT_DONE);
	assert_int_equal(add_at(2, format->size), EVENT_DONE);
	finish();
	assert_int_equal(read_back->n_generic_event_descriptors, 1);
	d = read_back->generic_event_descriptors[0];
	assert_int_equal(d->field_id, 65536 + format->id);
	assert_string_equal(d->group_name, "sched");
	assert_memory_equal(d->event_descriptor.data, begins,
	    sizeof(begins) - 1);
	assert_int_equal(read_back->n_event, 2);
	assert_int_equal(read_back->event[0]->base.n_unknown_fields, 1);
	unknown = &read_back->event[0]->base.unknown_fields[0];
	assert_int_equal(unknown->tag, 65536 + format->id);
	/* comm=1, pid=2 behind the length of the message */
	assert_memory_equal(unknown->data + 1, "\x0a\x04make\x10\x63", 8);

	bundle_fixture_begin_again();
	new_record("sched_switch");
	assert_int_equal(add_at(3, format->size), EVENT_DONE);
	finish();
	assert_int_equal(read_back->n_generic_event_descriptors, 0);
	bundle_fixture_begin_again();
	new_record("sched_stat_runtime");
	assert_int_equal(add_at(4, format->size), EVENT_DONE);
	finish();
	assert_int_equal(read_back->n_generic_event_descriptors, 1);
}

static enum translate_verdict
add_print(const char *text, size_t len)
{
	new_record("print");
	memcpy(record + format->size, text, len);
	return add_at(1, (size_t)format->size + len);
}

static void
a_filter_is_asked_about_what_programs_print(void **state)
{
	static const struct ftrace_print_rule rule = {
		.match = FTRACE_PRINT_PREFIX, .type = "", .prefix = "no" };

	bundle.setup.print = (struct print_filter){ &rule, 1 };
	assert_int_equal(add_print("yes", 4), EVENT_DONE);
	assert_int_equal(add_print("no", 3), EVENT_FILTERED);
	/* Text ends with its record, with and without a NUL. */
	assert_int_equal(add_print("no", 2), EVENT_FILTERED);
	assert_int_equal(add_print("n\0o", 3), EVENT_DONE);
	new_record("sched_switch");
	assert_int_equal(add_at(1, format->size), EVENT_DONE);
	/* A record without room for text is broken, whatever the filter. */
	new_record("print");
	assert_int_equal(add_at(1, 8), EVENT_BROKEN);
	finish();
	assert_int_equal(read_back->n_event, 3);
}

static enum translate_verdict
add_syscall(const char *event, int64_t id)
{
	new_record(event);
	set("id", (uint64_t)id);
	return add_at(1, format->size);
}

static void
system_calls_that_are_not_asked_for_are_left_out(void **state)
{
	struct syscall_filter filter = { { 1u << 5 } };

	bundle.setup.syscalls = &filter;
	assert_int_equal(add_syscall("sys_enter", 5), EVENT_DONE);
	assert_int_equal(add_syscall("sys_enter", 6), EVENT_FILTERED);
	assert_int_equal(add_syscall("sys_exit", 5), EVENT_DONE);
	assert_int_equal(add_syscall("sys_exit", -1), EVENT_FILTERED);
	assert_int_equal(add_at(1, 4), EVENT_BROKEN);
	new_record("sched_switch");
	assert_int_equal(add_at(1, format->size), EVENT_DONE);
	finish();
	assert_int_equal(read_back->n_event, 3);
}

static void
names_of_functions_stand_beside_the_bundle(void **state)
{
	static const char text[] = "ffffffff81001000 t a_function\n";
	struct kernel_symbols *names = kernel_symbols_new();
	Perfetto__Protos__TracePacket *p;

	assert_non_null(names);
	assert_true(kernel_symbols_feed(names, text, strlen(text)));
	assert_int_equal(kernel_symbols_end(names), 1);
	bundle.setup.symbols = names;
	new_record("workqueue_execute_start");
	set("work", 0xffff888000000000);
	set("function", 0xffffffff81001234);
	assert_int_equal(add_at(1, format->size), EVENT_DONE);
	finish();
	assert_int_equal(packet.flags, 1);
	p = perfetto__protos__trace_packet__unpack(NULL, packet_len(&packet),
	    packet.data);
	assert_non_null(p);
	assert_int_equal(p->interned_data->n_kernel_symbols, 1);
	assert_int_equal(p->interned_data->kernel_symbols[0]->iid, 2);
	assert_int_equal(p->interned_data->kernel_symbols[0]->str.len, 10);
	assert_memory_equal(p->interned_data->kernel_symbols[0]->str.data,
	    "a_function", 10);
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
	kernel_symbols_free(names);
}

static void
a_kprobe_has_its_name_and_end(void **state)
{
	struct event_plan *plan;

	new_record("kfree");
	plan = event_plan_new_kprobe(format, "do_sys_open", 2);
	assert_non_null(plan);
	assert_int_equal(ftrace_bundle_add(&bundle, plan, 9, record,
	    format->size), EVENT_DONE);
	finish();
	assert_int_equal(read_back->n_event, 1);
	assert_string_equal(read_back->event[0]->kprobe_event->name,
	    "do_sys_open");
	assert_int_equal(read_back->event[0]->kprobe_event->type, 2);
	assert_int_equal(read_back->event[0]->pid, TID);
	event_plan_free(plan);
}

/* The packet moves and grows many times. */
static void
a_bundle_may_be_large(void **state)
{
	size_t i;

	new_record("sched_switch");
	set_text("prev_comm", "bash");
	for (i = 0; i < 20000; i++)
		assert_int_equal(add_at(i, format->size), EVENT_DONE);
	finish();
	assert_int_equal(read_back->n_event, 20000);
	assert_int_equal(read_back->event[19999]->timestamp, 19999);
	assert_string_equal(read_back->event[19999]->sched_switch->prev_comm,
	    "bash");
}

/* Or the events would be lost without a word. */
static void
columns_without_memory_fail_their_packet(void **state)
{
	new_record("sched_switch");
	assert_int_equal(add_at(1, format->size), EVENT_DONE);
	finish();
	bundle_fixture_begin_again();
	compact_sched_done(&bundle.sched);
	no_memory = true;
	assert_int_equal(add_at(2, format->size), EVENT_NO_ROOM);
	no_memory = false;
	assert_true(packet.failed);
	assert_int_equal(bundle.n_events, 0);
	ftrace_bundle_end(&bundle);
	bundle_fixture_begin_again();
	assert_int_equal(add_at(3, format->size), EVENT_DONE);
	finish();
	assert_int_equal(read_back->compact_sched->n_switch_timestamp, 1);
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, done)
	const struct CMUnitTest tests[] = {
		CASE(a_head_says_what_was_lost_and_which_clock),
		CASE(without_readings_of_both_clocks_neither_is_said),
		CASE(the_end_is_the_last_events_time),
		CASE(broken_pages_are_told_with_their_reason),
		cmocka_unit_test_setup_teardown(
		    a_descriptor_comes_once_before_the_first_event,
		    begin_described, done),
		CASE(a_filter_is_asked_about_what_programs_print),
		CASE(system_calls_that_are_not_asked_for_are_left_out),
		CASE(names_of_functions_stand_beside_the_bundle),
		CASE(a_kprobe_has_its_name_and_end),
		CASE(a_bundle_may_be_large),
		cmocka_unit_test_setup_teardown(
		    columns_without_memory_fail_their_packet, begin_compact,
		    done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
