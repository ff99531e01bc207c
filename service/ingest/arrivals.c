#include "service/ingest/arrivals.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/machine/machine.h"
#include "service/model/model.h"
#include "service/packet/packet_time.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/clock/clock_snapshot.h"
#include "transport/loop/loop.h"
#include "transport/packet/packet_stats.h"
#include "transport/wire/pb_reader.h"

/*
 * Packets looked at in a chunk: the first are the oldest, and name the clocks.
 */
#define LOOK_PACKETS 4u
/* Producers number their writers from 1; chunks of further ones are skipped. */
#define LOOK_WRITERS 1024u

struct writer {
	uint64_t looked_ns;  /* BOOTTIME at its last chunk; 0: none */
	bool other_default;  /* packet_time.h */
};

struct arrival_watch {
	uint64_t since_ns; /* BOOTTIME when it connected */
	struct writer *writers;
	size_t n_writers;
};

struct tally {
	uint32_t producer;
	uint32_t machine;
	char *name;
	uint64_t fresh;  /* timestamps that can be on the collector's clocks */
	uint64_t ahead;  /* timestamps too far in the future */
	uint64_t behind; /* timestamps too old */
	bool read; /* one ahead or behind was from a clock snapshot */
	int64_t newest_ns; /* newest one ahead or behind, minus its arrival */
};

struct arrivals {
	struct tally *all; /* by producer */
	size_t n, cap;
};

struct arrival_watch *
arrival_watch_new(void)
{
	struct arrival_watch *w = calloc(1, sizeof(*w));

	if (w != NULL)
		w->since_ns = loop_boottime_ns();
	return w;
}

void
arrival_watch_free(struct arrival_watch *w)
{
	if (w == NULL)
		return;
	free(w->writers);
	free(w);
}

/* NULL: the id is not among those that are checked, or no memory. */
static struct writer *
writer_of(struct arrival_watch *w, uint32_t id)
{
	struct writer *grown;
	size_t n = w->n_writers == 0 ? 8 : w->n_writers;

	if (id < w->n_writers)
		return &w->writers[id];
	if (id >= LOOK_WRITERS)
		return NULL;
	while (n <= id)
		n *= 2;
	if ((grown = realloc(w->writers, n * sizeof(*grown))) == NULL)
		return NULL;
	memset(grown + w->n_writers, 0, (n - w->n_writers) * sizeof(*grown));
	w->writers = grown;
	w->n_writers = n;
	return &w->writers[id];
}

