#include "client/clock/trace_clocks.h"

#include <stdlib.h>
#include <string.h>

#include "client/clock/trace_clocks_internal.h"
#include "client/trace/packet_facts.h"
#include "protos/fields.h"
#include "transport/base/hash_map.h"
#include "transport/wire/pb_reader.h"

#define BOOTTIME 6u
/* Most clocks of one snapshot that are read. */
#define MAX_CLOCKS 256u

/* State of a sequence of a machine. */
struct sequence {
	struct hash_link link;
	uint32_t machine, id;
	uint32_t default_clock; /* 0: the trace clock */
	bool has_state;         /* its defaults are known */
	uint32_t losses;        /* number noticed so far */
};

/* Unit and kind of a clock's timestamps. */
struct unit {
	struct hash_link link;
	struct clock_key key;
	bool incremental;
	uint64_t unit_ns;
	uint64_t last_ns; /* incremental: base of the next timestamp */
	uint32_t losses;  /* the sequence's, at the clock's last reading */
};

struct trace_clocks {
	struct clock_graph *graph; /* owned, as are the items of the maps */
	struct hash_map sequences; /* struct sequence, by machine and id */
	struct hash_map units;     /* struct unit, by key */
	struct clock_key trace_clock;
	bool trace_clock_known;
	bool has_snapshot;        /* the current packet is a ClockSnapshot */
	struct clock_at snapshot; /* when it was taken */
	uint64_t bad;
};

struct trace_clocks *
trace_clocks_new(void)
{
	struct trace_clocks *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	if ((c->graph = clock_graph_new()) == NULL) {
		free(c);
		return NULL;
	}
	c->trace_clock = clock_key_of(0, 0, BOOTTIME);
	return c;
}

void
trace_clocks_free(struct trace_clocks *c)
{
	struct hash_cursor at;
	struct sequence *q;
	struct unit *u;

	if (c == NULL)
		return;
	clock_graph_free(c->graph);
	HASH_MAP_FOREACH(q, &c->sequences, &at, link)
		free(q);
	hash_map_done(&c->sequences);
	HASH_MAP_FOREACH(u, &c->units, &at, link)
		free(u);
	hash_map_done(&c->units);
	free(c);
}

static struct sequence *
find_sequence(const struct trace_clocks *c, uint32_t machine, uint32_t id)
{
	struct sequence *q;

	HASH_MAP_FOREACH_OF(q, &c->sequences, hash_numbers(machine, id), link)
		if (q->machine == machine && q->id == id)
			return q;
	return NULL;
}

/* Finds or makes it; NULL in *out: too many.  -1: no memory. */
static int
take_sequence(struct trace_clocks *c, uint32_t machine, uint32_t id,
    struct sequence **out)
{
	struct sequence *q = find_sequence(c, machine, id);

	*out = q;
	if (q != NULL || c->sequences.n == TRACE_CLOCKS_MAX_SEQUENCES)
		return 0;
	if ((q = malloc(sizeof(*q))) == NULL)
		return -1;
	*q = (struct sequence){ .machine = machine, .id = id };
	hash_map_put(&c->sequences, &q->link, hash_numbers(machine, id));
	*out = q;
	return 0;
}

static struct unit *
find_unit(const struct trace_clocks *c, const struct clock_key *k)
{
	struct unit *u;

	HASH_MAP_FOREACH_OF(u, &c->units, clock_key_hash(k), link)
		if (clock_key_compare(&u->key, k) == 0)
			return u;
	return NULL;
}

/* Finds it, or makes it with the properties of m; NULL in *out: too many. */
static int
take_unit(struct trace_clocks *c, const struct clock_key *k,
    const struct clock_message *m, struct unit **out)
{
	struct unit *u = find_unit(c, k);

	*out = u;
	if (u != NULL || c->units.n == TRACE_CLOCKS_MAX_CLOCKS)
		return 0;
	if ((u = malloc(sizeof(*u))) == NULL)
		return -1;
	*u = (struct unit){ .key = *k, .unit_ns = m->unit_ns,
		.incremental = m->incremental };
	hash_map_put(&c->units, &u->link, clock_key_hash(k));
	*out = u;
	return 0;
}

static bool
is_sequence_clock(uint32_t id)
{
	return id >= 64 && id < 128;
}

