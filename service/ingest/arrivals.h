/*
 * arrivals: finds producers whose timestamps are not on our clocks, although
 * they do not say so.
 *
 * A packet that was written on our clocks arrives after its timestamp, and is
 * not older than the chunk that its writer sent before; a reading of the clock
 * is not older than the session.  The first few packets of each stored chunk
 * are held against that.  The result is a tally for each session and producer,
 * for TraceStats.  Nothing is refused or changed.
 */
#ifndef SERVICE_INGEST_ARRIVALS_H
#define SERVICE_INGEST_ARRIVALS_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct arrival_watch;
struct arrivals;
struct packet_foreign_clock;
struct producer;
struct session;
struct tb_chunk;

/* Ahead of their arrival by more than this: on another clock. */
#define ARRIVALS_AHEAD_NS  1000000000ll
/*
 * How long a chunk may have been on its way, or a producer ahead of a session
 * that it began to write for (startup tracing).
 */
#define ARRIVALS_DELAY_NS 10000000000ll
/*
 * Producers that a session keeps a tally of: connected ones, and others that
 * there is something to say of.  Further ones are not reported.
 */
#define ARRIVALS_MAX 1024u

/* Made when a producer connects.  NULL: no memory. */
struct arrival_watch *arrival_watch_new(void) MUST_CHECK;
void arrival_watch_free(struct arrival_watch *w);

/* Looks at a chunk that was stored for a session; p has a watch. */
void arrivals_look(struct producer *p, struct session *s, uint32_t writer,
    const struct tb_chunk *c);

/* Forgets the producer, unless there is something to say of it. */
void arrivals_producer_gone(struct session *s, uint32_t producer);

/* For a clone, which has none yet. */
int arrivals_copy(struct session *to, const struct session *from) MUST_CHECK;
void arrivals_free(struct arrivals *a);

/*
 * Up to max producers whose timestamps cannot be on our clocks; names are the
 * session's.  Returns how many.
 */
size_t arrivals_list(const struct session *s, struct packet_foreign_clock *out,
    size_t max);

#endif /* SERVICE_INGEST_ARRIVALS_H */
