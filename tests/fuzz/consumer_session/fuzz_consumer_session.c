/*
 * Whole consumers at a live collector, played by a script (stage/script.h):
 * four of them call what they like in any order, some as operators, over two
 * producers that serve whatever they set up, beside a neighbour with a session
 * of its own (stage/witness.h).  In the end no session is left, and the
 * neighbour has got everything.
 *
 * input: records; the first is flags; `who` of a record: 0..3 a consumer, 4
 * and 5 a producer, 6 the neighbour, 7 a consumer again; odd: a turn follows.
 */
#include "tests/fuzz/stage/rogue_consumer.h"
#include "tests/fuzz/stage/rogue_producer.h"
#include "tests/fuzz/stage/stage.h"
#include "tests/fuzz/stage/witness.h"

#define CONSUMERS   4u
#define PRODUCERS   2u
#define FLUSHES_MAX 3u /* each takes milliseconds */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct stage stage;
static struct rogue_consumer consumers[CONSUMERS];
static struct rogue_producer producers[PRODUCERS];
static struct witness *witness;
static unsigned flushes;

static void
act_as_neighbour(const struct script_op *op)
{
	switch (op->what % 8) {
	case 0:
		if (flushes++ < FLUSHES_MAX)
			witness_flush(witness);
		break;
	case 1:
	case 2:
		witness_read(witness);
		break;
	case 3:
	case 4:
		stage_linger(&stage, op->how, 8);
		break;
	default:
		witness_write(witness, op->how[0]);
		break;
	}
}

static void
act(const struct script_op *op)
{
	unsigned who = op->who / 2 % 8;

	if (who == 4 || who == 5)
		rogue_producer_act(&producers[who - 4], op);
	else if (who == 6)
		act_as_neighbour(op);
	else
		rogue_consumer_act(&consumers[who % CONSUMERS], op);
	if (op->who & 1)
		stage_turn(&stage, 1);
}

/* A producer that has what configs ask for: "a", to begin with. */
static void
bring_producer(struct rogue_producer *p)
{
	static const struct script_op steps[] = {
		{ 0, 0, { 0, 1, 4, 6, 0, 0 } }, /* connects as "p"... */
		{ 1, 0, { 0, 0, 0, 0, 0, 0 } }, /* registers "a" */
		{ 1, 0, { 1, 3, 0, 0, 0, 0 } }, /* and "b", which notifies */
	};
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		rogue_producer_act(p, &steps[i]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script_op op;
	size_t i;

	if (size == 0)
		return 0;
	flushes = 0;
	stage_begin(&stage);
	witness = witness_new(&stage, data[0] & 1);
	for (i = 0; i < PRODUCERS; i++) {
		rogue_producer_init(&producers[i], &stage, witness);
		if (data[0] & 2)
			bring_producer(&producers[i]);
	}
	for (i = 0; i < CONSUMERS; i++)
		rogue_consumer_init(&consumers[i], &stage);
	consumers[CONSUMERS - 1].operator = true;
	for (i = 1; script_op(data, size, i, &op); i++)
		act(&op);
	stage_turn(&stage, 3);
	for (i = 0; i < CONSUMERS; i++)
		rogue_consumer_leave(&consumers[i]);
	for (i = 0; i < PRODUCERS; i++)
		rogue_producer_leave(&producers[i]);
	stage_turn(&stage, 3);
	witness_end(witness);
	stage_end(&stage);
	return 0;
}
