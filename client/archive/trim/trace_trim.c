#include "client/archive/trim/trace_trim.h"

#include <stdlib.h>

#include "client/archive/trim/event_kinds.h"
#include "client/clock/clock_graph.h"
#include "client/clock/trace_clocks.h"
#include "client/trace/packet_facts.h"
#include "protos/fields.h"
#include "transport/base/hash_map.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define REALTIME 1u
#define BOOTTIME 6u

/* A clock of a sequence whose timestamps count from the one before. */
struct increments {
	struct hash_link link;
	struct clock_key clock;
	uint64_t dropped; /* since the last packet that stayed */
};

struct trace_trim {
	uint64_t from, to;
	struct packet_types types;
	struct trace_clocks *clocks; /* owned */
	struct hash_map increments;  /* struct increments; owned */
	bool counts_up; /* a track's values are increments */
	struct pb_writer changed;
	struct trace_trim_counts counts;
};

/* A packet's place in time. */
enum side { INSIDE, OUTSIDE, TIMELESS };

struct trace_trim *
trace_trim_new(uint64_t from_ns, uint64_t to_ns)
{
	struct trace_trim *t;

	if ((t = calloc(1, sizeof(*t))) == NULL)
		return NULL;
	t->from = from_ns;
	t->to = to_ns;
	packet_types_init(&t->types);
	pb_writer_init(&t->changed);
	if ((t->clocks = trace_clocks_new()) == NULL) {
		free(t);
		return NULL;
	}
	return t;
}

void
trace_trim_free(struct trace_trim *t)
{
	struct increments *i;
	struct hash_cursor at;

	if (t == NULL)
		return;
	HASH_MAP_FOREACH(i, &t->increments, &at, link)
		free(i);
	hash_map_done(&t->increments);
	trace_clocks_free(t->clocks);
	pb_writer_done(&t->changed);
	free(t);
}

struct trace_trim_counts
trace_trim_counts(const struct trace_trim *t)
{
	return t->counts;
}

/* ---- timestamps that count from the one before ---- */

static struct increments *
find_increments(const struct trace_trim *t, const struct clock_key *k)
{
	struct increments *i;

	HASH_MAP_FOREACH_OF(i, &t->increments, clock_key_hash(k), link)
		if (clock_key_compare(&i->clock, k) == 0)
			return i;
	return NULL;
}

static int
add_increment(struct trace_trim *t, const struct clock_key *k, uint64_t n)
{
	struct increments *i = find_increments(t, k);

	if (i == NULL) {
		if ((i = calloc(1, sizeof(*i))) == NULL)
			return -1;
		i->clock = *k;
		hash_map_put(&t->increments, &i->link, clock_key_hash(k));
	}
	i->dropped += n;
	return 0;
}

/* A snapshot sets the clocks in it anew. */
static void
forget_increments(struct trace_trim *t, const struct packet_facts *p)
{
	struct pb_reader r, inner;
	struct pb_field f, g;
	struct increments *i;
	struct clock_key k;

	PB_FOREACH(&f, &r, p->payload.data, p->payload.len) {
		if (f.number != ClockSnapshot_clocks || f.wire != PB_BYTES)
			continue;
		PB_FOREACH(&g, &inner, f.data, f.len) {
			if (g.number != ClockSnapshot_Clock_clock_id)
				continue;
			k = clock_key_of(p->machine_id, p->sequence_id,
			    (uint32_t)g.value);
			if ((i = find_increments(t, &k)) != NULL)
				i->dropped = 0;
		}
	}
}

/* ---- times ---- */

/* Compares as the wall clock, or says that it cannot. */
static enum side
side_of(struct trace_trim *t, const struct clock_at *first,
    const struct clock_at *last)
{
	struct clock_graph *g = trace_clocks_graph(t->clocks);
	struct clock_key wall = clock_key_of(0, 0, REALTIME);
	uint64_t begin, end;

	if (clock_graph_convert(g, first, &wall, &begin) != CLOCK_OK ||
	    clock_graph_convert(g, last, &wall, &end) != CLOCK_OK)
		return TIMELESS;
	return end < t->from || begin > t->to ? OUTSIDE : INSIDE;
}

