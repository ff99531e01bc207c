#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "split_world.h"

static struct world *w;

static int
setup(void **state)
{
	w = world_new(true);
	return 0;
}

static int
teardown(void **state)
{
	world_free(w);
	return 0;
}

#define PACKET(ts, sequence, machine) \
	"timestamp: " #ts " trusted_packet_sequence_id: " #sequence \
	" machine_id: " #machine " "
#define OWN(ts, sequence) \
	"timestamp: " #ts " trusted_packet_sequence_id: " #sequence " "
#define CLEARS   "sequence_flags: 1 "
#define NEEDS    "sequence_flags: 2 "
#define CONFIG   "trace_config { duration_ms: 1 } "
#define CLOCKS   "clock_snapshot { } "
#define SYNC     "remote_clock_sync { } "
#define EVENT    "service_event { tracing_started: true } "
#define REPEATED "tributary_repeated: true "
#define INFO(name) "system_info { machine_name: \"" name "\" } "

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
each_machine_has_a_file_of_its_own(void **state)
{
	add(OWN(1, 1) CONFIG);
	add(PACKET(2, 1, 7) INFO("kiosk-7"));
	add(PACKET(3, 1, 7) SYNC);
	add(PACKET(4, 2, 7) CLEARS);
	add(OWN(5, 3) CLEARS);
	add(PACKET(6, 4, 8));
	add(PACKET(7, 2, 7) NEEDS);
	put_and_finish();
	assert_int_equal(w->n, 3);
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 5 E2");
	assert_string_equal(world_line(w, 1, 7), "S1 U 1r 2 3 4 7 E4");
	assert_string_equal(world_line(w, 1, 8), "S1 U 1r 6 E1");
	assert_string_equal(world_segment(w, 1, 7)->name, "kiosk-7");
	assert_string_equal(world_segment(w, 1, 8)->name, "");
}

static void
check_head(void *arg, const Packet *p)
{
	const Perfetto__Protos__Segment *g = p->tributary_segment;

	if (g == NULL || g->end != NULL)
		return;
	assert_string_equal(g->machine, "kiosk-7");
	assert_int_equal(g->machine_id, 7);
	assert_int_equal(g->split,
	    PERFETTO__PROTOS__SEGMENT_CONFIG__SPLIT__BY_MACHINE);
	(*(int *)arg)++;
}

static void
a_file_says_whose_it_is(void **state)
{
	struct world_segment *g;
	int heads = 0;

	add(PACKET(2, 1, 7) INFO("kiosk-7"));
	put_and_finish();
	g = world_segment(w, 1, 7);
	world_each(g->bytes.data, g->bytes.len, check_head, &heads);
	assert_int_equal(heads, 1);
}

static void
collect_uuid(void *arg, const Packet *p)
{
	if (p->data_case == PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACE_UUID)
		*(int64_t *)arg = p->trace_uuid->msb;
}

static void
collect_host_head(void *arg, const Packet *p)
{
	const Perfetto__Protos__Segment *g = p->tributary_segment;

	if (g == NULL || g->end != NULL)
		return;
	assert_string_equal(g->machine, "host");
	assert_false(g->has_machine_id);
	(*(int *)arg)++;
}

static void
the_collectors_machine_has_one_name_from_the_first_segment_on(void **state)
{
	struct world_segment *g;
	int heads = 0;
	uint32_t n;

	add(OWN(1, 1) CONFIG);
	add(OWN(2, 1) INFO("Linux"));
	add(CUT_BEGIN(2));
	add(OWN(3, 1) REPEATED INFO("Linux"));
	add(CUT_END(2));
	put_and_finish();
	for (n = 1; n <= 2; n++) {
		g = world_segment(w, n, 0);
		assert_string_equal(g->name, "host");
		world_each(g->bytes.data, g->bytes.len, collect_host_head,
		    &heads);
	}
	assert_int_equal(heads, 2);
}

static void
files_of_one_number_have_different_uuids(void **state)
{
	int64_t uuid[2] = { 0, 0 };
	size_t i;

	add(PACKET(1, 2, 7));
	put_and_finish();
	assert_int_equal(w->n, 2);
	for (i = 0; i < 2; i++)
		world_each(w->segments[i].bytes.data, w->segments[i].bytes.len,
		    collect_uuid, &uuid[i]);
	assert_true(uuid[0] != uuid[1]);
}

