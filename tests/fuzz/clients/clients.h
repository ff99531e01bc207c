/*
 * clients: everything of ours that calls a service, at a hostile one; each gets
 * the same input.
 */
#ifndef TESTS_FUZZ_CLIENTS_CLIENTS_H
#define TESTS_FUZZ_CLIENTS_CLIENTS_H

#include <stddef.h>
#include <stdint.h>

void fuzz_hostile_host(const uint8_t *data, size_t size);
void fuzz_rpc_client(const uint8_t *data, size_t size);

#endif /* TESTS_FUZZ_CLIENTS_CLIENTS_H */