/* Whether a reading is possible: its kind and unit fit the clock's. */
static bool
may_be(const struct trace_clocks *c, const struct clock_key *k,
    const struct clock_message *m)
{
	const struct unit *u = find_unit(c, k);

	if (is_sequence_clock(m->id) ? k->sequence == 0 : m->incremental)
		return false;
	if (m->unit_ns != 1 &&
	    clock_key_compare(k, &c->trace_clock) == 0)
		return false;
	return u == NULL || (u->unit_ns == m->unit_ns &&
	    u->incremental == m->incremental);
}

/* 1: stored in out; 0: an impossible reading, counted; -1: no memory. */
static int
take_reading(struct trace_clocks *c, const struct packet_facts *f,
    const struct clock_message *m, struct clock_at *out)
{
	struct clock_key k = clock_key_of(f->machine_id, f->sequence_id, m->id);
	struct sequence *q = NULL;
	struct unit *u;

	if (!may_be(c, &k, m)) {
		c->bad++;
		return 0;
	}
	if (take_unit(c, &k, m, &u) != 0 || (m->incremental &&
	    take_sequence(c, f->machine_id, f->sequence_id, &q) != 0))
		return -1;
	*out = (struct clock_at){ k, m->timestamp * m->unit_ns };
	if (u != NULL) {
		u->last_ns = out->ns;
		u->losses = q == NULL ? 0 : q->losses;
	}
	return 1;
}

/* The first snapshot decides, until the first one of the host. */
static void
set_trace_clock(struct trace_clocks *c, uint32_t machine, uint32_t primary)
{
	if (c->trace_clock_known &&
	    (c->trace_clock.machine == 0 || machine != 0))
		return;
	c->trace_clock = clock_key_of(machine, 0,
	    primary == 0 || is_sequence_clock(primary) ? BOOTTIME : primary);
	c->trace_clock_known = true;
}

/*
 * Notes when a snapshot was taken: the trace clock's own reading, or else the
 * first.
 */
static void
note_moment(struct trace_clocks *c, const struct clock_at *at, size_t n)
{
	size_t i;

	c->has_snapshot = n > 0;
	for (i = 0; i < n; i++) {
		if (i == 0 || (at[i].clock.id == c->trace_clock.id &&
		    c->snapshot.clock.id != c->trace_clock.id))
			c->snapshot = at[i];
	}
}

static int
take_snapshot(struct trace_clocks *c, const struct packet_facts *f)
{
	struct clock_message m[MAX_CLOCKS];
	struct clock_at at[MAX_CLOCKS];
	uint32_t primary = 0;
	size_t i, all, n = 0;
	int rc;

	all = clock_messages_read(f->payload.data, f->payload.len, m,
	    MAX_CLOCKS, &primary);
	/*
	 * A producer's own sequence decides the trace clock only where it names
	 * one.
	 */
	if (f->sequence_id <= PACKET_SERVICE_SEQUENCE || primary != 0)
		set_trace_clock(c, f->machine_id, primary);
	for (i = 0; i < all && i < MAX_CLOCKS; i++) {
		if ((rc = take_reading(c, f, &m[i], &at[n])) < 0)
			return -1;
		n += (size_t)rc;
	}
	note_moment(c, at, n);
	return clock_graph_snapshot(c->graph, at, n);
}

static uint32_t
default_clock_in(const struct pb_field *defaults)
{
	uint32_t id = 0;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, defaults->data, defaults->len) {
		if (f.number == TracePacketDefaults_timestamp_clock_id)
			id = (uint32_t)f.value;
	}
	return id;
}

/* Takes the packet's changes to the state of its sequence, before its time. */
static int
take_state(struct trace_clocks *c, const struct packet_facts *f)
{
	struct sequence *q = find_sequence(c, f->machine_id, f->sequence_id);
	bool cleared = (f->flags & PACKET_STATE_CLEARED) != 0;

	if (q != NULL && f->dropped != 0)
		q->losses++;
	if (f->sequence_id == 0 || (!cleared && f->defaults.len == 0))
		return 0;
	if (q == NULL && take_sequence(c, f->machine_id, f->sequence_id,
	    &q) != 0)
		return -1;
	if (q == NULL)
		return 0;
	if (cleared)
		q->default_clock = 0;
	if (f->defaults.len != 0)
		q->default_clock = default_clock_in(&f->defaults);
	q->has_state = true;
	return 0;
}

/*
 * The packet counts in its sequence's default clock, which was said before the
 * trace begins: as in a copy of what a file did not get yet.
 */
