/*
 * path_watch: tells when a file that we made loses its name: it was removed or
 * moved away, or its file system was unmounted.
 *
 * Uses inotify, so that there is no polling.  Without it (no descriptor left, a
 * kernel that has none) the caller is never told.
 */
#ifndef TRANSPORT_LOOP_PATH_WATCH_H
#define TRANSPORT_LOOP_PATH_WATCH_H

#include "transport/base/compiler.h"
#include "transport/loop/loop.h"

struct path_watch;

/*
 * changed(arg) is called on the loop, also for other changes (of the mode,
 * say), and more than once: the callee looks at the file itself.  Not after
 * path_watch_free().  NULL: no memory, or the file cannot be watched.
 */
struct path_watch *path_watch_new(struct loop *l, const char *path,
    loop_fn changed, void *arg) MUST_CHECK;
/* Legal in changed(). */
void path_watch_free(struct path_watch *w);

#endif /* TRANSPORT_LOOP_PATH_WATCH_H */
