/*
 * session_events: tells observers (service/onlookers) of changes to sessions,
 * producers and data sources.
 *
 * The service has a table of observers from when it is made
 * (service.observers).  Each event is told to them in the order of the table,
 * on the stack of the function that causes it.  An observer may free the
 * session only where the event below says so.
 */
#ifndef SERVICE_SESSION_SESSION_EVENTS_H
#define SERVICE_SESSION_SESSION_EVENTS_H

struct data_source;
struct producer;
struct session;

enum session_event {
	/*
	 * The session has a new phase (session_state.h).  The first comes once
	 * EnableTracing cannot be refused any more.
	 */
	SESSION_EVENT_STATE,
	/* Tracing starts: the trace says so, producers were not told yet. */
	SESSION_EVENT_STARTS,
	/* All producers with an instance of the session were told to start. */
	SESSION_EVENT_STARTED,
	/*
	 * A clone's file is complete, or failed (end_error).  The last observer
	 * of the table may free the session.
	 */
	SESSION_EVENT_FILE_CLOSED,
	/* All stopped, and the file is complete, or failed (end_error). */
	SESSION_EVENT_ENDED,
	/*
	 * Buffers are freed next; the session is freed once its producers were
	 * told to stop.
	 */
	SESSION_EVENT_LOSES_BUFFERS,
	/*
	 * FREED: freeing begins; the parts are still there, but for buffers
	 * after LOSES_BUFFERS.  LEAVES: the parts are freed, and the session
	 * leaves the service's list next.
	 */
	SESSION_EVENT_FREED,
	SESSION_EVENT_LEAVES,
};

/* Any of the functions may be NULL. */
struct session_observer {
	void (*session)(struct session *s, enum session_event e);
	/*
	 * A producer or data source leaves the service's lists, and is freed
	 * next: the observer drops its pointers to it.
	 */
	void (*producer_leaves)(struct producer *p);
	void (*source_leaves)(struct data_source *ds);
};

void session_events_tell(struct session *s, enum session_event e);
void session_events_producer_leaves(struct producer *p);
void session_events_source_leaves(struct data_source *ds);

#endif /* SERVICE_SESSION_SESSION_EVENTS_H */
