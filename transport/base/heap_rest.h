/*
 * heap_rest: when free pages are worth giving back to the kernel, from what
 * came and went.  Pure counting; transport/process/heap_trimming.h gives back.
 */
#ifndef TRANSPORT_BASE_HEAP_REST_H
#define TRANSPORT_BASE_HEAP_REST_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Counts what came and went since pages were given back.  Embedded, all zero at
 * first; of one thread.
 */
struct heap_rest {
	uint32_t stirred; /* in connections */
	uint32_t came;    /* of those, by handshakes of this second */
	uint32_t seconds; /* since pages were given back, up to a bound */
};

/* Free memory that a session leaves scattered, in connections. */
#define HEAP_REST_SESSION 64u

/* A connection's handshake is done: it took more memory than what stays. */
void heap_rest_came(struct heap_rest *r);
/* Tells that as much as n connections hold was freed. */
void heap_rest_freed(struct heap_rest *r, uint32_t n);
/*
 * Once a second.  True: now is the time for heap_trim(): much has come or gone
 * (at least a session or 64 connections), hardly anybody shook hands in this
 * second, and it was not done just now.
 */
bool heap_rest_second(struct heap_rest *r);

#endif /* TRANSPORT_BASE_HEAP_REST_H */
