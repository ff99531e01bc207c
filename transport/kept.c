#include "transport/kept.h"

#include <stdlib.h>
#include <string.h>

void
kept_free(struct kept *k)
{
	free(k->mem);
	memset(k, 0, sizeof(*k));
}

static int
kept_move(struct kept *k, size_t cap)
{
	size_t len = kept_len(k);
	uint8_t *mem;

	if ((mem = malloc(cap)) == NULL)
		return -1;
	if (len > 0)
		memcpy(mem, kept_data(k), len);
	free(k->mem);
	k->mem = mem;
	k->off = 0;
	k->end = len;
	k->cap = cap;
	return 0;
}

int
kept_add(struct kept *k, const uint8_t *data, size_t len, size_t want)
{
	size_t total = kept_len(k) + len;

	if (total < want)
		total = want;
	if (k->cap - k->off < total && kept_move(k, total) != 0)
		return -1;
	if (len > 0)
		memcpy(k->mem + k->end, data, len);
	k->end += len;
	return 0;
}

void
kept_drop(struct kept *k, size_t n)
{
	k->off += n;
}

void
kept_shrink(struct kept *k, size_t want)
{
	if (want < kept_len(k))
		want = kept_len(k);
	if (k->cap / 2 > want && want > 0)
		(void)!kept_move(k, want); /* no memory: it stays as it is */
}
