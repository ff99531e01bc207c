/*
 * What the packets of linux.ftrace tell of losses, processor by processor, and
 * of events that could not be recorded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/trace/ftrace_losses.h"
#include "client/trace/packet_facts.h"
#include "client/trace/trace_losses.h"
#include "transport/wire/pb_writer.h"

/* Numbers typed from Perfetto's schemas. */
enum {
	FTRACE_EVENTS = 1, /* of TracePacket */
	FTRACE_STATS = 34,
	PHASE = 1,         /* of FtraceStats */
	CPU_STATS = 2,
	ATRACE_ERRORS = 5,
	UNKNOWN_EVENTS = 6,
	FAILED_EVENTS = 7,
	PARSE_ERRORS = 9,
	EXCLUSIVE_ERROR = 13,
	CPU = 1,           /* of FtraceCpuStats and FtraceEventBundle */
	OVERRUN = 3,
	COMMIT_OVERRUN = 4,
	DROPPED = 8,
	LOST_EVENTS = 3,   /* of FtraceEventBundle */
	ERROR = 8,
};
enum { START = 1, END = 2 };

static struct ftrace_losses losses;
static struct pb_writer w;
static struct trace_loss out[8];

static int
set_up(void **state)
{
	memset(&losses, 0, sizeof(losses));
	pb_writer_init(&w);
	return 0;
}

static int
tear_down(void **state)
{
	ftrace_losses_done(&losses);
	pb_writer_done(&w);
	return 0;
}

/* Takes what was written as the payload of a packet. */
static void
take(uint32_t type)
{
	struct packet_facts f = {
		.type = type,
		.payload = { .wire = PB_BYTES, .data = w.data, .len = w.len },
	};

	ftrace_losses_take(&losses, &f);
	pb_writer_done(&w);
	pb_writer_init(&w);
}

static void
put_cpu(unsigned cpu, uint64_t overrun, uint64_t commit, uint64_t dropped)
{
	size_t m = pb_nest_begin(&w, CPU_STATS);

	pb_put_uint(&w, CPU, cpu);
	pb_put_uint(&w, OVERRUN, overrun);
	pb_put_uint(&w, COMMIT_OVERRUN, commit);
	pb_put_uint(&w, DROPPED, dropped);
	pb_nest_end(&w, m);
}

static void
bundle(unsigned cpu, bool lost)
{
	pb_put_uint(&w, CPU, cpu);
	if (lost)
		pb_put_uint(&w, LOST_EVENTS, 1);
	take(FTRACE_EVENTS);
}

static void
each_counter_that_is_a_loss_is_told_with_its_processors(void **state)
{
	char text[256];

	pb_put_uint(&w, PHASE, START);
	put_cpu(0, 5, 0, 0);
	put_cpu(3, 0, 1, 2);
	take(FTRACE_STATS);
	assert_int_equal(ftrace_losses_list(&losses, 0, out, 8), 0);

	pb_put_uint(&w, PHASE, END);
	put_cpu(3, 7, 2, 5); /* in another order */
	put_cpu(0, 6, 0, 0);
	take(FTRACE_STATS);
	assert_int_equal(ftrace_losses_list(&losses, 0, out, 8), 3);
	assert_string_equal(trace_loss_text(text, sizeof(text), &out[0]),
	    "8 events overwritten unread in the kernel's ftrace buffer, on "
	    "CPUs 0 and 3");
	assert_string_equal(trace_loss_text(text, sizeof(text), &out[1]),
	    "1 event of interrupts that the kernel's ftrace buffer had no "
	    "room for, on CPU 3");
	assert_string_equal(trace_loss_text(text, sizeof(text), &out[2]),
	    "3 events that found the kernel's ftrace buffer full, on CPU 3");
	assert_int_equal(ftrace_losses_events(&losses), 12);
	assert_int_equal(ftrace_losses_list(&losses, 7, out, 1), 3);
	assert_string_equal(trace_loss_text(text, sizeof(text), &out[0]),
	    "8 events overwritten unread in the kernel's ftrace buffer, on "
	    "CPUs 0 and 3 of machine 7");
}

/* With each flush a pair is written: begin and now. */
static void
counts_of_each_flush_add_up_to_the_last(void **state)
{
	unsigned i;

	for (i = 1; i <= 3; i++) {
		pb_put_uint(&w, PHASE, START);
		put_cpu(0, 100, 0, 0);
		take(FTRACE_STATS);
		pb_put_uint(&w, PHASE, END);
		put_cpu(0, 100 + 10 * i, 0, 0);
		take(FTRACE_STATS);
		assert_int_equal(ftrace_losses_events(&losses), 10 * i);
	}
}

static void
a_buffer_that_was_cleared_counts_anew(void **state)
{
	pb_put_uint(&w, PHASE, START);
	put_cpu(0, 100, 0, 0);
	take(FTRACE_STATS);
	put_cpu(0, 20, 0, 0);
	pb_put_uint(&w, PHASE, END); /* behind the counts */
	take(FTRACE_STATS);
	assert_int_equal(ftrace_losses_events(&losses), 20);
}

