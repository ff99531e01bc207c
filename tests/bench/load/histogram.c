#include "tests/bench/load/histogram.h"

/* Below two times the steps, each value has a slot of its own. */
static unsigned
slot_of(uint64_t value)
{
	unsigned shift, slot;

	if (value < 2 * HISTOGRAM_STEPS)
		return (unsigned)value;
	shift = 63u - (unsigned)__builtin_clzll(value) - 4u;
	slot = shift * HISTOGRAM_STEPS + (unsigned)(value >> shift);
	return slot < HISTOGRAM_SLOTS ? slot : HISTOGRAM_SLOTS - 1;
}

/* The largest value of a slot. */
static uint64_t
top_of(unsigned slot)
{
	unsigned shift;

	if (slot < 2 * HISTOGRAM_STEPS)
		return slot;
	shift = slot / HISTOGRAM_STEPS - 1;
	return ((uint64_t)(slot - shift * HISTOGRAM_STEPS + 1) << shift) - 1;
}

void
histogram_add(struct histogram *h, uint64_t value)
{
	h->n++;
	h->sum += value;
	if (value > h->max)
		h->max = value;
	h->slots[slot_of(value)]++;
}

uint64_t
histogram_at(const struct histogram *h, unsigned per_mille)
{
	uint64_t want = (h->n * per_mille + 999) / 1000, seen = 0;
	unsigned i;

	if (want == 0)
		want = 1;
	for (i = 0; i < HISTOGRAM_SLOTS && h->n > 0; i++) {
		seen += h->slots[i];
		if (seen < want)
			continue;
		return top_of(i) < h->max ? top_of(i) : h->max;
	}
	return h->max;
}
