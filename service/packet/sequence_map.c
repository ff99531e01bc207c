#include "service/packet/sequence_map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "transport/base/compiler.h"
#include "transport/base/hash_map.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/packet/packet_parts.h"
#include "transport/packet/packet_stats.h"
#include "transport/packet/service_packets.h"

/*
 * Most writers with a histogram.  Histograms help people to size buffers; for
 * more writers they would cost more memory than the answer is worth.
 */
#define HISTOGRAMS_MAX 1024u
/* Most histograms kept of dropped writers; the oldest give way. */
#define PAST_HISTOGRAMS_MAX 1024u

/* Fields that are read for each packet come first, in two cache lines. */
struct entry {
	struct hash_link by_writer;
	uint64_t producer;
	uint32_t writer;
	uint32_t id;     /* 0: no packet yet */
	uint32_t loss;   /* to be reported by its next packet */
	struct packet_trailer trailer;
	uint32_t buffer; /* of the config */
	uint32_t machine;
	int32_t uid, pid;
	bool gone;
	struct chunk_histogram *histogram; /* NULL: not counted */
	struct hash_link by_producer;
	TAILQ_ENTRY(entry) all;
};

struct sequence_map {
	struct hash_map by_writer;   /* of a producer */
	struct hash_map by_producer; /* the same entries */
	TAILQ_HEAD(, entry) all;     /* the same, oldest first */
	uint32_t last_id;
	bool histograms;
	size_t n_histograms;
	size_t n_gone;
	struct entry *last; /* the newest hit: packets come in runs */
	/* Histograms of dropped writers: a circular array when full. */
	struct packet_writer_stats *past;
	size_t n_past;
	size_t past_cap;
	size_t next_past;
};

struct sequence_map *
sequence_map_new(bool histograms)
{
	struct sequence_map *m;

	if ((m = calloc(1, sizeof(*m))) == NULL)
		return NULL;
	TAILQ_INIT(&m->all);
	m->last_id = SERVICE_PACKETS_SEQUENCE;
	m->histograms = histograms;
	return m;
}

static void
entry_free(struct sequence_map *m, struct entry *e)
{
	hash_map_remove(&m->by_writer, &e->by_writer);
	hash_map_remove(&m->by_producer, &e->by_producer);
	TAILQ_REMOVE(&m->all, e, all);
	free(e->histogram);
	free(e);
}

void
sequence_map_free(struct sequence_map *m)
{
	struct entry *e;

	if (m == NULL)
		return;
	while ((e = TAILQ_FIRST(&m->all)) != NULL)
		entry_free(m, e);
	hash_map_done(&m->by_writer);
	hash_map_done(&m->by_producer);
	free(m->past);
	free(m);
}

static void
place(struct sequence_map *m, struct entry *e)
{
	hash_map_put(&m->by_writer, &e->by_writer,
	    hash_numbers(e->producer, e->writer));
	hash_map_put(&m->by_producer, &e->by_producer,
	    hash_number(e->producer));
	TAILQ_INSERT_TAIL(&m->all, e, all);
}

static struct entry *
find(struct sequence_map *m, const struct tb_origin *o)
{
	struct entry *e = m->last;

	if (LIKELY(e != NULL && e->producer == o->producer &&
	    e->writer == o->writer))
		return e;
	HASH_MAP_FOREACH_OF(e, &m->by_writer,
	    hash_numbers(o->producer, o->writer), by_writer)
		if (e->producer == o->producer && e->writer == o->writer)
			return m->last = e;
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
	if ((e = calloc(1, sizeof(*e))) == NULL)
		return NULL;
	e->producer = o->producer;
	e->writer = o->writer;
	say_who(e, o);
	place(m, e);
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

size_t
sequence_map_number(struct sequence_map *m, uint64_t producer)
{
	struct entry *e;
	size_t n = 0;

	HASH_MAP_FOREACH_OF(e, &m->by_producer, hash_number(producer),
	    by_producer)
		if (e->producer == producer) {
			(void)with_id(m, e);
			n++;
		}
	return n;
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

	HASH_MAP_FOREACH_OF(e, &m->by_producer, hash_number(producer),
	    by_producer)
		if (e->producer == producer && !e->gone) {
			e->gone = true;
			m->n_gone++;
		}
}

/* Keeps the histogram of a writer that is dropped, until the session ends. */
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
	struct entry *e, *next;

	if (m->n_gone == 0)
		return;
	m->last = NULL;
	for (e = TAILQ_FIRST(&m->all); e != NULL; e = next) {
		next = TAILQ_NEXT(e, all);
		if (!e->gone)
			continue;
		if (e->histogram != NULL) {
			if (e->id != 0)
				remember(m, e);
			m->n_histograms--;
		}
		entry_free(m, e);
	}
	m->n_gone = 0;
}

struct sequence_map *
sequence_map_clone(const struct sequence_map *m)
{
	struct sequence_map *c = sequence_map_new(m->histograms);
	const struct entry *e;
	struct entry *copy;

	if (c == NULL)
		goto fail;
	TAILQ_FOREACH(e, &m->all, all) {
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
	return m->by_writer.n;
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
	const struct entry *e;
	size_t i, n = 0;

	TAILQ_FOREACH(e, &m->all, all) {
		if (n >= max || e->histogram == NULL || e->id == 0)
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
	const struct entry *e;
	struct sequence_writer w;
	size_t k, n = 0;

	TAILQ_FOREACH(e, &m->all, all) {
		if (e->histogram == NULL)
			continue;
		w = writer_of(e);
		/* An insertion sort; the least falls off the end. */
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
	const struct entry *e;
	size_t n = 0;

	TAILQ_FOREACH(e, &m->all, all) {
		if (n >= max || e->id == 0)
			continue;
		out[n].buffer = e->buffer;
		out[n].sequence = e->id;
		out[n].producer = (int32_t)e->producer;
		n++;
	}
	return n;
}