static void
counts_without_a_beginning_may_be_of_before(void **state)
{
	pb_put_uint(&w, PHASE, END);
	put_cpu(1, 4, 0, 0);
	take(FTRACE_STATS);
	assert_int_equal(ftrace_losses_list(&losses, 0, out, 8), 1);
	assert_non_null(strstr(out[0].cause, "before this session"));
}

static void
marks_are_told_where_nothing_was_counted(void **state)
{
	bundle(2, false);
	assert_int_equal(ftrace_losses_list(&losses, 0, out, 8), 0);
	bundle(2, true);
	bundle(5, true);
	assert_int_equal(ftrace_losses_list(&losses, 0, out, 8), 1);
	assert_int_equal(out[0].count, 2);
	assert_string_equal(out[0].unit, "bundle");
	assert_string_equal(out[0].cpus, "CPUs 2 and 5");

	pb_put_uint(&w, PHASE, END);
	put_cpu(2, 1, 0, 0);
	take(FTRACE_STATS);
	assert_int_equal(ftrace_losses_list(&losses, 0, out, 8), 1);
	assert_string_equal(out[0].unit, "event");
}

static void
more_processors_than_are_named_are_counted(void **state)
{
	unsigned i;

	for (i = 0; i < 9; i++)
		bundle(8 - i, true);
	assert_int_equal(ftrace_losses_list(&losses, 0, out, 8), 1);
	assert_string_equal(out[0].cpus, "CPUs 0, 1, 2, 3 and 5 more");
	/* No machine has these. */
	for (i = 0; i < 3; i++)
		bundle(UINT32_MAX - i, true);
	assert_int_equal(losses.n_cpus, 10);
}

static void
data_that_could_not_be_read_is_lost(void **state)
{
	size_t m;

	pb_put_uint(&w, PARSE_ERRORS, 17);
	pb_put_uint(&w, PARSE_ERRORS, 2);
	take(FTRACE_STATS);
	assert_int_equal(ftrace_losses_list(&losses, 0, out, 8), 1);
	assert_int_equal(out[0].count, 2);
	assert_true(out[0].at_least);

	pb_put_uint(&w, CPU, 4);
	m = pb_nest_begin(&w, ERROR);
	pb_put_uint(&w, 2, 6);
	pb_nest_end(&w, m);
	take(FTRACE_EVENTS);
	assert_int_equal(ftrace_losses_list(&losses, 0, out, 8), 1);
	assert_int_equal(out[0].count, 1);
	assert_string_equal(out[0].cpus, "CPU 4");
}

static void
events_that_were_not_recorded_are_named_once(void **state)
{
	int i;

	assert_false(ftrace_losses_not_recorded(&losses));
	for (i = 0; i < 2; i++) {
		pb_put_string(&w, UNKNOWN_EVENTS, "sched/nope");
		pb_put_string(&w, FAILED_EVENTS, "sched/may\nnot");
		pb_put_string(&w, UNKNOWN_EVENTS, "");
		take(FTRACE_STATS);
	}
	assert_int_equal(losses.n_troubles, 2);
	assert_string_equal(losses.troubles[0].text,
	    "sched/nope: the kernel has no such event");
	assert_string_equal(losses.troubles[1].text,
	    "sched/may not: it could not be switched on");
	assert_true(ftrace_losses_not_recorded(&losses));
}

static void
other_troubles_count_where_no_event_came(void **state)
{
	pb_put_string(&w, ATRACE_ERRORS, "one thing\nand another\n");
	pb_put_string(&w, EXCLUSIVE_ERROR, "a third");
	take(FTRACE_STATS);
	assert_int_equal(losses.n_troubles, 3);
	assert_string_equal(losses.troubles[0].text, "one thing");
	assert_string_equal(losses.troubles[1].text, "and another");
	assert_string_equal(losses.troubles[2].text, "a third");
	assert_true(ftrace_losses_not_recorded(&losses));
	bundle(0, false);
	assert_false(ftrace_losses_not_recorded(&losses));
}

static void
troubles_beyond_the_most_are_left_out(void **state)
{
	char name[400];
	unsigned i;

	memset(name, 'x', sizeof(name));
	name[399] = '\0';
	for (i = 0; i < FTRACE_TROUBLES_MAX + 5; i++) {
		name[0] = (char)('!' + i);
		pb_put_string(&w, UNKNOWN_EVENTS, name);
		take(FTRACE_STATS);
	}
	assert_int_equal(losses.n_troubles, FTRACE_TROUBLES_MAX);
	assert_int_equal(strlen(losses.troubles[0].text), 300 +
	    strlen(": the kernel has no such event"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_counter_that_is_a_loss_is_told_with_its_processors),
		T(counts_of_each_flush_add_up_to_the_last),
		T(a_buffer_that_was_cleared_counts_anew),
		T(counts_without_a_beginning_may_be_of_before),
		T(marks_are_told_where_nothing_was_counted),
		T(more_processors_than_are_named_are_counted),
		T(data_that_could_not_be_read_is_lost),
		T(events_that_were_not_recorded_are_named_once),
		T(other_troubles_count_where_no_event_came),
		T(troubles_beyond_the_most_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
