/*
 * memory: what a producer leaves in shared memory, and the commits that speak of
 * it; each gets the same input.
 */
#ifndef TESTS_FUZZ_MEMORY_MEMORY_H
#define TESTS_FUZZ_MEMORY_MEMORY_H

#include <stddef.h>
#include <stdint.h>

void fuzz_shm(const uint8_t *data, size_t size);
void fuzz_commit(const uint8_t *data, size_t size);

#endif /* TESTS_FUZZ_MEMORY_MEMORY_H */
