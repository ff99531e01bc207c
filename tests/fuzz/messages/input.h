/*
 * input: the bytes of one fuzzer's input, taken from their begin.
 */
#ifndef TESTS_FUZZ_MESSAGES_INPUT_H
#define TESTS_FUZZ_MESSAGES_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond))                                                   \
			abort();                                               \
	} while (0)

/* What is left of it; borrowed. */
struct input {
	const uint8_t *at;
	size_t left;
};

/* A number of so many bytes; those behind the end are 0. */
size_t input_number(struct input *in, size_t bytes);
/* The next *len bytes, or as many as there are. */
const uint8_t *input_bytes(struct input *in, size_t *len);
/* An exact copy of anything, so that a byte too many is seen.  The caller's. */
uint8_t *input_copy(const void *data, size_t len);

#endif /* TESTS_FUZZ_MESSAGES_INPUT_H */
