#include "transport/socket/input_rest.h"

#include <stdlib.h>
#include <string.h>

void
input_rest_free(struct input_rest *k)
{
	free(k->mem);
	memset(k, 0, sizeof(*k));
}

static int
kept_move(struct input_rest *k, size_t cap)
{
	size_t len = input_rest_len(k);
	uint8_t *mem;

	if ((mem = malloc(cap)) == NULL)
		return -1;
	if (len > 0)
		memcpy(mem, input_rest_data(k), len);
	free(k->mem);
	k->mem = mem;
	k->off = 0;
	k->end = len;
	k->cap = cap;
	return 0;
}

int
input_rest_add(struct input_rest *k, const uint8_t *data, size_t len,
    size_t want)
{
	size_t total = input_rest_len(k) + len;

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
input_rest_drop(struct input_rest *k, size_t n)
{
	k->off += n;
}

void
input_rest_shrink(struct input_rest *k, size_t want)
{
	if (want < input_rest_len(k))
		want = input_rest_len(k);
	if (k->cap / 2 > want && want > 0)
		(void)!kept_move(k, want); /* no memory: it stays as it is */
}
