#include "service/access/per_peer_count.h"

#include <stdlib.h>

#define CHAINS_FIRST 16u

struct peer_count {
	struct peer_count *next;
	uint64_t key;
	uint32_t n; /* never 0 */
};

/* Where the peer's count hangs, or would. */
static struct peer_count **
find(const struct per_peer_count *q, uint64_t key)
{
	struct peer_count **at = &q->chains[key % q->n_chains];

	while (*at != NULL && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

/* One chain a peer: they stay short.  -1: no memory. */
static int
grow(struct per_peer_count *q)
{
	size_t i, n = q->n_chains == 0 ? CHAINS_FIRST : q->n_chains * 2;
	struct per_peer_count bigger = { .n_chains = n, .n = q->n };
	struct peer_count *c, **at;

	if ((bigger.chains = calloc(n, sizeof(struct peer_count *))) == NULL)
		return -1;
	for (i = 0; i < q->n_chains; i++)
		while ((c = q->chains[i]) != NULL) {
			q->chains[i] = c->next;
			at = find(&bigger, c->key);
			c->next = NULL;
			*at = c;
		}
	free(q->chains);
	*q = bigger;
	return 0;
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
	struct peer_count **at;

	if (n == 0)
		return true;
	if (n > most)
		return false;
	if (q->n >= q->n_chains && grow(q) != 0 && q->n_chains == 0)
		return false;
	at = find(q, key);
	if (*at == NULL) {
		if ((*at = calloc(1, sizeof(**at))) == NULL)
			return false;
		(*at)->key = key;
		q->n++;
	} else if ((*at)->n > most - n) {
		return false;
	}
	(*at)->n += n;
	return true;
}

void
per_peer_count_give(struct per_peer_count *q, uint64_t key, uint32_t n)
{
	struct peer_count **at, *c;

	if (q->n_chains == 0 || (c = *(at = find(q, key))) == NULL)
		return;
	if (c->n > n) {
		c->n -= n;
		return;
	}
	*at = c->next;
	free(c);
	q->n--;
}

uint32_t
per_peer_count_has(const struct per_peer_count *q, uint64_t key)
{
	const struct peer_count *c;

	if (q->n_chains == 0 || (c = *find(q, key)) == NULL)
		return 0;
	return c->n;
}

void
per_peer_count_done(struct per_peer_count *q)
{
	struct peer_count *c;
	size_t i;

	for (i = 0; i < q->n_chains; i++)
		while ((c = q->chains[i]) != NULL) {
			q->chains[i] = c->next;
			free(c);
		}
	free(q->chains);
	*q = (struct per_peer_count){ .chains = NULL };
}
