#include "service/front/peer_limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "service/settings/settings.h"
#include "transport/base/failure.h"
#include "transport/base/hash_map.h"
#include "transport/socket/peer.h"
#include "transport/tls/tls.h"

/* The identity of a peer: the first field that auth gives a meaning. */
struct peer_key {
	enum peer_auth auth;
	uint64_t number; /* PEER_UNIX: the uid; PEER_NOBODY: of its address */
	char name[sizeof(((struct tls_identity *)NULL)->name)]; /* PEER_CERT */
};

struct peer_entry {
	struct hash_link by_key;
	struct peer_key key;
	size_t connections; /* handshakes included; at 0 it is freed */
	size_t handshakes;
	struct budget budget;
};

struct peer_share {
	struct peer_limits *table;
	struct peer_entry *entry;
	void *owner;
	bool handshake;
	TAILQ_ENTRY(peer_share) link; /* while it has a handshake */
};

struct peer_limits {
	const struct limits *limits; /* borrowed */
	struct hash_map entries;
	struct budget of_all;
	struct peer_limits_counts counts; /* `peers` is not kept here */
	TAILQ_HEAD(, peer_share) handshakes; /* oldest first */
	void (*crowded_out)(void *owner, const char *why);
};

/* ---- keys ---- */

static void
key_of(struct peer_key *k, const struct peer *p)
{
	memset(k, 0, sizeof(*k));
	k->auth = p->auth;
	switch (p->auth) {
	case PEER_UNIX:
		k->number = p->uid;
		return;
	case PEER_CERT:
		snprintf(k->name, sizeof(k->name), "%s", p->cert->name);
		return;
	case PEER_NOBODY:
		k->number = p->net_hash;
		return;
	}
}

/* Counts a connection for its address, until its peer is known. */
static void
key_of_address(struct peer_key *k, const struct peer *p)
{
	memset(k, 0, sizeof(*k));
	k->auth = PEER_NOBODY;
	k->number = p->net_hash;
}

static uint64_t
hash_key(const struct peer_key *k)
{
	return k->auth == PEER_CERT ? hash_bytes(k->name, strlen(k->name)) :
	    hash_numbers((uint64_t)k->auth, k->number);
}

static bool
key_equal(const struct peer_key *a, const struct peer_key *b)
{
	return a->auth == b->auth && a->number == b->number &&
	    strcmp(a->name, b->name) == 0;
}

/* ---- the table ---- */

/* The entry of a key, made where there is none; the caller counts in it. */
static struct peer_entry *
entry_get(struct peer_limits *t, const struct peer_key *k)
{
	uint64_t hash = hash_key(k);
	struct peer_entry *e;

	HASH_MAP_FOREACH_OF(e, &t->entries, hash, by_key)
		if (key_equal(&e->key, k))
			return e;
	if ((e = calloc(1, sizeof(*e))) == NULL)
		return NULL;
	e->key = *k;
	e->budget.memory_max = (size_t)
	    t->limits->max_connection_memory_per_peer_kb * 1024;
	e->budget.bytes_per_second =
	    t->limits->max_input_kb_per_s_per_peer * 1024;
	hash_map_put(&t->entries, &e->by_key, hash);
	return e;
}

static void
entry_drop_unused(struct peer_limits *t, struct peer_entry *e)
{
	if (e->connections > 0)
		return;
	hash_map_remove(&t->entries, &e->by_key);
	free(e);
}

struct peer_limits *
peer_limits_new(const struct limits *limits,
    void (*crowded_out)(void *owner, const char *why))
{
	struct peer_limits *t;

	if ((t = calloc(1, sizeof(*t))) == NULL)
		return NULL;
	t->limits = limits;
	t->crowded_out = crowded_out;
	TAILQ_INIT(&t->handshakes);
	t->of_all.memory_max = (size_t)limits->max_connection_memory_kb * 1024;
	t->of_all.bytes_per_second = limits->max_input_kb_per_s * 1024;
	return t;
}

void
peer_limits_free(struct peer_limits *t)
{
	struct hash_cursor at;
	struct peer_entry *e;

	if (t == NULL)
		return;
	HASH_MAP_FOREACH(e, &t->entries, &at, by_key)
		free(e);
	hash_map_done(&t->entries);
	free(t);
}

/* ---- limits ---- */

static bool
may_add(struct peer_limits *t, const struct peer_entry *e, char *why,
    size_t why_size)
{
	if (e->connections < t->limits->max_connections_per_peer)
		return true;
	snprintf(why, why_size, "no more than %u connections of one peer may "
	    "be open (limits.max_connections_per_peer)",
	    t->limits->max_connections_per_peer);
	return false;
}

