#include "relay/outbox/outbox_internal.h"
#include "transport/loop/loop.h"

uint64_t
ob_now_ms(void)
{
	return loop_boottime_ns() / 1000000u;
}

static void
ready_cb(void *arg)
{
	struct outbox *o = arg;

	o->ops->ready(o->arg);
}

void
ob_ready(struct outbox *o)
{
	if (o->loop != NULL)
		loop_defer(o->loop, &o->ready_call, ready_cb, o);
}

static void
overflow_cb(void *arg)
{
	struct outbox *o = arg;

	/* A reset in between has begun another link. */
	if (arena_link(&o->arena)->overflowed != 0)
		o->ops->overflow(o->arg);
}

void
ob_overflow(struct outbox *o)
{
	/*
	 * Killed before the link begins anew, the next process has to begin it.
	 */
	atomic_store_explicit(&arena_link(&o->arena)->overflowed, 1,
	    memory_order_release);
	if (o->loop != NULL)
		loop_defer(o->loop, &o->overflow_call, overflow_cb, o);
}
