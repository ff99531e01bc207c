/*
 * service: the collector's state without its sockets: machines, producers,
 * sessions.  One per daemon; tests make their own.
 */
#ifndef SERVICE_SESSION_SERVICE_H
#define SERVICE_SESSION_SERVICE_H

#include "transport/compiler.h"
#include "service/session/model.h"

/* settings is borrowed; trace_dirfd (or -1) becomes the service's. */
struct service *service_new(struct loop *l, const struct settings *settings,
    int trace_dirfd) MUST_CHECK;
/* No producer, session or consumer may be left. */
void service_free(struct service *s);

/*
 * Ends every running session (flush, stop, files complete), with short
 * time-outs.  idle is called, once, when none runs any more and all files are
 * closed; at the latest after a few seconds.
 */
void service_shutdown(struct service *s, void (*idle)(void *arg), void *arg);

/* The machine with this id and name, made when it is new.  NULL: no memory. */
struct machine *service_machine(struct service *s, uint32_t id,
    const char *name) MUST_CHECK;
struct machine *service_find_machine(struct service *s, uint32_t id);
/* Both copy; the newest replaces what was there. */
int machine_set_system_info(struct machine *m, const uint8_t *data, size_t len)
    MUST_CHECK;
int machine_set_clock_sync(struct machine *m, const uint8_t *data, size_t len)
    MUST_CHECK;

#endif /* SERVICE_SESSION_SERVICE_H */