static void
readers_of_each_file_get_what_the_service_says_to_all(void **state)
{
	add(OWN(1, 1) CLOCKS);
	add(PACKET(2, 2, 7));
	add(OWN(3, 1) EVENT);
	add(OWN(4, 1) CLOCKS);
	add(OWN(5, 1) "trace_provenance { }");
	add(PACKET(6, 2, 8));
	put_and_finish();
	assert_string_equal(world_line(w, 1, 0), "S1 U 1 3 4 5 E4");
	assert_string_equal(world_line(w, 1, 7), "S1 U 1r 2 3r 4r E1");
	/* The last clocks, but no event of the past. */
	assert_string_equal(world_line(w, 1, 8), "S1 U 4r 6 E1");
}

static void
a_machine_without_packets_has_no_file_in_the_next_segment(void **state)
{
	add(PACKET(1, 1, 7) INFO("kiosk-7"));
	add(PACKET(2, 2, 7));
	add(CUT_BEGIN(2));
	add(OWN(3, 1) REPEATED CONFIG);
	add(PACKET(4, 1, 7) REPEATED INFO("kiosk-7"));
	add(PACKET(5, 1, 7) REPEATED SYNC);
	add(CUT_END(2));
	add(CUT_BEGIN(3));
	add(OWN(6, 1) REPEATED CONFIG);
	add(PACKET(7, 1, 7) REPEATED INFO("kiosk-7"));
	add(CUT_END(3));
	add(PACKET(9, 2, 7));
	put_and_finish();
	assert_string_equal(world_line(w, 1, 7), "S1 U 1 2 E2 c1");
	assert_string_equal(world_line(w, 2, 7), "none");
	assert_string_equal(world_line(w, 3, 7), "S3 U 6r 7r 5r 9 E1");
	assert_string_equal(world_line(w, 2, 0), "S2 U 3r END E0 c1");
	assert_string_equal(world_segment(w, 3, 7)->name, "kiosk-7");
}

static void
sequences_move_in_the_files_of_their_machines(void **state)
{
	add(PACKET(1, 2, 7) CLEARS);
	add(PACKET(2, 3, 8) CLEARS);
	add(CUT_BEGIN(2));
	add(PACKET(3, 2, 7) CLEARS);
	add(PACKET(4, 3, 8) NEEDS);
	add(SERVICE "tributary_segment_cut { phase: END number: 2"
	    " unanswered { machine_id: 8 } unanswered { machine_id: 9 } }");
	add(PACKET(5, 3, 8) NEEDS);
	put_and_finish();
	assert_string_equal(world_line(w, 1, 7), "S1 U 1 E1 c1");
	assert_string_equal(world_line(w, 2, 7), "S2 U 3 E1");
	assert_string_equal(world_line(w, 1, 8), "S1 U 2 4 E2 u1 c1");
	assert_string_equal(world_line(w, 2, 8), "S2 U 5! E1");
	/* A machine without a file is counted in the collector's. */
	assert_string_equal(world_line(w, 1, 0), "S1 U E0 u1 c1");
	assert_string_equal(world_line(w, 2, 0), "S2 U END E0");
}

static void
descriptions_are_repeated_in_the_file_of_their_machine(void **state)
{
	add(PACKET(1, 2, 7) "cpu_info { }");
	add(OWN(2, 3) "cpu_info { }");
	add(CUT_BEGIN(2));
	add(CUT_END(2));
	add(PACKET(3, 4, 7));
	add(PACKET(4, 5, 8));
	put_and_finish();
	assert_string_equal(world_line(w, 2, 0), "S2 U 2r END E0");
	assert_string_equal(world_line(w, 2, 7), "S2 U 1r 3 E1");
	assert_string_equal(world_line(w, 2, 8), "S2 U 4 E1");
}

struct shares {
	uint64_t chunks;
	size_t buffers;
	size_t writers;
	uint64_t lost;
	uint64_t foreign;
	uint64_t invalid;
	size_t gauges;
};

