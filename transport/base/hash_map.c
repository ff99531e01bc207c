#include "transport/base/hash_map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "transport/base/hash_map_internal.h"

#define CHAINS_FIRST 16u

/* ---- hashes ---- */

static uint64_t seed[2];

void
hash_seed(uint64_t first, uint64_t second)
{
	seed[0] = first;
	/* 0 as a factor would map all keys to one hash. */
	seed[1] = (second ^ 0x9e3779b97f4a7c15u) | 1;
}

/* Before main(), so that no thread finds it half made. */
__attribute__((constructor)) static void
seed_once(void)
{
	uint64_t n[2] = { 0 };

	/* Early in a machine's life there may be no entropy: guessable then. */
	if (getrandom(n, sizeof(n), GRND_NONBLOCK) != sizeof(n))
		n[0] = (uintptr_t)&seed[0] ^ (uintptr_t)&seed_once << 32;
	hash_seed(n[0], n[1]);
}

/*
 * The step of wyhash: both halves of the product depend on all bits of v, so
 * that a peer without the seed cannot choose keys that share a chain.
 */
static uint64_t
mix(uint64_t h, uint64_t v)
{
	unsigned __int128 product = (unsigned __int128)(h ^ v) * seed[1];

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/*
 * The last step of each hash.  Chains are chosen by the low bits, which one step
 * after the last word depend on few bits of the seed where keys differ at the
 * top alone.
 */
static uint64_t
finish(uint64_t h)
{
	return mix(h, seed[0]);
}

uint64_t
hash_number(uint64_t v)
{
	return finish(mix(seed[0], v));
}

uint64_t
hash_numbers(uint64_t a, uint64_t b)
{
	return finish(mix(mix(seed[0], a), b));
}

uint64_t
hash_bytes(const void *data, size_t len)
{
	const char *p = data;
	uint64_t h = mix(seed[0], len), word;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = mix(h, word);
	}
	if (len > 0) {
		word = 0;
		memcpy(&word, p, len);
		h = mix(h, word);
	}
	return finish(h);
}

/* ---- the map ---- */

static struct hash_link **
chain_of(struct hash_map *m, uint64_t hash)
{
	return m->chains == NULL ? &m->only :
	    &m->chains[hash & (m->n_chains - 1)];
}

static void
link_in(struct hash_map *m, struct hash_link *item)
{
	struct hash_link **chain = chain_of(m, item->hash);

	item->next = *chain;
	item->at = chain;
	if (item->next != NULL)
		item->next->at = &item->next;
	*chain = item;
}

static void
grow(struct hash_map *m)
{
	size_t n = m->chains == NULL ? CHAINS_FIRST : m->n_chains * 2;
	struct hash_map larger = { .n = m->n, .n_chains = n };
	struct hash_cursor c = { .next = NULL };
	struct hash_link *item;

	if ((larger.chains = calloc(n, sizeof(*larger.chains))) == NULL)
		return;
	while ((item = hash_map_step(m, &c)) != NULL)
		link_in(&larger, item);
	free(m->chains);
	*m = larger;
}

void
hash_map_put(struct hash_map *m, struct hash_link *item, uint64_t hash)
{
	if (m->n * 2 >= m->n_chains)
		grow(m);
	item->hash = hash;
	link_in(m, item);
	m->n++;
}

void
hash_map_remove(struct hash_map *m, struct hash_link *item)
{
	*item->at = item->next;
	if (item->next != NULL)
		item->next->at = item->at;
	m->n--;
}

void
hash_map_done(struct hash_map *m)
{
	free(m->chains);
	*m = (struct hash_map){ .n = 0 };
}

struct hash_link *
hash_map_step(const struct hash_map *m, struct hash_cursor *c)
{
	struct hash_link *at = c->next;

	if (at == NULL && m->chains == NULL && c->chain++ == 0)
		at = m->only;
	while (at == NULL && c->chain < m->n_chains)
		at = m->chains[c->chain++];
	if (at != NULL)
		c->next = at->next;
	return at;
}

struct hash_link *
hash_map_begin(const struct hash_map *m, struct hash_cursor *c)
{
	c->next = NULL;
	c->chain = 0;
	return hash_map_step(m, c);
}
