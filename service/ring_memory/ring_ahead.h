/*
 * ring_ahead: prefaults the memory of a large ring ahead of the write cursor in
 * its first lap, as far as the present rate of data gets within RING_AHEAD_MS,
 * but at least RING_AHEAD_LEAST and at most RING_AHEAD_MOST bytes.
 *
 * No memory is made for a buffer without data.  Rings below RING_AHEAD_FROM
 * bytes have small pages and a short first lap: they are left alone.  Belongs
 * to the loop's thread.
 */
#ifndef SERVICE_RING_MEMORY_RING_AHEAD_H
#define SERVICE_RING_MEMORY_RING_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "service/ring_memory/populator.h"
#include "transport/base/compiler.h"
#include "transport/buffer/trace_buffer.h"

#define RING_AHEAD_FROM  (UINT64_C(16) << 20)
#define RING_AHEAD_MS    200u
#define RING_AHEAD_LEAST (UINT64_C(4) << 20)
#define RING_AHEAD_MOST  (UINT64_C(64) << 20)

/*
 * State of one buffer, beside it (struct session_buffer).  All zero at first,
 * and its fields are private.
 */
struct ring_ahead {
	struct populate_job job;
	uint64_t due;      /* tb_memory.reached at which to ask for more */
	uint64_t asked;    /* tb_memory.reached when it was last asked for */
	uint64_t asked_ms; /* and the time then */
};

/* The rare part of ring_ahead_follow(): asks the populator for more. */
void ring_ahead_ask(struct ring_ahead *a, struct populator *p,
    const struct tb_memory *m, uint64_t now_ms);

/* To be called after each chunk that is written; now_ms: loop_turn_ms(). */
static inline void
ring_ahead_follow(struct ring_ahead *a, struct populator *p,
    const struct trace_buffer *tb, uint64_t now_ms)
{
	struct tb_memory m = trace_buffer_memory(tb);

	if (UNLIKELY(m.reached >= a->due))
		ring_ahead_ask(a, p, &m, now_ms);
}

/*
 * To be called before the buffer is freed or cleared, or its ring is taken by a
 * clone (trace_buffer_take()): waits for a step under way, then is all zero for
 * a new first lap.
 */
void ring_ahead_stop(struct ring_ahead *a, struct populator *p);

#endif /* SERVICE_RING_MEMORY_RING_AHEAD_H */
