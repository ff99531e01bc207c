/*
 * Readings and spans are written as protobuf text here, and compared as the
 * messages that they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/text_parse.h"
#include "protos/text_print.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/packet/stats_span.h"
#include "transport/wire/pb_writer.h"

#define STATS (&perfetto__protos__trace_stats__descriptor)

static struct stats_reading
reading(const char *text)
{
	uint8_t *data;
	size_t len;

	assert_int_equal(text_parse(STATS, text, strlen(text), &data, &len,
	    NULL), 0);
	return (struct stats_reading){ data, len };
}

static char *
printed(const uint8_t *data, size_t len)
{
	ProtobufCMessage *m = protobuf_c_message_unpack(STATS, NULL, len, data);
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(m);
	assert_non_null(f);
	assert_int_equal(text_print(f, m, 0), 0);
	assert_int_equal(fclose(f), 0);
	protobuf_c_message_free_unpacked(m, NULL);
	return text;
}

static void
assert_combined(void (*fn)(struct pb_writer *, struct stats_reading,
    struct stats_reading), const char *a, const char *b, const char *want)
{
	struct stats_reading ra = reading(a), rb = reading(b);
	struct stats_reading rw = reading(want);
	struct pb_writer w;
	char *is, *expected;

	pb_writer_init(&w);
	fn(&w, ra, rb);
	assert_false(w.failed);
	is = printed(w.data, w.len);
	expected = printed(rw.data, rw.len);
	assert_string_equal(is, expected);
	free(is);
	free(expected);
	free((void *)ra.data);
	free((void *)rb.data);
	free((void *)rw.data);
	pb_writer_done(&w);
}

static void
assert_span(const char *later, const char *earlier, const char *want)
{
	assert_combined(stats_span_subtract, later, earlier, want);
}

static void
assert_sum(const char *earlier, const char *later, const char *want)
{
	assert_combined(stats_span_add, earlier, later, want);
}

/* A span subtracted from a reading and added to the one before gives it back. */
static void
assert_there_and_back(const char *later, const char *earlier)
{
	struct stats_reading l = reading(later), e = reading(earlier);
	struct pb_writer span, whole;
	char *is, *want;

	pb_writer_init(&span);
	pb_writer_init(&whole);
	stats_span_subtract(&span, l, e);
	stats_span_add(&whole, e,
	    (struct stats_reading){ span.data, span.len });
	is = printed(whole.data, whole.len);
	want = printed(l.data, l.len);
	assert_string_equal(is, want);
	free(is);
	free(want);
	free((void *)l.data);
	free((void *)e.data);
	pb_writer_done(&span);
	pb_writer_done(&whole);
}

#define EARLIER \
	"buffer_stats { buffer_size: 4096 bytes_written: 100" \
	" bytes_overwritten: 7 bytes_read: 90 padding_bytes_written: 3" \
	" padding_bytes_cleared: 2 chunks_written: 10 chunks_rewritten: 1" \
	" chunks_relocated: 1 chunks_overwritten: 2 chunks_discarded: 3" \
	" chunks_read: 8 chunks_committed_out_of_order: 1" \
	" write_wrap_count: 1 patches_succeeded: 5 patches_failed: 1" \
	" readaheads_succeeded: 1 readaheads_failed: 1 abi_violations: 1" \
	" trace_writer_packet_loss: 4 }" \
	" producers_connected: 3 producers_seen: 5 data_sources_registered: 2" \
	" data_sources_seen: 4 tracing_sessions: 1 total_buffers: 2" \
	" chunks_discarded: 6 patches_discarded: 7 invalid_packets: 8" \
	" flushes_requested: 9 flushes_succeeded: 8 flushes_failed: 1"
