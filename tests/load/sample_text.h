/*
 * sample_text: filling for packets that compresses about as those of real traces
 * do: names out of a few, and numbers that nothing foretells.
 */
#ifndef TESTS_LOAD_SAMPLE_TEXT_H
#define TESTS_LOAD_SAMPLE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Fills all of out; the same for the same seed. */
void sample_text(char *out, size_t len, uint64_t seed);

#endif /* TESTS_LOAD_SAMPLE_TEXT_H */