/* Index of the producer's tally, or of the place where it belongs. */
static size_t
place_of(const struct arrivals *a, uint32_t producer)
{
	size_t from = 0, to = a->n, middle;

	while (from < to) {
		middle = from + (to - from) / 2;
		if (a->all[middle].producer < producer)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* NULL: the session has ARRIVALS_MAX tallies, or no memory. */
static struct tally *
add_tally(struct arrivals *a, size_t at, const struct producer *p)
{
	size_t cap = a->cap == 0 ? 4 : a->cap * 2;
	struct tally *grown;
	char *name;

	if (a->n == ARRIVALS_MAX)
		return NULL;
	if (a->n == a->cap) {
		if ((grown = realloc(a->all, cap * sizeof(*grown))) == NULL)
			return NULL;
		a->all = grown;
		a->cap = cap;
	}
	if ((name = strdup(p->name)) == NULL)
		return NULL;
	memmove(&a->all[at + 1], &a->all[at], (a->n - at) * sizeof(*a->all));
	a->n++;
	a->all[at] = (struct tally){ .producer = p->id,
		.machine = p->machine->id, .name = name };
	return &a->all[at];
}

static struct tally *
tally_of(struct session *s, const struct producer *p)
{
	struct arrivals *a = s->arrivals;
	size_t at;

	if (a == NULL && (a = s->arrivals = calloc(1, sizeof(*a))) == NULL)
		return NULL;
	at = place_of(a, p->id);
	return at < a->n && a->all[at].producer == p->id ? &a->all[at] :
	    add_tally(a, at, p);
}

/* When a chunk arrived, and the bounds of when it was written; BOOTTIME. */
struct way {
	uint64_t now_ns;   /* arrival */
	uint64_t wrote_ns; /* its writer's chunk before it, or the connection */
	uint64_t began_ns; /* start of the session */
};

static uint64_t
our_ns(uint32_t clock, const struct way *way)
{
	struct timespec now;

	if (clock == CLOCK_ID_BOOTTIME)
		return way->now_ns;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * An event's timestamp may be from before the session; a clock snapshot was
 * taken when its packet was written.
 */
static void
judge(struct tally *t, const struct packet_time *when, const struct way *way)
{
	int64_t by = (int64_t)(when->ns - our_ns(when->clock, way));
	uint64_t since = when->is_reading && way->began_ns > way->wrote_ns ?
	    way->began_ns : way->wrote_ns;

	if (by >= -ARRIVALS_DELAY_NS && by <= ARRIVALS_AHEAD_NS) {
		t->fresh++;
		return;
	}
	if (by > 0)
		t->ahead++;
	else if (by < -ARRIVALS_DELAY_NS - (int64_t)(way->now_ns - since))
		t->behind++;
	else
		return; /* the chunk may have been held back for so long */
	t->read = t->read || when->is_reading;
	t->newest_ns = by;
}

/* Judges the first packets that lie whole in the chunk. */
static void
look_at_packets(struct tally *t, struct writer *w, const struct tb_chunk *c,
    const struct way *way)
{
	const uint8_t *p = c->payload, *end = c->payload + c->len;
	struct packet_time when;
	uint32_t i, n = c->num_fragments;
	uint64_t len;

	if ((c->flags & TB_LAST_CONTINUES_ON_NEXT) != 0 && n > 0)
		n--;
	for (i = 0; i < n && i < LOOK_PACKETS; i++, p += len) {
		if ((p = pb_varint(p, end, &len)) == NULL ||
		    len > (uint64_t)(end - p))
			return;
		if (i == 0 && (c->flags & TB_FIRST_CONTINUES_FROM_PREV) != 0)
			continue;
		when = packet_time_of(p, (size_t)len, &w->other_default);
		if (when.clock != 0)
			judge(t, &when, way);
	}
}

void
arrivals_look(struct producer *p, struct session *s, uint32_t writer,
    const struct tb_chunk *c)
{
	struct arrival_watch *watch = p->arrivals;
	struct writer *w;
	struct tally *t;
	struct way way;

	if (p->machine->clock.known || (w = writer_of(watch, writer)) == NULL ||
	    (t = tally_of(s, p)) == NULL)
		return;
	way.now_ns = loop_boottime_ns();
	way.wrote_ns = w->looked_ns != 0 ? w->looked_ns : watch->since_ns;
	way.began_ns = s->start_boottime_ns;
	w->looked_ns = way.now_ns;
	look_at_packets(t, w, c, &way);
}

/*
 * A single odd timestamp proves nothing, unless it is from a clock snapshot.  A
 * foreign clock shows where no timestamp at all fits, or where most are ahead.
 */
static bool
is_foreign(const struct session *s, const struct tally *t)
{
	const struct machine *m = machine_find(s->service->machines,
	    t->machine);

	if (m != NULL && m->clock.known)
		return false;
	return (t->read || t->ahead + t->behind > 1) && (t->fresh == 0 ||
	    t->ahead > t->fresh + t->behind);
}

void
arrivals_producer_gone(struct session *s, uint32_t producer)
{
	struct arrivals *a = s->arrivals;
	size_t at;

	if (a == NULL)
		return;
	at = place_of(a, producer);
	if (at == a->n || a->all[at].producer != producer ||
	    is_foreign(s, &a->all[at]))
		return;
	free(a->all[at].name);
	a->n--;
	memmove(&a->all[at], &a->all[at + 1], (a->n - at) * sizeof(*a->all));
}

int
arrivals_copy(struct session *to, const struct session *from)
{
	const struct arrivals *a = from->arrivals;
	size_t i;

	if (a == NULL)
		return 0;
	if ((to->arrivals = calloc(1, sizeof(*to->arrivals))) == NULL ||
	    (to->arrivals->all = calloc(a->n + 1, sizeof(*a->all))) == NULL)
		return -1;
	to->arrivals->cap = a->n + 1;
	for (i = 0; i < a->n; i++) {
		to->arrivals->all[i] = a->all[i];
		to->arrivals->all[i].name = strdup(a->all[i].name);
		if (to->arrivals->all[i].name == NULL)
			return -1;
		to->arrivals->n++;
	}
	return 0;
}

void
arrivals_free(struct arrivals *a)
{
	size_t i;

	if (a == NULL)
		return;
	for (i = 0; i < a->n; i++)
		free(a->all[i].name);
	free(a->all);
	free(a);
}

size_t
arrivals_list(const struct session *s, struct packet_foreign_clock *out,
    size_t max)
{
	const struct arrivals *a = s->arrivals;
	size_t i, n = 0;

	for (i = 0; a != NULL && i < a->n && n < max; i++) {
		if (!is_foreign(s, &a->all[i]))
			continue;
		out[n++] = (struct packet_foreign_clock){
			.producer = a->all[i].producer,
			.name = a->all[i].name,
			.machine = a->all[i].machine,
			.offset_ns = a->all[i].newest_ns,
			.packets = a->all[i].ahead + a->all[i].behind,
		};
	}
	return n;
}
