/*
 * outbox: what an earlier relay left on the disk; each gets the same input.
 */
#ifndef TESTS_FUZZ_OUTBOX_OUTBOX_H
#define TESTS_FUZZ_OUTBOX_OUTBOX_H

#include <stddef.h>
#include <stdint.h>

void fuzz_outbox_recover(const uint8_t *data, size_t size);
void fuzz_outbox_spool(const uint8_t *data, size_t size);

#endif /* TESTS_FUZZ_OUTBOX_OUTBOX_H */
