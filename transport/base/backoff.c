#include "transport/base/backoff.h"

uint64_t
backoff_ms(unsigned failures, uint64_t min_ms, uint64_t max_ms,
    uint32_t random)
{
	uint64_t ms = min_ms > 0 ? min_ms : 1;

	while (failures > 1 && ms < max_ms) {
		failures--;
		ms *= 2;
	}
	if (ms > max_ms)
		ms = max_ms;
	return ms - (uint64_t)((double)random / UINT32_MAX * (double)ms / 2);
}
