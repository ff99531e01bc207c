/* model_session: model.h's collector, as it really is. */
#ifndef TESTS_UNIT_LINK_MODEL_SESSION_H
#define TESTS_UNIT_LINK_MODEL_SESSION_H

#include "tests/unit/link/model.h"

/*
 * What its session has recorded: every packet once, in its sequence's order,
 * gaps marked, and all that is missing is in the machine's counters: at least,
 * or exactly.  Then book.chunks_* count packets.
 */
void collector_check_trace(struct collector *c, bool exact);

#endif /* TESTS_UNIT_LINK_MODEL_SESSION_H */
