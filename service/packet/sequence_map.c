#include "service/packet/sequence_map.h"

#include <stdlib.h>
#include <string.h>

#include "service/buffer/trace_buffer.h"
#include "service/packet/packet_out.h"
#include "service/packet/packet_stats.h"
#include "service/packet/service_packets.h"

/*
 * Histograms are for people who size buffers; more writers than this would
 * cost more memory than the answer is worth.
 */
#define HISTOGRAMS_MAX 1024u
/* The same of those that were dropped; the oldest give way. */
#define PAST_HISTOGRAMS_MAX 1024u
#define TABLE_MIN 64u

struct entry {
	uint64_t producer;
	uint32_t writer;
	uint32_t id;     /* 0: no packet yet */
	uint32_t buffer; /* of the config */
	uint32_t machine;
	int32_t uid, pid;
	uint32_t loss;   /* that its next packet has to tell */
	bool gone;
	struct entry *sibling; /* in the same place of by_producer */
	struct packet_trailer trailer;
	struct chunk_histogram *histogram; /* NULL: not counted */
};

struct sequence_map {
	struct entry **table; /* open addressing, NULL is empty */
	/* The same entries: those of one producer, whatever their writers. */
	struct entry **by_producer;
	size_t mask;          /* of both */
	size_t n;
	uint32_t last_id;
	bool histograms;
	size_t n_histograms;
	size_t n_gone;
	struct entry *last; /* the newest hit: packets come in runs */
	/* Writers that are no more: a ring, once it has its full size. */
	struct packet_writer_stats *past;
	size_t n_past;
	size_t past_cap;
	size_t next_past;
};

static uint64_t
hash(uint64_t producer, uint32_t writer)
{
	uint64_t h = producer * 0x9e3779b97f4a7c15ull ^
	    (uint64_t)writer * 0xc2b2ae3d27d4eb4full;

	return h ^ (h >> 29);
}

struct sequence_map *
sequence_map_new(bool histograms)
{
	struct sequence_map *m;

	if ((m = calloc(1, sizeof(*m))) == NULL)
		return NULL;
	m->mask = TABLE_MIN - 1;
	m->table = calloc(TABLE_MIN, sizeof(*m->table));
	m->by_producer = calloc(TABLE_MIN, sizeof(*m->by_producer));
	if (m->table == NULL || m->by_producer == NULL) {
		free(m->table);
		free(m->by_producer);
		free(m);
		return NULL;
	}
	m->last_id = SERVICE_PACKETS_SEQUENCE;
	m->histograms = histograms;
	return m;
}

static void
entry_free(struct entry *e)
{
	if (e == NULL)
		return;
	free(e->histogram);
	free(e);
}

void
sequence_map_free(struct sequence_map *m)
{
	size_t i;

	if (m == NULL)
		return;
	for (i = 0; i <= m->mask; i++)
		entry_free(m->table[i]);
	free(m->table);
	free(m->by_producer);
	free(m->past);
	free(m);
}

static void
place(struct sequence_map *m, struct entry *e)
{
	size_t i = hash(e->producer, e->writer) & m->mask;

	while (m->table[i] != NULL)
		i = (i + 1) & m->mask;
	m->table[i] = e;
	/* Ids of producers are counted up: they need no hash. */
	i = e->producer & m->mask;
	e->sibling = m->by_producer[i];
	m->by_producer[i] = e;
}

/*
 * Empties both tables and gives them room for cap entries; the old one is the
 * caller's then.  NULL: no memory, and nothing has changed.
 */
static struct entry **
begin_again(struct sequence_map *m, size_t cap)
{
	struct entry **old = m->table;
	struct entry **table = calloc(cap, sizeof(*table));
	struct entry **by_producer = calloc(cap, sizeof(*by_producer));

	if (table == NULL || by_producer == NULL) {
		free(table);
		free(by_producer);
		return NULL;
	}
	free(m->by_producer);
	m->table = table;
	m->by_producer = by_producer;
	m->mask = cap - 1;
	return old;
}

/* Rebuilds with room for n entries; the old table stays on failure. */
static int
rebuild(struct sequence_map *m, size_t cap)
{
	size_t old_mask = m->mask, i;
	struct entry **old;

	if ((old = begin_again(m, cap)) == NULL)
		return -1;
	for (i = 0; i <= old_mask; i++)
		if (old[i] != NULL)
			place(m, old[i]);
	free(old);
	return 0;
}

