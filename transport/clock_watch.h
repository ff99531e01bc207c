/*
 * clock_watch: says when the machine's clocks have jumped: it slept, or they
 * were set.
 *
 * The kernel tells (a timer that is cancelled when CLOCK_REALTIME does not run
 * on smoothly), so that it is known at once and nobody wakes up to look.
 */
#ifndef TRANSPORT_CLOCK_WATCH_H
#define TRANSPORT_CLOCK_WATCH_H

#include "transport/compiler.h"

struct clock_watch;
struct loop;

/* NULL: no memory or no descriptor. */
struct clock_watch *clock_watch_new(struct loop *l, void (*jumped)(void *arg),
    void *arg) MUST_CHECK;
/* Legal inside jumped().  NULL is fine. */
void clock_watch_free(struct clock_watch *w);

#endif /* TRANSPORT_CLOCK_WATCH_H */
