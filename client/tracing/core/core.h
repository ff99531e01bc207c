/*
 * core: the library's one thread, for a room that has work on it besides the
 * connection to a service: sessions inside of the program (local/).
 */
#ifndef CLIENT_TRACING_CORE_CORE_H
#define CLIENT_TRACING_CORE_CORE_H

#include <stdbool.h>
#include <time.h>

#include "transport/base/compiler.h"

struct core_guest {
	/*
	 * On the thread, after each core_wake() and whenever it is due.
	 * Returns the milliseconds until then; -1: when it is woken.
	 */
	int (*turn)(void);
	/* Around a fork(), on the thread that forks. */
	void (*before_fork)(void);
	void (*after_fork)(bool in_child);
};

/*
 * Starts the thread if it does not run, and keeps it until core_leave().  The
 * guest is the same in every call, and borrowed for ever.  -1: no memory or no
 * thread.
 */
int core_enter(const struct core_guest *g) MUST_CHECK;
void core_leave(void);
/* Any thread, and signal handlers, between core_enter() and core_leave(). */
void core_wake(void);
/* CLOCK_MONOTONIC in so many milliseconds. */
void core_deadline(struct timespec *at, unsigned ms);
/* Whether the caller is the library's thread. */
bool core_is_thread(void);

#endif /* CLIENT_TRACING_CORE_CORE_H */
