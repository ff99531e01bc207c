/*
 * stdio_bridge: `tributary-relay --stdio`, which a collector that dials runs
 * here: carries standard input and output to the relay of this machine.  If
 * there is none, it is started, and outlives this connection.
 */
#ifndef RELAY_DAEMON_STDIO_BRIDGE_H
#define RELAY_DAEMON_STDIO_BRIDGE_H

#include <stdbool.h>

#include "transport/base/compiler.h"

struct relay_settings;

/*
 * Becomes the relay, in a process of its own: to_parent is for
 * background_detach().  Returns the exit status.
 */
typedef int (*stdio_bridge_serve_fn)(const struct relay_settings *s,
    bool ends_idle, int to_parent);

/*
 * Returns the exit status; prints failures on standard error, which ssh carries
 * to the collector.  Changes s where it starts a relay.
 */
int stdio_bridge_run(struct relay_settings *s, stdio_bridge_serve_fn serve)
    MUST_CHECK;

#endif /* RELAY_DAEMON_STDIO_BRIDGE_H */
