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
	/* It has a new state, or is made and cannot be refused any more. */
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
	/* Its buffers go now, and it is freed once its producers were told. */
	SESSION_EVENT_LOSES_BUFFERS,
	/* It is being freed: first of all, and last, as it leaves the list. */
	SESSION_EVENT_FREED,
	SESSION_EVENT_LEAVES,
};

/* Any of the functions may be NULL. */
struct session_observer {
	void (*session)(struct session *s, enum session_event e);
	/* They leave the service's lists: no pointer may stand there. */
	void (*producer_leaves)(struct producer *p);
	void (*source_leaves)(struct data_source *ds);
};

void session_events_tell(struct session *s, enum session_event e);
void session_events_producer_leaves(struct producer *p);
void session_events_source_leaves(struct data_source *ds);

#endif /* SERVICE_SESSION_SESSION_EVENTS_H */
