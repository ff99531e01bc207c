/*
 * messages: every parser of small binary messages, the check of packets and the
 * filter of them; each gets the same input.
 */
#ifndef TESTS_FUZZ_MESSAGES_MESSAGES_H
#define TESTS_FUZZ_MESSAGES_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

void fuzz_certificate(const uint8_t *data, size_t size);
void fuzz_filter(const uint8_t *data, size_t size);
void fuzz_printed(const uint8_t *data, size_t size);
void fuzz_pb_reader(const uint8_t *data, size_t size);
void fuzz_unpack(const uint8_t *data, size_t size);
void fuzz_link_frame(const uint8_t *data, size_t size);
void fuzz_link_loss(const uint8_t *data, size_t size);
void fuzz_link_clock(const uint8_t *data, size_t size);
void fuzz_link_unpack(const uint8_t *data, size_t size);
void fuzz_link_zstd(const uint8_t *data, size_t size);
void fuzz_clock_exchange(const uint8_t *data, size_t size);
void fuzz_packet_boundary(const uint8_t *data, size_t size);
void fuzz_packet_check(const uint8_t *data, size_t size);

#endif /* TESTS_FUZZ_MESSAGES_MESSAGES_H */
