/*
 * event_groups: which events of the kernel are well known, by group.  What is
 * in their messages is the schema's to say (protos/ftrace_*.proto).
 */
#ifndef CLIENT_FTRACE_EVENTS_EVENT_GROUPS_H
#define CLIENT_FTRACE_EVENTS_EVENT_GROUPS_H

#include <stddef.h>

struct event_group {
	const char *name;   /* "sched" */
	const char *events; /* sorted, with a blank between two */
};

/* All groups, sorted by name; *n is how many. */
const struct event_group *event_groups(size_t *n);

#endif /* CLIENT_FTRACE_EVENTS_EVENT_GROUPS_H */
