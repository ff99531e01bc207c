/*
 * overload_watch: notices when input waits too long for the loop, takes the
 * steps of service/limits/overload.h in their order, and tells the log and the
 * service manager, once for each change.
 */
#ifndef SERVICE_FRONT_OVERLOAD_WATCH_H
#define SERVICE_FRONT_OVERLOAD_WATCH_H

#include <stdint.h>

#include "transport/base/compiler.h"

struct listeners;
struct io_pool;
struct loop;
struct overload;
struct overload_watch;

/*
 * Borrows everything.  limit_ms: settings.overload_lag_ms.  io: the pool of I/O
 * threads, which were not started yet; NULL: none.  Costs nothing while input
 * does not wait.  Returns NULL without memory.
 */
struct overload_watch *overload_watch_new(struct loop *l, struct io_pool *io,
    struct overload *o, struct listeners *doors, uint32_t limit_ms) MUST_CHECK;
void overload_watch_free(struct overload_watch *w);

#endif /* SERVICE_FRONT_OVERLOAD_WATCH_H */
