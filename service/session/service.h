/*
 * service: the collector's state without its sockets: machines, producers,
 * sessions.  One per daemon; tests make their own.
 */
#ifndef SERVICE_SESSION_SERVICE_H
#define SERVICE_SESSION_SERVICE_H

#include "transport/compiler.h"
#include "service/session/model.h"

/*
 * settings is borrowed; trace_dirfd (or -1) becomes the service's on success.
 */
struct service *service_new(struct loop *l, const struct settings *settings,
    int trace_dirfd) MUST_CHECK;
/* No session, consumer or producer may be left, but those of links. */
void service_free(struct service *s);

/*
 * Ends every running session (flush, stop, files complete), with short
 * time-outs.  idle is called, once and not from inside, when none runs any
 * more, all files are closed, and consumers have fetched what their sessions
 * hold and left; at the latest after a few seconds.
 */
void service_shutdown(struct service *s, void (*idle)(void *arg), void *arg);
/*
 * Takes it back, from idle: those that have ended stay so, others go on, and new
 * ones may come.
 */
void service_resume(struct service *s);
/* service_free()'s. */
void shutdown_free(struct service *s);

#endif /* SERVICE_SESSION_SERVICE_H */
