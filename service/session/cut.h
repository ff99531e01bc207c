/*
 * cut: divides a running session's stream into segments that stand alone
 * (protos/segment.proto).
 *
 * A cut begins where a pass over the buffers has read all: the stream gets the
 * mark BEGIN, and what a new segment needs.  Then the session's data sources
 * that can are told to clear their incremental state, and all producers to
 * flush.  When they have answered, or the flush has timed out, a pass reads what
 * came, and the mark END names those that did not answer.
 *
 * No producer waits for a cut, and no cut waits for a reader: where a session is
 * not read, a cut that was asked for stays due, and nothing else happens.  A
 * cut that is asked for before BEGIN joins the one that is due; after it, one
 * more follows, however often it is asked for.  The session's end drops cuts
 * that have not begun.
 *
 * A cut by a trigger begins CUT_REST_MS after the last one at the earliest:
 * triggers that come meanwhile share it.
 *
 * Sessions without TraceConfig.tributary_segments may be cut, too: other readers
 * skip the marks.
 */
#ifndef SERVICE_SESSION_CUT_H
#define SERVICE_SESSION_CUT_H

#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/packet/service_packets.h"

struct cut;
struct producer;
struct session;

#define CUT_REST_MS 1000u

/* Producers that END names at most. */
#define CUT_UNANSWERED_MAX 1024u

/* NULL: no memory. */
struct cut *cut_new(struct session *s) MUST_CHECK;
/* Ends a cut that is under way without its marks.  NULL is fine. */
void cut_free(struct cut *c);

/* At the start of tracing: arms the config's every_ms. */
void cut_session_started(struct session *s);
/* The session's end begins, before its last flush. */
void cut_session_ends(struct session *s);
/* All producers have stopped: a cut that has begun gets its END. */
void cut_session_stopped(struct session *s);

/*
 * Asks for a cut: by the size of a segment, by request, or for another cause
 * than a trigger.  Returns the number of the segment that it begins, from 2; 0:
 * the session is not STARTED, as all cuts want it.  The session's end may drop
 * the cut all the same.
 */
uint32_t cut_ask(struct session *s, enum service_cut_cause cause);
/* A segment of the session has reached SegmentConfig.max_bytes. */
void cut_at_size(struct session *s);
/*
 * A producer pulled this trigger: cuts the sessions whose at_trigger has it, and
 * writes it into their traces.
 */
void cut_trigger(struct producer *p, const char *name);

/* The number of the segment that is being written, from 1. */
uint32_t cut_number(const struct session *s);

#endif /* SERVICE_SESSION_CUT_H */