static void
add_shares(void *arg, const Packet *p)
{
	const Perfetto__Protos__TraceStats *st;
	struct shares *sum = arg;
	size_t i;

	if (p->data_case != PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACE_STATS)
		return;
	st = p->trace_stats;
	sum->buffers += st->n_buffer_stats;
	for (i = 0; i < st->n_buffer_stats; i++)
		sum->chunks += st->buffer_stats[i]->chunks_written;
	sum->writers += st->n_writer_stats;
	for (i = 0; i < st->n_tributary_link_losses; i++)
		sum->lost += st->tributary_link_losses[i]->packets;
	for (i = 0; i < st->n_tributary_foreign_clocks; i++)
		sum->foreign += st->tributary_foreign_clocks[i]->packets;
	sum->invalid += st->invalid_packets;
	sum->gauges += st->has_total_buffers;
}

static struct shares
shares(uint32_t number, uint32_t machine)
{
	const struct world_segment *g = world_segment(w, number, machine);
	struct shares sum = { 0, 0, 0, 0, 0, 0, 0 };

	assert_non_null(g);
	world_each(g->bytes.data, g->bytes.len, add_shares, &sum);
	return sum;
}

static void
assert_shares(uint32_t number, uint32_t machine, struct shares want)
{
	struct shares is = shares(number, machine);

	assert_memory_equal(&is, &want, sizeof(is));
}

#define WRITER(s) "writer_stats { sequence_id: " #s \
	" chunk_payload_histogram_counts: [1, 2] } "
#define LOSS(m, n) "tributary_link_losses { machine_id: " #m \
	" cause: 1 packets: " #n " } "

static void
statistics_are_shared_out_and_nothing_is_in_two_files(void **state)
{
	add(PACKET(1, 2, 7));
	add(OWN(2, 3));
	add(SERVICE "trace_stats { buffer_stats { chunks_written: 5 } "
	    WRITER(2) WRITER(3) WRITER(4) LOSS(7, 10) LOSS(8, 20)
	    "invalid_packets: 6 total_buffers: 1 "
	    "tributary_foreign_clocks { producer_id: 1 machine_id: 7"
	    " packets: 3 } }");
	put_and_finish();
	assert_string_equal(world_line(w, 1, 7), "S1 U 1 stats0 E1");
	assert_string_equal(world_line(w, 1, 0), "S1 U 2 stats6 E2");
	assert_shares(1, 7, (struct shares){ 0, 0, 1, 10, 3, 0, 1 });
	/* The losses of machine 8, which has no file, are here. */
	assert_shares(1, 0, (struct shares){ 5, 1, 2, 20, 0, 6, 1 });
}

static void
statistics_of_a_span_are_shared_out(void **state)
{
	add(PACKET(1, 2, 7));
	add(CUT_BEGIN(2));
	add(SERVICE "trace_stats { " LOSS(7, 10) "invalid_packets: 4 }");
	add(CUT_END(2));
	add(PACKET(2, 2, 7));
	add(SERVICE "trace_stats { " LOSS(7, 15) "invalid_packets: 7 }");
	put_and_finish();
	assert_int_equal(shares(1, 7).lost, 10);
	assert_int_equal(shares(2, 7).lost, 5);
	assert_int_equal(shares(1, 0).invalid, 4);
	assert_int_equal(shares(2, 0).invalid, 3);
	assert_int_equal(shares(1, 0).lost + shares(2, 0).lost, 0);
}

static void
machines_that_are_gone_are_forgotten(void **state)
{
	add(PACKET(1, 1, 7) INFO("kiosk-7"));
	add(PACKET(2, 2, 7));
	add(CUT_BEGIN(2));
	add(CUT_END(2));
	add(CUT_BEGIN(3));
	add(CUT_END(3));
	add(PACKET(3, 2, 7));
	put_and_finish();
	assert_string_equal(world_line(w, 3, 7), "S3 U 3 E1");
	assert_string_equal(world_segment(w, 3, 7)->name, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_machine_has_a_file_of_its_own),
		TEST(a_file_says_whose_it_is),
		TEST(the_collectors_machine_has_one_name_from_the_first_segment_on),
		TEST(files_of_one_number_have_different_uuids),
		TEST(readers_of_each_file_get_what_the_service_says_to_all),
		TEST(a_machine_without_packets_has_no_file_in_the_next_segment),
		TEST(sequences_move_in_the_files_of_their_machines),
		TEST(descriptions_are_repeated_in_the_file_of_their_machine),
		TEST(statistics_are_shared_out_and_nothing_is_in_two_files),
		TEST(statistics_of_a_span_are_shared_out),
		TEST(machines_that_are_gone_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
