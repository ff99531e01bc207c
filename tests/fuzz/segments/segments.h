/*
 * segments: streams that are split, and the statistics in them; each gets the
 * same input.
 */
#ifndef TESTS_FUZZ_SEGMENTS_SEGMENTS_H
#define TESTS_FUZZ_SEGMENTS_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>

void fuzz_splitter(const uint8_t *data, size_t size);
void fuzz_stats(const uint8_t *data, size_t size);

#endif /* TESTS_FUZZ_SEGMENTS_SEGMENTS_H */
