#include "service/session/arrivals.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/buffer/trace_buffer.h"
#include "service/session/machine.h"
#include "service/session/model.h"
#include "service/session/packet_stats.h"
#include "service/session/packet_time.h"
#include "service/session/session.h"
#include "transport/clock_snapshot.h"
#include "transport/loop.h"
#include "transport/pb_reader.h"

/* Of a chunk: its first packets are its oldest, and name the clocks. */
#define LOOK_PACKETS 4u
/* Producers number their writers from 1; of further ones nothing is looked at. */
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
	uint64_t fresh;  /* timestamps that can be ours */
	uint64_t ahead;
	uint64_t behind;
	int64_t newest_ns; /* against its arrival, of ahead or behind */
};

struct arrivals {
	struct tally *all;
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

/* NULL: not looked at, or no memory. */
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

/* NULL: there are too many, or no memory. */
static struct tally *
add_tally(struct arrivals *a, const struct producer *p)
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
	a->all[a->n] = (struct tally){ .producer = p->id,
		.machine = p->machine->id, .name = name };
	return &a->all[a->n++];
}

static struct tally *
tally_of(struct session *s, const struct producer *p)
{
	struct arrivals *a = s->arrivals;
	size_t i;

	if (a == NULL && (a = s->arrivals = calloc(1, sizeof(*a))) == NULL)
		return NULL;
	for (i = 0; i < a->n; i++)
		if (a->all[i].producer == p->id)
			return &a->all[i];
	return add_tally(a, p);
}

static uint64_t
our_ns(uint32_t clock)
{
	struct timespec now;

	if (clock == CLOCK_ID_BOOTTIME)
		return loop_boottime_ns();
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* since_ns: how long ago its writer wrote for certain. */
static void
judge(struct tally *t, const struct packet_time *when, uint64_t since_ns)
{
	int64_t by = (int64_t)(when->ns - our_ns(when->clock));

	if (by > ARRIVALS_AHEAD_NS)
		t->ahead++;
	else if (by >= -ARRIVALS_DELAY_NS)
		t->fresh++;
	else if (by < -ARRIVALS_DELAY_NS - (int64_t)since_ns)
		t->behind++;
	else
		return; /* it may have waited for so long */
	if (by > ARRIVALS_AHEAD_NS || by < -ARRIVALS_DELAY_NS)
		t->newest_ns = by;
}

/* The first packets that are whole in the chunk. */
static void
look_at_packets(struct tally *t, struct writer *w, const struct tb_chunk *c,
    uint64_t since_ns)
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
			judge(t, &when, since_ns);
	}
}

void
arrivals_look(struct producer *p, struct session *s, uint32_t writer,
    const struct tb_chunk *c)
{
	struct arrival_watch *watch = p->arrivals;
	uint64_t now = loop_boottime_ns(), from;
	struct writer *w;
	struct tally *t;

	if (p->machine->clock.known || (w = writer_of(watch, writer)) == NULL ||
	    (t = tally_of(s, p)) == NULL)
		return;
	from = w->looked_ns != 0 ? w->looked_ns : watch->since_ns;
	w->looked_ns = now;
	look_at_packets(t, w, c, now - from);
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

/*
 * One timestamp may be anything; a clock shows in most, or where none at all is
 * as it should be.
 */
static bool
is_foreign(const struct session *s, const struct tally *t)
{
	const struct machine *m = machine_find(s->service->machines,
	    t->machine);

	if (m != NULL && m->clock.known)
		return false;
	return t->ahead + t->behind > 1 && (t->fresh == 0 ||
	    t->ahead > t->fresh + t->behind);
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