static struct entry *
find(struct sequence_map *m, const struct tb_origin *o)
{
	struct entry *e = m->last;
	size_t i;

	if (e != NULL && e->producer == o->producer && e->writer == o->writer)
		return e;
	i = hash(o->producer, o->writer) & m->mask;
	while ((e = m->table[i]) != NULL) {
		if (e->producer == o->producer && e->writer == o->writer)
			return m->last = e;
		i = (i + 1) & m->mask;
	}
	return NULL;
}

static void
say_who(struct entry *e, const struct tb_origin *o)
{
	e->machine = o->machine;
	e->uid = o->uid;
	e->pid = o->pid;
}

static struct entry *
get(struct sequence_map *m, const struct tb_origin *o)
{
	struct entry *e = find(m, o);

	if (e != NULL)
		return e;
	if ((m->n + 1) * 10 > (m->mask + 1) * 7 &&
	    rebuild(m, (m->mask + 1) * 2) != 0)
		return NULL;
	if ((e = calloc(1, sizeof(*e))) == NULL)
		return NULL;
	e->producer = o->producer;
	e->writer = o->writer;
	say_who(e, o);
	place(m, e);
	m->n++;
	return m->last = e;
}

static struct entry *
with_id(struct sequence_map *m, struct entry *e)
{
	if (e != NULL && e->id == 0) {
		e->id = ++m->last_id;
		packet_trailer_init(&e->trailer, e->uid, e->pid, e->id,
		    e->machine);
	}
	return e;
}

/* The entry with an id; NULL: no memory. */
static struct entry *
get_with_id(struct sequence_map *m, const struct tb_origin *o)
{
	struct entry *e = get(m, o);

	if (e != NULL && e->id == 0)
		say_who(e, o);
	return with_id(m, e);
}

const struct packet_trailer *
sequence_map_trailer(struct sequence_map *m, const struct tb_origin *o,
    uint32_t *loss)
{
	struct entry *e = get_with_id(m, o);

	if (e == NULL)
		return NULL;
	*loss |= e->loss;
	e->loss = 0;
	return &e->trailer;
}

void
sequence_map_dropped(struct sequence_map *m, const struct tb_origin *o,
    uint32_t loss)
{
	struct entry *e = get(m, o);

	if (e != NULL)
		e->loss |= loss;
}

uint32_t
sequence_map_id(struct sequence_map *m, const struct tb_origin *o)
{
	const struct entry *e = get_with_id(m, o);

	return e != NULL ? e->id : 0;
}

uint32_t
sequence_map_find_id(struct sequence_map *m, uint64_t producer,
    uint32_t writer)
{
	struct tb_origin o = { .producer = producer, .writer = writer };
	const struct entry *e = with_id(m, find(m, &o));

	return e != NULL ? e->id : 0;
}

void
sequence_map_count_chunk(struct sequence_map *m, const struct tb_origin *o,
    uint32_t buffer, size_t payload)
{
	struct entry *e;

	if ((e = get(m, o)) == NULL)
		return;
	e->buffer = buffer;
	if (!m->histograms)
		return;
	if (e->histogram == NULL) {
		if (m->n_histograms >= HISTOGRAMS_MAX ||
		    (e->histogram = calloc(1, sizeof(*e->histogram))) == NULL)
			return;
		m->n_histograms++;
	}
	chunk_histogram_add(e->histogram, payload);
}

void
sequence_map_producer_gone(struct sequence_map *m, uint64_t producer)
{
	struct entry *e;

	for (e = m->by_producer[producer & m->mask]; e != NULL;
	    e = e->sibling)
		if (e->producer == producer && !e->gone) {
			e->gone = true;
			m->n_gone++;
		}
}

/* What a writer wrote is told until the session ends. */
static void
remember(struct sequence_map *m, const struct entry *e)
{
	struct packet_writer_stats *grown;
	size_t cap = m->past_cap == 0 ? 16 : m->past_cap * 2;

	if (m->n_past == m->past_cap && m->past_cap < PAST_HISTOGRAMS_MAX) {
		if ((grown = realloc(m->past, cap * sizeof(*grown))) == NULL)
			return;
		m->past = grown;
		m->past_cap = cap;
	}
	if (m->n_past < m->past_cap)
		m->next_past = m->n_past++;
	m->past[m->next_past] = (struct packet_writer_stats){
		.sequence = e->id,
		.buffer = e->buffer,
		.histogram = *e->histogram,
	};
	if (++m->next_past >= m->past_cap)
		m->next_past = 0;
}

