/*
 * daemon: the relay as a process: its state, its sockets, its way up, and its
 * end.
 */
#ifndef RELAY_DAEMON_DAEMON_H
#define RELAY_DAEMON_DAEMON_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct relay_daemon;
struct relay_settings;

/*
 * Opens everything: from then on producers are served. settings is borrowed.
 * ends_idle: the daemon ends by itself after dialled_idle_ms without a
 * collector.  NULL with a sentence in err.
 */
struct relay_daemon *relay_daemon_new(const struct relay_settings *settings,
    bool ends_idle, char *err, size_t err_size) MUST_CHECK;

/*
 * Tells systemd (READY=1) and the descriptor in TRACED_RELAY_NOTIFY_FD, if
 * there is one, that the sockets are open.
 */
void relay_daemon_tell_ready(void);

/*
 * Serves until SIGTERM or SIGINT, then sends what it can for a few seconds; the
 * rest stays in the state folder and the spool.  A second signal ends the
 * process on the spot.
 */
void relay_daemon_run(struct relay_daemon *d);

void relay_daemon_free(struct relay_daemon *d);

#endif /* RELAY_DAEMON_DAEMON_H */
