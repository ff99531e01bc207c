#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/trace/trace_report.h"
#include "client/trace/trace_summary.h"
#include "transport/wire/pb_writer.h"

static struct trace_summary *s;
static char *text;

static int
setup(void **state)
{
	s = trace_summary_new();
	return 0;
}

static int
teardown(void **state)
{
	trace_summary_free(s);
	free(text);
	text = NULL;
	return 0;
}

static const char *
report(uint64_t wall_ms)
{
	size_t len;
	FILE *out = open_memstream(&text, &len);

	trace_report_print(out, s, "a.pftrace", wall_ms);
	fclose(out);
	return text;
}

static void
packet_of(uint32_t sequence, uint32_t pid, uint32_t type, uint32_t dropped)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_string(&w, type, "");
	pb_put_uint(&w, 10, sequence);
	pb_put_uint(&w, 79, pid);
	if (dropped != 0)
		pb_put_uint(&w, 42, dropped);
	trace_summary_packet(s, w.data, w.len);
	pb_writer_done(&w);
}

/* TraceStats of one buffer with one counter. */
static void
stats(uint32_t field, uint64_t value)
{
	struct pb_writer w;
	size_t outer, inner;

	pb_writer_init(&w);
	outer = pb_nest_begin(&w, 35);
	inner = pb_nest_begin(&w, 1);
	pb_put_uint(&w, field, value);
	pb_nest_end(&w, inner);
	pb_nest_end(&w, outer);
	trace_summary_packet(s, w.data, w.len);
	pb_writer_done(&w);
}

static void
a_machine_is_called_by_its_name_where_that_is_known(void **state)
{
	struct pb_writer w;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		pb_writer_init(&w);
		pb_put_string(&w, 7, "");
		pb_put_uint(&w, 10, 2 + i);
		pb_put_uint(&w, 79, 50 + i);
		pb_put_uint(&w, 98, 4000000000u + i);
		trace_summary_packet(s, w.data, w.len);
		pb_writer_done(&w);
	}
	trace_summary_machine(s, 4000000001u, "car-7");
	trace_summary_machine(s, 4000000000u, "van\x1b");
	report(0);
	assert_non_null(strstr(text, "pid 51 on car-7: "));
	assert_non_null(strstr(text, "pid 50 on van\\x1b: "));
	assert_non_null(strstr(text, "pid 52 on machine 4000000002: "));
}

static void
system_info_of(uint32_t machine, const char *name)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 45); /* system_info */
	pb_put_string(&w, 17, name);
	pb_nest_end(&w, mark);
	pb_put_uint(&w, 10, 1);
	pb_put_uint(&w, 98, machine);
	trace_summary_packet(s, w.data, w.len);
	pb_writer_done(&w);
}

static void
a_machine_is_called_as_the_trace_itself_does(void **state)
{
	struct pb_writer w;

	system_info_of(4000000000u, "late-car");
	pb_writer_init(&w);
	pb_put_string(&w, 7, "");
	pb_put_uint(&w, 10, 2);
	pb_put_uint(&w, 79, 50);
	pb_put_uint(&w, 98, 4000000000u);
	trace_summary_packet(s, w.data, w.len);
	pb_writer_done(&w);
	assert_non_null(strstr(report(0), "pid 50 on late-car: "));
}

/* The state has each producer's own relay's, the trace the last relay's. */
static void
a_machine_of_two_relays_has_the_name_that_the_trace_says_last(void **state)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_string(&w, 7, "");
	pb_put_uint(&w, 10, 2);
	pb_put_uint(&w, 79, 50);
	pb_put_uint(&w, 98, 4000000000u);
	trace_summary_packet(s, w.data, w.len);
	pb_writer_done(&w);
	trace_summary_machine(s, 4000000000u, "box-a");
	trace_summary_machine(s, 4000000000u, "box-b");
	assert_non_null(strstr(report(0), "pid 50 on box-a: "));
	system_info_of(4000000000u, "box-b");
	trace_summary_machine(s, 4000000000u, "box-a");
	free(text);
	assert_non_null(strstr(report(0), "pid 50 on box-b: "));
	system_info_of(4000000000u, "box-c");
	free(text);
	assert_non_null(strstr(report(0), "pid 50 on box-c: "));
}

static void
a_process_that_is_not_known_has_no_number(void **state)
{
	packet_of(2, 0, 7, 0);
	assert_non_null(strstr(report(0),
	    "Producers       an unknown process: 1 packet"));
	free(text);
	trace_summary_name(s, 1, 0, 0, "probes");
	assert_non_null(strstr(report(0), "Producers       probes: 1 packet"));
}

static void
two_patches_are_no_patchs(void **state)
{
	packet_of(2, 50, 7, 0);
	stats(6, 2); /* patches_failed */
	assert_non_null(strstr(report(0), "Lost            2 patches of"));
}

