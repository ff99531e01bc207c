/*
 * clock_jumps: tells when the machine's clocks have jumped: it was suspended,
 * or they were set.
 *
 * Uses a timerfd that the kernel cancels when CLOCK_REALTIME is set or jumps
 * (TFD_TIMER_CANCEL_ON_SET), so that a jump is known at once, without polling.
 */
#ifndef TRANSPORT_CLOCK_CLOCK_JUMPS_H
#define TRANSPORT_CLOCK_CLOCK_JUMPS_H

#include <stdbool.h>

#include "transport/base/compiler.h"

/*
 * For an owner that waits by itself: a descriptor that becomes readable when
 * the clocks jump.  -1: there is none, with errno.
 */
int clock_jumps_open(void) MUST_CHECK;
/* Reads it.  True: they have jumped, and the next jump is waited for. */
bool clock_jumps_read(int fd);

/* On an event loop. */
struct clock_jumps;
struct loop;

/* jumped(arg) is called on the loop.  NULL: no memory or no descriptor. */
struct clock_jumps *clock_jumps_new(struct loop *l, void (*jumped)(void *arg),
    void *arg) MUST_CHECK;
/* Legal inside jumped().  NULL is fine. */
void clock_jumps_free(struct clock_jumps *w);

#endif /* TRANSPORT_CLOCK_CLOCK_JUMPS_H */
