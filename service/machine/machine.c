#include "service/machine/machine.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Ids that are tried for a claim before it is refused. */
#define TRIES_MAX 64u

struct machine_table {
	struct hash_map by_id;
	struct hash_map by_claim;
	struct hash_map accounts; /* shared ones, by owner */
	uint32_t last_account;
	TAILQ_HEAD(, machine) all;  /* oldest first */
	TAILQ_HEAD(, machine) idle; /* without references; longest first */
	struct per_peer_count peers;
	/*
	 * Distance from a taken id to the next that is tried.  Random, as a
	 * peer could else claim all the ids that another machine will try.
	 */
	uint32_t stride;
};

struct machine_table *
machine_table_new(void)
{
	struct machine_table *t;

	if ((t = calloc(1, sizeof(*t))) == NULL)
		return NULL;
	TAILQ_INIT(&t->all);
	TAILQ_INIT(&t->idle);
	if (getrandom(&t->stride, sizeof(t->stride), 0) < 0)
		t->stride = (uint32_t)(uintptr_t)t;
	t->stride |= 1; /* odd: it comes by every id */
	return t;
}

/* Drops clock readings: the machine's next peer may have other clocks. */
static void
forget_clocks(struct machine *m)
{
	size_t i;

	free(m->clock_sync);
	m->clock_sync = NULL;
	m->clock_sync_len = 0;
	free(m->clock_repeat);
	m->clock_repeat = NULL;
	m->clock_repeat_len = 0;
	for (i = 0; i < m->n_past_clocks; i++)
		free(m->past_clocks[i].data);
	m->n_past_clocks = 0;
	m->clock = (struct machine_clock){ .known = false };
}

static void
free_quota(struct machine_account *a)
{
	if (a->quota != NULL)
		a->free_quota(a->quota);
}

void
machine_done(struct machine *m)
{
	free(m->name);
	free(m->system_info);
	forget_clocks(m);
	free(m->owner);
	free_quota(&m->own);
}

/* ---- accounts ---- */

static void
leave_account(struct machine *m)
{
	struct machine_account *a = m->shared;

	if (a == NULL || --a->n_machines > 0)
		return;
	hash_map_remove(&m->table->accounts, &a->by_owner);
	free_quota(a);
	free(a->owner);
	free(a);
}

static uint64_t
hash_text(const char *text)
{
	return hash_bytes(text, strlen(text));
}

/* NULL: no memory. */
static struct machine_account *
add_account(struct machine_table *t, const struct machine_claim *c)
{
	struct machine_account *a;

	if ((a = calloc(1, sizeof(*a))) == NULL)
		return NULL;
	if ((a->owner = strdup(c->owner)) == NULL) {
		free(a);
		return NULL;
	}
	/* Behind all ids of machines, which are the shares of the others. */
	a->share = (UINT64_C(1) << 32) + t->last_account++;
	hash_map_put(&t->accounts, &a->by_owner, hash_text(a->owner));
	return a;
}

static struct machine_account *
find_account(const struct machine_table *t, const char *owner)
{
	struct machine_account *a;

	HASH_MAP_FOREACH_OF(a, &t->accounts, hash_text(owner), by_owner)
		if (strcmp(a->owner, owner) == 0)
			return a;
	return NULL;
}

static int
join_account(struct machine_table *t, struct machine *m,
    const struct machine_claim *c)
{
	struct machine_account *a;

	m->own.share = m->id;
	if (!c->together)
		return 0;
	a = find_account(t, c->owner);
	if (a == NULL && (a = add_account(t, c)) == NULL)
		return -1;
	a->n_machines++;
	m->shared = a;
	return 0;
}

/* ---- the table ---- */

static void
drop(struct machine *m)
{
	struct machine_table *t = m->table;

	hash_map_remove(&t->by_id, &m->by_id);
	hash_map_remove(&t->by_claim, &m->by_claim);
	TAILQ_REMOVE(&t->all, m, all);
	TAILQ_REMOVE(&t->idle, m, idle);
	per_peer_count_give(&t->peers, m->peer, 1);
	leave_account(m);
	machine_done(m);
	free(m);
}

