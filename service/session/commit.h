/*
 * commit: from CommitData and from shared memory into the trace buffers (the
 * hot path).
 *
 * CommitDataRequest is read in place.  Everything in it is untrusted: what
 * breaks the rules is discarded and counted, never fatal (behaviour.md,
 * "Producer port").
 */
#ifndef SERVICE_SESSION_COMMIT_H
#define SERVICE_SESSION_COMMIT_H

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
	 * Would overwrite what a file has not got yet, or is over a rate that
	 * its producer is held to (quota.h).  What was applied is
	 * remembered: the same request, and no other, must come again when
	 * producer_ops.resume() says that it is worth trying.
	 */
	COMMIT_AGAIN,
};

enum commit_verdict commit_data(struct producer *p, const uint8_t *request,
    size_t len) MUST_CHECK;

/*
 * Copies what stands in the producer's shared memory, finished or not, into
 * the buffers of `only` (NULL: of all sessions).  False when something was left
 * out because it would overwrite what a file has not got yet: scrape again when
 * the file has caught up.
 */
bool commit_scrape(struct producer *p, struct session *only);

#endif /* SERVICE_SESSION_COMMIT_H */
