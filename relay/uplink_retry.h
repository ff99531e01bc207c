/*
 * uplink_retry: how long to wait before a collector is tried again.  Pure.
 */
#ifndef RELAY_UPLINK_RETRY_H
#define RELAY_UPLINK_RETRY_H

#include <stdint.h>

/*
 * The pause after so many failures in a row (at least 1), in milliseconds:
 * doubled from min_ms to max_ms, of which chance takes away up to a half, so
 * that a fleet does not come back in step.
 */
uint64_t uplink_retry_ms(unsigned failures, uint64_t min_ms, uint64_t max_ms,
    uint32_t random);

#endif /* RELAY_UPLINK_RETRY_H */
