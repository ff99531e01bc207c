#include "service/ingest/session_losses.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "service/model/model.h"
#include "service/packet/sequence_map.h"
#include "transport/base/hash_map.h"
#include "transport/base/log.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/link/link_wire.h"
#include "transport/packet/packet_stats.h"

/* Rows without a sequence come on top: one for each machine and cause. */
#define ROWS_MAX (SESSION_LOSSES_MAX * 2)

struct row {
	struct hash_link by_key;
	TAILQ_ENTRY(row) all;
	struct packet_link_loss loss;
	char *producer; /* loss.producer */
};

struct session_losses {
	struct hash_map by_key;
	TAILQ_HEAD(, row) all; /* oldest first */
};

static struct session_losses *
losses_new(void)
{
	struct session_losses *l = calloc(1, sizeof(*l));

	if (l != NULL)
		TAILQ_INIT(&l->all);
	return l;
}

void
session_losses_free(struct session_losses *l)
{
	struct row *r;

	if (l == NULL)
		return;
	while ((r = TAILQ_FIRST(&l->all)) != NULL) {
		TAILQ_REMOVE(&l->all, r, all);
		free(r->producer);
		free(r);
	}
	hash_map_done(&l->by_key);
	free(l);
}

static uint64_t
hash_row(uint32_t machine, uint32_t sequence, uint32_t cause)
{
	return hash_numbers((uint64_t)machine << 32 | sequence, cause);
}

static struct row *
find(struct session_losses *l, uint32_t machine, uint32_t sequence,
    uint32_t cause)
{
	struct row *r;

	HASH_MAP_FOREACH_OF(r, &l->by_key, hash_row(machine, sequence, cause),
	    by_key)
		if (r->loss.machine == machine &&
		    r->loss.sequence == sequence && r->loss.cause == cause)
			return r;
	return NULL;
}

/* NULL: no memory, or no room. */
static struct row *
get(struct session_losses *l, uint32_t machine, uint32_t sequence,
    const char *producer, uint32_t cause)
{
	struct row *r = find(l, machine, sequence, cause);

	if (r != NULL)
		return r;
	if (l->by_key.n >= (sequence != 0 ? SESSION_LOSSES_MAX : ROWS_MAX))
		return sequence != 0 ? get(l, machine, 0, NULL, cause) : NULL;
	if ((r = calloc(1, sizeof(*r))) == NULL)
		return NULL;
	/* Without memory for the name the row goes without. */
	r->producer = producer != NULL ? strdup(producer) : NULL;
	r->loss.machine = machine;
	r->loss.sequence = sequence;
	r->loss.producer = r->producer;
	r->loss.cause = cause;
	hash_map_put(&l->by_key, &r->by_key,
	    hash_row(machine, sequence, cause));
	TAILQ_INSERT_TAIL(&l->all, r, all);
	return r;
}

static struct row *
get_of(struct session *s, uint32_t machine, uint32_t sequence,
    const char *producer, uint32_t cause)
{
	struct row *r = NULL;

	if (s->losses == NULL)
		s->losses = losses_new();
	if (s->losses != NULL)
		r = get(s->losses, machine, sequence, producer, cause);
	if (r == NULL)
		log_limited(&s->service->memory_log, loop_now_ms(),
		    LOG_LEVEL_ERROR, "session %llu: no memory for a loss of "
		    "machine %u (%s)", (unsigned long long)s->id, machine,
		    link_loss_text(cause));
	return r;
}

void
session_losses_add_to(struct session *s, uint32_t machine, uint32_t sequence,
    const char *producer, const struct link_loss *l)
{
	struct row *r = get_of(s, machine, sequence, producer, l->cause);

	if (r == NULL)
		return;
	r->loss.chunks += l->chunks;
	r->loss.packets += l->packets;
	r->loss.bytes += l->bytes;
}

void
session_losses_add(struct session *s, const struct tb_origin *o,
    const char *producer, const struct link_loss *l)
{
	session_losses_add_to(s, o->machine,
	    sequence_map_id(s->sequences, o), producer, l);
}

bool
session_losses_mark(struct session *s, uint32_t machine, uint32_t cause)
{
	size_t before = session_losses_count(s);

	(void)get_of(s, machine, 0, NULL, cause);
	return session_losses_count(s) != before;
}

int
session_losses_copy(struct session *to, const struct session *from)
{
	const struct row *r;
	struct row *copy;

	if (from->losses == NULL)
		return 0;
	if ((to->losses = losses_new()) == NULL)
		return -1;
	TAILQ_FOREACH(r, &from->losses->all, all) {
		copy = get(to->losses, r->loss.machine, r->loss.sequence,
		    r->producer, r->loss.cause);
		if (copy == NULL)
			return -1;
		copy->loss = r->loss;
		copy->loss.producer = copy->producer;
	}
	return 0;
}

size_t
session_losses_count(const struct session *s)
{
	return s->losses != NULL ? s->losses->by_key.n : 0;
}

size_t
session_losses_list(const struct session *s, struct packet_link_loss *out,
    size_t max)
{
	const struct row *r;
	size_t n = 0;

	if (s->losses == NULL)
		return 0;
	TAILQ_FOREACH(r, &s->losses->all, all)
		if (n < max)
			out[n++] = r->loss;
	return n;
}

size_t
session_losses_by_machine(const struct session *s,
    struct packet_link_loss *out, size_t max)
{
	const struct row *r;
	size_t i, n = 0;

	if (s->losses == NULL)
		return 0;
	TAILQ_FOREACH(r, &s->losses->all, all) {
		for (i = 0; i < n; i++)
			if (out[i].machine == r->loss.machine &&
			    out[i].cause == r->loss.cause)
				break;
		if (i == max)
			continue;
		if (i == n) {
			out[n++] = (struct packet_link_loss){
				.machine = r->loss.machine,
				.cause = r->loss.cause,
			};
		}
		out[i].chunks += r->loss.chunks;
		out[i].packets += r->loss.packets;
		out[i].bytes += r->loss.bytes;
	}
	return n;
}
