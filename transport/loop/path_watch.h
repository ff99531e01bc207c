/*
 * path_watch: tells when a file that we made loses its name: somebody removed
 * it, moved it away, or unmounted what it is on.
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
 * changed(arg) may come for other reasons (a mode that was changed), and more
 * than once: look yourself.  Not after path_watch_free().  NULL: not watched.
 */
struct path_watch *path_watch_new(struct loop *l, const char *path,
    loop_fn changed, void *arg) MUST_CHECK;
/* Legal in changed(). */
void path_watch_free(struct path_watch *w);

#endif /* TRANSPORT_LOOP_PATH_WATCH_H */
