/*
 * A link that comes from another collector, or from the one that was here
 * before a restart: its relay tells what its channels are (LinkMove), and goes
 * on with its blocks, which that collector had not acknowledged.
 *
 * Sessions of two collectors are one where their configs are the same and say so:
 * by a trace_uuid, or as a standing recording's.  A data source that runs for a
 * session there goes on for the one here, without a command, but that its
 * incremental state is cleared, as this trace has not seen it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "protos/link.pb-c.h"
#include "service/config/config.h"
#include "service/ingest/former_ids.h"
#include "service/ingest/writers.h"
#include "service/link/link_internal.h"
#include "service/session/instance.h"
#include "service/session/producer.h"

/* Encoded: of many small parts, unpacked ones are far larger. */
struct link_move {
	STAILQ_ENTRY(link_move) next;
	size_t len;
	uint8_t bytes[];
};

struct link_moves {
	struct service *service;
	STAILQ_HEAD(, link_move) all;
	size_t cost;
	size_t charged; /* of it, to service.connection_memory */
};

struct link_moves *
link_moves_new(struct links *t)
{
	struct link_moves *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->service = t->service;
	STAILQ_INIT(&m->all);
	return m;
}

static Tributary__LinkMove *
unpack(const struct link_move *one)
{
	return tributary__link_move__unpack(NULL, one->len, one->bytes);
}

static void
release(Tributary__LinkMove *m)
{
	tributary__link_move__free_unpacked(m, NULL);
}

int
link_moves_add(struct link_moves *m, const uint8_t *move, size_t len)
{
	size_t cost = m->cost + len + LINK_MOVE_COST;
	struct link_move *one;
	Tributary__LinkMove *parsed;

	if (cost > LINK_MOVES_MAX)
		return -1;
	m->cost = cost;
	if (!link_charge_connections(m->service, &m->charged, cost) ||
	    (one = malloc(sizeof(*one) + len)) == NULL)
		return -1;
	one->len = len;
	if (len > 0)
		memcpy(one->bytes, move, len);
	STAILQ_INSERT_TAIL(&m->all, one, next);
	parsed = unpack(one);
	release(parsed);
	return parsed != NULL ? 0 : -1;
}

void
link_moves_free(struct link_moves *m)
{
	struct link_move *one;

	if (m == NULL)
		return;
	while ((one = STAILQ_FIRST(&m->all)) != NULL) {
		STAILQ_REMOVE_HEAD(&m->all, next);
		free(one);
	}
	(void)!link_charge_connections(m->service, &m->charged, 0);
	free(m);
}

/* ---- what is here ---- */

bool
link_session_moves(const struct session *s)
{
	return s->standing || s->config->pb->has_trace_uuid_msb ||
	    s->config->pb->has_trace_uuid_lsb;
}

/*
 * The buffer that takes the place of a former collector's, or NOWHERE.  A relay
 * may name any: p NULL, or the producer that is to write to it.
 */
static uint32_t
own_buffer(const struct service *sv, const struct producer *p,
    const Tributary__LinkMoveBuffer *b)
{
	uint32_t found = FORMER_IDS_NOWHERE;
	const struct session *s;
	enum session_phase phase;

	if (b->session.len != CONFIG_DIGEST_BYTES)
		return FORMER_IDS_NOWHERE;
	TAILQ_FOREACH(s, &sv->sessions, link) {
		phase = session_phase(s->state);
		if ((phase != SESSION_PHASE_STARTED &&
		    phase != SESSION_PHASE_CONFIGURED) ||
		    !link_session_moves(s) || b->index >= s->n_buffers ||
		    memcmp(s->config->digest, b->session.data,
			CONFIG_DIGEST_BYTES) != 0 ||
		    (p != NULL && !instance_may_write(s, b->index, p)))
			continue;
		found = s->buffers[b->index].id;
		if (phase == SESSION_PHASE_STARTED)
			break;
	}
	return found;
}

