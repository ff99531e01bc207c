#include "service/machine/machine_clock.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "service/machine/machine.h"
#include "transport/clock/clock_fit.h"
#include "transport/link/link_clock.h"
#include "transport/packet/service_packets.h"
#include "transport/wire/pb_writer.h"

#define OLDEST_NS 60000000000ull
/* Least clock step, or time of suspend, that matters. */
#define SHAPE_CHANGED_NS 1000000

/*
 * An exchange as a trace has it: two readings of client and host, one of which
 * is computed; and the bounds of the offset that the real ones give.
 */
struct exchange {
	struct machine_clock_sample ping;
	struct machine_clock_sample update;
	int64_t low; /* client minus host is at least this, ns */
	int64_t high;
	uint64_t round_trip_ns;
	uint64_t at_ns; /* our BOOTTIME, of ping.host */
};

const struct clock_reading *
machine_clock_find(const struct machine_clock_sample *s, uint32_t id)
{
	size_t i;

	for (i = 0; i < s->n_client; i++)
		if (s->client[i].id == id)
			return &s->client[i];
	return NULL;
}

static uint64_t
client_ns(const struct machine_clock_sample *s, uint32_t id)
{
	const struct clock_reading *c = machine_clock_find(s, id);

	return c != NULL ? c->ns : 0;
}

static uint64_t
host_ns(const struct machine_clock_sample *s, uint32_t id)
{
	return clock_snapshot_ns(&s->host, (enum clock_id)id);
}

/*
 * Evaluates the exchange client, host, client.  -1: a BOOTTIME that cannot be.
 */
static int
bound(struct exchange *x, const char **why)
{
	uint64_t c1 = client_ns(&x->ping, CLOCK_ID_BOOTTIME);
	uint64_t c2 = client_ns(&x->update, CLOCK_ID_BOOTTIME);
	uint64_t h1 = host_ns(&x->ping, CLOCK_ID_BOOTTIME);

	if (c1 > c2 || c2 >= (uint64_t)CLOCK_FIT_MAX_NS ||
	    h1 >= (uint64_t)CLOCK_FIT_MAX_NS) {
		*why = "its clocks are absurd";
		return -1;
	}
	x->low = (int64_t)c1 - (int64_t)h1;
	x->high = (int64_t)c2 - (int64_t)h1;
	x->round_trip_ns = c2 - c1;
	x->at_ns = h1;
	return 0;
}

/* ns moved by `by`; 0 where no such time is. */
static uint64_t
moved(uint64_t ns, int64_t by)
{
	int64_t sum;

	if (ns == 0 || __builtin_add_overflow((int64_t)ns, by, &sum) ||
	    sum < 0)
		return 0;
	return (uint64_t)sum;
}

/* The host's clocks as late behind its PING's as the client's are. */
static void
reckon_last_host(struct exchange *x)
{
	struct clock_reading *h;
	uint64_t c1, c2;
	size_t i;

	for (i = 0; i < CLOCK_SNAPSHOT_N; i++) {
		h = &x->update.host.clocks[i];
		c1 = client_ns(&x->ping, h->id);
		c2 = client_ns(&x->update, h->id);
		h->ns = c1 == 0 || c2 == 0 ? 0 :
		    moved(host_ns(&x->ping, h->id), (int64_t)(c2 - c1));
	}
}

/* The client's clocks as long before its UPDATE's as the host's are. */
static void
reckon_first_client(struct exchange *x)
{
	struct machine_clock_sample *p = &x->ping;
	uint64_t h1, h2;
	size_t i, n = 0;

	for (i = 0; i < p->n_client; i++) {
		h1 = host_ns(p, p->client[i].id);
		h2 = host_ns(&x->update, p->client[i].id);
		p->client[n].id = p->client[i].id;
		p->client[n].ns = h1 == 0 || h2 == 0 ? 0 :
		    moved(client_ns(&x->update, p->client[i].id),
		    (int64_t)(h1 - h2));
		if (p->client[n].ns != 0)
			n++;
	}
	p->n_client = n;
}

static void
move_host(struct exchange *x, int64_t by)
{
	size_t i;

	for (i = 0; i < CLOCK_SNAPSHOT_N; i++) {
		x->ping.host.clocks[i].ns = moved(x->ping.host.clocks[i].ns,
		    by);
		x->update.host.clocks[i].ns =
		    moved(x->update.host.clocks[i].ns, by);
	}
}

/* Without the clocks that have no time. */
static size_t
known_host(const struct clock_snapshot *s,
    struct clock_reading out[CLOCK_SNAPSHOT_N])
{
	size_t i, n = 0;

