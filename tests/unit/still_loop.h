/*
 * still_loop: a loop by whose clock no time passes.  A turn's time for input
 * runs out when the machine gives a test no processor; for tests that say what
 * a turn does.
 */
#ifndef TESTS_UNIT_STILL_LOOP_H
#define TESTS_UNIT_STILL_LOOP_H

#include "transport/loop/loop.h"

static inline uint64_t
still_clock_ns(void *arg)
{
	return 1;
}

/* The caller's, as loop_new()'s. */
static inline struct loop *
still_loop_new(void)
{
	struct loop *l = loop_new();

	if (l != NULL)
		loop_set_clock(l, still_clock_ns, NULL);
	return l;
}

#endif /* TESTS_UNIT_STILL_LOOP_H */
