/*
 * upload_queue: which segment is next, when the store and segments that failed
 * are tried again, and what is worth a line in the log.
 *
 * The queue itself is the catalogue, asked for segments that the store has not
 * got, by rising id.  Here is a cursor in it: it moves behind a segment that was
 * sent or failed for a reason of its own, so no segment holds up others, and
 * goes back to the begin after a pause when any failed, and at once when the
 * store is back after an outage.  Memory is constant.
 * Pure: the caller brings clock and random numbers.
 */
#ifndef CLIENT_UPLOAD_UPLOAD_QUEUE_H
#define CLIENT_UPLOAD_UPLOAD_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/upload/s3/s3_outcome.h"

struct upload_pace {
	uint64_t min_ms; /* pause after the first failure in a row */
	uint64_t max_ms; /* the longest pause, but for Retry-After */
};

/* Zero but for pace is ready to use; the other fields are private. */
struct upload_queue {
	struct upload_pace pace;

	unsigned failures;    /* of the store, in a row */
	uint64_t until_ms;    /* the store is left alone until then */
	enum s3_outcome told; /* the failure that was logged; S3_OK: none */
	uint64_t told_ms;

	int64_t cursor;
	unsigned tries;       /* of the segment behind it that ended badly */
	bool has_failed;      /* a segment, in this sweep */
	bool went_back;       /* to the oldest, in this sweep */
	unsigned bad_sweeps;  /* with such segments, in a row */
	uint64_t sweep_ms;    /* the cursor goes to 0 then; 0: not set */
	int64_t told_id;      /* failures up to this id were logged */
	uint64_t told_id_ms;
};

/* A failure that lasts is logged again after this time. */
#define UPLOAD_QUEUE_TELL_MS (60 * 60 * 1000u)
/* Failures of the store in a row before another segment has its turn. */
#define UPLOAD_QUEUE_TRIES 3u

struct upload_failure {
	enum s3_outcome outcome;
	uint64_t retry_after_ms; /* of the answer; 0: none */
	uint64_t now_ms;
	uint32_t random;
};

/* The id behind which to look for the next segment. */
int64_t upload_queue_cursor(struct upload_queue *q, uint64_t now_ms);

/* Sent: returns how many failures of the store that ends. */
unsigned upload_queue_sent(struct upload_queue *q, int64_t id);
/*
 * The segment could not be sent, for a reason of its own.  Returns whether to
 * log it.
 */
bool upload_queue_segment_failed(struct upload_queue *q, int64_t id,
    uint64_t now_ms);
/*
 * The store did not do what it was asked for this segment.  It is left alone
 * for a pause that doubles with each failure, or max_ms at once where it
 * denied, but at least retry_after_ms.  Returns whether to log it: a failure of
 * another kind than the last, or of the same after UPLOAD_QUEUE_TELL_MS.
 */
bool upload_queue_store_failed(struct upload_queue *q, int64_t id,
    const struct upload_failure *f);
/* There was none behind the cursor. */
void upload_queue_swept(struct upload_queue *q, uint64_t now_ms,
    uint32_t random);

/* Tries everything at once again, as at SIGHUP. */
void upload_queue_try_now(struct upload_queue *q);

/* Milliseconds until the store may be asked; 0: now. */
uint64_t upload_queue_store_pause(const struct upload_queue *q,
    uint64_t now_ms);
/* Milliseconds until failed segments are tried again; UINT64_MAX: none. */
uint64_t upload_queue_sweep_pause(const struct upload_queue *q,
    uint64_t now_ms);

#endif /* CLIENT_UPLOAD_UPLOAD_QUEUE_H */
