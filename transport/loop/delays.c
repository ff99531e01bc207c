#include "transport/loop/delays.h"

#define US UINT64_C(1000)
#define MS (1000 * US)

/* A timer of an idle machine is late by some 0.1 ms. */
static const uint64_t most[DELAYS] = {
	250 * US, 500 * US, 1 * MS, 2500 * US, 5 * MS, 10 * MS, 25 * MS,
	50 * MS, 100 * MS, 250 * MS, 1000 * MS, UINT64_MAX,
};

void
delays_note(struct delays *d, uint64_t ns)
{
	size_t i = 0;

	while (ns > most[i])
		i++;
	d->n[i]++;
	d->sum_ns += ns;
}

uint64_t
delays_most_ns(size_t row)
{
	return most[row];
}