static bool
may_add_handshake(struct peer_limits *t, const struct peer_entry *e, char *why,
    size_t why_size)
{
	if (e->handshakes < t->limits->max_handshakes_per_peer)
		return true;
	snprintf(why, why_size, "no more than %u TLS handshakes of one "
	    "address may be in progress (limits.max_handshakes_per_peer)",
	    t->limits->max_handshakes_per_peer);
	return false;
}

static void
begin_handshake(struct peer_share *s)
{
	s->handshake = true;
	s->entry->handshakes++;
	s->table->counts.handshakes++;
	TAILQ_INSERT_TAIL(&s->table->handshakes, s, link);
}

static void
end_handshake(struct peer_share *s)
{
	if (!s->handshake)
		return;
	s->handshake = false;
	s->entry->handshakes--;
	s->table->counts.handshakes--;
	TAILQ_REMOVE(&s->table->handshakes, s, link);
}

/* The oldest handshake of the peer that has most of them. */
static struct peer_share *
find_crowding(const struct peer_limits *t)
{
	struct peer_share *s, *most = TAILQ_FIRST(&t->handshakes);

	TAILQ_FOREACH(s, &t->handshakes, link) {
		if (s->entry->handshakes > most->entry->handshakes)
			most = s;
		/* A peer with half of all handshakes has the most. */
		if (most->entry->handshakes * 2 >= t->counts.handshakes)
			break;
	}
	return most;
}

static void
make_room(struct peer_limits *t)
{
	struct peer_share *s;
	char why[160];

	if (t->counts.handshakes < t->limits->max_handshakes)
		return;
	s = find_crowding(t);
	end_handshake(s);
	t->counts.crowded_out++;
	snprintf(why, sizeof(why), "its TLS handshake made room for another: "
	    "no more than %u may be in progress (limits.max_handshakes), and "
	    "no address has more of them", t->limits->max_handshakes);
	t->crowded_out(s->owner, why);
}

struct peer_share *
peer_limits_enter(struct peer_limits *t, const struct peer *p, bool handshake,
    char *why, size_t why_size)
{
	struct peer_share *s;
	struct peer_key key;

	if (t->counts.connections >= t->limits->max_connections) {
		snprintf(why, why_size, "no more than %u connections may be "
		    "open (limits.max_connections)",
		    t->limits->max_connections);
		return NULL;
	}
	snprintf(why, why_size, "the collector is out of memory");
	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	if (handshake)
		key_of_address(&key, p);
	else
		key_of(&key, p);
	if ((s->entry = entry_get(t, &key)) == NULL)
		goto fail;
	if (!may_add(t, s->entry, why, why_size))
		goto fail;
	if (handshake && !may_add_handshake(t, s->entry, why, why_size))
		goto fail;
	s->table = t;
	s->entry->connections++;
	t->counts.connections++;
	if (handshake) {
		make_room(t);
		begin_handshake(s);
	}
	return s;

fail:
	if (s->entry != NULL)
		entry_drop_unused(t, s->entry);
	free(s);
	return NULL;
}

void
peer_limits_set_owner(struct peer_share *s, void *owner)
{
	s->owner = owner;
}

int
peer_limits_opened(struct peer_share *s, const struct peer *p, char *why,
    size_t why_size)
{
	struct peer_limits *t = s->table;
	struct peer_entry *before = s->entry, *e;
	struct peer_key key;

	end_handshake(s);
	key_of(&key, p);
	if ((e = entry_get(t, &key)) == NULL)
		return FAILURE(why, why_size, "the collector is out of memory");
	if (e == before)
		return 0;
	if (!may_add(t, e, why, why_size)) {
		entry_drop_unused(t, e);
		return -1;
	}
	e->connections++;
	s->entry = e;
	before->connections--;
	entry_drop_unused(t, before);
	return 0;
}

void
peer_limits_leave(struct peer_share *s)
{
	if (s == NULL)
		return;
	end_handshake(s);
	s->table->counts.connections--;
	s->entry->connections--;
	entry_drop_unused(s->table, s->entry);
	free(s);
}

/* ---- the rest ---- */

struct budget *
peer_limits_budget_of(struct peer_share *s)
{
	return &s->entry->budget;
}

struct budget *
peer_limits_budget_of_all(struct peer_limits *t)
{
	return &t->of_all;
}

void
peer_limits_counts(const struct peer_limits *t, struct peer_limits_counts *out)
{
	*out = t->counts;
	out->peers = t->entries.n;
}
