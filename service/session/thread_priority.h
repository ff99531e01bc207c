/*
 * thread_priority: TraceConfig.priority_boost: how the kernel treats the loop's
 * thread while sessions that ask for more exist.
 *
 * The highest boost of all sessions counts, SCHED_FIFO over SCHED_OTHER; none
 * makes the thread worse than it was.  When the last such session is gone the
 * thread is scheduled as before.  A boost that the kernel refuses is a warning
 * of its session and nothing more.
 * Threads and children that begin meanwhile do not inherit it.
 */
#ifndef SERVICE_SESSION_THREAD_PRIORITY_H
#define SERVICE_SESSION_THREAD_PRIORITY_H

#include <stdbool.h>
#include <stddef.h>

#include "protos/trace_config.pb-c.h"
#include "transport/base/compiler.h"

struct thread_priority;
struct service;
struct session;

/* How a thread is scheduled: rt is 0 where nice counts. */
struct thread_priority_level {
	int policy; /* SCHED_OTHER ... */
	int rt;
	int nice;
};

/* System calls on the calling thread; tests replace them. */
struct thread_priority_ops {
	/* 0, or an errno. */
	int (*get)(struct thread_priority_level *out);
	int (*set)(const struct thread_priority_level *to);
};

/* ops NULL: the kernel's own. */
struct thread_priority *thread_priority_new(
    const struct thread_priority_ops *ops) MUST_CHECK;
/* Leaves the thread as it is: sessions are gone by then. */
void thread_priority_free(struct thread_priority *p);

/* The session exists now. */
void thread_priority_session_came(struct session *s);
/* The session is being freed, and left the service's list. */
void thread_priority_session_gone(struct service *sv, const struct session *s);

#endif /* SERVICE_SESSION_THREAD_PRIORITY_H */