static enum side
side_of_packet(struct trace_trim *t, const struct packet_facts *f,
    enum event_kind kind, const struct trace_moment *m)
{
	struct clock_at first = { .clock = clock_key_of(f->machine_id, 0,
	    BOOTTIME) }, last = first;

	if (kind == EVENT_FTRACE)
		return event_ftrace_span(f, &first.ns, &last.ns) ?
		    side_of(t, &first, &last) : TIMELESS;
	if (m->result != TRACE_TIME_OK)
		return TIMELESS;
	first.clock = trace_clocks_trace_clock(t->clocks);
	first.ns = m->ns;
	return side_of(t, &first, &first);
}

/* ---- what becomes of a packet ---- */

/* Whether the packet changes its sequence's state besides its event. */
static bool
has_state(const struct packet_facts *p, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	if ((p->flags & PACKET_STATE_CLEARED) != 0 || p->dropped != 0 ||
	    p->first_on_sequence || p->defaults.len != 0)
		return true;
	PB_FOREACH(&f, &r, data, len)
		if (f.number == TracePacket_interned_data)
			return true;
	return false;
}

/*
 * Copies the packet without the field (0: with all), its timestamp as given.
 */
static int
rewrite(struct trace_trim *t, const uint8_t *data, size_t len, uint32_t without,
    const uint64_t *timestamp)
{
	struct pb_reader r;
	struct pb_field f;

	pb_writer_reset(&t->changed);
	PB_FOREACH(&f, &r, data, len) {
		if (f.number == TracePacket_timestamp && timestamp != NULL)
			pb_put_uint(&t->changed, TracePacket_timestamp,
			    *timestamp);
		else if (f.number != without)
			pb_put_raw(&t->changed, f.start,
			    (size_t)(r.p - f.start));
	}
	return t->changed.failed ? -1 : 0;
}

/* The packet stays, without its event (a field's number) where that is not 0. */
static int
stay(struct trace_trim *t, const struct packet_facts *f, uint32_t event,
    const struct trace_moment *m, const uint8_t **data, size_t *len)
{
	struct increments *i = m->increment ? find_increments(t, &m->at.clock) :
	    NULL;
	uint64_t timestamp = f->timestamp;
	bool moved = i != NULL && i->dropped != 0;

	if (moved) {
		timestamp += i->dropped;
		i->dropped = 0;
	}
	if (!moved && event == 0)
		return 0;
	if (rewrite(t, *data, *len, event, moved ? &timestamp : NULL) < 0)
		return -1;
	*data = t->changed.data;
	*len = t->changed.len;
	return 0;
}

static int
go(struct trace_trim *t, const struct packet_facts *f,
    const struct trace_moment *m, const uint8_t **data)
{
	*data = NULL;
	t->counts.dropped++;
	return m->increment ? add_increment(t, &m->at.clock, f->timestamp) : 0;
}

static int
decide(struct trace_trim *t, const struct packet_facts *f,
    const struct trace_moment *m, const uint8_t **data, size_t *len)
{
	enum event_kind kind = event_kind_of(f);

	if (kind == EVENT_NONE || (kind == EVENT_COUNTER && t->counts_up))
		return stay(t, f, 0, m, data, len);
	switch (side_of_packet(t, f, kind, m)) {
	case TIMELESS:
		t->counts.timeless++;
		return stay(t, f, 0, m, data, len);
	case INSIDE:
		return stay(t, f, 0, m, data, len);
	case OUTSIDE:
		break;
	}
	if (!has_state(f, *data, *len))
		return go(t, f, m, data);
	t->counts.emptied++;
	return stay(t, f, f->type, m, data, len);
}

int
trace_trim_packet(struct trace_trim *t, const uint8_t *data, size_t len,
    const uint8_t **out, size_t *out_len)
{
	struct trace_moment m;
	struct packet_facts f;

	*out = data;
	*out_len = len;
	if (!packet_facts_read(&f, &t->types, data, len))
		return 0;
	if (trace_clocks_take(t->clocks, &f, &m) < 0)
		return -1;
	if (event_is_incremental_track(&f))
		t->counts_up = true;
	if (f.type == TracePacket_clock_snapshot &&
	    f.payload.wire == PB_BYTES)
		forget_increments(t, &f);
	return decide(t, &f, &m, out, out_len);
}
