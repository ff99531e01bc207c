/*
 * rogue_consumer: a consumer (or operator) that does what a record says
 * (script.h): every method in any order, with configs that are put together of
 * a whole one and changes to it.
 */
#ifndef TESTS_FUZZ_STAGE_ROGUE_CONSUMER_H
#define TESTS_FUZZ_STAGE_ROGUE_CONSUMER_H

#include "tests/fuzz/stage/script.h"
#include "tests/fuzz/stage/wire.h"

struct stage;

struct rogue_consumer {
	struct stage *stage;
	struct wire wire;
	bool control; /* TributaryControl instead of ConsumerPort */
	bool operator; /* it is, where nothing else is said */
	/* What this one holds together so far of a packet, and has read. */
	uint64_t packets;
};

void rogue_consumer_init(struct rogue_consumer *c, struct stage *s);
/* Does one thing; connects first where it is not. */
void rogue_consumer_act(struct rogue_consumer *c, const struct script_op *op);
void rogue_consumer_leave(struct rogue_consumer *c);

#endif /* TESTS_FUZZ_STAGE_ROGUE_CONSUMER_H */
