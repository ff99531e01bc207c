/*
 * backoff: exponential backoff with jitter between attempts to connect.  Pure.
 */
#ifndef TRANSPORT_BASE_BACKOFF_H
#define TRANSPORT_BASE_BACKOFF_H

#include <stdint.h>

/*
 * The pause after so many failures in a row (at least 1), in milliseconds:
 * doubled with each failure from min_ms up to max_ms, less a jitter of up to a
 * half, so that a fleet does not reconnect in step.  random: any number of 32
 * bits; 0 gives no jitter.
 */
uint64_t backoff_ms(unsigned failures, uint64_t min_ms, uint64_t max_ms,
    uint32_t random);

#endif /* TRANSPORT_BASE_BACKOFF_H */
