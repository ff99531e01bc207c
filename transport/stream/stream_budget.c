#include "transport/base/budget.h"
#include "transport/loop/loop.h"
#include "transport/stream/stream_internal.h"

#define N_BUDGETS (sizeof(((struct stream *)0)->budgets) / sizeof(void *))

void
stream_recount(struct stream *s)
{
	size_t before = s->counted, now = stream_memory(s), i;
	bool over = false;

	s->counted = now;
	for (i = 0; i < N_BUDGETS; i++) {
		if (s->budgets[i] == NULL)
			continue;
		budget_resize(s->budgets[i], before, now);
		/* The stream that takes more pays, never a neighbour. */
		if (now > before && stream_is_live(s) &&
		    budget_is_over(s->budgets[i])) {
			s->budgets[i]->memory_refused++;
			over = true;
		}
	}
	if (over)
		stream_end_later(s, STREAM_BUDGET);
}

void
stream_leave_budgets(struct stream *s)
{
	size_t i;

	for (i = 0; i < N_BUDGETS; i++) {
		if (s->budgets[i] != NULL)
			budget_resize(s->budgets[i], s->counted, 0);
		s->budgets[i] = NULL;
	}
}

void
stream_set_budgets(struct stream *s, struct budget *of_peer,
    struct budget *of_all)
{
	stream_leave_budgets(s);
	if (!stream_is_live(s))
		return;
	s->budgets[0] = of_peer;
	s->budgets[1] = of_all;
	s->counted = 0;
	stream_count(s);
}

static void
rested_cb(void *arg)
{
	struct stream *s = arg;

	loop_timer_free(s->rest);
	s->rest = NULL;
	stream_arm_input(s);
	stream_go_on(s);
}

void
stream_spend(struct stream *s, size_t n, uint64_t now_ms)
{
	uint64_t rest = 0, ms;
	size_t i;

	for (i = 0; i < N_BUDGETS; i++) {
		if (s->budgets[i] == NULL)
			continue;
		ms = budget_take(s->budgets[i], n, now_ms);
		if (ms > rest)
			rest = ms;
	}
	if (rest == 0 || !stream_is_live(s) || s->rest != NULL)
		return;
	if ((s->rest = loop_timer_new(s->loop, rested_cb, s)) == NULL) {
		stream_end_later(s, STREAM_NO_MEMORY);
		return;
	}
	loop_timer_set(s->rest, rest, 0);
	stream_arm_input(s);
}

/* Milliseconds (loop_now_ms()) since the last input, or output. */
static uint64_t
ms_since(const struct stream *s, uint64_t now_ms, bool of_output)
{
	uint64_t in_ms = s->last_in_ms, out_ms = s->last_out_ms, last;

	if (s->backend->times != NULL)
		s->backend->times(s, &in_ms, &out_ms);
	last = of_output ? out_ms : in_ms;
	return now_ms > last ? now_ms - last : 0;
}

uint64_t
stream_idle_ms(const struct stream *s, uint64_t now_ms)
{
	return ms_since(s, now_ms, false);
}

uint64_t
stream_stalled_ms(const struct stream *s, uint64_t now_ms)
{
	size_t queued = s->backend->queued != NULL ? s->backend->queued(s) :
	    s->out.bytes;

	return queued > 0 ? ms_since(s, now_ms, true) : 0;
}
