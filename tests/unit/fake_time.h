/*
 * fake_time: time that tests turn on by hand.  Linked with --wrap, it takes the
 * place of loop_now_ms(), loop_turn_ms() and of all loop timers.
 */
#ifndef TESTS_UNIT_FAKE_TIME_H
#define TESTS_UNIT_FAKE_TIME_H

#include <stdint.h>

/* Back to the begin. */
void fake_time_reset(void);
/*
 * Turns it on, and fires what is due on the way, each at its time; between
 * (NULL: nothing) is called before and after each.
 */
void fake_time_pass(uint64_t ms, void (*between)(void));
/* A millisecond. */
void fake_time_tick(void);
/* Milliseconds until the next timer; UINT64_MAX: none is armed. */
uint64_t fake_time_next(void);

#endif /* TESTS_UNIT_FAKE_TIME_H */
