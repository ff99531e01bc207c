/*
 * commit: applies a producer's CommitData: takes chunks out of the request or
 * of shared memory into the trace buffers, and patches them (the hot path).
 *
 * CommitDataRequest is read in place.  Everything in it is untrusted: chunks
 * and patches that break the rules are discarded and counted, never fatal
 * (behaviour.md, "Producer port").  Belongs to the loop's thread.
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
	 * The request has to wait at the write gate of a buffer (model.h), or
	 * is over a rate of its producer (quota.h).  How far it was applied is
	 * remembered in the producer: the same request, and no other, must come
	 * again once producer_ops.resume() was called.
	 */
	COMMIT_AGAIN,
};

/*
 * Applies a CommitDataRequest, borrowed for the call.  With COMMIT_OK *flush_id
 * is the flush that the request answers, or 0: the caller passes it to
 * flush_ack().  Else *flush_id is not set.
 */
enum commit_verdict commit_data(struct producer *p, const uint8_t *request,
    size_t len, uint64_t *flush_id) MUST_CHECK;

/*
 * Scrapes: copies the chunks in the producer's shared memory, complete or not,
 * into the buffers of `only` (NULL: of all sessions).  more_comes: chunks
 * behind one that is still being written are left for later, as a reader would
 * go past it.  False when a chunk, and with it the later ones of its writer,
 * was left out because it has to wait at a write gate: scrape again when the
 * reader of that buffer, such as a file, has caught up.
 */
bool commit_scrape(struct producer *p, const struct session *only,
    bool more_comes);

#endif /* SERVICE_INGEST_COMMIT_H */
