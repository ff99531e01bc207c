/*
 * hash_map: finds items by their keys.  Separate chaining; the table doubles
 * when it has half as many items as chains.
 *
 * Intrusive: an item embeds a struct hash_link for each map that it is in.  The
 * map owns its table and never an item, and knows no keys: its user makes the
 * hash of a key and compares keys.  Peers choose most of these keys, so all
 * hashes are seeded by a number that differs in each process.
 *
 * A map belongs to one thread; the hashes may be made on any.
 */
#ifndef TRANSPORT_BASE_HASH_MAP_H
#define TRANSPORT_BASE_HASH_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Private to hash_map. */
struct hash_link {
	struct hash_link *next; /* in its chain */
	struct hash_link **at;  /* the pointer to this one */
	uint64_t hash;
};

/*
 * Zero-initialised is ready to use; stays where it is while it has items.
 * Private, but for n, the number of items.
 */
struct hash_map {
	size_t n;
	struct hash_link **chains; /* owned; NULL: all items are in `only` */
	size_t n_chains;           /* a power of two */
	struct hash_link *only;
};

/* ---- hashes: never the same in two processes, so not to be stored ---- */

uint64_t hash_number(uint64_t v);
uint64_t hash_numbers(uint64_t a, uint64_t b);
uint64_t hash_bytes(const void *data, size_t len);

/* ---- the map ---- */

/*
 * Puts an item in, by the hash of its key.  Never fails: without memory for a
 * larger table the chains become longer.  An item with the same key is no
 * matter; which of them is found first is not said.
 */
void hash_map_put(struct hash_map *m, struct hash_link *item, uint64_t hash);
/* Takes out an item that is in this map, in constant time. */
void hash_map_remove(struct hash_map *m, struct hash_link *item);
/* Frees the table and forgets the items; the map is ready to use again. */
void hash_map_done(struct hash_map *m);

/*
 * Goes through all items that have this hash, as TAILQ_FOREACH does; field is
 * the hash_link in *item.  The body compares keys; after it has put an item in
 * or removed one, it leaves the loop.
 */
#define HASH_MAP_FOREACH_OF(item, map, hash_of_key, field) \
	for ((item) = HASH_MAP_ITEM(item, field, \
	    hash_map_first((map), (hash_of_key))); (item) != NULL; \
	    (item) = HASH_MAP_ITEM(item, field, \
	    hash_map_next(&(item)->field)))

struct hash_cursor {
	struct hash_link *next;
	size_t chain; /* to go on with behind it */
};

/* The first item of a walk over all, in no order; NULL: there is none. */
struct hash_link *hash_map_begin(const struct hash_map *m,
    struct hash_cursor *c);
/* The next item of the walk; NULL: that was all. */
struct hash_link *hash_map_step(const struct hash_map *m,
    struct hash_cursor *c);

/*
 * Goes through all items, in no order.  The body may remove and free the item
 * that it is given; it removes no other and puts none in.
 */
#define HASH_MAP_FOREACH(item, map, cursor, field) \
	for ((item) = HASH_MAP_ITEM(item, field, \
	    hash_map_begin((map), (cursor))); (item) != NULL; \
	    (item) = HASH_MAP_ITEM(item, field, \
	    hash_map_step((map), (cursor))))

static inline struct hash_link *
hash_map_match(struct hash_link *l, uint64_t hash)
{
	while (l != NULL && l->hash != hash)
		l = l->next;
	return l;
}

static inline struct hash_link *
hash_map_first(const struct hash_map *m, uint64_t hash)
{
	return hash_map_match(m->chains == NULL ? m->only :
	    m->chains[hash & (m->n_chains - 1)], hash);
}

static inline struct hash_link *
hash_map_next(const struct hash_link *l)
{
	return hash_map_match(l->next, l->hash);
}

static inline void *
hash_map_item(struct hash_link *l, size_t offset)
{
	return l == NULL ? NULL : (char *)l - offset;
}

#define HASH_MAP_ITEM(item, field, link) \
	hash_map_item((link), offsetof(__typeof__(*(item)), field))

#endif /* TRANSPORT_BASE_HASH_MAP_H */