static bool
misses_default(const struct trace_clocks *c, const struct packet_facts *f,
    const struct sequence *q)
{
	if ((f->flags & PACKET_NEEDS_STATE) == 0 || f->clock_id != 0)
		return false;
	return q == NULL ? c->sequences.n < TRACE_CLOCKS_MAX_SEQUENCES :
	    !q->has_state;
}

/* The packet's own time, in nanoseconds of its own clock. */
static enum trace_time
own_time(struct trace_clocks *c, const struct packet_facts *f,
    struct clock_at *out, bool *increment)
{
	const struct sequence *q;
	uint32_t id = f->clock_id;
	struct unit *u;

	q = find_sequence(c, f->machine_id, f->sequence_id);
	if (id == 0 && q != NULL)
		id = q->default_clock;
	if (id == 0)
		id = c->trace_clock.id;
	*out = (struct clock_at){
		clock_key_of(f->machine_id, f->sequence_id, id), f->timestamp };
	if (misses_default(c, f, q))
		return TRACE_TIME_LOST;
	if ((u = find_unit(c, &out->clock)) == NULL)
		return TRACE_TIME_OK;
	out->ns *= u->unit_ns;
	if (!u->incremental)
		return TRACE_TIME_OK;
	/* A snapshot has set last_ns: its timestamp is no increment. */
	*increment = !c->has_snapshot;
	if (*increment)
		u->last_ns += out->ns;
	out->ns = u->last_ns;
	return q != NULL && q->losses != u->losses ? TRACE_TIME_LOST :
	    TRACE_TIME_OK;
}

static enum trace_time
resolve(struct trace_clocks *c, const struct packet_facts *f,
    struct trace_moment *out)
{
	enum trace_time own = TRACE_TIME_OK;

	if (f->has_timestamp)
		own = own_time(c, f, &out->at, &out->increment);
	else if (c->has_snapshot)
		out->at = c->snapshot;
	else
		return TRACE_TIME_NONE;
	if (own != TRACE_TIME_OK)
		return own;
	switch (clock_graph_convert(c->graph, &out->at, &c->trace_clock,
	    &out->ns)) {
	case CLOCK_OK:
		return TRACE_TIME_OK;
	case CLOCK_UNKNOWN:
		return TRACE_TIME_UNKNOWN;
	case CLOCK_NO_WAY:
		return TRACE_TIME_NO_WAY;
	case CLOCK_WENT_BACK:
		return TRACE_TIME_WENT_BACK;
	}
	return TRACE_TIME_NO_WAY;
}

int
trace_clocks_take(struct trace_clocks *c, const struct packet_facts *f,
    struct trace_moment *out)
{
	bool bytes = f->payload.wire == PB_BYTES;

	*out = (struct trace_moment){ .result = TRACE_TIME_NONE };
	c->has_snapshot = false;
	if (take_state(c, f) != 0)
		return -1;
	if (f->type == TracePacket_clock_snapshot && bytes &&
	    take_snapshot(c, f) != 0)
		return -1;
	if (f->type == TracePacket_remote_clock_sync && bytes) {
		if (f->machine_id == 0)
			c->bad++;
		else if (remote_sync_take(c->graph, f->machine_id,
		    f->payload.data, f->payload.len) != 0)
			return -1;
	}
	out->result = resolve(c, f, out);
	return 0;
}

struct clock_key
trace_clocks_trace_clock(const struct trace_clocks *c)
{
	return c->trace_clock;
}

enum clock_result
trace_clocks_convert(struct trace_clocks *c, const struct clock_at *from,
    uint64_t *ns)
{
	return clock_graph_convert(c->graph, from, &c->trace_clock, ns);
}

struct clock_graph *
trace_clocks_graph(struct trace_clocks *c)
{
	return c->graph;
}

uint64_t
trace_clocks_bad(const struct trace_clocks *c)
{
	return c->bad;
}

const char *
trace_time_text(enum trace_time t)
{
	switch (t) {
	case TRACE_TIME_OK:
		return "";
	case TRACE_TIME_NONE:
		return "says no time";
	case TRACE_TIME_UNKNOWN:
		return "its clock was not read yet";
	case TRACE_TIME_NO_WAY:
		return "nothing leads from its clock to the trace clock";
	case TRACE_TIME_WENT_BACK:
		return "its clock went back";
	case TRACE_TIME_LOST:
		return "counts from a packet that was lost";
	}
	return "";
}
