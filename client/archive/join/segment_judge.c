#include "client/archive/join/segment_judge.h"

#include <stdlib.h>

#include "client/archive/join/segment_packet.h"
#include "client/trace/packet_facts.h"
#include "protos/fields.h"
#include "transport/packet/service_packets.h"

/* A member of a set of numbers. */
struct member {
	struct hash_link link;
	uint64_t number;
};

static bool
has(const struct hash_map *set, uint64_t number)
{
	const struct member *m;

	HASH_MAP_FOREACH_OF(m, set, hash_number(number), link)
		if (m->number == number)
			return true;
	return false;
}

/* -1: no memory. */
static int
add(struct hash_map *set, uint64_t number)
{
	struct member *m;

	if ((m = malloc(sizeof(*m))) == NULL)
		return -1;
	m->number = number;
	hash_map_put(set, &m->link, hash_number(number));
	return 0;
}

static void
free_set(struct hash_map *set)
{
	struct hash_cursor at;
	struct member *m;

	HASH_MAP_FOREACH(m, set, &at, link)
		free(m);
	hash_map_done(set);
}

void
segment_judge_done(struct segment_judge *j)
{
	free_set(&j->seen);
	pb_writer_done(&j->changed);
}

/* Copies the packet but for two fields. */
static enum segment_verdict
without(struct segment_judge *j, const struct segment_packet *p,
    uint32_t field, uint32_t other)
{
	struct pb_reader r;
	struct pb_field f;

	pb_writer_reset(&j->changed);
	PB_FOREACH(&f, &r, p->data, p->len) {
		if (f.number != field && f.number != other)
			pb_put_raw(&j->changed, f.start,
			    (size_t)(r.p - f.start));
	}
	return j->changed.failed ? SEGMENT_NO_MEMORY : SEGMENT_CHANGE;
}

static uint64_t
number_of_bytes(const uint8_t *bytes)
{
	uint64_t v = 0;
	size_t i;

	for (i = 0; i < 8; i++)
		v = v << 8 | bytes[i];
	return v;
}

/* The first segment's uuid becomes the recording's; others go. */
static enum segment_verdict
judge_uuid(struct segment_judge *j, const struct segment_packet *p)
{
	if (j->uuid_written)
		return SEGMENT_DROP;
	j->uuid_written = true;
	pb_writer_reset(&j->changed);
	service_packets_trace_uuid(&j->changed, p->uid,
	    (int64_t)number_of_bytes(j->uuid),
	    (int64_t)number_of_bytes(j->uuid + 8));
	return j->changed.failed ? SEGMENT_NO_MEMORY : SEGMENT_CHANGE;
}

/* Whether another file of the join has the packet's original. */
static bool
has_original(const struct segment_place *place, const struct segment_packet *p)
{
	if (!segment_packet_is_common(p))
		return place->contiguous;
	if (!place->covered)
		return false;
	return !place->lead || place->contiguous;
}

/* A repeated packet, where its original is not there, is one as any other. */
static enum segment_verdict
judge_repeated(struct segment_judge *j, const struct segment_place *place,
    const struct segment_packet *p)
{
	enum segment_verdict verdict;
	uint64_t hash;

	if (has_original(place, p))
		return SEGMENT_DROP;
	verdict = without(j, p, TracePacket_tributary_repeated, 0);
	if (verdict != SEGMENT_CHANGE)
		return verdict;
	hash = hash_bytes(j->changed.data, j->changed.len);
	if (has(&j->seen, hash))
		return SEGMENT_DROP;
	return add(&j->seen, hash) < 0 ? SEGMENT_NO_MEMORY : SEGMENT_CHANGE;
}

/*
 * Takes off the mark of a cut, where the segment before is there: nothing is
 * lost then.  Elsewhere it becomes a loss as any other.
 */
static enum segment_verdict
judge_loss(struct segment_judge *j, const struct segment_place *place,
    const struct segment_packet *p)
{
	if (!p->divided)
		return SEGMENT_KEEP;
	return without(j, p, TracePacket_tributary_divided, place->contiguous ?
	    TracePacket_previous_packet_dropped : 0);
}

static bool
is_end(const struct pb_field *segment)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, segment->data, segment->len)
		if (f.number == Segment_end)
			return true;
	return false;
}

enum segment_verdict
segment_judge_packet(struct segment_judge *j, const struct segment_place *place,
    const struct segment_packet *p)
{
	if (!place->is_segment)
		return SEGMENT_KEEP;
	if (p->repeated)
		return judge_repeated(j, place, p);
	if (!segment_packet_is_service(p))
		return judge_loss(j, place, p);
	if (p->payload == TracePacket_trace_uuid)
		return judge_uuid(j, p);
	if (p->segment.start != NULL)
		return is_end(&p->segment) ? SEGMENT_LAST : SEGMENT_DROP;
	if (p->cut)
		return SEGMENT_DROP;
	if (p->payload == TracePacket_trace_stats)
		return SEGMENT_STATS;
	return add(&j->seen, hash_bytes(p->data, p->len)) < 0 ?
	    SEGMENT_NO_MEMORY : SEGMENT_KEEP;
}
