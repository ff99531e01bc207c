#include "relay/outbox/outbox_internal.h"

/*
 * Deficit round robin by bytes, with fq_codel's two lists.
 *
 * A channel with a deficit above zero sends a block, which may take the deficit
 * far below; otherwise it gets a quantum and goes to the end of the old list.
 * A channel that had nothing to send waits in the new list, which is served
 * first, for one quantum: so a flush's acknowledgement does not wait behind a
 * flood of chunks.  A channel cannot gain by being empty now and then: it stays
 * in the old list until its turn has come there.
 */

static struct ob_channels *
turns_of(struct outbox *o, enum ob_turn turn)
{
	return &o->turns[turn == OB_TURN_OLD];
}

static void
turn_set(struct outbox *o, struct ob_channel *c, enum ob_turn turn)
{
	if (c->turn != OB_TURN_NONE) {
		TAILQ_REMOVE(turns_of(o, c->turn), c, waits);
		o->waiting--;
	}
	c->turn = turn;
	if (turn != OB_TURN_NONE) {
		TAILQ_INSERT_TAIL(turns_of(o, turn), c, waits);
		o->waiting++;
	}
}

void
ob_turn_want(struct outbox *o, struct ob_channel *c)
{
	if (c->turn == OB_TURN_NONE) {
		c->deficit = OB_QUANTUM;
		turn_set(o, c, OB_TURN_NEW);
	}
	ob_ready(o);
}

void
ob_turn_leave(struct outbox *o, struct ob_channel *c)
{
	turn_set(o, c, OB_TURN_NONE);
}

enum outcome { SENDS, PASSES, CANNOT };

static enum outcome
turn_of(struct outbox *o, struct ob_channel *c,
    bool (*may_send)(struct outbox *o, struct ob_channel *c))
{
	if (c->unsent == NULL || c->unsent->used == 0) {
		/* Once through the old list, before it is new again. */
		turn_set(o, c, c->turn == OB_TURN_NEW ? OB_TURN_OLD :
		    OB_TURN_NONE);
		return PASSES;
	}
	if (!may_send(o, c)) {
		turn_set(o, c, OB_TURN_OLD);
		return CANNOT;
	}
	if (c->deficit > 0)
		return SENDS;
	c->deficit += OB_QUANTUM;
	turn_set(o, c, OB_TURN_OLD);
	return PASSES;
}

struct ob_channel *
ob_turn_next(struct outbox *o,
    bool (*may_send)(struct outbox *o, struct ob_channel *c))
{
	size_t cannot = 0;
	struct ob_channel *c;

	/* After as many channels in a row as wait, all of them cannot send. */
	while (cannot < o->waiting) {
		c = TAILQ_FIRST(&o->turns[0]);
		if (c == NULL)
			c = TAILQ_FIRST(&o->turns[1]);
		switch (turn_of(o, c, may_send)) {
		case SENDS:
			return c;
		case PASSES:
			cannot = 0;
			break;
		case CANNOT:
			cannot++;
			break;
		}
	}
	return NULL;
}
