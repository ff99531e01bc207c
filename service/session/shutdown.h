/*
 * shutdown: the end of all sessions, because the collector ends.
 */
#ifndef SERVICE_SESSION_SHUTDOWN_H
#define SERVICE_SESSION_SHUTDOWN_H

struct service;

/*
 * Ends every running session (flush, stop, files complete), with short
 * time-outs.  idle is called, once and not from inside, when no session runs
 * any more, all files are closed, and consumers have fetched their traces and
 * left; at the latest after ten seconds.  Does nothing while a shutdown is
 * under way.
 */
void service_shutdown(struct service *s, void (*idle)(void *arg), void *arg);
/*
 * Takes the shutdown back, from idle: sessions that have ended stay so, others
 * go on, and new ones may be made.
 */
void service_resume(struct service *s);
/* Frees service.shutdown; for service_free(). */
void shutdown_free(struct service *s);

#endif /* SERVICE_SESSION_SHUTDOWN_H */
