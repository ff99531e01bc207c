/*
 * tls_fuzz: one end of a TLS connection against a hostile other end.
 *
 * input: 1 byte, bit 0: the other end is honest, but bytes of it are changed on
 * the way (else: raw bytes); bit 1: up to TLS 1.2 only; bits 2..7: size of the
 * pieces that arrive, less one.  Then the raw bytes, or changes of three bytes
 * each: how many bytes go by unharmed (16 bits, big-endian), and what the next
 * one is XORed with.
 */
#ifndef TESTS_FUZZ_TLS_TLS_FUZZ_H
#define TESTS_FUZZ_TLS_TLS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "transport/tls/tls.h"

void tls_fuzz_run(enum tls_side side, const uint8_t *data, size_t size);

#endif /* TESTS_FUZZ_TLS_TLS_FUZZ_H */
