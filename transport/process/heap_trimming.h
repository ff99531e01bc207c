/*
 * heap_trimming: what malloc() keeps in a daemon that lives for months.
 *
 * Left alone, glibc's makes a heap ("arena") for each thread, up to eight for
 * each processor, and what a thread that ended left of its own stays resident.
 * The first large block that is freed, a compressor's say, makes it keep all
 * such blocks, and as much of each heap's end.  And it gives no page back that
 * lies between two blocks in use.  A collector that sessions and connections
 * passed through held 20 MiB for them, of which 1.5 were in use.
 *
 * So there are as few arenas as threads that allocate much; large blocks come
 * from the kernel and go back to it; and when much has come and gone, free
 * pages go back in a calm second, which the owner of a timer of one second
 * asks for: heap_rest_second().
 */
#ifndef TRANSPORT_PROCESS_HEAP_TRIMMING_H
#define TRANSPORT_PROCESS_HEAP_TRIMMING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Before any other thread: how malloc() is to behave.  threads: how many there
 * will be, beside this one, that allocate all the time.  Others (that write
 * files, compress) share the arenas of these, and hardly notice.
 */
void heap_init(unsigned threads);

/*
 * What came and went since pages were given back.  Embedded, all zero at first;
 * of one thread.
 */
struct heap_rest {
	uint32_t stirred; /* in connections */
	uint32_t came;    /* of those, by handshakes of this second */
	uint32_t seconds; /* since pages were given back, up to a bound */
};

/* What a session leaves between what stays, in connections. */
#define HEAP_REST_SESSION 64u

/* A connection's handshake is done: it took more memory than what stays. */
void heap_rest_came(struct heap_rest *r);
/* As much as n connections hold was freed. */
void heap_rest_freed(struct heap_rest *r, uint32_t n);
/*
 * Once a second.  True: now is the time for heap_trim(): much has come or gone
 * (at least a session or 64 connections), hardly anybody shook hands in this
 * second, and it was not done just now.
 */
bool heap_rest_second(struct heap_rest *r);

/*
 * Gives free pages back to the kernel.  Takes 7 ms when that are 40 MiB, and
 * very little when there are none.
 */
void heap_trim(void);

#endif /* TRANSPORT_PROCESS_HEAP_TRIMMING_H */
