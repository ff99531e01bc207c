/*
 * session_events: what becomes of sessions, producers and data sources, for
 * those who follow them without being part of them.
 *
 * The service has a table of observers from when it is made
 * (service.observers).  They hear each event in the order of the table, on the
 * stack of what causes it, and only where an event says so may they free the
 * session.
 */
#ifndef SERVICE_SESSION_SESSION_EVENTS_H
#define SERVICE_SESSION_SESSION_EVENTS_H

struct data_source;
struct producer;
struct session;

enum session_event {
	/*
	 * The session has a new phase (session_state.h), which is its first
	 * once it cannot be refused any more.
	 */
	SESSION_EVENT_STATE,
	/* Tracing starts: its trace says so, producers were not told yet. */
	SESSION_EVENT_STARTS,
	/* All producers there were told to start. */
	SESSION_EVENT_STARTED,
	/*
	 * A clone's file is complete, or failed (end_error).  The last observer
	 * of the table may free the session.
	 */
	SESSION_EVENT_FILE_CLOSED,
	/* All has stopped, and the file is complete, or failed (end_error). */
	SESSION_EVENT_ENDED,
	/* Buffers go now; the session is freed once its producers were told. */
	SESSION_EVENT_LOSES_BUFFERS,
	/*
	 * Freeing begins; and ends, as the session leaves the service's list.
	 */
	SESSION_EVENT_FREED,
	SESSION_EVENT_LEAVES,
};

/* Any of the functions may be NULL. */
struct session_observer {
	void (*session)(struct session *s, enum session_event e);
	/*
	 * A producer or data source leaves the service's lists: no pointer may
	 * stand on it.
	 */
	void (*producer_leaves)(struct producer *p);
	void (*source_leaves)(struct data_source *ds);
};

void session_events_tell(struct session *s, enum session_event e);
void session_events_producer_leaves(struct producer *p);
void session_events_source_leaves(struct data_source *ds);

#endif /* SERVICE_SESSION_SESSION_EVENTS_H */