void
sequence_map_sweep(struct sequence_map *m)
{
	struct entry **old;
	size_t old_mask = m->mask, i;

	if (m->n_gone == 0 ||
	    (old = begin_again(m, old_mask + 1)) == NULL)
		return;
	m->last = NULL;
	for (i = 0; i <= old_mask; i++) {
		struct entry *e = old[i];

		if (e == NULL)
			continue;
		if (!e->gone) {
			place(m, e);
			continue;
		}
		if (e->histogram != NULL) {
			if (e->id != 0)
				remember(m, e);
			m->n_histograms--;
		}
		m->n--;
		entry_free(e);
	}
	m->n_gone = 0;
	free(old);
}

struct sequence_map *
sequence_map_clone(const struct sequence_map *m)
{
	struct sequence_map *c = sequence_map_new(m->histograms);
	size_t i;

	if (c == NULL || rebuild(c, m->mask + 1) != 0)
		goto fail;
	for (i = 0; i <= m->mask; i++) {
		const struct entry *e = m->table[i];
		struct entry *copy;

		if (e == NULL)
			continue;
		if ((copy = malloc(sizeof(*copy))) == NULL)
			goto fail;
		*copy = *e;
		if (e->histogram != NULL) {
			copy->histogram = malloc(sizeof(*e->histogram));
			if (copy->histogram == NULL) {
				free(copy);
				goto fail;
			}
			*copy->histogram = *e->histogram;
		}
		place(c, copy);
	}
	if (m->n_past > 0) {
		c->past = malloc(m->past_cap * sizeof(*c->past));
		if (c->past == NULL)
			goto fail;
		memcpy(c->past, m->past, m->n_past * sizeof(*c->past));
	}
	c->n_past = m->n_past;
	c->past_cap = m->past_cap;
	c->next_past = m->next_past;
	c->n = m->n;
	c->last_id = m->last_id;
	c->n_histograms = m->n_histograms;
	c->n_gone = m->n_gone;
	return c;

fail:
	sequence_map_free(c);
	return NULL;
}

size_t
sequence_map_size(const struct sequence_map *m)
{
	return m->n;
}

size_t
sequence_map_writers(const struct sequence_map *m)
{
	return m->n_histograms + m->n_past;
}

size_t
sequence_map_writer_stats(const struct sequence_map *m,
    struct packet_writer_stats *out, size_t max)
{
	size_t i, n = 0;

	for (i = 0; i <= m->mask && n < max; i++) {
		const struct entry *e = m->table[i];

		if (e == NULL || e->histogram == NULL || e->id == 0)
			continue;
		out[n].sequence = e->id;
		out[n].buffer = e->buffer;
		out[n].histogram = *e->histogram;
		n++;
	}
	for (i = 0; i < m->n_past && n < max; i++)
		out[n++] = m->past[i];
	return n;
}

static struct sequence_writer
writer_of(const struct entry *e)
{
	struct sequence_writer w = {
		.producer = e->producer,
		.sequence = e->id,
		.buffer = e->buffer,
		.machine = e->machine,
		.pid = e->pid,
	};
	size_t i;

	for (i = 0; i < CHUNK_HISTOGRAM_BUCKETS; i++) {
		w.chunks += e->histogram->count[i];
		w.bytes += e->histogram->sum[i];
	}
	return w;
}

size_t
sequence_map_top_writers(const struct sequence_map *m,
    struct sequence_writer *out, size_t max)
{
	struct sequence_writer w;
	size_t i, k, n = 0;

	for (i = 0; i <= m->mask; i++) {
		if (m->table[i] == NULL || m->table[i]->histogram == NULL)
			continue;
		w = writer_of(m->table[i]);
		/* Into its place; the least falls off the end. */
		for (k = n; k > 0 && out[k - 1].bytes < w.bytes; k--)
			if (k < max)
				out[k] = out[k - 1];
		if (k < max)
			out[k] = w;
		if (n < max)
			n++;
	}
	return n;
}

uint32_t
sequence_map_last_id(const struct sequence_map *m)
{
	return m->last_id;
}

size_t
sequence_map_list(const struct sequence_map *m, struct service_sequence *out,
    size_t max)
{
	size_t i, n = 0;

	for (i = 0; i <= m->mask && n < max; i++) {
		const struct entry *e = m->table[i];

		if (e == NULL || e->id == 0)
			continue;
		out[n].buffer = e->buffer;
		out[n].sequence = e->id;
		out[n].producer = (int32_t)e->producer;
		n++;
	}
	return n;
}