	for (i = 0; i < CLOCK_SNAPSHOT_N; i++)
		if (s->clocks[i].ns != 0)
			out[n++] = s->clocks[i];
	return n;
}

/*
 * The offset that an importer computes for a clock, client minus host, rounded
 * as it does.  False: the clock is not in all readings, or is absurd.
 */
static bool
importers_offset(const struct exchange *x, uint32_t id, int64_t *offset)
{
	uint64_t c1 = client_ns(&x->ping, id), c2 = client_ns(&x->update, id);
	uint64_t h1 = host_ns(&x->ping, id), h2 = host_ns(&x->update, id);
	int64_t sum;

	if (c1 == 0 || c2 == 0 || h1 == 0 || h2 == 0 ||
	    __builtin_add_overflow((int64_t)((c1 + c2) / 2 - h1),
	    (int64_t)(c2 - (h1 + h2) / 2), &sum))
		return false;
	*offset = sum / 2;
	return true;
}

/* The exchange as it is repeated: see the header. */
static struct exchange
repetition_of(const struct exchange *x)
{
	struct exchange again = *x;
	struct clock_reading *h;
	int64_t offset;
	size_t i;

	for (i = 0; i < CLOCK_SNAPSHOT_N; i++) {
		h = &again.update.host.clocks[i];
		if (importers_offset(x, h->id, &offset))
			h->ns = moved(client_ns(&x->update, h->id), -offset);
	}
	again.ping = again.update;
	return again;
}

static int
write_form(struct machine *m, const struct exchange *x,
    int (*set)(struct machine *m, const uint8_t *data, size_t len))
{
	const struct machine_clock_sample *both[2] = { &x->ping, &x->update };
	struct clock_reading host[2][CLOCK_SNAPSHOT_N];
	struct service_clock_pair pairs[2];
	struct pb_writer w;
	size_t i;
	int rc;

	for (i = 0; i < 2; i++)
		pairs[i] = (struct service_clock_pair){
			.client = both[i]->client,
			.n_client = both[i]->n_client,
			.host = host[i],
			.n_host = known_host(&both[i]->host, host[i]),
		};
	pb_writer_init(&w);
	service_packets_remote_clock_sync(&w, (int32_t)getuid(), m->id, pairs,
	    2);
	rc = w.failed ? -1 : set(m, w.data, w.len);
	pb_writer_done(&w);
	return rc;
}

static int
write_sync(struct machine *m, const struct exchange *x, const char **why)
{
	const struct exchange again = repetition_of(x);

	if (write_form(m, &again, machine_set_clock_repeat) == 0 &&
	    write_form(m, x, machine_set_clock_sync) == 0)
		return 0;
	*why = "no memory";
	return -1;
}

static int64_t
from_boottime(uint64_t ns, uint64_t boottime_ns)
{
	return ns != 0 && boottime_ns != 0 ? (int64_t)(ns - boottime_ns) : 0;
}

static void
shape_of(const struct machine_clock_sample *s,
    int64_t shape[MACHINE_CLOCK_SHAPE])
{
	static const uint32_t ids[] = { CLOCK_ID_REALTIME, CLOCK_ID_MONOTONIC };
	size_t i;

	for (i = 0; i < 2; i++) {
		shape[i] = from_boottime(client_ns(s, ids[i]),
		    client_ns(s, CLOCK_ID_BOOTTIME));
		shape[2 + i] = from_boottime(host_ns(s, ids[i]),
		    host_ns(s, CLOCK_ID_BOOTTIME));
	}
}

static bool
differ_by_more(int64_t a, int64_t b, uint64_t than)
{
	return (a > b ? (uint64_t)a - (uint64_t)b :
	    (uint64_t)b - (uint64_t)a) > than;
}

static bool
shape_changed(const struct machine *m,
    const int64_t shape[MACHINE_CLOCK_SHAPE], size_t from, size_t to)
{
	for (; from < to; from++)
		if (differ_by_more(shape[from], m->clock.written_shape[from],
		    SHAPE_CHANGED_NS))
			return true;
	return false;
}

/*
 * Whether the machine or the host was suspended.  BOOTTIME then advanced by the
 * hardware clock, so that earlier measurements do not hold any more.
 */
static bool
slept(const struct machine *m, const int64_t shape[MACHINE_CLOCK_SHAPE])
{
	return m->clock.written.known &&
	    (shape_changed(m, shape, 1, 2) || shape_changed(m, shape, 3, 4));
}

