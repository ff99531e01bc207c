/*
 * All links, and those that were: who comes with which link, and what becomes
 * of it.
 */
#include "service/link/link_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "transport/base/log.h"
#include "service/ingest/quota.h"
#include "service/settings/settings.h"

struct links *
links_new(struct service *s)
{
	struct links *t;

	if ((t = calloc(1, sizeof(*t))) == NULL)
		return NULL;
	t->service = s;
	TAILQ_INIT(&t->all);
	TAILQ_INIT(&t->ended);
	TAILQ_INIT(&t->former);
	if (getrandom(t->collector_id, sizeof(t->collector_id), 0) < 0) {
		free(t);
		return NULL;
	}
	return t;
}

static void
forget(struct links *t, struct link_former *f)
{
	TAILQ_REMOVE(&t->former, f, link);
	t->n_former--;
	t->n_former_channels -= f->n_old;
	free(f->old);
	free(f);
}

void
links_free(struct links *t)
{
	struct link_former *f;
	struct link *l;

	if (t == NULL)
		return;
	while ((l = TAILQ_FIRST(&t->all)) != NULL)
		link_end(l, LINK_GRACE_OVER, "the collector is ending");
	while ((l = TAILQ_FIRST(&t->ended)) != NULL)
		link_release(l);
	while ((f = TAILQ_FIRST(&t->former)) != NULL)
		forget(t, f);
	per_peer_count_done(&t->peers);
	per_peer_count_done(&t->memory);
	hash_map_done(&t->by_id);
	hash_map_done(&t->by_relay);
	free(t);
}

const uint8_t *
links_collector_id(const struct links *t)
{
	return t->collector_id;
}

size_t
links_count(const struct links *t)
{
	return t->n;
}

static uint64_t
hash_id(const uint8_t id[LINK_ID_BYTES])
{
	return hash_bytes(id, LINK_ID_BYTES);
}

static struct link *
find(struct links *t, const uint8_t id[LINK_ID_BYTES])
{
	struct link *l;

	HASH_MAP_FOREACH_OF(l, &t->by_id, hash_id(id), by_id)
		if (memcmp(l->id, id, LINK_ID_BYTES) == 0)
			return l;
	return NULL;
}

/* ---- links that were ---- */

/*
 * Whose producers its channels were: the relay may still have to tell what was
 * lost of them.  Without memory, or room, only that is not known.
 */
static void
remember_channels(struct links *t, struct link_former *f, struct link *l)
{
	size_t room = LINK_FORMER_CHANNELS_MAX - t->n_former_channels;

	if (l->n_served == 0 || l->n_served > room)
		return;
	if ((f->old = calloc(l->n_served, sizeof(*f->old))) == NULL)
		return;
	f->n_old = link_channels_list(l, f->old, l->n_served);
	t->n_former_channels += f->n_old;
}

static void
remember(struct links *t, struct link *l, enum link_why why)
{
	struct link_former *f;

	if (t->n_former == LINK_FORMER_MAX)
		forget(t, TAILQ_FIRST(&t->former));
	while (t->n_former_channels + l->n_served > LINK_FORMER_CHANNELS_MAX &&
	    (f = TAILQ_FIRST(&t->former)) != NULL)
		forget(t, f);
	if ((f = calloc(1, sizeof(*f))) == NULL)
		return;
	memcpy(f->id, l->id, sizeof(f->id));
	memcpy(f->relay_id, l->relay_id, sizeof(f->relay_id));
	f->who = l->who;
	f->peer = l->peer;
	f->why = why;
	f->taken = l->in.received;
	remember_channels(t, f, l);
	TAILQ_INSERT_TAIL(&t->former, f, link);
	t->n_former++;
}

void
link_table_remove(struct link *l, enum link_why why)
{
	struct links *t = l->table;

	remember(t, l, why);
	hash_map_remove(&t->by_id, &l->by_id);
	hash_map_remove(&t->by_relay, &l->by_relay);
	TAILQ_REMOVE(&t->all, l, all);
	TAILQ_INSERT_TAIL(&t->ended, l, all);
	t->n--;
	per_peer_count_give(&t->peers, l->peer, 1);
}

static bool
is_whose(const struct link_former *f, const struct link_request *q)
{
	return f->peer == q->peer && principal_equal(&f->who, &q->who);
}

static struct link_former *
find_former(struct links *t, const struct link_request *q)
{
	struct link_former *f;

	TAILQ_FOREACH_REVERSE(f, &t->former, link_former_list, link)
		if (memcmp(f->id, q->link_id, LINK_ID_BYTES) == 0 &&
		    is_whose(f, q))
			return f;
	return NULL;
}

/* The newest link that the relay had before this one. */
static struct link_former *
find_before(struct links *t, const struct link_request *q)
{
	struct link_former *f;

	TAILQ_FOREACH_REVERSE(f, &t->former, link_former_list, link)
		if (memcmp(f->relay_id, q->relay_id, LINK_ID_BYTES) == 0 &&
		    is_whose(f, q))
			return f;
	return NULL;
}

static enum link_why
why_anew(struct links *t, const struct link_request *q, uint64_t *taken_before)
{
	const struct link_former *f;

	*taken_before = 0;
	if (!q->knows_collector)
		return LINK_NEW;
	if (memcmp(q->collector_id, t->collector_id, LINK_ID_BYTES) != 0)
		return LINK_COLLECTOR_RESTARTED;
	if ((f = find_former(t, q)) != NULL) {
		*taken_before = f->taken;
		return f->why;
	}
	return LINK_GRACE_OVER; /* so long ago that it is forgotten */
}

/* ---- links that are ---- */

