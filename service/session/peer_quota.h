/*
 * peer_quota: how many of something each peer has, and no more than it may.
 * Who a peer is, is a number here (principal_key()).
 */
#ifndef SERVICE_SESSION_PEER_QUOTA_H
#define SERVICE_SESSION_PEER_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/compiler.h"

struct peer_count;

/* Zero-initialised is ready to use. */
struct peer_quota {
	struct peer_count **chains; /* by the key's remainder; owned */
	size_t n_chains;
	size_t n; /* peers that have something */
};

/* Takes one for the peer.  False: it has `most` already, or no memory. */
bool peer_quota_take(struct peer_quota *q, uint64_t key, uint32_t most)
    MUST_CHECK;
/* The same for n at once. */
bool peer_quota_take_n(struct peer_quota *q, uint64_t key, uint32_t n,
    uint32_t most) MUST_CHECK;
/* Gives back n that were taken. */
void peer_quota_give(struct peer_quota *q, uint64_t key, uint32_t n);
uint32_t peer_quota_has(const struct peer_quota *q, uint64_t key);
void peer_quota_done(struct peer_quota *q);

#endif /* SERVICE_SESSION_PEER_QUOTA_H */
