/*
 * arrivals: holds the timestamps of producers that may be on another machine,
 * and do not say how far its clocks are from ours, against the time when they
 * arrive.
 *
 * What was written on our clocks arrives later than it was written, and cannot
 * be older than what its writer sent before, nor a reading of the
 * clock than its session.  Of each stored chunk the first few packets are looked
 * at; what comes of it is a tally for each session and producer, for TraceStats.  Nothing is refused or changed.
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
 * Producers of a session that are told apart: connected ones, and others that
 * there is something to say of.  Of further ones nothing is said.
 */
#define ARRIVALS_MAX 1024u

/* A producer's, from its connection on.  NULL: no memory. */
struct arrival_watch *arrival_watch_new(void) MUST_CHECK;
void arrival_watch_free(struct arrival_watch *w);

/* A chunk of a producer that has a watch was stored for a session. */
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
