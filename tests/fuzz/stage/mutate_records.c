/*
 * A mutator of scripts (script.h) for libFuzzer: whole records are dropped,
 * copied, moved and exchanged with those of other inputs; bytes of one are
 * changed by libFuzzer itself.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/stage/script.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
    unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_len,
    const uint8_t *b, size_t b_len, uint8_t *out, size_t out_max,
    unsigned seed);

static unsigned state;

static size_t
below(size_t n)
{
	state = state * 1103515245u + 12345u;
	return n == 0 ? 0 : (state >> 8) % n;
}

static size_t
change_one(uint8_t *data, size_t n)
{
	uint8_t *record = data + below(n) * SCRIPT_RECORD;

	if (below(2) == 0)
		record[below(SCRIPT_RECORD)] = (uint8_t)below(256);
	else
		LLVMFuzzerMutate(record, SCRIPT_RECORD, SCRIPT_RECORD);
	return n * SCRIPT_RECORD;
}

/* Room for `more` records at a place of chance; where it is. */
static uint8_t *
make_room(uint8_t *data, size_t n, size_t more)
{
	uint8_t *at = data + below(n + 1) * SCRIPT_RECORD;

	memmove(at + more * SCRIPT_RECORD, at,
	    (size_t)(data + n * SCRIPT_RECORD - at));
	return at;
}

static size_t
drop_some(uint8_t *data, size_t n)
{
	size_t first = below(n), count = 1 + below(below(4) == 0 ? n : 3);

	if (count > n - first)
		count = n - first;
	memmove(data + first * SCRIPT_RECORD, data + (first + count) *
	    SCRIPT_RECORD, (n - first - count) * SCRIPT_RECORD);
	return (n - count) * SCRIPT_RECORD;
}

static size_t
copy_some(uint8_t *data, size_t n, size_t most)
{
	uint8_t copy[8 * SCRIPT_RECORD];
	size_t first = below(n), count = 1 + below(8);

	if (count > n - first)
		count = n - first;
	if (count > most - n)
		count = most - n;
	memcpy(copy, data + first * SCRIPT_RECORD, count * SCRIPT_RECORD);
	memcpy(make_room(data, n, count), copy, count * SCRIPT_RECORD);
	return (n + count) * SCRIPT_RECORD;
}

static size_t
add_one(uint8_t *data, size_t n)
{
	uint8_t *at = make_room(data, n, 1);
	size_t i;

	for (i = 0; i < SCRIPT_RECORD; i++)
		at[i] = (uint8_t)below(256);
	return (n + 1) * SCRIPT_RECORD;
}

static size_t
swap_two(uint8_t *data, size_t n)
{
	uint8_t *a = data + below(n) * SCRIPT_RECORD;
	uint8_t *b = data + below(n) * SCRIPT_RECORD;
	uint8_t t[SCRIPT_RECORD];

	memcpy(t, a, sizeof(t));
	memmove(a, b, sizeof(t));
	memcpy(b, t, sizeof(t));
	return n * SCRIPT_RECORD;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
    unsigned seed)
{
	size_t most = max_size / SCRIPT_RECORD, n = size / SCRIPT_RECORD;

	state = seed;
	if (most == 0)
		return size;
	if (n == 0)
		return add_one(data, 0);
	switch (below(8)) {
	case 0:
		return n > 1 ? drop_some(data, n) : change_one(data, n);
	case 1:
		return n < most ? copy_some(data, n, most) :
		    drop_some(data, n);
	case 2:
	case 3:
		return n < most ? add_one(data, n) : swap_two(data, n);
	case 4:
		return swap_two(data, n);
	default:
		return change_one(data, n);
	}
}

/* The beginning of one, then the end of the other. */
size_t
LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_len, const uint8_t *b,
    size_t b_len, uint8_t *out, size_t out_max, unsigned seed)
{
	size_t n, from, len;

	state = seed;
	n = below(a_len / SCRIPT_RECORD + 1) * SCRIPT_RECORD;
	from = below(b_len / SCRIPT_RECORD + 1) * SCRIPT_RECORD;
	if (n > out_max)
		n = out_max / SCRIPT_RECORD * SCRIPT_RECORD;
	len = b_len - from;
	if (len > out_max - n)
		len = out_max - n;
	memcpy(out, a, n);
	memcpy(out + n, b + from, len);
	return n + len;
}
