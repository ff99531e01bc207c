#include "tests/fuzz/stage/script.h"

#include <string.h>

bool
script_op(const uint8_t *data, size_t size, size_t i, struct script_op *out)
{
	size_t at = i * SCRIPT_RECORD, n;

	if (at >= size || i >= SCRIPT_STEPS_MAX)
		return false;
	n = size - at < sizeof(*out) ? size - at : sizeof(*out);
	memset(out, 0, sizeof(*out));
	memcpy(out, data + at, n);
	return true;
}

uint64_t
script_number(uint8_t b)
{
	if (b < 200)
		return b % 10;
	if (b < 230)
		return (uint64_t)b << 5;
	return UINT64_MAX >> (b % 64);
}

const char *
script_name(uint8_t b)
{
	static const char *const names[] = { "a", "b", "c", "p", "t", "u", "n",
		"key", "", "a\nb", "quiet", "\xff" };

	return names[b % (sizeof(names) / sizeof(names[0]))];
}

void
script_fill(uint8_t *out, size_t len, uint32_t seed)
{
	uint32_t x = seed * 2654435761u + 1;
	size_t i;

	for (i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		out[i] = (uint8_t)x;
	}
}
