/*
 * ring_ahead: has the memory of a large ring made ahead of its first lap, as far
 * as the data that comes at present will get within RING_AHEAD_MS.
 *
 * A buffer that nothing was written to has none made.  Those below RING_AHEAD_FROM
 * have small pages, and a short first lap: they are left alone.
 */
#ifndef SERVICE_RING_MEMORY_RING_AHEAD_H
#define SERVICE_RING_MEMORY_RING_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "service/buffer/trace_buffer.h"
#include "service/ring_memory/populator.h"
#include "transport/base/compiler.h"

#define RING_AHEAD_FROM  (UINT64_C(16) << 20)
#define RING_AHEAD_MS    200u
#define RING_AHEAD_LEAST (UINT64_C(4) << 20)
#define RING_AHEAD_MOST  (UINT64_C(64) << 20)

/* One buffer's; lies beside it.  All zero at first, and its fields are private. */
struct ring_ahead {
	struct populate_job job;
	uint64_t due;   /* bytes reached, from where on there is more to ask for */
	uint64_t asked; /* when it was asked last: bytes reached, */
	uint64_t asked_ms;
};

/* The steps of ring_ahead_follow() when it is time. */
void ring_ahead_ask(struct ring_ahead *a, struct populator *p,
    const struct tb_memory *m, uint64_t now_ms);

/* To be called when something was written; now_ms as loop_turn_ms(). */
static inline void
ring_ahead_follow(struct ring_ahead *a, struct populator *p,
    const struct trace_buffer *tb, uint64_t now_ms)
{
	struct tb_memory m = trace_buffer_memory(tb);

	if (UNLIKELY(m.reached >= a->due))
		ring_ahead_ask(a, p, &m, now_ms);
}

/*
 * To be called before the buffer is freed or cleared, or has its memory taken;
 * a new first lap may begin then.
 */
void ring_ahead_stop(struct ring_ahead *a, struct populator *p);

#endif /* SERVICE_RING_MEMORY_RING_AHEAD_H */