static void
a_good_trace_reads_like_this(void **state)
{
	packet_of(2, 50, 7, 0);
	packet_of(2, 50, 7, 0);
	packet_of(3, 60, 11, 0);
	trace_summary_name(s, 1, 0, 50, "probes");
	stats(2, 10); /* chunks_written */
	assert_string_equal(report(1500),
	    "Trace           a.pftrace\n"
	    "Holds           4 packets, 36 bytes, 1.5 s\n"
	    "Producers       probes, pid 50: 2 packets, 18 bytes\n"
	    "                pid 60: 1 packet, 9 bytes\n"
	    "Packets         sys_stats 2, trace_stats 1, track_event 1\n"
	    "Lost            nothing\n");
}

/* One that turns the direction of writing would show another name. */
static void
the_trace_s_name_cannot_steer_a_terminal(void **state)
{
	FILE *out;
	size_t len;

	out = open_memstream(&text, &len);
	trace_report_print(out, s, "a\xe2\x80\xae\x1b[2J.pftrace", 0);
	fclose(out);
	assert_null(strchr(text, '\x1b'));
	assert_null(strstr(text, "\xe2\x80\xae"));
}

static void
losses_are_told_by_cause_with_what_to_do(void **state)
{
	packet_of(2, 50, 7, 0);
	packet_of(2, 50, 7, 256);
	stats(3, 12); /* chunks_overwritten */
	report(0);
	assert_non_null(strstr(text, "Lost            12 chunks of buffer 0 "
	    "overwritten in the ring buffer by newer data\n"));
	assert_non_null(strstr(text, "a larger buffer (-b, or size_kb)"));
	assert_non_null(strstr(text, "1 gap in sequences: the producer's "
	    "shared memory was full\n"));
	assert_null(strstr(text, "nothing"));
}

/* TraceStats with counters of its own. */
static void
refusals(uint64_t chunks, uint64_t patches)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 35);
	pb_put_uint(&w, 8, chunks);
	pb_put_uint(&w, 9, patches);
	pb_nest_end(&w, mark);
	trace_summary_packet(s, w.data, w.len);
	pb_writer_done(&w);
}

static void
what_perfettos_service_refused_of_all_is_no_loss_but_told(void **state)
{
	packet_of(2, 50, 7, 0);
	refusals(3, 1);
	assert_non_null(strstr(report(0), "Lost            nothing\n"
	    "Refused         3 chunks and 1 patch since the service started, "
	    "of this\n                session or of others\n"));
}

static void
without_statistics_losses_are_not_known(void **state)
{
	packet_of(2, 50, 7, 0);
	assert_non_null(strstr(report(0), "not known"));
}

static void
long_lists_are_cut(void **state)
{
	uint32_t i;

	for (i = 0; i < 14; i++)
		packet_of(2 + i, 100 + i, 7, 0);
	assert_non_null(strstr(report(0), "and 4 more\n"));
}

static void
a_name_cannot_move_the_cursor(void **state)
{
	packet_of(2, 50, 7, 0);
	trace_summary_name(s, 1, 0, 50, "evil\x1b[2J\n");
	assert_non_null(strstr(report(0), "evil\\x1b[2J\\x0a, pid 50"));
}

static void
what_ftrace_lost_and_did_not_record_is_told_with_its_machine(void **state)
{
	struct pb_writer w;
	size_t stats, cpu;

	pb_writer_init(&w);
	stats = pb_nest_begin(&w, 34);
	pb_put_uint(&w, 1, 2); /* phase: END_OF_TRACE */
	cpu = pb_nest_begin(&w, 2);
	pb_put_uint(&w, 1, 3); /* cpu */
	pb_put_uint(&w, 3, 5); /* overrun */
	pb_nest_end(&w, cpu);
	pb_put_string(&w, 5, "tracefs\x1b is read-only");
	pb_put_string(&w, 6, "sched/nope");
	pb_nest_end(&w, stats);
	pb_put_uint(&w, 10, 2);
	pb_put_uint(&w, 98, 7); /* machine_id */
	trace_summary_packet(s, w.data, w.len);
	pb_writer_done(&w);
	assert_true(trace_summary_not_recorded(s));
	trace_summary_machine(s, 7, "car-7");
	assert_non_null(strstr(report(0),
	    "Not recorded    sched/nope: the kernel has no such event on car-7\n"
	    "Ftrace          tracefs\\x1b is read-only on car-7\n"
	    "Lost            5 events overwritten unread in the kernel's "
	    "ftrace buffer since it was cleared, some perhaps before this "
	    "session, on CPU 3 of machine \"car-7\"\n"));
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(what_ftrace_lost_and_did_not_record_is_told_with_its_machine),
		T(a_machine_is_called_by_its_name_where_that_is_known),
		T(a_machine_is_called_as_the_trace_itself_does),
		T(a_machine_of_two_relays_has_the_name_that_the_trace_says_last),
		T(a_process_that_is_not_known_has_no_number),
		T(two_patches_are_no_patchs),
		T(a_good_trace_reads_like_this),
		T(the_trace_s_name_cannot_steer_a_terminal),
		T(losses_are_told_by_cause_with_what_to_do),
		T(what_perfettos_service_refused_of_all_is_no_loss_but_told),
		T(without_statistics_losses_are_not_known),
		T(long_lists_are_cut),
		T(a_name_cannot_move_the_cursor),
	};

	return cmocka_run_group_tests_name("trace_report", tests, NULL, NULL);
}
