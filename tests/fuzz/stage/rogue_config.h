/*
 * rogue_config: a TraceConfig by a record: one of some whole ones, and changes
 * that are put behind it (later fields win, lists grow).
 */
#ifndef TESTS_FUZZ_STAGE_ROGUE_CONFIG_H
#define TESTS_FUZZ_STAGE_ROGUE_CONFIG_H

#include <stdint.h>

struct pb_writer;

/* The config as field `number` of out. */
void rogue_config_put(struct pb_writer *out, uint32_t number,
    const uint8_t how[6]);

#endif /* TESTS_FUZZ_STAGE_ROGUE_CONFIG_H */
