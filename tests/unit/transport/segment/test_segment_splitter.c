#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "split_world.h"
#include "transport/segment/segment_kept.h"

static struct world *w;

static int
setup(void **state)
{
	w = world_new(false);
	return 0;
}

static int
teardown(void **state)
{
	world_free(w);
	return 0;
}

#define PACKET(ts, sequence) \
	"timestamp: " #ts " trusted_packet_sequence_id: " #sequence " "
#define CLEARS "sequence_flags: 1 "
#define NEEDS  "sequence_flags: 2 "

static void
add(const char *text)
{
	world_add(w, text);
}

static void
put_and_finish(void)
{
	assert_int_equal(world_put(w), SEGMENT_OK);
	world_finish(w);
}

static void
a_recording_without_a_cut_is_one_segment(void **state)
{
	add(PACKET(1, 1));
	add(PACKET(2, 2) CLEARS);
	add(PACKET(3, 2) NEEDS);
	put_and_finish();
	assert_int_equal(w->n, 1);
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 2 3 E3");
	assert_true(w->segments[0].summary.last);
	assert_int_equal(w->segments[0].summary.packets, 3);
	assert_int_equal(w->segments[0].begin_realtime_ns, 1000);
	/* Head, all packets together, end. */
	assert_int_equal(w->segments[0].puts, 3);
}

static void
nothing_at_all_is_no_segment(void **state)
{
	put_and_finish();
	assert_int_equal(w->n, 0);
}

static void
a_sequence_moves_with_the_packet_that_clears_its_state(void **state)
{
	add(PACKET(1, 2) CLEARS);
	add(PACKET(2, 3) "incremental_state_cleared: true");
	add(CUT_BEGIN(2));
	add(PACKET(3, 2) NEEDS);
	add(PACKET(4, 3));
	add(PACKET(5, 3) "incremental_state_cleared: true");
	add(PACKET(6, 2) CLEARS);
	add(PACKET(7, 2) NEEDS);
	add(PACKET(8, 3));
	add(CUT_END(2));
	add(PACKET(9, 2) NEEDS);
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 2 3 4 E4 c1");
	assert_string_equal(world_line(w, 2, 0), "S2 U 5 6 7 8 END 9 E5");
	assert_false(world_segment(w, 1, 0)->summary.last);
	assert_true(world_segment(w, 2, 0)->summary.last);
	assert_int_equal(world_segment(w, 2, 0)->begin_realtime_ns, 2000);
}

static void
a_sequence_without_state_moves_at_the_end_of_the_cut(void **state)
{
	add(PACKET(1, 2));
	add(CUT_BEGIN(2));
	add(PACKET(2, 2));
	add(CUT_END(2));
	add(PACKET(3, 2));
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 2 E2 c1");
	assert_string_equal(world_line(w, 2, 0), "S2 U END 3 E1");
}

static void
a_sequence_cut_without_its_answer_is_marked_once(void **state)
{
	add(PACKET(1, 2) CLEARS);
	add(CUT_BEGIN(2));
	add(PACKET(2, 2) NEEDS);
	add(CUT_END(2));
	add(PACKET(3, 2));
	add(PACKET(4, 2) NEEDS);
	add(PACKET(5, 2) NEEDS);
	add(PACKET(6, 2) CLEARS);
	add(PACKET(7, 2) NEEDS);
	put_and_finish();
	assert_string_equal(world_line(w, 2, 0), "S2 U END 3 4! 5 6 7 E5");
}

static void
a_loss_that_was_told_stays_as_it_is(void **state)
{
	struct world_segment *g;

	add(CUT_BEGIN(2));
	add(CUT_END(2));
	add(PACKET(3, 2) NEEDS "previous_packet_dropped: 64");
	put_and_finish();
	g = world_segment(w, 2, 0);
	assert_string_equal(world_line(w, 2, 0), "S2 U END 3! E1");
	/* Head, the mark with the packet, end. */
	assert_int_equal(g->puts, 3);
}

static void
the_first_segment_marks_nothing(void **state)
{
	add(PACKET(1, 2) NEEDS);
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 E1");
}