#define LATER \
	"buffer_stats { buffer_size: 4096 bytes_written: 300" \
	" bytes_overwritten: 17 bytes_read: 190 padding_bytes_written: 13" \
	" padding_bytes_cleared: 12 chunks_written: 30 chunks_rewritten: 3" \
	" chunks_relocated: 3 chunks_overwritten: 4 chunks_discarded: 5" \
	" chunks_read: 28 chunks_committed_out_of_order: 4" \
	" write_wrap_count: 5 patches_succeeded: 15 patches_failed: 3" \
	" readaheads_succeeded: 4 readaheads_failed: 5 abi_violations: 2" \
	" trace_writer_packet_loss: 14 }" \
	" producers_connected: 2 producers_seen: 6 data_sources_registered: 1" \
	" data_sources_seen: 5 tracing_sessions: 2 total_buffers: 3" \
	" chunks_discarded: 16 patches_discarded: 27 invalid_packets: 38" \
	" flushes_requested: 19 flushes_succeeded: 17 flushes_failed: 2"

static void
a_span_has_what_was_counted_since_and_the_later_readings(void **state)
{
	assert_span(LATER, EARLIER,
	    "buffer_stats { buffer_size: 4096 bytes_written: 200"
	    " bytes_overwritten: 10 bytes_read: 100 padding_bytes_written: 10"
	    " padding_bytes_cleared: 10 chunks_written: 20"
	    " chunks_rewritten: 2 chunks_relocated: 2 chunks_overwritten: 2"
	    " chunks_discarded: 2 chunks_read: 20"
	    " chunks_committed_out_of_order: 3 write_wrap_count: 4"
	    " patches_succeeded: 10 patches_failed: 2"
	    " readaheads_succeeded: 3 readaheads_failed: 4 abi_violations: 1"
	    " trace_writer_packet_loss: 10 }"
	    " producers_connected: 2 producers_seen: 6"
	    " data_sources_registered: 1 data_sources_seen: 5"
	    " tracing_sessions: 2 total_buffers: 3 chunks_discarded: 10"
	    " patches_discarded: 20 invalid_packets: 30"
	    " flushes_requested: 10 flushes_succeeded: 9 flushes_failed: 1");
	assert_there_and_back(LATER, EARLIER);
}

static void
without_an_earlier_reading_the_span_is_all(void **state)
{
	assert_span(LATER, "", LATER);
	assert_sum("", LATER, LATER);
	assert_sum(LATER, "", LATER);
}

static void
a_counter_that_began_anew_is_taken_as_it_is(void **state)
{
	assert_span("buffer_stats { chunks_written: 3 } invalid_packets: 1",
	    "buffer_stats { chunks_written: 10 } invalid_packets: 4",
	    "buffer_stats { chunks_written: 3 } invalid_packets: 1");
}

static void
buffers_are_told_apart_by_their_places(void **state)
{
	assert_span("buffer_stats { chunks_written: 3 }"
	    " buffer_stats { chunks_written: 9 }"
	    " buffer_stats { chunks_written: 1 }",
	    "buffer_stats { chunks_written: 1 }"
	    " buffer_stats { chunks_written: 2 }",
	    "buffer_stats { chunks_written: 2 }"
	    " buffer_stats { chunks_written: 7 }"
	    " buffer_stats { chunks_written: 1 }");
	assert_sum("buffer_stats { } buffer_stats { chunks_written: 2 }",
	    "buffer_stats { chunks_written: 1 }",
	    "buffer_stats { chunks_written: 1 }"
	    " buffer_stats { chunks_written: 2 }");
}

#define BOUNDS "chunk_payload_histogram_def: [8, 32] "
#define WRITER(s, b, c0, c1, s0, s1) \
	" writer_stats { sequence_id: " #s " buffer: " #b \
	" chunk_payload_histogram_counts: [" #c0 ", " #c1 "]" \
	" chunk_payload_histogram_sum: [" #s0 ", " #s1 "] }"

