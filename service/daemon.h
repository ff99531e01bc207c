/*
 * daemon: the collector as a process: its loop, its sockets, its state, and
 * its end.
 */
#ifndef SERVICE_DAEMON_H
#define SERVICE_DAEMON_H

#include <stddef.h>

#include "transport/compiler.h"

struct activation;
struct daemon;
struct settings;

/*
 * Opens everything: from then on clients can connect.  settings is borrowed;
 * the sockets of a are taken.  NULL with a sentence in err.
 */
struct daemon *daemon_new(const struct settings *settings,
    struct activation *a, char *err, size_t err_size) MUST_CHECK;

/* Tells whoever waits for it that the sockets are open. */
void daemon_tell_ready(struct daemon *d);

/*
 * Serves until SIGTERM or SIGINT, then ends sessions and connections; reads
 * certificates anew on SIGHUP.
 * 0: all files are complete.  -1: some session was not done in time.  A second
 * signal ends the process on the spot.
 */
int daemon_run(struct daemon *d) MUST_CHECK;

void daemon_free(struct daemon *d);

#endif /* SERVICE_DAEMON_H */