static void
the_services_packets_move_at_the_begin_and_its_statistics_at_the_end(
    void **state)
{
	add(SERVICE "trace_stats { invalid_packets: 1 }");
	add(CUT_BEGIN(2));
	add(PACKET(2, 1) "tributary_repeated: true");
	add(PACKET(3, 1));
	add(SERVICE "trace_stats { invalid_packets: 4 }");
	add(CUT_END(2));
	add(SERVICE "trace_stats { invalid_packets: 9 }");
	add(SERVICE "trace_stats { invalid_packets: 11 }");
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U stats1 stats4 E2 c1");
	assert_string_equal(world_line(w, 2, 0),
	    "S2 U 2r 3 END stats5 stats7 E3");
}

static void
a_span_begins_where_the_last_reading_was(void **state)
{
	add(SERVICE "trace_stats { invalid_packets: 3 }");
	add(CUT_BEGIN(2));
	add(CUT_END(2));
	add(CUT_BEGIN(3));
	add(CUT_END(3));
	add(SERVICE "trace_stats { invalid_packets: 5 }");
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U stats3 E1 c1");
	assert_string_equal(world_line(w, 2, 0), "S2 U END E0 c1");
	assert_string_equal(world_line(w, 3, 0), "S3 U END stats2 E1");
}

static void
check_head(void *arg, const Packet *p)
{
	const Perfetto__Protos__Segment *g = p->tributary_segment;

	if (g == NULL || g->end != NULL)
		return;
	assert_string_equal(g->recording, "night");
	assert_int_equal(g->begun_by->cause,
	    PERFETTO__PROTOS__SEGMENT_CUT__CAUSE__TRIGGER);
	assert_string_equal(g->begun_by->trigger, "drop");
	assert_int_equal(g->begin_realtime_ns, 77);
	assert_false(g->has_split);
}

static void
a_segment_says_what_began_it_and_what_ended_the_one_before(void **state)
{
	struct world_segment *g;

	add(PACKET(1, 2));
	add(SERVICE "tributary_segment_cut { phase: BEGIN number: 2"
	    " cause: TRIGGER realtime_ns: 77 trigger: \"drop\" }");
	add(SERVICE "tributary_segment_cut { phase: END number: 2"
	    " unanswered { producer: \"a\" } unanswered { producer: \"b\" } }");
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 E1 u2 c3");
	g = world_segment(w, 2, 0);
	world_each(g->bytes.data, g->bytes.len, check_head, NULL);
	assert_int_equal(g->begin_realtime_ns, 77);
}

static void
collect_uuid(void *arg, const Packet *p)
{
	int64_t **next = arg;

	if (p->data_case == PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACE_UUID) {
		*(*next)++ = p->trace_uuid->msb;
		*(*next)++ = p->trace_uuid->lsb;
	}
}

static void
each_segment_has_one_uuid_of_its_own(void **state)
{
	int64_t uuid[64], *next = uuid;
	size_t i;

	add(PACKET(1, 1));
	add(SERVICE WORLD_UUID);
	add(CUT_BEGIN(2));
	add(SERVICE WORLD_UUID "tributary_repeated: true");
	add(CUT_END(2));
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 E1 c1");
	assert_string_equal(world_line(w, 2, 0), "S2 U END E0");
	for (i = 0; i < w->n; i++)
		world_each(w->segments[i].bytes.data, w->segments[i].bytes.len,
		    collect_uuid, &next);
	assert_int_equal(next - uuid, 4);
	assert_true(uuid[0] != uuid[2] && uuid[1] != uuid[3]);
	assert_true(uuid[0] != 1 && uuid[1] != 2);
	/* Stored in traces: the same ones for ever. */
	assert_true((uint64_t)uuid[0] == 0x114aea397e20116fu);
	assert_true((uint64_t)uuid[1] == 0xfc823d0330c60a90u);
}

