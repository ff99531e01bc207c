/*
 * startup: what a program writes before a service's session asks for it: into
 * memory of the program's own, from where the first such session takes it over.
 *
 * Each recording is an instance of its data source, as a session has one, whose
 * slot the session's own instance takes (registry.h): of each event either the
 * one or the other has it.  The packets are then written once more, for the
 * session, by the library's thread.
 */
#ifndef CLIENT_TRACING_STARTUP_STARTUP_H
#define CLIENT_TRACING_STARTUP_STARTUP_H

/*
 * On the library's thread: ends recordings whose time is over.  Returns the
 * milliseconds until the next one; -1: none.
 */
int startup_turn(void);
/* Ends all recordings: no session comes any more. */
void startup_end_all(void);
/* In the child of a fork(): recordings are the parent's. */
void startup_after_fork(void);

#endif /* CLIENT_TRACING_STARTUP_STARTUP_H */
