/*
 * turns: the time of a collector that is played: it passes by turns of the loop
 * (fake_time.h), not by the clock, so that nobody waits for a timer, and an
 * input does the same each time.  Only the threads that write files have a time
 * of their own.
 */
#ifndef TESTS_FUZZ_STAGE_TURNS_H
#define TESTS_FUZZ_STAGE_TURNS_H

#include <stdbool.h>

struct loop;

/*
 * The first turn is about to be: no timer may be left of an earlier input.
 * Returns a new loop, the caller's, in whose turns time for input runs out
 * after so many reads; NULL: no memory.
 */
struct loop *turns_begin(void);
/* A turn is over. */
void turns_pass(void);
/* A millisecond passes, whatever the turns. */
void turns_skip(void);
/*
 * A turn is over for nothing: *n, 0 at first, is how many were.  False: what is
 * waited for would have come by now, unless it waits for somebody's good will.
 */
bool turns_wait(unsigned *n);

#endif /* TESTS_FUZZ_STAGE_TURNS_H */