static void
check_recording(void *arg, const Packet *p)
{
	const uint8_t *uuid;

	if (p->tributary_segment == NULL)
		return;
	uuid = p->tributary_segment->recording_uuid.data;
	assert_int_equal(p->tributary_segment->recording_uuid.len, 16);
	assert_int_equal(uuid[7], 1);
	assert_int_equal(uuid[15], 2);
	assert_int_equal(p->trusted_packet_sequence_id, 1);
}

static void
the_first_segment_waits_for_the_recordings_uuid(void **state)
{
	world_free(w);
	w = world_new_with(&(struct segment_options){ .uid = 7 });
	world_take(w, PACKET(1, 1));
	world_take(w, PACKET(2, 1));
	assert_int_equal(w->n, 0);
	world_take(w, SERVICE WORLD_UUID);
	world_take(w, PACKET(3, 2));
	world_finish(w);
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 2 3 E3");
	world_each(w->segments[0].bytes.data, w->segments[0].bytes.len,
	    check_recording, NULL);
}

static void
a_stream_that_says_no_uuid_is_split_all_the_same(void **state)
{
	world_free(w);
	w = world_new_with(&(struct segment_options){ .uid = 7 });
	world_take(w, PACKET(1, 1));
	world_take(w, PACKET(2, 2));
	world_finish(w);
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 2 E2");
	world_free(w);
	w = world_new_with(&(struct segment_options){ .uid = 7 });
	world_take(w, PACKET(1, 1));
	world_finish(w);
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 E1");
}

static void
marks_on_other_sequences_are_packets(void **state)
{
	add("trusted_packet_sequence_id: 2 tributary_segment_cut"
	    " { phase: BEGIN number: 2 }");
	add("tributary_segment_cut { phase: BEGIN number: 2 }");
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U BEGIN BEGIN E2");
	assert_int_equal(w->n, 1);
}

static void
an_end_without_its_begin_ends_nothing(void **state)
{
	add(CUT_END(1));
	add(CUT_END(2));
	add(CUT_BEGIN(2));
	add(PACKET(1, 2));
	add(CUT_END(3));
	add(PACKET(2, 2));
	add(CUT_END(2));
	add(CUT_END(2));
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U END END 1 2 E4 c1");
	assert_string_equal(world_line(w, 2, 0), "S2 U END END END E2");
}

static void
a_number_that_goes_backwards_begins_nothing(void **state)
{
	add(CUT_BEGIN(0));
	add(CUT_BEGIN(1));
	add(CUT_BEGIN(5));
	add(CUT_END(5));
	add(CUT_BEGIN(5));
	add(CUT_BEGIN(4));
	put_and_finish();
	assert_int_equal(w->n, 2);
	assert_string_equal(world_line(w, 1, 0), "S1 U BEGIN BEGIN E2 c1");
	assert_string_equal(world_line(w, 5, 0), "S5 U END BEGIN BEGIN E2");
	assert_int_equal(segment_splitter_number(w->s), 5);
}

static void
a_second_begin_ends_the_cut_before_it(void **state)
{
	add(PACKET(1, 2) CLEARS);
	add(CUT_BEGIN(2));
	add(PACKET(2, 2) NEEDS);
	add(CUT_BEGIN(3));
	add(PACKET(3, 2) NEEDS);
	add(CUT_END(2));
	add(CUT_END(3));
	add(PACKET(4, 2) NEEDS);
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 2 E2 c1");
	assert_string_equal(world_line(w, 2, 0), "S2 U 3! E1 c1");
	assert_string_equal(world_line(w, 3, 0), "S3 U END END 4! E2");
}

static void
a_recording_may_end_in_the_middle_of_a_cut(void **state)
{
	add(PACKET(1, 2) CLEARS);
	add(CUT_BEGIN(2));
	add(PACKET(2, 2) CLEARS);
	add(SERVICE "trace_stats { invalid_packets: 4 }");
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 stats4 E2 c1");
	assert_string_equal(world_line(w, 2, 0), "S2 U 2 E1");
}

#define CPU(ts) PACKET(ts, 2) "cpu_info { cpus { processor: \"" #ts "\" } } "

