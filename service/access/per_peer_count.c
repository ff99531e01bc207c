#include "service/access/per_peer_count.h"

#include <stdlib.h>

struct peer_count {
	struct hash_link by_key;
	uint64_t key;
	uint32_t n; /* never 0 */
};

static struct peer_count *
find(const struct per_peer_count *q, uint64_t key)
{
	struct peer_count *c;

	HASH_MAP_FOREACH_OF(c, &q->peers, hash_number(key), by_key)
		if (c->key == key)
			return c;
	return NULL;
}

bool
per_peer_count_take(struct per_peer_count *q, uint64_t key, uint32_t most)
{
	return per_peer_count_take_n(q, key, 1, most);
}

bool
per_peer_count_take_n(struct per_peer_count *q, uint64_t key, uint32_t n,
    uint32_t most)
{
	struct peer_count *c;

	if (n == 0)
		return true;
	if (n > most)
		return false;
	if ((c = find(q, key)) == NULL) {
		if ((c = calloc(1, sizeof(*c))) == NULL)
			return false;
		c->key = key;
		hash_map_put(&q->peers, &c->by_key, hash_number(key));
	} else if (c->n > most - n) {
		return false;
	}
	c->n += n;
	return true;
}

static void
forget(struct per_peer_count *q, struct peer_count *c)
{
	hash_map_remove(&q->peers, &c->by_key);
	free(c);
}

void
per_peer_count_give(struct per_peer_count *q, uint64_t key, uint32_t n)
{
	struct peer_count *c = find(q, key);

	if (c == NULL)
		return;
	if (c->n > n)
		c->n -= n;
	else
		forget(q, c);
}

uint32_t
per_peer_count_has(const struct per_peer_count *q, uint64_t key)
{
	const struct peer_count *c = find(q, key);

	return c != NULL ? c->n : 0;
}

void
per_peer_count_done(struct per_peer_count *q)
{
	struct hash_cursor at;
	struct peer_count *c;

	HASH_MAP_FOREACH(c, &q->peers, &at, by_key)
		forget(q, c);
	hash_map_done(&q->peers);
}
