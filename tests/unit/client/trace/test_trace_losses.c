#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/trace/trace_losses.h"
#include "protos/trace_stats.pb-c.h"

static Perfetto__Protos__TraceStats__BufferStats buffers[2];
static Perfetto__Protos__TraceStats__BufferStats *list[2] = { &buffers[0],
	&buffers[1] };
static Perfetto__Protos__TraceStats stats;
static struct trace_loss losses[16];

static int
setup(void **state)
{
	perfetto__protos__trace_stats__init(&stats);
	perfetto__protos__trace_stats__buffer_stats__init(&buffers[0]);
	perfetto__protos__trace_stats__buffer_stats__init(&buffers[1]);
	stats.n_buffer_stats = 2;
	stats.buffer_stats = list;
	memset(losses, 0, sizeof(losses));
	return 0;
}

static void
work_that_was_done_is_no_loss(void **state)
{
	buffers[0].chunks_written = 100;
	buffers[0].chunks_read = 100;
	buffers[0].chunks_rewritten = 7;
	buffers[0].chunks_committed_out_of_order = 7;
	buffers[0].patches_succeeded = 7;
	buffers[0].write_wrap_count = 7;
	buffers[0].readaheads_failed = 7;
	stats.flushes_requested = 7;
	assert_int_equal(trace_losses_list(&stats, losses, 16), 0);
	assert_true(trace_losses_total(&stats) == 0);
}

static void
every_cause_is_listed_with_its_buffer(void **state)
{
	buffers[0].chunks_overwritten = 1;
	buffers[0].bytes_overwritten = 4096;
	buffers[1].chunks_discarded = 2;
	buffers[1].trace_writer_packet_loss = 3;
	buffers[1].abi_violations = 4;
	buffers[1].patches_failed = 5;
	stats.chunks_discarded = 6;
	stats.patches_discarded = 7;
	stats.tributary_discarded_of_session = true;
	stats.invalid_packets = 8;

	assert_int_equal(trace_losses_list(&stats, losses, 16), 8);
	assert_int_equal(losses[0].buffer, 0);
	assert_true(losses[0].count == 1 && losses[0].bytes == 4096);
	assert_non_null(strstr(losses[0].cause, "ring buffer"));
	assert_non_null(losses[0].hint);
	assert_int_equal(losses[1].buffer, 1);
	assert_true(losses[2].count == 3);
	assert_string_equal(losses[2].unit, "packet");
	assert_int_equal(losses[7].buffer, -1);
	assert_true(losses[7].count == 8);
	assert_true(trace_losses_total(&stats) == 36);
}

static void
what_the_service_refused_of_all_sessions_is_no_loss_of_this_one(void **state)
{
	/* As Perfetto's service has it. */
	stats.chunks_discarded = 6;
	stats.patches_discarded = 7;
	assert_int_equal(trace_losses_list(&stats, losses, 16), 0);
	assert_true(trace_losses_total(&stats) == 0);
}

static void
what_relays_lost_is_listed_by_machine_and_cause(void **state)
{
	Perfetto__Protos__TraceStats__LinkLossStats l[4], *rows[4];
	size_t i;

	for (i = 0; i < 4; i++) {
		perfetto__protos__trace_stats__link_loss_stats__init(&l[i]);
		l[i].machine_id = i < 3 ? 7 : 8;
		l[i].trusted_packet_sequence_id = (uint32_t)i + 2;
		l[i].cause = i < 2 ? 1 : 2;
		l[i].packets = 10;
		l[i].bytes = 100;
		rows[i] = &l[i];
	}
	l[3].packets = 0;
	stats.n_tributary_link_losses = 4;
	stats.tributary_link_losses = rows;
	assert_int_equal(trace_losses_list(&stats, losses, 16), 3);
	assert_true(trace_loss_on_link(&losses[0]));
	assert_int_equal(losses[0].machine, 7);
	assert_string_equal(losses[0].cause, "spool full");
	assert_true(losses[0].count == 20 && losses[0].bytes == 200);
	assert_false(losses[0].how_much_unknown);
	assert_string_equal(losses[1].cause, "disk full or failed");
	assert_int_equal(losses[2].machine, 8);
	assert_true(losses[2].how_much_unknown);
	assert_true(trace_losses_total(&stats) == 31);
}