static void
descriptions_that_are_given_once_are_repeated(void **state)
{
	add(CPU(1));
	add(PACKET(2, 2) "packages_list: \"a\"");
	add(CPU(3));
	add(CUT_BEGIN(2));
	add(SERVICE "timestamp: 4 tributary_repeated: true");
	add(PACKET(5, 3) CLEARS);
	add(CUT_END(2));
	add(CUT_BEGIN(3));
	add(CUT_END(3));
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 2 3 E3 c1");
	/* Behind what the service repeats: clocks, above all. */
	assert_string_equal(world_line(w, 2, 0), "S2 U 4r 3r 2r 5 END E1 c1");
	assert_string_equal(world_line(w, 3, 0), "S3 U 3r 2r END E0");
}

static void
a_description_during_a_cut_is_in_the_new_segment_too(void **state)
{
	add(CPU(1));
	add(CUT_BEGIN(2));
	add(PACKET(2, 3) CLEARS);
	add(CPU(3));
	add(CUT_END(2));
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 3 E2 c1");
	assert_string_equal(world_line(w, 2, 0), "S2 U 1r 2 3r END E1");
}

#define TRACK(ts, sequence, uuid) \
	PACKET(ts, sequence) "track_descriptor { uuid: " #uuid " } "

static void
all_tracks_of_a_sequence_without_state_are_repeated(void **state)
{
	add(TRACK(1, 2, 100));
	add(TRACK(2, 2, 101));
	add(TRACK(3, 2, 100));
	add(PACKET(4, 2) "process_tree { }");
	add(TRACK(5, 3, 100));
	add(PACKET(6, 3) CLEARS);
	add(CUT_BEGIN(2));
	add(CUT_END(2));
	put_and_finish();
	assert_string_equal(world_line(w, 2, 0), "S2 U 3r 2r 4r END E0");
}

static void
a_repeated_description_tells_no_loss(void **state)
{
	add(CPU(1) "previous_packet_dropped: 64");
	add(CUT_BEGIN(2));
	add(CUT_END(2));
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U 1! E1 c1");
	assert_string_equal(world_line(w, 2, 0), "S2 U 1r END E0");
}

static void
descriptions_that_are_too_large_are_given_up(void **state)
{
	size_t size = SEGMENT_KEPT_EACH + 100;
	char *text = malloc(size + 100);
	int n;

	assert_non_null(text);
	add(PACKET(1, 2) "packages_list: \"a\"");
	n = sprintf(text, PACKET(2, 2) "packages_list: \"");
	memset(text + n, 'a', size);
	strcpy(text + n + size, "\"");
	add(text);
	free(text);
	add(CUT_BEGIN(2));
	add(CUT_END(2));
	put_and_finish();
	/* Nor is the old one repeated: it is wrong by now. */
	assert_string_equal(world_line(w, 2, 0), "S2 U END E0");
	assert_int_equal(segment_splitter_given_up(w->s), 1);
}

static void
the_oldest_of_too_many_descriptions_are_given_up(void **state)
{
	char text[128];
	uint64_t given_up;
	size_t i;

	for (i = 0; i < 100000; i++) {
		snprintf(text, sizeof(text), "trusted_packet_sequence_id: 2"
		    " track_descriptor { uuid: %zu }", i + 1);
		add(text);
	}
	assert_int_equal(world_put(w), SEGMENT_OK);
	given_up = segment_splitter_given_up(w->s);
	assert_in_range(given_up, 1, 99999);
	add(CUT_BEGIN(2));
	add(CUT_END(2));
	put_and_finish();
	assert_true(world_segment(w, 2, 0)->bytes.len < SEGMENT_KEPT_ALL);
	assert_int_equal(segment_splitter_given_up(w->s), given_up);
}

static void
bytes_that_are_no_packets_end_the_work(void **state)
{
	static const uint8_t bad[] = { 0x0a, 0x00, 0x0a, 0x05, 0x08 };

	assert_int_equal(segment_splitter_put(w->s, bad, sizeof(bad)),
	    SEGMENT_NO_PACKETS);
	assert_int_equal(segment_splitter_put(w->s, bad, 2),
	    SEGMENT_NO_PACKETS);
	/* The packet before was handed out. */
	assert_int_equal(w->segments[0].puts, 2);
}

