#include "transport/budget.h"

/* Beyond these a bucket is full, or unlimited, anyway: nothing overflows. */
#define ELAPSED_MAX_MS (24u * 60 * 60 * 1000)
#define RATE_MAX       ((uint64_t)1 << 36)

void
budget_resize(struct budget *b, size_t before, size_t now)
{
	b->memory = b->memory - before + now;
}

bool
budget_is_over(const struct budget *b)
{
	return b->memory_max != 0 && b->memory > b->memory_max;
}

/* Adds what the time since the last refill is worth, up to one second's. */
static void
budget_fill(struct budget *b, uint64_t rate, uint64_t now_ms)
{
	uint64_t elapsed, more;

	if (now_ms <= b->filled_ms)
		return;
	elapsed = now_ms - b->filled_ms;
	if (elapsed > ELAPSED_MAX_MS)
		elapsed = ELAPSED_MAX_MS;
	more = elapsed * rate / 1000;
	if (more == 0)
		return; /* a slow rate: wait until it is a byte */
	b->tokens += (int64_t)more;
	b->filled_ms = now_ms;
	if (b->tokens > (int64_t)rate)
		b->tokens = (int64_t)rate;
}

uint64_t
budget_take(struct budget *b, size_t n, uint64_t now_ms)
{
	uint64_t rate = b->bytes_per_second, debt;

	if (rate == 0)
		return 0;
	if (rate > RATE_MAX)
		rate = RATE_MAX;
	budget_fill(b, rate, now_ms);
	b->tokens -= (int64_t)n;
	if (b->tokens >= 0)
		return 0;
	b->throttled++;
	debt = (uint64_t)-b->tokens;
	return (debt / rate) * 1000 + (debt % rate * 1000 + rate - 1) / rate;
}
