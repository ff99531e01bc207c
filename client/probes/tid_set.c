#include "client/probes/tid_set.h"

#include <stdlib.h>
#include <string.h>

/* The set grows by as much, which has room for the ids of a small machine. */
#define GROW_BYTES 4096u

void
tid_set_done(struct tid_set *s)
{
	free(s->bits);
	memset(s, 0, sizeof(*s));
}

bool
tid_set_has(const struct tid_set *s, int32_t tid)
{
	return tid >= 0 && (size_t)tid / 8 < s->n_bytes &&
	    (s->bits[tid / 8] >> tid % 8 & 1) != 0;
}

void
tid_set_add(struct tid_set *s, int32_t tid)
{
	uint8_t *larger;
	size_t n;

	if (tid < 0 || tid >= TID_SET_MAX)
		return;
	if ((size_t)tid / 8 >= s->n_bytes) {
		n = ((size_t)tid / 8 / GROW_BYTES + 1) * GROW_BYTES;
		if ((larger = realloc(s->bits, n)) == NULL)
			return;
		memset(larger + s->n_bytes, 0, n - s->n_bytes);
		s->bits = larger;
		s->n_bytes = n;
	}
	s->bits[tid / 8] |= (uint8_t)(1u << tid % 8);
}

void
tid_set_remove(struct tid_set *s, int32_t tid)
{
	if (tid_set_has(s, tid))
		s->bits[tid / 8] &= (uint8_t)~(1u << tid % 8);
}

void
tid_set_clear(struct tid_set *s)
{
	if (s->n_bytes > 0)
		memset(s->bits, 0, s->n_bytes);
}
