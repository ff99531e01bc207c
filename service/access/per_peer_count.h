/*
 * per_peer_count: counts how many of something each peer has, up to a limit.
 * A peer's key is a number (principal_key(), peer_count_key()).
 */
#ifndef SERVICE_ACCESS_PER_PEER_COUNT_H
#define SERVICE_ACCESS_PER_PEER_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/base/hash_map.h"

/* Zero-initialised is ready to use. */
struct per_peer_count {
	struct hash_map peers; /* with a count above 0; owned */
};

/* Takes one for the peer.  false: it has `most` already, or no memory. */
bool per_peer_count_take(struct per_peer_count *q, uint64_t key, uint32_t most)
    MUST_CHECK;
/* Takes n, or none. */
bool per_peer_count_take_n(struct per_peer_count *q, uint64_t key, uint32_t n,
    uint32_t most) MUST_CHECK;
/* Gives back n that were taken. */
void per_peer_count_give(struct per_peer_count *q, uint64_t key, uint32_t n);
/* The peer's count. */
uint32_t per_peer_count_has(const struct per_peer_count *q, uint64_t key);
/* Frees the counts. */
void per_peer_count_done(struct per_peer_count *q);

#endif /* SERVICE_ACCESS_PER_PEER_COUNT_H */
