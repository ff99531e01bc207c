/*
 * clock_jumps: says when the machine's clocks have jumped: it slept, or they
 * were set.
 *
 * The kernel tells (a timer that is cancelled when CLOCK_REALTIME does not run
 * on smoothly), so that a jump is known at once and without polling.
 */
#ifndef TRANSPORT_CLOCK_CLOCK_JUMPS_H
#define TRANSPORT_CLOCK_CLOCK_JUMPS_H

#include "transport/base/compiler.h"

struct clock_jumps;
struct loop;

/* NULL: no memory or no descriptor. */
struct clock_jumps *clock_jumps_new(struct loop *l, void (*jumped)(void *arg),
    void *arg) MUST_CHECK;
/* Legal inside jumped().  NULL is fine. */
void clock_jumps_free(struct clock_jumps *w);

#endif /* TRANSPORT_CLOCK_CLOCK_JUMPS_H */
