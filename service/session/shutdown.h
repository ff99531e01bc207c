/*
 * shutdown: the end of all sessions, because the collector ends.
 */
#ifndef SERVICE_SESSION_SHUTDOWN_H
#define SERVICE_SESSION_SHUTDOWN_H

struct service;

/*
 * Ends every running session (flush, stop, files complete), with short
 * time-outs.  idle is called, once and not from inside, when none runs any
 * more, all files are closed, and consumers have fetched what their sessions
 * hold and left; at the latest after a few seconds.
 */
void service_shutdown(struct service *s, void (*idle)(void *arg), void *arg);
/*
 * Takes it back, from idle: those that have ended stay so, others go on, and
 * new ones may come.
 */
void service_resume(struct service *s);
/* service_free()'s. */
void shutdown_free(struct service *s);

#endif /* SERVICE_SESSION_SHUTDOWN_H */
