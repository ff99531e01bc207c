/*
 * The table of links, and the memory of links that ended (link_former).
 * link_open.c decides which link a LinkOpen resumes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "service/link/link_internal.h"

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
link_table_free(struct links *t)
{
	struct link_former *f;

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

void
links_count(const struct links *t, struct links_counts *out)
{
	const struct link *l;

	memset(out, 0, sizeof(*out));
	memcpy(out->opened, t->opened, sizeof(out->opened));
	TAILQ_FOREACH(l, &t->all, all)
		*(l->ops != NULL ? &out->connected : &out->cut) += 1;
}

/* ---- links that are ---- */

static uint64_t
hash_id(const uint8_t id[LINK_ID_BYTES])
{
	return hash_bytes(id, LINK_ID_BYTES);
}

struct link *
link_table_find(struct links *t, const uint8_t id[LINK_ID_BYTES])
{
	struct link *l;

	HASH_MAP_FOREACH_OF(l, &t->by_id, hash_id(id), by_id)
		if (memcmp(l->id, id, LINK_ID_BYTES) == 0)
			return l;
	return NULL;
}

void
link_table_add(struct link *l)
{
	struct links *t = l->table;

	hash_map_put(&t->by_id, &l->by_id, hash_id(l->id));
	hash_map_put(&t->by_relay, &l->by_relay, hash_id(l->relay_id));
	TAILQ_INSERT_TAIL(&t->all, l, all);
	t->n++;
}

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

struct link *
link_table_find_cut(const struct links *t, const struct link_request *q)
{
	struct link *l;

	HASH_MAP_FOREACH_OF(l, &t->by_relay, hash_id(q->relay_id), by_relay)
		if (l->ops == NULL && is_same_relay(l, q))
			return l;
	return NULL;
}

uint32_t
link_table_attached(const struct links *t, const struct link_request *q)
{
	const struct link *l;
	uint32_t n = 0;

	HASH_MAP_FOREACH_OF(l, &t->by_relay, hash_id(q->relay_id), by_relay)
		n += l->ops != NULL && is_same_relay(l, q);
	return n;
}

/* ---- links that were ---- */

/*
 * Remembers the producer id of each channel, as the relay may still report
 * losses of them.  Without memory or room, such losses are only
 * counted for the machine.
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

enum link_why
link_table_why_anew(struct links *t, const struct link_request *q,
    uint64_t *taken_before)
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

void
link_table_take_old(struct link *l, const struct link_request *q)
{
	struct links *t = l->table;
	struct link_former *f = find_before(t, q);

	if (f == NULL)
		return;
	l->old = f->old;
	l->n_old = f->n_old;
	f->old = NULL;
	forget(t, f);
}
