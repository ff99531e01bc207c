#include "transport/base/budget.h"

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

static uint64_t
rate_of(const struct budget *b)
{
	return b->bytes_per_second > RATE_MAX ? RATE_MAX : b->bytes_per_second;
}

uint64_t
budget_full(const struct budget *b)
{
	uint64_t most = b->burst != 0 ? b->burst : b->bytes_per_second;

	return most > RATE_MAX ? RATE_MAX : most;
}

/* Adds tokens for the time since the last refill, until the bucket is full. */
static void
budget_fill(struct budget *b, uint64_t rate, uint64_t now_ms)
{
	uint64_t elapsed, more, most = budget_full(b);

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
	if (b->tokens > (int64_t)most)
		b->tokens = (int64_t)most;
}

/* Milliseconds that the rate takes for n bytes. */
static uint64_t
time_for(uint64_t n, uint64_t rate)
{
	return (n / rate) * 1000 + (n % rate * 1000 + rate - 1) / rate;
}

uint64_t
budget_take(struct budget *b, size_t n, uint64_t now_ms)
{
	uint64_t rate = rate_of(b);

	if (rate == 0)
		return 0;
	budget_fill(b, rate, now_ms);
	b->tokens -= (int64_t)n;
	if (b->tokens >= 0)
		return 0;
	b->throttled++;
	return time_for((uint64_t)-b->tokens, rate);
}

int64_t
budget_tokens(struct budget *b, uint64_t now_ms)
{
	uint64_t rate = rate_of(b);

	if (rate == 0)
		return INT64_MAX;
	budget_fill(b, rate, now_ms);
	return b->tokens;
}

uint64_t
budget_wait_ms(const struct budget *b, int64_t tokens)
{
	uint64_t rate = rate_of(b);

	if (rate == 0 || b->tokens >= tokens)
		return 0;
	return time_for((uint64_t)(tokens - b->tokens), rate);
}
