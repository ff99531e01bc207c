/*
 * ftrace: everything that reads the kernel's pages of records, and records.
 */
#ifndef TESTS_FUZZ_FTRACE_FTRACE_H
#define TESTS_FUZZ_FTRACE_FTRACE_H

#include <stddef.h>
#include <stdint.h>

void fuzz_bundle(const uint8_t *data, size_t size);
void fuzz_page_reader(const uint8_t *data, size_t size);

#endif /* TESTS_FUZZ_FTRACE_FTRACE_H */
