/*
 * arrivals: finds producers whose timestamps are not on the clocks of the
 * collector's machine, although the producers do not say so.
 *
 * A packet that was written on these clocks arrives after its timestamp, and is
 * not older than the chunk that its writer sent before; a clock snapshot is not
 * older than the session.  The first few packets of each stored chunk are
 * checked against that.  The result is a tally for each session and producer,
 * for TraceStats.  Nothing is refused or changed.
 *
 * Producers of machines whose clocks are known (struct machine) are not looked
 * at.  Belongs to the loop's thread.
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

/* A timestamp ahead of its arrival by more than this is on another clock. */
#define ARRIVALS_AHEAD_NS  1000000000ll
/*
 * How long a chunk may have been on its way, or a producer ahead of a session
 * that it began to write for (startup tracing).
 */
#define ARRIVALS_DELAY_NS 10000000000ll
/*
 * Most producers that a session keeps a tally of: connected ones, and those on
 * foreign clocks that are gone.  Further producers are not reported.
 */
#define ARRIVALS_MAX 1024u

/* Made when a producer connects.  NULL: no memory. */
struct arrival_watch *arrival_watch_new(void) MUST_CHECK;
void arrival_watch_free(struct arrival_watch *w);

/* Checks a chunk of p that was stored for a session; p->arrivals is set. */
void arrivals_look(struct producer *p, struct session *s, uint32_t writer,
    const struct tb_chunk *c);

/* Drops the producer's tally, unless it shows a foreign clock. */
void arrivals_producer_gone(struct session *s, uint32_t producer);

/*
 * Copies the tallies to a clone, which has none yet.  -1: no memory; `to` may
 * hold some of them then.
 */
int arrivals_copy(struct session *to, const struct session *from) MUST_CHECK;
void arrivals_free(struct arrivals *a);

/*
 * Lists up to max producers whose timestamps cannot be on the collector's
 * clocks.  The names are the session's: valid until their tally is dropped.
 * Returns how many.
 */
size_t arrivals_list(const struct session *s, struct packet_foreign_clock *out,
    size_t max);

#endif /* SERVICE_INGEST_ARRIVALS_H */