/* Whether a new exchange improves traces: better, different or due. */
static bool
is_news(const struct machine *m, const int64_t shape[MACHINE_CLOCK_SHAPE])
{
	const struct machine_clock *c = &m->clock;
	uint64_t now = c->fit.at_ns, was;

	if (m->clock_sync == NULL || !c->written.known ||
	    now - c->written.at_ns >= MACHINE_CLOCK_RENEW_NS)
		return true;
	was = clock_fit_uncertainty_at(&c->written, now);
	return clock_fit_uncertainty(&c->fit) < was - was / 8 ||
	    differ_by_more(clock_fit_offset(&c->fit),
	    clock_fit_offset(&c->written), was) ||
	    shape_changed(m, shape, 0, MACHINE_CLOCK_SHAPE);
}

/* Takes an exchange whose missing readings were filled in. */
static int
take(struct machine *m, struct exchange *x, uint64_t realtime_ns,
    const char **why)
{
	int64_t shape[MACHINE_CLOCK_SHAPE], said;
	struct machine_clock *c = &m->clock;

	if (x->round_trip_ns > MACHINE_CLOCK_LONGEST_NS) {
		*why = "the exchange took too long";
		return -1;
	}
	shape_of(&x->ping, shape);
	if (slept(m, shape))
		c->fit.known = false;
	clock_fit_take(&c->fit, x->low, x->high, x->at_ns);
	c->known = true;
	c->offset_ns = clock_fit_offset(&c->fit);
	c->uncertainty_ns = clock_fit_uncertainty(&c->fit);
	c->round_trip_ns = x->round_trip_ns;
	c->measured_ns = realtime_ns;
	if (!is_news(m, shape))
		return 0;
	/* Writes the machine's own clocks, among each other: the first half. */
	if (c->written.known &&
	    shape_changed(m, shape, 0, MACHINE_CLOCK_SHAPE / 2) &&
	    machine_keep_clock_sync(m) != 0) {
		*why = "no memory";
		return -1;
	}
	said = x->low + (x->high - x->low) / 2;
	move_host(x, said - c->offset_ns);
	if (write_sync(m, x, why) != 0)
		return -1;
	c->written = c->fit;
	memcpy(c->written_shape, shape, sizeof(shape));
	return 0;
}

static void
from_snapshot(struct machine_clock_sample *to,
    const struct clock_snapshot *client, const struct clock_snapshot *host)
{
	to->n_client = clock_snapshot_list(client, to->client);
	to->host = *host;
}

int
machine_clock_take(struct machine *m, const struct link_clock *l,
    const struct clock_snapshot *now, const char **why)
{
	uint64_t here = clock_snapshot_ns(now, CLOCK_ID_BOOTTIME);
	uint64_t then = clock_snapshot_ns(&l->host, CLOCK_ID_BOOTTIME);
	struct exchange x;

	if (then > here) {
		*why = "its readings of our clocks lie in the future";
		return -1;
	}
	if (here - then > OLDEST_NS) {
		*why = "its readings of our clocks are too old";
		return -1;
	}
	from_snapshot(&x.ping, &l->before, &l->host);
	from_snapshot(&x.update, &l->after, &l->host);
	if (bound(&x, why) != 0)
		return -1;
	reckon_last_host(&x);
	return take(m, &x, clock_snapshot_ns(now, CLOCK_ID_REALTIME) -
	    (here - then), why);
}

int
machine_clock_take_exchange(struct machine *m,
    const struct machine_clock_sample *ping,
    const struct machine_clock_sample *update, const char **why)
{
	struct exchange x = { .ping = *ping, .update = *update };
	uint64_t h1 = host_ns(ping, CLOCK_ID_BOOTTIME);
	uint64_t h2 = host_ns(update, CLOCK_ID_BOOTTIME);

	if (machine_clock_find(ping, CLOCK_ID_BOOTTIME) == NULL ||
	    machine_clock_find(update, CLOCK_ID_BOOTTIME) == NULL)
		return write_sync(m, &x, why);
	if (bound(&x, why) != 0)
		return -1;
	/* Picks the shorter of client, host, client and host, client, host. */
	if (h2 - h1 < x.round_trip_ns) {
		x.low = x.high - (int64_t)(h2 - h1);
		x.round_trip_ns = h2 - h1;
		reckon_first_client(&x);
	} else {
		reckon_last_host(&x);
	}
	return take(m, &x, clock_snapshot_ns(&update->host, CLOCK_ID_REALTIME),
	    why);
}
