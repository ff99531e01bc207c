#include "tests/fuzz/messages/input.h"

#include <string.h>

size_t
input_number(struct input *in, size_t bytes)
{
	size_t v = 0;

	while (bytes-- > 0) {
		v = v << 8 | (in->left > 0 ? *in->at : 0);
		if (in->left > 0) {
			in->at++;
			in->left--;
		}
	}
	return v;
}

const uint8_t *
input_bytes(struct input *in, size_t *len)
{
	const uint8_t *at = in->at;

	if (*len > in->left)
		*len = in->left;
	in->at += *len;
	in->left -= *len;
	return at;
}

uint8_t *
input_copy(const void *data, size_t len)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);

	CHECK(copy != NULL);
	if (len > 0)
		memcpy(copy, data, len);
	return copy;
}
