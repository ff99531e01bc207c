/*
 * remote_sync: how far a machine's clocks are from the host's, by the formula
 * of Perfetto's importer.
 *
 * Two rounds in a row are readings of client, host, client, host.  The middle of
 * the first three and the middle of the last three say a distance each; what
 * counts is the mean of all that the packet says.
 */
#include <string.h>

#include "client/clock/trace_clocks_internal.h"
#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

/* Most clocks of a round that are read; relays of Perfetto send seven. */
#define MAX_CLOCKS 16u
#define BOOTTIME 6u
/* Readings further apart are not of one exchange. */
#define EXCHANGE_NS 30000000000ull

struct reading {
	uint32_t id;
	uint64_t host, client; /* 0: not read */
};

struct round {
	struct reading readings[MAX_CLOCKS];
	size_t n;
};

struct distance {
	uint32_t id;
	__int128 sum;
	int64_t n;
	uint64_t host; /* the last reading */
	uint64_t error; /* at most, of the last exchange */
};

struct sync {
	struct clock_graph *graph;
	uint32_t machine;
	struct round last;
	bool has_last;
	struct distance distances[MAX_CLOCKS];
	size_t n;
};

size_t
clock_messages_read(const uint8_t *data, size_t len, struct clock_message *out,
    size_t max, uint32_t *primary)
{
	struct pb_reader rs, rc;
	struct pb_field c, f;
	struct clock_message m;
	size_t n = 0;

	PB_FOREACH(&c, &rs, data, len) {
		if (c.number == ClockSnapshot_primary_trace_clock &&
		    c.wire == PB_VARINT && c.value != 0)
			*primary = (uint32_t)c.value;
		if (c.number != ClockSnapshot_clocks || c.wire != PB_BYTES)
			continue;
		m = (struct clock_message){ .unit_ns = 1 };
		PB_FOREACH(&f, &rc, c.data, c.len) {
			if (f.number == ClockSnapshot_Clock_clock_id)
				m.id = (uint32_t)f.value;
			else if (f.number == ClockSnapshot_Clock_timestamp)
				m.timestamp = f.value;
			else if (f.number == ClockSnapshot_Clock_is_incremental)
				m.incremental = f.value != 0;
			else if (f.number ==
			    ClockSnapshot_Clock_unit_multiplier_ns &&
			    f.value != 0)
				m.unit_ns = f.value;
		}
		if (n < max)
			out[n] = m;
		n++;
	}
	return n;
}

static size_t
read_clocks(const struct pb_field *f, struct clock_message *out)
{
	uint32_t primary;
	size_t n = clock_messages_read(f->data, f->len, out, MAX_CLOCKS,
	    &primary);

	return n < MAX_CLOCKS ? n : MAX_CLOCKS;
}

static struct reading *
reading_of(struct round *r, uint32_t id)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (r->readings[i].id == id)
			return &r->readings[i];
	if (r->n == MAX_CLOCKS)
		return NULL;
	r->readings[r->n] = (struct reading){ .id = id };
	return &r->readings[r->n++];
}

/*
 * Takes the readings of the machine's clocks among each other, too. -1: no
 * memory.
 */
static int
take_client(struct sync *s, struct round *r, const struct pb_field *f)
{
	struct clock_message m[MAX_CLOCKS];
	struct clock_at at[MAX_CLOCKS];
	struct reading *x;
	size_t i, n = read_clocks(f, m);

	for (i = 0; i < n; i++) {
		at[i] = (struct clock_at){ clock_key_of(s->machine, 0, m[i].id),
			m[i].timestamp };
		if ((x = reading_of(r, m[i].id)) != NULL)
			x->client = m[i].timestamp;
	}
	return clock_graph_snapshot(s->graph, at, n);
}

static void
take_host(struct round *r, const struct pb_field *f)
{
	struct clock_message m[MAX_CLOCKS];
	struct reading *x;
	size_t i, n = read_clocks(f, m);

	for (i = 0; i < n; i++)
		if ((x = reading_of(r, m[i].id)) != NULL)
			x->host = m[i].timestamp;
}

static struct distance *
distance_of(struct sync *s, uint32_t id)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->distances[i].id == id)
			return &s->distances[i];
	if (s->n == MAX_CLOCKS)
		return NULL;
	s->distances[s->n] = (struct distance){ .id = id };
	return &s->distances[s->n++];
}

static uint64_t
client_boottime(const struct round *r)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (r->readings[i].id == BOOTTIME)
			return r->readings[i].client;
	return 0;
}

/* The shorter of both round trips, by client and host, bounds the error. */
static uint64_t
half_round_trip(const struct reading *ping, const struct reading *update)
{
	uint64_t client = update->client - ping->client;
	uint64_t host = update->host - ping->host;

	return (client < host ? client : host) / 2;
}

static void
measure(struct sync *s, const struct reading *ping,
    const struct reading *update)
{
	struct distance *d;

	if (ping->host == 0 || ping->client == 0 || update->host == 0 ||
	    update->client == 0 || (d = distance_of(s, ping->id)) == NULL)
		return;
	d->sum += (int64_t)((ping->client + update->client) / 2 - ping->host);
	d->sum += (int64_t)(update->client - (ping->host + update->host) / 2);
	d->n += 2;
	d->host = update->host;
	d->error = half_round_trip(ping, update);
}

static void
take_round(struct sync *s, struct round *r)
{
	struct reading *update;
	size_t i;

	if (s->has_last && client_boottime(r) - client_boottime(&s->last) <
	    EXCHANGE_NS) {
		for (i = 0; i < s->last.n; i++) {
			update = reading_of(r, s->last.readings[i].id);
			if (update != NULL)
				measure(s, &s->last.readings[i], update);
		}
	}
	s->last = *r;
	s->has_last = true;
}

/* RemoteClockSync.SyncedClocks */
static int
read_round(struct sync *s, const struct pb_field *synced)
{
	struct pb_reader r;
	struct round round = { .n = 0 };
	struct pb_field f;

	PB_FOREACH(&f, &r, synced->data, synced->len) {
		if (f.wire != PB_BYTES)
			continue;
		if (f.number == SyncedClocks_client_clocks &&
		    take_client(s, &round, &f) != 0)
			return -1;
		if (f.number == SyncedClocks_host_clocks)
			take_host(&round, &f);
	}
	take_round(s, &round);
	return 0;
}

int
remote_sync_take(struct clock_graph *g, uint32_t machine, const uint8_t *data,
    size_t len)
{
	struct sync s = { .graph = g, .machine = machine };
	const struct distance *d;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, data, len) {
		if (f.number == RemoteClockSync_synced_clocks &&
		    f.wire == PB_BYTES && read_round(&s, &f) != 0)
			return -1;
	}
	for (d = s.distances; d < s.distances + s.n; d++) {
		if (clock_graph_remote(g, machine, d->id, d->host,
		    (int64_t)(d->sum / d->n)) != 0)
			return -1;
		clock_graph_set_error(g, machine, d->id, d->error);
	}
	return 0;
}
