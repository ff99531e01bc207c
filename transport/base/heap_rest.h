/*
 * heap_rest: when free pages of the heap are worth giving back to the kernel,
 * judged by the connections and sessions that came and went.  Pure counting;
 * transport/process/heap_trimming.h gives back.
 */
#ifndef TRANSPORT_BASE_HEAP_REST_H
#define TRANSPORT_BASE_HEAP_REST_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Counts connections and sessions since pages were given back last.  Embedded
 * in its owner, all zero at first; of one thread.
 */
struct heap_rest {
	uint32_t stirred; /* memory used and freed, in connections' worth */
	uint32_t came;    /* handshakes in this second, in stirred, too */
	uint32_t seconds; /* since pages were given back, up to a bound */
};

/* Free memory that a session leaves scattered, in connections' worth. */
#define HEAP_REST_SESSION 64u

/* A connection's handshake is done: it took more memory than what stays. */
void heap_rest_came(struct heap_rest *r);
/* Memory of about n connections was freed. */
void heap_rest_freed(struct heap_rest *r, uint32_t n);
/*
 * Called once a second.  True: heap_trim() is to be called now: at least a
 * session or 64 connections came or went, at most 8 handshakes were done in
 * this second, and the last time is at least 5 seconds ago.
 */
bool heap_rest_second(struct heap_rest *r);

#endif /* TRANSPORT_BASE_HEAP_REST_H */
