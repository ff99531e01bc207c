/*
 * interning: what a sequence has told already, and under which number: names
 * by the address of their literal, tracks by their uuid.
 *
 * An open hash table that starts inside of the struct and doubles, in own
 * memory; belongs to the sequence's thread.  Numbers begin at 1 for each kind.
 */
#ifndef CLIENT_TRACING_EVENT_INTERNING_H
#define CLIENT_TRACING_EVENT_INTERNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

enum interned_kind {
	INTERNED_NAME = 1,
	INTERNED_CATEGORY,
	INTERNED_ARG_NAME,
	INTERNED_LOCATION,
	INTERNED_LOG_BODY,
	INTERNED_TRACK,
	INTERNED_KINDS,
};

struct interned {
	uint64_t key;
	uint32_t iid;
	uint32_t kind; /* 0: the entry is free */
};

#define INTERNING_OWN 8u
/* So many are enough: the next event begins the sequence's state anew. */
#define INTERNING_MAX 65536u
/* None is added any more: far more than one event brings. */
#define INTERNING_HARD_MAX 98304u

struct interning {
	struct interned *entries;
	uint32_t mask;
	uint32_t n;
	uint32_t last[INTERNED_KINDS];
	struct interned own[INTERNING_OWN];
};

void interning_init(struct interning *in);
void interning_done(struct interning *in);
/* Forgets all. */
void interning_clear(struct interning *in);

static inline uint32_t
interning_hash(uint64_t key, uint32_t kind)
{
	return (uint32_t)((key + kind) * 0x9e3779b97f4a7c15u >> 32);
}

/* 0: not yet. */
static inline uint32_t
interning_find(const struct interning *in, uint64_t key,
    enum interned_kind kind)
{
	uint32_t at = interning_hash(key, kind) & in->mask;
	const struct interned *e;

	for (;; at = (at + 1) & in->mask) {
		e = &in->entries[at];
		if (LIKELY(e->key == key && e->kind == (uint32_t)kind))
			return e->iid;
		if (e->kind == 0)
			return 0;
	}
}

static inline bool
interning_is_full(const struct interning *in)
{
	return in->n >= INTERNING_MAX;
}

/*
 * The number of a new one.  0: no memory, INTERNING_HARD_MAX are there, or the
 * caller is in a signal handler that has interrupted the library.
 */
uint32_t interning_add(struct interning *in, uint64_t key,
    enum interned_kind kind) MUST_CHECK;

#endif /* CLIENT_TRACING_EVENT_INTERNING_H */