static void
histograms_go_by_sequence_and_buffer(void **state)
{
	assert_span(BOUNDS WRITER(2, 0, 5, 6, 50, 60) WRITER(2, 1, 1, 0, 8, 0)
	    WRITER(3, 0, 1, 1, 4, 20) WRITER(9, 0, 0, 2, 0, 44),
	    BOUNDS WRITER(3, 0, 1, 1, 4, 20) WRITER(2, 1, 1, 0, 4, 0)
	    WRITER(2, 0, 1, 2, 10, 20),
	    BOUNDS WRITER(2, 0, 4, 4, 40, 40) WRITER(2, 1, 0, 0, 4, 0)
	    WRITER(9, 0, 0, 2, 0, 44));
	assert_sum(BOUNDS WRITER(2, 0, 1, 2, 10, 20) WRITER(4, 0, 1, 1, 1, 9),
	    BOUNDS WRITER(2, 0, 4, 4, 40, 40) WRITER(9, 0, 0, 2, 0, 44),
	    BOUNDS WRITER(2, 0, 5, 6, 50, 60) WRITER(9, 0, 0, 2, 0, 44)
	    WRITER(4, 0, 1, 1, 1, 9));
}

static void
no_bounds_stand_without_a_writer(void **state)
{
	assert_span(BOUNDS WRITER(2, 0, 5, 6, 50, 60) "total_buffers: 1",
	    BOUNDS WRITER(2, 0, 5, 6, 50, 60), "total_buffers: 1");
	assert_sum(BOUNDS WRITER(2, 0, 5, 6, 50, 60), "total_buffers: 1",
	    BOUNDS WRITER(2, 0, 5, 6, 50, 60) "total_buffers: 1");
}

static void
the_filters_counters_are_of_the_span(void **state)
{
	const char *later = "filter_stats { input_packets: 9 input_bytes: 90"
	    " output_bytes: 70 errors: 3 time_taken_ns: 500"
	    " bytes_discarded_per_buffer: [4, 7] }";
	const char *earlier = "filter_stats { input_packets: 4 input_bytes: 40"
	    " output_bytes: 30 errors: 1 time_taken_ns: 200"
	    " bytes_discarded_per_buffer: [4, 2] }";

	assert_span(later, earlier,
	    "filter_stats { input_packets: 5 input_bytes: 50 output_bytes: 40"
	    " errors: 2 time_taken_ns: 300"
	    " bytes_discarded_per_buffer: [0, 5] }");
	assert_there_and_back(later, earlier);
}

#define LOSS(m, s, name, c, n) \
	" tributary_link_losses { machine_id: " #m \
	" trusted_packet_sequence_id: " #s " producer_name: \"" name \
	"\" cause: " #c " chunks: " #n " packets: " #n "0 }"
#define MACHINE_LOSS(m, c, n) \
	" tributary_link_losses { machine_id: " #m " cause: " #c \
	" chunks: " #n " packets: " #n "0 }"

static void
a_loss_is_of_the_span_in_which_it_was_counted(void **state)
{
	const char *earlier = LOSS(7, 4, "a", 1, 2) LOSS(7, 4, "a", 2, 5);
	const char *later = LOSS(7, 4, "a", 1, 2) LOSS(7, 4, "a", 2, 8)
	    LOSS(8, 4, "a", 2, 1);

	assert_span(later, earlier,
	    LOSS(7, 4, "a", 2, 3) LOSS(8, 4, "a", 2, 1));
	assert_sum(earlier, LOSS(7, 4, "a", 2, 3) LOSS(8, 4, "a", 2, 1),
	    LOSS(7, 4, "a", 2, 8) LOSS(8, 4, "a", 2, 1) LOSS(7, 4, "a", 1, 2));
}

static void
a_loss_of_an_unknown_amount_is_of_the_span_in_which_it_came(void **state)
{
	const char *loss = "tributary_link_losses { machine_id: 7 cause: 3 }";

	assert_span(loss, "", loss);
	assert_span(loss, loss, "");
}

