/*
 * rpc_host: hostile clients of an rpc_host, over sockets and over a TLS that demands
 * whatever it likes; each gets the same input.
 */
#ifndef TESTS_FUZZ_RPC_HOST_PARTS_H
#define TESTS_FUZZ_RPC_HOST_PARTS_H

#include <stddef.h>
#include <stdint.h>

void fuzz_rpc_host(const uint8_t *data, size_t size);
void fuzz_tls_frames(const uint8_t *data, size_t size);

#endif /* TESTS_FUZZ_RPC_HOST_PARTS_H */
