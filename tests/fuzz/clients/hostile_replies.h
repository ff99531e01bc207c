/*
 * hostile_replies: messages of the kind that a client expects, with contents of
 * the input's choice.
 */
#ifndef TESTS_FUZZ_CLIENTS_HOSTILE_REPLIES_H
#define TESTS_FUZZ_CLIENTS_HOSTILE_REPLIES_H

#include <stdint.h>

#include "tests/fuzz/clients/victims.h"

struct pb_writer;
struct script_op;

enum hostile_reply { HOSTILE_ALONE, HOSTILE_WITH_MEMORY };

/* What answers a call of this method (its place in victim_methods(), plus 1). */
enum hostile_reply hostile_reply(struct pb_writer *out, enum victim v,
    uint32_t method, const struct script_op *op);

#endif /* TESTS_FUZZ_CLIENTS_HOSTILE_REPLIES_H */
