/*
 * script: an input as a list of records of eight bytes: what happens, who does
 * it, and six bytes of how.  A change of a byte changes one thing; the mutator
 * (mutate_records.c) moves, copies and drops whole records.
 */
#ifndef TESTS_FUZZ_STAGE_SCRIPT_H
#define TESTS_FUZZ_STAGE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCRIPT_RECORD 8u
/* Bounds the time of an input. */
#define SCRIPT_STEPS_MAX 300u

struct script_op {
	uint8_t what;
	uint8_t who;
	uint8_t how[6];
};

/* The i-th record; what is cut off at the end is 0.  False: there is none. */
bool script_op(const uint8_t *data, size_t size, size_t i,
    struct script_op *out);

/* Small mostly, huge at times. */
uint64_t script_number(uint8_t b);
/* One of a few names that everybody uses. */
const char *script_name(uint8_t b);
/* Bytes that follow from the seed. */
void script_fill(uint8_t *out, size_t len, uint32_t seed);

#endif /* TESTS_FUZZ_STAGE_SCRIPT_H */
