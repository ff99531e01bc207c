/*
 * backoff: how long to wait before a collector is tried again.  Pure.
 */
#ifndef TRANSPORT_BASE_BACKOFF_H
#define TRANSPORT_BASE_BACKOFF_H

#include <stdint.h>

/*
 * The pause after so many failures in a row (at least 1), in milliseconds:
 * doubled from min_ms to max_ms, of which chance takes away up to a half, so
 * that a fleet does not come back in step.
 */
uint64_t backoff_ms(unsigned failures, uint64_t min_ms, uint64_t max_ms,
    uint32_t random);

#endif /* TRANSPORT_BASE_BACKOFF_H */
