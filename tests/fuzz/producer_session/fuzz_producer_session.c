/*
 * Whole producers at a live collector, played by a script (stage/script.h):
 * three of them do what they like, beside an honest producer with a session
 * into whose buffers they write, too (stage/witness.h), and a consumer whose
 * sessions come and go.  In the end nothing may be left, and the honest one has
 * got all that is its own.
 *
 * input: records; the first is flags; `who` of a record: 0..2 a producer,
 * 3 the consumer, 4 the honest one, 5.. a producer again; odd: a turn follows.
 */
#include "tests/fuzz/stage/rogue_consumer.h"
#include "tests/fuzz/stage/rogue_producer.h"
#include "tests/fuzz/stage/stage.h"
#include "tests/fuzz/stage/witness.h"

#define PRODUCERS   3u
#define FLUSHES_MAX 3u /* each takes milliseconds */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct stage stage;
static struct rogue_producer producers[PRODUCERS];
static struct rogue_consumer consumer;
static struct witness *witness;
static unsigned flushes;

static void
act_honestly(const struct script_op *op)
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
		stage_linger(&stage, op->how, 4);
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

	if (who == 3)
		rogue_consumer_act(&consumer, op);
	else if (who == 4)
		act_honestly(op);
	else
		rogue_producer_act(&producers[who % PRODUCERS], op);
	if (op->who & 1)
		stage_turn(&stage, 1);
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
	for (i = 0; i < PRODUCERS; i++)
		rogue_producer_init(&producers[i], &stage, witness);
	rogue_consumer_init(&consumer, &stage);
	for (i = 1; script_op(data, size, i, &op); i++)
		act(&op);
	stage_turn(&stage, 3);
	for (i = 0; i < PRODUCERS; i++)
		rogue_producer_leave(&producers[i]);
	rogue_consumer_leave(&consumer);
	stage_turn(&stage, 3);
	witness_end(witness);
	stage_end(&stage);
	return 0;
}