bool
link_moves_fit(struct links *t, const struct link_moves *m)
{
	const struct link_move *one;
	Tributary__LinkMove *move;
	bool fits = false;
	size_t n;

	STAILQ_FOREACH(one, &m->all, next) {
		if (fits || (move = unpack(one)) == NULL)
			break;
		for (n = 0; n < move->n_buffer && !fits; n++)
			fits = own_buffer(t->service, NULL, move->buffer[n]) !=
			    FORMER_IDS_NOWHERE;
		release(move);
	}
	return fits;
}

/* ---- making the channels ---- */

static const char no_memory[] = "out of memory, or more buffers and data "
    "sources of a producer than there can be";

/* Takes what must be known before the producer's data sources are. */
static const char *
take_ids(struct producer *p, const Tributary__LinkMove *m)
{
	const Tributary__LinkMoveInstance *i;
	uint32_t own;
	size_t n;

	for (n = 0; n < m->n_buffer; n++) {
		own = own_buffer(p->service, p, m->buffer[n]);
		if ((own != FORMER_IDS_NOWHERE &&
		    writers_allow(p, (uint16_t)own) != 0) ||
		    former_ids_add_buffer(p, m->buffer[n]->id, own) != 0)
			return no_memory;
	}
	for (n = 0; n < m->n_register_writer; n++)
		writers_register(p, m->register_writer[n]->writer,
		    m->register_writer[n]->buffer);
	for (n = 0; n < m->n_part; n++)
		if (former_ids_add_part(p, m->part[n]->writer,
		    m->part[n]->chunk, m->part[n]->bytes) != 0)
			return no_memory;
	for (n = 0; n < m->n_instance; n++) {
		i = m->instance[n];
		if (former_ids_add_instance(p, &(struct former_instance){
		    .id = i->id, .buffer = i->buffer, .source = i->source,
		    .runs = i->runs, .acked = i->started }) != 0)
			return no_memory;
	}
	return NULL;
}

static const char *
take_one(struct link *l, const Tributary__LinkMove *m)
{
	struct link_channel *c = link_channel_find(l, m->channel);
	const char *why = NULL;

	if (c == NULL)
		c = link_channel_open(l, m->channel, m->producer.data,
		    m->producer.len, &why);
	if (c == NULL)
		return why;
	c->moved = true;
	c->consumed = m->consumed;
	if (c->producer == NULL || l->doomed != NULL)
		return l->doomed; /* refused, or channel 0 */
	return take_ids(c->producer, m);
}

static const char *
register_sources(struct link *l, const Tributary__LinkMove *m)
{
	struct link_channel *c = link_channel_find(l, m->channel);
	size_t n;

	for (n = 0; c->producer != NULL && n < m->n_register_source; n++)
		link_register_source(c, m->register_source[n].data,
		    m->register_source[n].len);
	return NULL;
}

/* Until one says why the link cannot be. */
static const char *
each_move(struct link *l, const struct link_moves *all,
    const char *(*fn)(struct link *l, const Tributary__LinkMove *m))
{
	const struct link_move *one;
	const char *why = NULL;
	Tributary__LinkMove *m;

	STAILQ_FOREACH(one, &all->all, next) {
		if ((m = unpack(one)) == NULL)
			return no_memory;
		why = fn(l, m);
		release(m);
		if (why != NULL)
			break;
	}
	return why;
}

/* Ends what no session has taken, and makes the rest fit to be read here. */
static void
settle(struct producer *p)
{
	struct session *s;
	struct former_instance left;

	while (former_ids_take_left(p, &left))
		p->ops->stop_data_source(p->port, left.id);
	TAILQ_FOREACH(s, &p->service->sessions, link)
		instance_clear_state(s, p);
}

const char *
link_moves_apply(struct link *l, const struct link_request *q)
{
	const struct link_channel *c;
	struct hash_cursor at;
	const char *why;

	l->buffer_tag = q->buffer_tag;
	l->in.received = l->in.told = q->last_acknowledged;
	l->taken = l->consumed = l->consumed_told = q->consumed_in_all;
	if ((why = each_move(l, q->moves, take_one)) != NULL ||
	    (why = each_move(l, q->moves, register_sources)) != NULL)
		return why;
	HASH_MAP_FOREACH(c, &l->channels, &at, by_number)
		if (c->producer != NULL)
			settle(c->producer);
	return l->doomed;
}
