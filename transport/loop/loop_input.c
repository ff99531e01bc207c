#include "transport/loop/loop_internal.h"

/*
 * Bytes that one round through all streams that wait may read, about: a tenth
 * of a second's work of one core.
 */
#define ROUND_BYTES (64u * 1024u * 1024u)
/* Shorter reads cost more for each byte than they save other streams. */
#define READ_LEAST (16u * 1024u)

void
loop_set_clock(struct loop *l, uint64_t (*clock_ns)(void *arg), void *arg)
{
	l->clock = clock_ns;
	l->clock_arg = arg;
}

uint64_t
loop_budget_ns(const struct loop *l)
{
	return l->clock != NULL ? l->clock(l->clock_arg) : loop_clock_ns();
}

void
loop_input_begin_turn(struct loop *l)
{
	l->bulk.until_ns = l->bulk.urgent_until_ns = 0;
}

/* The time budget of a turn begins when it is first asked for. */
static bool
has_time(const struct loop *l, uint64_t *until)
{
	uint64_t now = loop_budget_ns(l);

	if (*until == 0)
		*until = now + LOOP_READ_MS * 1000000u;
	return now < *until;
}

/* While calls run, `end` is in the queue, too. */
static bool
nobody_waits(const struct loop_input *b)
{
	const struct loop_call *head = &b->waiting.head;

	return head->next == head ||
	    (head->next == &b->end && b->end.next == head);
}

bool
loop_may_read(struct loop *l, bool urgent)
{
	/*
	 * The queue of sockets that lack time stands still while input is held.
	 */
	if (urgent)
		return l->bulk.held || has_time(l, &l->bulk.urgent_until_ns);
	/* Input that waits comes first. */
	return nobody_waits(&l->bulk) && !l->bulk.held &&
	    has_time(l, &l->bulk.until_ns);
}

static void marker_cb(void *arg);

static void
mark(struct loop *l)
{
	struct loop_input *b = &l->bulk;

	b->ran = 0;
	atomic_store_explicit(&b->marked_ns, loop_budget_ns(l),
	    memory_order_relaxed);
	loop_calls_add(&b->waiting, &b->marker, marker_cb, l);
}

static void
marker_cb(void *arg)
{
	struct loop *l = arg;
	struct loop_input *b = &l->bulk;
	uint64_t lag = loop_budget_ns(l) - b->marked_ns;

	atomic_store_explicit(&b->lag_ns, lag, memory_order_relaxed);
	b->round = b->ran;
	if (b->alarm_ns != 0 && lag >= b->alarm_ns)
		loop_defer(l, &b->alarm_call, b->alarm, b->alarm_arg);
	if (nobody_waits(b))
		atomic_store_explicit(&b->marked_ns, 0, memory_order_relaxed);
	else
		mark(l);
}

void
loop_defer_read(struct loop *l, struct loop_call *c, loop_fn fn, void *arg)
{
	struct loop_input *b = &l->bulk;
	bool first = nobody_waits(b);

	loop_calls_add(&b->waiting, c, fn, arg);
	if (!first)
		return;
	loop_want_turn(l);
	atomic_store_explicit(&b->lag_ns, 0, memory_order_relaxed);
	b->round = 0;
	mark(l);
}

void
loop_input_run(struct loop *l)
{
	struct loop_input *b = &l->bulk;
	bool first = true;

	if (nobody_waits(b) || b->held)
		return;
	/* A call that is deferred again meanwhile has had its turn. */
	loop_calls_add(&b->waiting, &b->end, NULL, NULL);
	while (b->waiting.head.next != &b->end && !b->held &&
	    (has_time(l, &b->until_ns) || first)) {
		first = false;
		b->ran++;
		loop_calls_run_one(&b->waiting);
	}
	loop_call_cancel(&b->end);
	if (!nobody_waits(b) && !b->held)
		loop_want_turn(l);
}

void
loop_hold_input(struct loop *l, bool hold)
{
	l->bulk.held = hold;
	if (!hold && !nobody_waits(&l->bulk))
		loop_want_turn(l);
}

bool
loop_holds_input(const struct loop *l)
{
	return l->bulk.held;
}

bool
loop_input_waits(const struct loop *l)
{
	return !nobody_waits(&l->bulk);
}

size_t
loop_read_bytes(const struct loop *l)
{
	const struct loop_input *b = &l->bulk;
	size_t n = b->ran > b->round ? b->ran : b->round;
	size_t bytes = LOOP_SCRATCH_BYTES;

	if (nobody_waits(b))
		return bytes;
	if (n > ROUND_BYTES / LOOP_SCRATCH_BYTES)
		bytes = ROUND_BYTES / n;
	if (bytes < READ_LEAST)
		bytes = READ_LEAST;
	return atomic_load_explicit(&b->hold, memory_order_relaxed) ==
	    LOOP_HOLD_READS ? bytes / 4 : bytes;
}

void
loop_on_lag(struct loop *l, uint64_t ms, loop_fn fn, void *arg)
{
	struct loop_input *b = &l->bulk;

	loop_call_cancel(&b->alarm_call);
	b->alarm_ns = ms * 1000000;
	b->alarm = fn;
	b->alarm_arg = arg;
}

void
loop_hold_back(struct loop *l, enum loop_hold hold)
{
	atomic_store_explicit(&l->bulk.hold, hold, memory_order_relaxed);
}

uint64_t
loop_lag_ms(const struct loop *l)
{
	const struct loop_input *b = &l->bulk;
	uint64_t since, last, now;

	since = atomic_load_explicit(&b->marked_ns, memory_order_relaxed);
	last = atomic_load_explicit(&b->lag_ns, memory_order_relaxed);
	if (since == 0)
		return 0;
	now = loop_budget_ns(l);
	return (now > since + last ? now - since : last) / 1000000;
}
