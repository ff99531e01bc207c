/*
 * outer_loop: one descriptor that is readable when any of several is ready or a
 * time has come, for a program that waits in an event loop of its own.
 *
 * Belongs to one thread.
 */
#ifndef CLIENT_TRACING_CORE_OUTER_LOOP_H
#define CLIENT_TRACING_CORE_OUTER_LOOP_H

#include <poll.h>
#include <stddef.h>

#include "transport/base/compiler.h"

#define OUTER_LOOP_FDS 8

struct outer_loop {
	int fd;       /* -1: not open */
	int timer_fd; /* watched by fd */
	int watched[OUTER_LOOP_FDS]; /* further descriptors; -1: none */
};

/* -1: no descriptors are left. */
int outer_loop_open(struct outer_loop *o) MUST_CHECK;
void outer_loop_close(struct outer_loop *o);
/*
 * From now on: fds (at most OUTER_LOOP_FDS, each once; -1 is fine) with their
 * events, and a time-out, -1: none.
 */
void outer_loop_watch(struct outer_loop *o, const struct pollfd *fds, size_t n,
    int timeout_ms);

#endif /* CLIENT_TRACING_CORE_OUTER_LOOP_H */
