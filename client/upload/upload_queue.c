#include "client/upload/upload_queue.h"

#include <limits.h>

#include "transport/base/backoff.h"

static uint64_t
time_left(uint64_t until_ms, uint64_t now_ms)
{
	return until_ms > now_ms ? until_ms - now_ms : 0;
}

int64_t
upload_queue_cursor(struct upload_queue *q, uint64_t now_ms)
{
	if (q->sweep_ms != 0 && q->sweep_ms <= now_ms) {
		q->sweep_ms = 0;
		q->cursor = 0;
	}
	return q->cursor;
}

static void
pass(struct upload_queue *q, int64_t id)
{
	q->cursor = id;
	q->tries = 0;
}

unsigned
upload_queue_sent(struct upload_queue *q, int64_t id)
{
	unsigned failures = q->failures;

	q->failures = 0;
	q->until_ms = 0;
	q->told = S3_OK;
	/*
	 * More failures than one segment has: the store was away, and those
	 * that were passed meanwhile are the oldest.  Once in a sweep, as it may
	 * be several segments after all.
	 */
	pass(q, failures > UPLOAD_QUEUE_TRIES && !q->went_back ? 0 : id);
	q->went_back = q->went_back || failures > UPLOAD_QUEUE_TRIES;
	return failures;
}

bool
upload_queue_segment_failed(struct upload_queue *q, int64_t id,
    uint64_t now_ms)
{
	q->has_failed = true;
	pass(q, id);
	if (now_ms - q->told_id_ms >= UPLOAD_QUEUE_TELL_MS) {
		q->told_id = 0;
		q->told_id_ms = now_ms;
	}
	if (id <= q->told_id)
		return false;
	q->told_id = id;
	return true;
}

bool
upload_queue_store_failed(struct upload_queue *q, int64_t id,
    const struct upload_failure *f)
{
	uint64_t pause;
	bool tell = q->told != f->outcome ||
	    f->now_ms - q->told_ms >= UPLOAD_QUEUE_TELL_MS;

	if (q->failures < UINT_MAX)
		q->failures++;
	pause = f->outcome == S3_DENIED ? q->pace.max_ms :
	    backoff_ms(q->failures, q->pace.min_ms, q->pace.max_ms, f->random);
	if (pause < f->retry_after_ms)
		pause = f->retry_after_ms;
	q->until_ms = f->now_ms + pause;
	if (tell) {
		q->told = f->outcome;
		q->told_ms = f->now_ms;
	}
	if (++q->tries == UPLOAD_QUEUE_TRIES) {
		q->has_failed = true;
		pass(q, id);
	}
	return tell;
}

void
upload_queue_swept(struct upload_queue *q, uint64_t now_ms, uint32_t random)
{
	if (q->sweep_ms != 0)
		return;
	q->went_back = false;
	if (!q->has_failed) {
		q->bad_sweeps = 0;
		q->cursor = 0;
		return;
	}
	q->has_failed = false;
	if (q->bad_sweeps < UINT_MAX)
		q->bad_sweeps++;
	q->sweep_ms = now_ms + backoff_ms(q->bad_sweeps, q->pace.min_ms,
	    q->pace.max_ms, random);
}

void
upload_queue_try_now(struct upload_queue *q)
{
	q->until_ms = 0;
	q->sweep_ms = 0;
	pass(q, 0);
}

uint64_t
upload_queue_store_pause(const struct upload_queue *q, uint64_t now_ms)
{
	return time_left(q->until_ms, now_ms);
}

uint64_t
upload_queue_sweep_pause(const struct upload_queue *q, uint64_t now_ms)
{
	return q->sweep_ms == 0 ? UINT64_MAX : time_left(q->sweep_ms, now_ms);
}
