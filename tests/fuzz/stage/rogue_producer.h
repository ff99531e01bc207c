/*
 * rogue_producer: a producer that does what a record says (script.h): connects,
 * with shared memory or without, registers and unregisters, writes chunks that
 * are valid, half or nonsense, patches, acknowledges, scribbles, leaves.
 */
#ifndef TESTS_FUZZ_STAGE_ROGUE_PRODUCER_H
#define TESTS_FUZZ_STAGE_ROGUE_PRODUCER_H

#include <stddef.h>
#include <stdint.h>

#include "tests/fuzz/stage/script.h"
#include "tests/fuzz/stage/wire.h"

struct stage;
struct witness;

#define ROGUE_WRITERS 8u

struct rogue_producer {
	struct stage *stage;
	const struct witness *aim; /* whose buffers it also writes to; or NULL */
	struct wire wire;
	uint8_t *shm; /* as it came with SetupTracing, or was its own */
	size_t shm_len;
	uint32_t chunks[ROGUE_WRITERS]; /* the next of each writer */
};

void rogue_producer_init(struct rogue_producer *p, struct stage *s,
    const struct witness *aim);
/* Does one thing; connects first where it is not. */
void rogue_producer_act(struct rogue_producer *p, const struct script_op *op);
void rogue_producer_leave(struct rogue_producer *p);

#endif /* TESTS_FUZZ_STAGE_ROGUE_PRODUCER_H */
