/*
 * service: the collector's state without its sockets: machines, producers,
 * sessions.  One per daemon; tests make their own.
 */
#ifndef SERVICE_COLLECTOR_SERVICE_H
#define SERVICE_COLLECTOR_SERVICE_H

#include "service/model/model.h"
#include "transport/base/compiler.h"

/*
 * settings is borrowed; trace_dirfd (or -1) becomes the service's on success.
 */
struct service *service_new(struct loop *l, const struct settings *settings,
    int trace_dirfd) MUST_CHECK;
/*
 * Has ids of instances and flushes begin by chance, so that those that a former
 * collector gave to a relay mean nothing here (former_ids.h).
 */
void service_begin_ids(struct service *s);
/* No session, consumer or producer may be left, but those of links. */
void service_free(struct service *s);

#endif /* SERVICE_COLLECTOR_SERVICE_H */
