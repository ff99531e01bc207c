/*
 * track_event: the data source "track_event", whose packets the macros of
 * <tributary/track_event.h> write.
 */
#ifndef CLIENT_TRACING_EVENT_TRACK_EVENT_H
#define CLIENT_TRACING_EVENT_TRACK_EVENT_H

#include <stdbool.h>

#include "transport/base/compiler.h"

/* Registers the source; once.  -1: no memory. */
int track_event_init(void) MUST_CHECK;
/* In the child of a fork(): restart: its first event starts the library. */
void track_event_after_fork(bool restart);
void track_event_forget_restart(void);

#endif /* CLIENT_TRACING_EVENT_TRACK_EVENT_H */
