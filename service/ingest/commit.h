/*
 * commit: from CommitData and from shared memory into the trace buffers (the
 * hot path).
 *
 * CommitDataRequest is read in place.  Everything in it is untrusted: what
 * breaks the rules is discarded and counted, never fatal (behaviour.md,
 * "Producer port").
 */
#ifndef SERVICE_INGEST_COMMIT_H
#define SERVICE_INGEST_COMMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct producer;
struct session;

enum commit_verdict {
	COMMIT_OK,
	COMMIT_BAD, /* does not parse; nothing was applied */
	/*
	 * Has to wait at the gate of a buffer (model.h, write_gate), or is over
	 * a rate that its producer is held to (quota.h).  What was applied is
	 * remembered: the same request, and no other, must come again when
	 * producer_ops.resume() says that it is worth trying.
	 */
	COMMIT_AGAIN,
};

/*
 * With COMMIT_OK *flush_id is the flush that the request answers, or 0: the
 * caller tells it on (flush_ack()).
 */
enum commit_verdict commit_data(struct producer *p, const uint8_t *request,
    size_t len, uint64_t *flush_id) MUST_CHECK;

/*
 * Copies what stands in the producer's shared memory, finished or not, into
 * the buffers of `only` (NULL: of all sessions).  more_comes: chunks behind one
 * that is still being written are left for later, as a reader would go past it.
 * False when something was left out because it has to wait at a gate: scrape
 * again when its reader has caught up.
 */
bool commit_scrape(struct producer *p, const struct session *only,
    bool more_comes);

#endif /* SERVICE_INGEST_COMMIT_H */
