#include "transport/clock/clock_fit.h"

static uint64_t
growth(const struct clock_fit *f, uint64_t now_ns)
{
	uint64_t age = now_ns > f->at_ns ? now_ns - f->at_ns :
	    f->at_ns - now_ns;
	uint64_t grown = age / 1000000u * CLOCK_FIT_DRIFT_PPM +
	    age % 1000000u * CLOCK_FIT_DRIFT_PPM / 1000000u;

	return grown < CLOCK_FIT_MAX_NS ? grown : CLOCK_FIT_MAX_NS;
}

void
clock_fit_take(struct clock_fit *f, int64_t low, int64_t high,
    uint64_t now_ns)
{
	int64_t grown;

	if (f->known) {
		grown = (int64_t)growth(f, now_ns);
		if (f->low - grown <= high && f->high + grown >= low) {
			if (f->low - grown > low)
				low = f->low - grown;
			if (f->high + grown < high)
				high = f->high + grown;
		}
	}
	*f = (struct clock_fit){ true, low, high, now_ns };
}

int64_t
clock_fit_offset(const struct clock_fit *f)
{
	return f->low + (f->high - f->low) / 2;
}

uint64_t
clock_fit_uncertainty(const struct clock_fit *f)
{
	uint64_t width = (uint64_t)(f->high - f->low);

	return width - width / 2;
}

uint64_t
clock_fit_uncertainty_at(const struct clock_fit *f, uint64_t now_ns)
{
	return clock_fit_uncertainty(f) + growth(f, now_ns);
}