void
machine_table_free(struct machine_table *t)
{
	struct machine *m;

	if (t == NULL)
		return;
	while ((m = TAILQ_FIRST(&t->idle)) != NULL)
		drop(m);
	per_peer_count_done(&t->peers);
	hash_map_done(&t->by_id);
	hash_map_done(&t->by_claim);
	hash_map_done(&t->accounts);
	free(t);
}

size_t
machine_table_ids(const struct machine_table *t, uint32_t *out)
{
	const struct machine *m;
	size_t n = 0;

	TAILQ_FOREACH(m, &t->all, all)
		out[n++] = m->id;
	return n;
}

static uint64_t
larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void
count_backlog(const struct machine *m, struct machine_counts *out)
{
	const struct machine_backlog *b = &m->contact.backlog;

	out->backlog.memory += b->memory;
	out->backlog.memory_limit += b->memory_limit;
	out->backlog.spool += b->spool;
	out->backlog.spool_limit += b->spool_limit;
	out->backlog.oldest_ms = larger(out->backlog.oldest_ms, b->oldest_ms);
	if (m->clock.known)
		out->clock_error_ns = larger(out->clock_error_ns,
		    m->clock.uncertainty_ns);
}

void
machine_table_count(const struct machine_table *t, struct machine_counts *out)
{
	const struct machine *m;

	memset(out, 0, sizeof(*out));
	TAILQ_FOREACH(m, &t->all, all) {
		if (m->contact.cut)
			out->cut++;
		else if (machine_is_connected(m) || m->n_producers > 0)
			out->connected++;
		else
			out->gone++;
		if (m->contact.cut || machine_is_connected(m))
			count_backlog(m, out);
	}
}

struct machine *
machine_find(struct machine_table *t, uint32_t id)
{
	struct machine *m;

	HASH_MAP_FOREACH_OF(m, &t->by_id, hash_number(id), by_id)
		if (m->id == id)
			return m;
	return NULL;
}

