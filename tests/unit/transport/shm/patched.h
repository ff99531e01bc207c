/* A writer of ours does not patch in shared memory; other writers do. */
#ifndef TESTS_UNIT_TRANSPORT_SHM_PATCHED_H
#define TESTS_UNIT_TRANSPORT_SHM_PATCHED_H

#include "transport/shm/shm_internal.h"

/* Clears flags of a chunk that its writer has patched itself. */
static inline void
clear_flag(const struct shm_slot *slot, uint8_t flag)
{
	atomic_fetch_and(
	    shm_head_packets(slot->payload - SHM_CHUNK_HEADER_BYTES),
	    (uint16_t)~((flag & SHM_FLAGS_MASK) << SHM_FLAGS_SHIFT));
}

#endif /* TESTS_UNIT_TRANSPORT_SHM_PATCHED_H */