static void
what_a_filter_could_not_read_is_lost(void **state)
{
	Perfetto__Protos__TraceStats__FilterStats f;

	perfetto__protos__trace_stats__filter_stats__init(&f);
	f.has_errors = 1;
	f.errors = 2;
	stats.filter_stats = &f;
	assert_int_equal(trace_losses_list(&stats, losses, 16), 1);
	assert_string_equal(losses[0].cause,
	    "emptied, as the trace filter could not read them");
	assert_true(trace_losses_total(&stats) == 2);
}

/* A writer marks the next packet once, however many it dropped. */
static void
what_producers_dropped_is_at_least_so_much(void **state)
{
	Perfetto__Protos__TraceStats__BufferStats b, *rows[] = { &b };
	char text[160];

	perfetto__protos__trace_stats__buffer_stats__init(&b);
	b.has_trace_writer_packet_loss = 1;
	b.trace_writer_packet_loss = 1;
	stats.n_buffer_stats = 1;
	stats.buffer_stats = rows;
	assert_int_equal(trace_losses_list(&stats, losses, 16), 1);
	assert_true(losses[0].at_least);
	assert_string_equal(trace_loss_text(text, sizeof(text), &losses[0]),
	    "at least 1 packet of buffer 0 dropped by producers whose shared "
	    "memory was full");
}

static void
what_the_collector_dropped_is_not_said_of_a_relay(void **state)
{
	Perfetto__Protos__TraceStats__LinkLossStats l, *rows[] = { &l };
	char text[160];

	perfetto__protos__trace_stats__link_loss_stats__init(&l);
	l.machine_id = 7;
	l.cause = 9; /* LINK_LOSS_QUOTA */
	l.packets = 12;
	stats.n_tributary_link_losses = 1;
	stats.tributary_link_losses = rows;
	assert_int_equal(trace_losses_list(&stats, losses, 16), 1);
	assert_string_equal(trace_loss_text(text, sizeof(text), &losses[0]),
	    "12 packets of machine 7 dropped by the collector: "
	    "over its quota");
	l.cause = 1;
	assert_int_equal(trace_losses_list(&stats, losses, 16), 1);
	assert_string_equal(trace_loss_text(text, sizeof(text), &losses[0]),
	    "12 packets of machine 7 lost by its relay: spool full");
}

static void
a_final_flush_that_failed_is_told_but_is_no_data(void **state)
{
	stats.final_flush_outcome =
	    PERFETTO__PROTOS__TRACE_STATS__FINAL_FLUSH_OUTCOME__FINAL_FLUSH_FAILED;
	assert_int_equal(trace_losses_list(&stats, losses, 16), 1);
	assert_string_equal(losses[0].unit, "flush");
	assert_true(trace_losses_total(&stats) == 0);
}

static void
a_short_list_still_tells_how_many_there_are(void **state)
{
	buffers[0].chunks_overwritten = 1;
	buffers[1].chunks_overwritten = 2;
	stats.invalid_packets = 3;
	assert_int_equal(trace_losses_list(&stats, losses, 2), 3);
	assert_true(losses[1].count == 2);
	assert_true(losses[2].count == 0);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(work_that_was_done_is_no_loss),
		T(every_cause_is_listed_with_its_buffer),
		T(what_the_service_refused_of_all_sessions_is_no_loss_of_this_one),
		T(what_relays_lost_is_listed_by_machine_and_cause),
		T(what_a_filter_could_not_read_is_lost),
		T(what_producers_dropped_is_at_least_so_much),
		T(what_the_collector_dropped_is_not_said_of_a_relay),
		T(a_final_flush_that_failed_is_told_but_is_no_data),
		T(a_short_list_still_tells_how_many_there_are),
	};

	return cmocka_run_group_tests_name("trace_losses", tests, NULL, NULL);
}
