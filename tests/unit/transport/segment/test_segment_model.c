/*
 * Streams by chance (of fixed seeds) through the splitter, beside a plain model
 * of the rules: which segment each packet is in, whether it is marked there,
 * and how often it is anywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/fields.h"
#include "split_world.h"

#define STREAMS   400
#define PACKETS   300
#define SEQUENCES 6
#define MACHINES  3

static uint32_t seed;

static uint32_t
chance(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

/* A packet of the stream, whose timestamp is its index, and its fate. */
struct expected {
	uint32_t sequence; /* 0: a mark or statistics */
	uint32_t machine;
	bool needs;
	bool clears;
	bool repeated;
	bool was_lossy;
	uint32_t number; /* the segment that it belongs to */
	bool lossy;      /* there */
	size_t times;    /* that it was found, repetitions aside */
	uint64_t place;  /* in the order in which packets were found */
};

struct model {
	struct world *w;
	bool by_machine;
	struct expected packets[PACKETS + 1];
	size_t n;
	/* The rules' state. */
	uint32_t newest;
	bool cutting;
	uint32_t in[SEQUENCES + 1];      /* segment a sequence is in */
	uint32_t settled[SEQUENCES + 1]; /* it cleared or was marked there */
	uint32_t machine_of[SEQUENCES + 1];
	uint64_t losses; /* the last reading */
	/* While segments are read. */
	const struct world_segment *segment;
	uint64_t found;
	uint64_t counted; /* packets of this segment */
	/* The segment's last statistics, and their sums over all segments. */
	uint64_t invalid;
	uint64_t lost;
	uint64_t invalid_sum;
	uint64_t lost_sum;
};

static void
put_packet(struct model *m, const struct expected *e, uint64_t ts)
{
	struct pb_writer *w = &m->w->input;
	size_t packet = pb_nest_begin(w, 1);
	uint32_t flags = (e->clears ? 1 : 0) | (e->needs ? 2 : 0);

	pb_put_uint(w, TracePacket_timestamp, ts);
	if (flags == 1 && chance(2) == 0)
		pb_put_uint(w, TracePacket_incremental_state_cleared, 1);
	else if (flags != 0)
		pb_put_uint(w, TracePacket_sequence_flags, flags);
	else if (chance(8) == 0)
		pb_put_bytes(w, TracePacket_cpu_info, "", 0);
	pb_put_uint(w, TracePacket_trusted_packet_sequence_id, e->sequence);
	if (e->machine != 0)
		pb_put_uint(w, TracePacket_machine_id, e->machine);
	if (e->was_lossy)
		pb_put_uint(w, TracePacket_previous_packet_dropped, 64);
	if (e->repeated)
		pb_put_uint(w, TracePacket_tributary_repeated, 1);
	pb_nest_end(w, packet);
}

static void
put_mark(struct model *m, uint32_t phase, uint32_t number)
{
	struct pb_writer *w = &m->w->input;
	size_t packet = pb_nest_begin(w, 1), mark;

	pb_put_uint(w, TracePacket_trusted_packet_sequence_id, 1);
	mark = pb_nest_begin(w, TracePacket_tributary_segment_cut);
	pb_put_uint(w, SegmentCut_phase, phase);
	pb_put_uint(w, SegmentCut_number, number);
	pb_nest_end(w, mark);
	pb_nest_end(w, packet);
}

static void
put_stats(struct model *m)
{
	struct pb_writer *w = &m->w->input;
	size_t packet = pb_nest_begin(w, 1), stats, loss;

	m->losses += chance(5);
	pb_put_uint(w, TracePacket_trusted_packet_sequence_id, 1);
	stats = pb_nest_begin(w, TracePacket_trace_stats);
	pb_put_uint(w, TraceStats_invalid_packets, m->losses);
	loss = pb_nest_begin(w, TraceStats_tributary_link_losses);
	pb_put_uint(w, LinkLossStats_machine_id, 2);
	pb_put_uint(w, LinkLossStats_packets, m->losses);
	pb_nest_end(w, loss);
	pb_nest_end(w, stats);
	pb_nest_end(w, packet);
}

static void
producers_packet(struct model *m, struct expected *e)
{
	uint32_t q = e->sequence;

	e->needs = q % 2 == 0 && chance(4) != 0;
	e->clears = q % 2 == 0 && chance(6) == 0;
	e->was_lossy = chance(20) == 0;
	e->machine = m->machine_of[q];
	if (e->clears || !m->cutting)
		m->in[q] = m->newest;
	e->number = m->in[q];
	e->lossy = e->was_lossy;
	if (e->clears)
		m->settled[q] = e->number;
	if (e->needs && e->number > 1 && m->settled[q] != e->number) {
		e->lossy = true;
		m->settled[q] = e->number;
	}
}

/* Without their END, all move at the next BEGIN. */
static void
all_move(struct model *m)
{
	size_t q;

	m->cutting = false;
	for (q = 1; q <= SEQUENCES; q++)
		m->in[q] = m->newest;
}

