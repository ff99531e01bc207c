/*
 * traces: everything that reads trace files or replies with packets in them; each
 * gets the same input.
 */
#ifndef TESTS_FUZZ_TRACES_TRACES_H
#define TESTS_FUZZ_TRACES_TRACES_H

#include <stddef.h>
#include <stdint.h>

void fuzz_inspect(const uint8_t *data, size_t size);
void fuzz_trace_summary(const uint8_t *data, size_t size);
void fuzz_trace_clocks(const uint8_t *data, size_t size);
void fuzz_packet_show(const uint8_t *data, size_t size);
void fuzz_slice_joiner(const uint8_t *data, size_t size);
void fuzz_trace_expand(const uint8_t *data, size_t size);

#endif /* TESTS_FUZZ_TRACES_TRACES_H */