static bool
same_owner(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

struct machine *
machine_of_owner(struct machine_table *t, const char *owner)
{
	struct machine *m, *found = NULL;
	bool is_measured, measured = false;
	size_t n = 0;

	TAILQ_FOREACH(m, &t->all, all) {
		is_measured = m->clock_sync != NULL;
		if (m->refs == 0 || !same_owner(m->owner, owner) ||
		    (measured && !is_measured))
			continue;
		n = is_measured && !measured ? 1 : n + 1;
		measured = is_measured;
		found = m;
	}
	return n == 1 ? found : NULL;
}

static struct machine *
find_claimed(struct machine_table *t, const struct machine_claim *c)
{
	struct machine *m;

	HASH_MAP_FOREACH_OF(m, &t->by_claim, hash_number(c->id), by_claim)
		if (m->claimed == c->id && same_owner(m->owner, c->owner))
			return m;
	return NULL;
}

/* The wanted id, or a free one where another machine has that.  0: none. */
static uint32_t
free_id(struct machine_table *t, uint32_t wanted)
{
	uint32_t id = wanted;
	unsigned i;

	for (i = 0; i < TRIES_MAX; i++, id += t->stride)
		if (id != 0 && machine_find(t, id) == NULL)
			return id;
	return 0;
}

/* Makes room for one more machine of this peer.  False: all are in use. */
static bool
make_room(struct machine_table *t, uint64_t peer)
{
	struct machine *m;

	if (per_peer_count_has(&t->peers, peer) >= MACHINES_PER_PEER_MAX) {
		TAILQ_FOREACH(m, &t->idle, idle)
			if (m->peer == peer)
				break;
		if (m == NULL)
			return false;
		drop(m);
	}
	if (t->by_id.n < MACHINES_MAX)
		return true;
	if ((m = TAILQ_FIRST(&t->idle)) == NULL)
		return false;
	drop(m);
	return true;
}

static struct machine *
add(struct machine_table *t, const struct machine_claim *c)
{
	struct machine *m;

	if (!make_room(t, c->peer))
		return NULL;
	if ((m = calloc(1, sizeof(*m))) == NULL)
		return NULL;
	m->table = t;
	if ((m->id = free_id(t, c->id)) == 0 ||
	    machine_rename(m, c->name) != 0 ||
	    (c->owner != NULL && (m->owner = strdup(c->owner)) == NULL) ||
	    join_account(t, m, c) != 0 ||
	    !per_peer_count_take(&t->peers, c->peer, MACHINES_PER_PEER_MAX)) {
		leave_account(m);
		machine_done(m);
		free(m);
		return NULL;
	}
	m->claimed = c->id;
	m->peer = c->peer;
	hash_map_put(&t->by_id, &m->by_id, hash_number(m->id));
	hash_map_put(&t->by_claim, &m->by_claim, hash_number(m->claimed));
	TAILQ_INSERT_TAIL(&t->all, m, all);
	TAILQ_INSERT_TAIL(&t->idle, m, idle);
	return m;
}

struct machine *
machine_claim(struct machine_table *t, const struct machine_claim *c)
{
	struct machine *m;

	if ((m = find_claimed(t, c)) == NULL)
		return add(t, c);
	if (!c->named || (!c->relay && m->contact.n_relays > 0))
		return m;
	return machine_rename(m, c->name) == 0 ? m : NULL;
}

void
machine_ref(struct machine *m)
{
	if (m->table != NULL && m->refs++ == 0)
		TAILQ_REMOVE(&m->table->idle, m, idle);
}

void
machine_unref(struct machine *m)
{
	if (m->table == NULL || --m->refs > 0)
		return;
	forget_clocks(m);
	TAILQ_INSERT_TAIL(&m->table->idle, m, idle);
}

int
machine_rename(struct machine *m, const char *name)
{
	char *copy;

	if (m->name != NULL && strcmp(m->name, name) == 0)
		return 0;
	if ((copy = strndup(name, MACHINE_NAME_MAX)) == NULL)
		return -1;
	free(m->name);
	m->name = copy;
	m->system_info_generation++;
	return 0;
}

/* Replaces *slot by a copy of data. */
static int
replace_bytes(uint8_t **slot, size_t *slot_len, const uint8_t *data,
    size_t len)
{
	uint8_t *copy;

	if (len > MACHINE_INFO_MAX)
		return -1;
	if ((copy = malloc(len == 0 ? 1 : len)) == NULL)
		return -1;
	if (len > 0)
		memcpy(copy, data, len);
	free(*slot);
	*slot = copy;
	*slot_len = len;
	return 0;
}

int
machine_set_system_info(struct machine *m, const uint8_t *data, size_t len)
{
	if (m->system_info != NULL && m->system_info_len == len &&
	    (len == 0 || memcmp(m->system_info, data, len) == 0))
		return 0;
	if (replace_bytes(&m->system_info, &m->system_info_len, data, len) != 0)
		return -1;
	m->system_info_generation++;
	return 0;
}

int
machine_set_clock_sync(struct machine *m, const uint8_t *data, size_t len)
{
	if (replace_bytes(&m->clock_sync, &m->clock_sync_len, data, len) != 0)
		return -1;
	m->clock_sync_generation++;
	return 0;
}

int
machine_set_clock_repeat(struct machine *m, const uint8_t *data, size_t len)
{
	return replace_bytes(&m->clock_repeat, &m->clock_repeat_len, data,
	    len);
}

int
machine_keep_clock_sync(struct machine *m)
{
	struct machine_past_clocks past = { .generation =
		m->clock_sync_generation };

	if (m->clock_sync == NULL)
		return 0;
	if (replace_bytes(&past.data, &past.len, m->clock_sync,
	    m->clock_sync_len) != 0)
		return -1;
	if (m->n_past_clocks == MACHINE_PAST_CLOCKS) {
		free(m->past_clocks[0].data);
		memmove(&m->past_clocks[0], &m->past_clocks[1],
		    (MACHINE_PAST_CLOCKS - 1) * sizeof(past));
		m->n_past_clocks--;
	}
	m->past_clocks[m->n_past_clocks++] = past;
	return 0;
}