static void
next(struct model *m)
{
	struct expected e = { .sequence = 1 };

	switch (chance(24)) {
	case 0:
		if (m->cutting && chance(4) != 0)
			return;
		all_move(m);
		m->newest += 1 + chance(2);
		m->cutting = true;
		put_mark(m, SegmentCut_BEGIN, m->newest);
		return;
	case 1:
	case 2:
		/* One that comes too late, or for another. */
		if (chance(4) == 0) {
			put_mark(m, SegmentCut_END, m->newest + 1);
		} else {
			if (m->cutting)
				all_move(m);
			put_mark(m, SegmentCut_END, m->newest);
		}
		return;
	case 3:
		put_stats(m);
		return;
	case 4:
		e.number = m->newest;
		e.repeated = chance(2) == 0;
		e.machine = chance(2) == 0 ? 0 : chance(MACHINES);
		/* Kept until its machine has packets, or not at all. */
		if (e.repeated && m->by_machine)
			e.machine = 0;
		break;
	default:
		e.sequence = 1 + chance(SEQUENCES);
		if (e.sequence == 1)
			e.number = m->newest;
		else
			producers_packet(m, &e);
		break;
	}
	m->packets[++m->n] = e;
	put_packet(m, &e, m->n);
}

static void
check_producers(struct model *m, struct expected *e, const Packet *p)
{
	bool lossy = p->has_previous_packet_dropped &&
	    p->previous_packet_dropped != 0;

	assert_int_equal(lossy, e->lossy);
	assert_int_equal(p->tributary_divided, e->lossy && !e->was_lossy);
	if (e->was_lossy)
		assert_int_equal(p->previous_packet_dropped, 64);
	assert_int_equal((p->sequence_flags & 1) != 0 ||
	    p->incremental_state_cleared, e->clears);
}

static void
found_stats(struct model *m, const Perfetto__Protos__TraceStats *st)
{
	size_t i;

	m->invalid = st->invalid_packets;
	m->lost = 0;
	for (i = 0; i < st->n_tributary_link_losses; i++)
		m->lost += st->tributary_link_losses[i]->packets;
}

static void
found_packet(void *arg, const Packet *p)
{
	struct model *m = arg;
	struct expected *e;
	bool repeated = p->has_tributary_repeated && p->tributary_repeated;

	if (p->data_case == PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACE_STATS) {
		found_stats(m, p->trace_stats);
		return;
	}
	if (!p->has_timestamp)
		return;
	assert_in_range(p->timestamp, 1, m->n);
	e = &m->packets[p->timestamp];
	if (repeated && !e->repeated)
		return;
	assert_int_equal(m->segment->number, e->number);
	assert_int_equal(m->segment->machine, m->by_machine ? e->machine : 0);
	e->times++;
	e->place = ++m->found;
	m->counted += !repeated;
	if (e->sequence > 1)
		check_producers(m, e, p);
}

static void
check_segments(struct model *m)
{
	struct world *w = m->w;
	uint32_t number;
	size_t i;

	/* In the order of their numbers, as they would be joined. */
	for (number = 1; number <= m->newest; number++) {
		for (i = 0; i < w->n; i++) {
			if (w->segments[i].number != number)
				continue;
			m->segment = &w->segments[i];
			m->counted = m->invalid = m->lost = 0;
			world_each(m->segment->bytes.data,
			    m->segment->bytes.len, found_packet, m);
			assert_true(m->segment->ended);
			assert_true(m->counted <= m->segment->summary.packets);
			m->invalid_sum += m->invalid;
			m->lost_sum += m->lost;
		}
	}
	assert_int_equal(m->invalid_sum, m->losses);
	assert_int_equal(m->lost_sum, m->losses);
}

static void
check_packets(const struct model *m)
{
	uint64_t place[SEQUENCES + 1][MACHINES] = { { 0 } };
	const struct expected *e;
	size_t i;

	for (i = 1; i <= m->n; i++) {
		e = &m->packets[i];
		assert_int_equal(e->times, 1);
		assert_true(place[e->sequence][e->machine] < e->place);
		place[e->sequence][e->machine] = e->place;
	}
}

static void
run(struct model *m, bool by_machine, uint32_t which)
{
	size_t i;

	seed = which;
	memset(m, 0, sizeof(*m));
	m->w = world_new(by_machine);
	m->by_machine = by_machine;
	m->newest = 1;
	for (i = 1; i <= SEQUENCES; i++) {
		m->in[i] = 1;
		m->machine_of[i] = i % MACHINES;
	}
	while (m->n < PACKETS && m->newest < WORLD_SEGMENTS / MACHINES - 2) {
		next(m);
		if (chance(10) == 0)
			assert_int_equal(world_put(m->w), SEGMENT_OK);
	}
	assert_int_equal(world_put(m->w), SEGMENT_OK);
	world_finish(m->w);
	check_segments(m);
	check_packets(m);
	world_free(m->w);
}

static void
each_packet_is_in_one_segment_and_marked_where_it_lacks_state(void **state)
{
	struct model *m = malloc(sizeof(*m));
	uint32_t i;

	assert_non_null(m);
	for (i = 1; i <= STREAMS; i++)
		run(m, false, i);
	free(m);
}

static void
each_packet_is_in_one_file_of_its_machine(void **state)
{
	struct model *m = malloc(sizeof(*m));
	uint32_t i;

	assert_non_null(m);
	for (i = 1; i <= STREAMS; i++)
		run(m, true, i);
	free(m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    each_packet_is_in_one_segment_and_marked_where_it_lacks_state),
		cmocka_unit_test(each_packet_is_in_one_file_of_its_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