static bool
is_same_relay(const struct link *l, const struct link_request *q)
{
	return memcmp(l->relay_id, q->relay_id, LINK_ID_BYTES) == 0 &&
	    l->machine == q->machine && l->peer == q->peer &&
	    principal_equal(&l->who, &q->who);
}

bool
link_table_has_newer(const struct link *l)
{
	const struct links *t = l->table;
	const struct link *other;

	HASH_MAP_FOREACH_OF(other, &t->by_relay, hash_id(l->relay_id), by_relay)
		if (other != l && other->ops != NULL &&
		    memcmp(other->relay_id, l->relay_id, LINK_ID_BYTES) == 0 &&
		    other->machine == l->machine && other->peer == l->peer &&
		    principal_equal(&other->who, &l->who))
			return true;
	return false;
}

static struct link *
find_older(const struct links *t, const struct link_request *q)
{
	struct link *l;

	HASH_MAP_FOREACH_OF(l, &t->by_relay, hash_id(q->relay_id), by_relay)
		if (l->ops == NULL && is_same_relay(l, q))
			return l;
	return NULL;
}

/* A relay that begins anew does not come back for what it had before. */
static void
end_older(const struct links *t, const struct link_request *q)
{
	struct link *l;

	while ((l = find_older(t, q)) != NULL)
		link_end(l, LINK_GRACE_OVER, "its relay began anew");
}

enum judgement {
	LINK_RESUMES,
	LINK_BEGINS_AGAIN, /* as it did: the answer did not arrive */
	LINK_IS_ANOTHERS,  /* the relay's, of this id: ended, and begun anew */
	LINK_OPEN_IS_LATE,
};

/*
 * An Open may be late, its relay connected anew long ago: it must not end what
 * goes on, nor resume a link by the numbers of the one before, which had the
 * same id.  Before anything is heard on a link its relay may not know of it.
 */
static enum judgement
judge(struct link *l, const struct link_request *q)
{
	const struct links *t = l->table;
	bool knows_us = q->knows_collector &&
	    memcmp(q->collector_id, t->collector_id, LINK_ID_BYTES) == 0;

	if (l->machine != q->machine ||
	    memcmp(l->relay_id, q->relay_id, LINK_ID_BYTES) != 0)
		return LINK_IS_ANOTHERS;
	if (!l->heard && (!knows_us || l->why == LINK_GRACE_OVER ||
	    l->why == LINK_GIVEN_UP))
		return LINK_BEGINS_AGAIN;
	if (!knows_us || q->last_sent < l->in.received ||
	    q->last_acknowledged > l->in.received ||
	    link_out_resume(l->out, q->received) != 0)
		return LINK_OPEN_IS_LATE;
	return LINK_RESUMES;
}

/* Takes over what is known of the channels before. */
static void
take_old(struct links *t, struct link *l, const struct link_request *q)
{
	struct link_former *f = find_before(t, q);

	if (f == NULL)
		return;
	l->old = f->old;
	l->n_old = f->n_old;
	f->old = NULL;
	forget(t, f);
}

/* Connections of the relay that this one replaces: they are half-open. */
static uint32_t
attached(const struct links *t, const struct link_request *q)
{
	const struct link *l;
	uint32_t n = 0;

	HASH_MAP_FOREACH_OF(l, &t->by_relay, hash_id(q->relay_id), by_relay)
		n += l->ops != NULL && is_same_relay(l, q);
	return n;
}

static struct link *
begin_anew(struct links *t, const struct link_request *q, const char **refused)
{
	const struct link_setting *set = &t->service->settings->link;
	struct link *l;

	*refused = "link.max_links is reached";
	if (t->n >= set->max_links)
		return NULL;
	*refused = "too many links of this user, certificate or address: "
	    "link.max_links_per_peer is reached";
	if (!per_peer_count_take(&t->peers, q->peer, set->max_links_per_peer))
		return NULL;
	quota_meet(t->service, q->machine);
	*refused = quota_refuses_connection(q->machine, attached(t, q));
	l = NULL;
	if (*refused == NULL) {
		*refused = "out of memory";
		l = link_new(t, q);
	}
	if (l == NULL) {
		per_peer_count_give(&t->peers, q->peer, 1);
		return NULL;
	}
	hash_map_put(&t->by_id, &l->by_id, hash_id(l->id));
	hash_map_put(&t->by_relay, &l->by_relay, hash_id(l->relay_id));
	TAILQ_INSERT_TAIL(&t->all, l, all);
	t->n++;
	take_old(t, l, q);
	return l;
}

struct link *
link_open(struct links *t, const struct link_request *q,
    const struct link_port_ops *ops, void *port, enum link_why *why,
    const char **refused)
{
	struct link *l = find(t, q->link_id);
	uint64_t taken_before;

	if (l != NULL && (l->peer != q->peer ||
	    !principal_equal(&l->who, &q->who))) {
		*refused = "this link is another peer's";
		return NULL;
	}
	if (l != NULL) {
		switch (judge(l, q)) {
		case LINK_RESUMES:
			*why = LINK_RESUMED;
			link_attach(l, ops, port);
			return l;
		case LINK_BEGINS_AGAIN:
			*why = l->why;
			link_attach(l, ops, port);
			return l;
		case LINK_OPEN_IS_LATE:
			*refused = "this link went on without this connection";
			return NULL;
		case LINK_IS_ANOTHERS:
			link_end(l, LINK_GIVEN_UP, "its relay is another");
			break;
		}
	}
	end_older(t, q);
	*why = why_anew(t, q, &taken_before);
	if ((l = begin_anew(t, q, refused)) == NULL)
		return NULL;
	l->why = *why;
	l->taken_before = taken_before;
	link_attach(l, ops, port);
	return l;
}