static void
a_packet_that_is_malformed_inside_is_handed_on(void **state)
{
	static const uint8_t odd[] = { 0x0a, 0x02, 0x0a, 0x7f };

	assert_int_equal(segment_splitter_put(w->s, odd, sizeof(odd)),
	    SEGMENT_OK);
	assert_int_equal(w->segments[0].puts, 2);
}

static void
no_call_follows_one_that_was_refused(void **state)
{
	size_t after, calls;

	for (after = 1; after < 30; after++) {
		world_free(w);
		w = world_new(false);
		w->refuse_after = after;
		add(CPU(1));
		add(SERVICE "trace_stats { invalid_packets: 1 }");
		add(CUT_BEGIN(2));
		add(PACKET(2, 3) CLEARS);
		add(CUT_END(2));
		add(PACKET(3, 4) NEEDS);
		add(SERVICE "trace_stats { invalid_packets: 2 }");
		if (world_put(w) == SEGMENT_OK &&
		    segment_splitter_finish(w->s) == SEGMENT_OK)
			return;
		calls = w->calls;
		assert_int_equal(calls, after);
		world_add(w, PACKET(4, 2));
		assert_int_equal(world_put(w), SEGMENT_REFUSED);
		assert_int_equal(segment_splitter_finish(w->s),
		    SEGMENT_REFUSED);
		assert_int_equal(w->calls, calls);
	}
	fail();
}

static void
sequences_that_are_gone_are_forgotten(void **state)
{
	char text[128];
	size_t i;

	/* Forgotten or not, a packet that needs state is marked. */
	add(PACKET(1, 2) CLEARS);
	for (i = 2; i < 7; i++) {
		snprintf(text, sizeof(text), SERVICE "tributary_segment_cut "
		    "{ phase: BEGIN number: %zu }", i);
		add(text);
		snprintf(text, sizeof(text), SERVICE "tributary_segment_cut "
		    "{ phase: END number: %zu }", i);
		add(text);
	}
	add(PACKET(9, 2) NEEDS);
	put_and_finish();
	assert_string_equal(world_line(w, 6, 0), "S6 U END 9! E1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_recording_without_a_cut_is_one_segment),
		TEST(nothing_at_all_is_no_segment),
		TEST(a_sequence_moves_with_the_packet_that_clears_its_state),
		TEST(a_sequence_without_state_moves_at_the_end_of_the_cut),
		TEST(a_sequence_cut_without_its_answer_is_marked_once),
		TEST(a_loss_that_was_told_stays_as_it_is),
		TEST(the_first_segment_marks_nothing),
		TEST(
		    the_services_packets_move_at_the_begin_and_its_statistics_at_the_end),
		TEST(a_span_begins_where_the_last_reading_was),
		TEST(
		    a_segment_says_what_began_it_and_what_ended_the_one_before),
		TEST(each_segment_has_one_uuid_of_its_own),
		TEST(the_first_segment_waits_for_the_recordings_uuid),
		TEST(a_stream_that_says_no_uuid_is_split_all_the_same),
		TEST(marks_on_other_sequences_are_packets),
		TEST(an_end_without_its_begin_ends_nothing),
		TEST(a_number_that_goes_backwards_begins_nothing),
		TEST(a_second_begin_ends_the_cut_before_it),
		TEST(a_recording_may_end_in_the_middle_of_a_cut),
		TEST(descriptions_that_are_given_once_are_repeated),
		TEST(a_description_during_a_cut_is_in_the_new_segment_too),
		TEST(all_tracks_of_a_sequence_without_state_are_repeated),
		TEST(a_repeated_description_tells_no_loss),
		TEST(descriptions_that_are_too_large_are_given_up),
		TEST(the_oldest_of_too_many_descriptions_are_given_up),
		TEST(bytes_that_are_no_packets_end_the_work),
		TEST(a_packet_that_is_malformed_inside_is_handed_on),
		TEST(no_call_follows_one_that_was_refused),
		TEST(sequences_that_are_gone_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
