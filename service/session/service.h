/*
 * service: the collector's state without its sockets: machines, producers,
 * sessions.  One per daemon; tests make their own.
 */
#ifndef SERVICE_SESSION_SERVICE_H
#define SERVICE_SESSION_SERVICE_H

#include "transport/compiler.h"
#include "service/session/model.h"

/*
 * A remote machine is whoever names itself one, and is kept: so there is a most
 * of them, of what each says of itself, and of its name.
 */
#define SERVICE_MACHINES_MAX     16384u
#define SERVICE_MACHINE_INFO_MAX 4096u /* bytes of SystemInfo, of clock sync */
#define SERVICE_MACHINE_NAME_MAX 255u

/*
 * settings is borrowed; trace_dirfd (or -1) becomes the service's on success.
 */
struct service *service_new(struct loop *l, const struct settings *settings,
    int trace_dirfd) MUST_CHECK;
/* No producer, session or consumer may be left. */
void service_free(struct service *s);

/*
 * Ends every running session (flush, stop, files complete), with short
 * time-outs.  idle is called, once and not from inside, when none runs any
 * more, all files are closed, and consumers have fetched what their sessions
 * hold and left; at the latest after a few seconds.
 */
void service_shutdown(struct service *s, void (*idle)(void *arg), void *arg);
/* service_free()'s. */
void shutdown_free(struct service *s);

/*
 * The machine with this id, made when it is new.  A remote machine takes the
 * name (cut to SERVICE_MACHINE_NAME_MAX), the host (id 0) keeps its own.  NULL:
 * no memory, or SERVICE_MACHINES_MAX.
 */
struct machine *service_machine(struct service *s, uint32_t id,
    const char *name) MUST_CHECK;
struct machine *service_find_machine(struct service *s, uint32_t id);
/*
 * Both copy; the newest replaces what was there.  -1: no memory, or longer than
 * SERVICE_MACHINE_INFO_MAX.
 */
int machine_set_system_info(struct machine *m, const uint8_t *data, size_t len)
    MUST_CHECK;
int machine_set_clock_sync(struct machine *m, const uint8_t *data, size_t len)
    MUST_CHECK;

#endif /* SERVICE_SESSION_SERVICE_H */