static void
losses_by_machine_are_compared_with_the_sums_of_sequences(void **state)
{
	assert_span(MACHINE_LOSS(7, 1, 9) MACHINE_LOSS(8, 1, 1),
	    LOSS(7, 4, "a", 1, 2) LOSS(7, 5, "b", 1, 3),
	    MACHINE_LOSS(7, 1, 4) MACHINE_LOSS(8, 1, 1));
	assert_span(LOSS(7, 4, "a", 1, 6) LOSS(7, 5, "b", 1, 3),
	    MACHINE_LOSS(7, 1, 5), MACHINE_LOSS(7, 1, 4));
}

static void
a_foreign_clock_shows_the_packets_of_the_span(void **state)
{
	const char *earlier = "tributary_foreign_clocks { producer_id: 1"
	    " producer_name: \"a\" machine_id: 2 offset_ns: 50 packets: 4 }"
	    " tributary_foreign_clocks { producer_id: 2 packets: 4 }";
	const char *later = "tributary_foreign_clocks { producer_id: 1"
	    " producer_name: \"a\" machine_id: 2 offset_ns: -9 packets: 10 }"
	    " tributary_foreign_clocks { producer_id: 2 packets: 4 }";

	assert_span(later, earlier, "tributary_foreign_clocks { producer_id: 1"
	    " producer_name: \"a\" machine_id: 2 offset_ns: -9 packets: 6 }");
	assert_there_and_back(later, earlier);
}

static void
the_outcome_of_the_last_flush_stands(void **state)
{
	assert_sum("final_flush_outcome: FINAL_FLUSH_FAILED", "",
	    "final_flush_outcome: FINAL_FLUSH_FAILED");
	assert_span("final_flush_outcome: FINAL_FLUSH_SUCCEEDED", "",
	    "final_flush_outcome: FINAL_FLUSH_SUCCEEDED");
}

static void
fields_of_ours_are_kept(void **state)
{
	assert_span("chunks_discarded: 3 tributary_discarded_of_session: true"
	    " tributary_packets: 30", "chunks_discarded: 1"
	    " tributary_discarded_of_session: true tributary_packets: 10",
	    "chunks_discarded: 2 tributary_discarded_of_session: true"
	    " tributary_packets: 20");
	assert_sum("chunks_discarded: 3 tributary_discarded_of_session: true",
	    "chunks_discarded: 0",
	    "chunks_discarded: 3 tributary_discarded_of_session: true");
}

static void
damaged_readings_end_at_the_damage(void **state)
{
	static const uint8_t damaged[] = { 0x50, 0x05, 0x0a, 0x7f, 0x01 };
	struct pb_writer w;
	char *text;

	pb_writer_init(&w);
	stats_span_subtract(&w, (struct stats_reading){ damaged,
	    sizeof(damaged) }, (struct stats_reading){ damaged, 3 });
	assert_false(w.failed);
	text = printed(w.data, w.len);
	assert_string_equal(text, "invalid_packets: 0\n");
	free(text);
	pb_writer_done(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    a_span_has_what_was_counted_since_and_the_later_readings),
		cmocka_unit_test(without_an_earlier_reading_the_span_is_all),
		cmocka_unit_test(a_counter_that_began_anew_is_taken_as_it_is),
		cmocka_unit_test(buffers_are_told_apart_by_their_places),
		cmocka_unit_test(histograms_go_by_sequence_and_buffer),
		cmocka_unit_test(no_bounds_stand_without_a_writer),
		cmocka_unit_test(the_filters_counters_are_of_the_span),
		cmocka_unit_test(a_loss_is_of_the_span_in_which_it_was_counted),
		cmocka_unit_test(
		    a_loss_of_an_unknown_amount_is_of_the_span_in_which_it_came),
		cmocka_unit_test(
		    losses_by_machine_are_compared_with_the_sums_of_sequences),
		cmocka_unit_test(a_foreign_clock_shows_the_packets_of_the_span),
		cmocka_unit_test(the_outcome_of_the_last_flush_stands),
		cmocka_unit_test(fields_of_ours_are_kept),
		cmocka_unit_test(damaged_readings_end_at_the_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
