/*
 * daemon: the collector as a process: its loop, its sockets, its service, and
 * its end.
 */
#ifndef SERVICE_PROCESS_DAEMON_H
#define SERVICE_PROCESS_DAEMON_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct activation;
struct daemon;
struct handover;
struct settings;
struct successor;

/*
 * Opens everything: from then on peers can connect.  settings is borrowed, and
 * so is next, the program that takes its place at an upgrade; the sockets of a
 * are taken.  NULL with a sentence in err.
 */
struct daemon *daemon_new(const struct settings *settings,
    struct activation *a, const struct successor *next, char *err,
    size_t err_size) MUST_CHECK;

/*
 * Starts the I/O threads that the settings ask for.  To be called after changes
 * to the whole process (user, system calls).  -1 with a sentence in err.
 */
int daemon_start(struct daemon *d, char *err, size_t err_size) MUST_CHECK;

/* Tells the service manager, and TRACED_NOTIFY_FD, that sockets are open. */
void daemon_tell_ready(struct daemon *d);

enum daemon_end {
	DAEMON_ENDED,   /* all files are complete */
	DAEMON_UNCLEAN, /* a session was not done in time: no daemon_free() */
	DAEMON_UPGRADE, /* all files are complete; sockets are open, in h */
};

/*
 * Serves until SIGTERM or SIGINT, then ends sessions and connections; a second
 * one ends the process on the spot.  Reads certificates anew on SIGHUP.  On
 * SIGUSR2 tries whether next could take its place, and only then does the same
 * with the sockets left open; they are listed in h, and the caller calls
 * handover_done().
 */
enum daemon_end daemon_run(struct daemon *d, struct handover *h) MUST_CHECK;

void daemon_free(struct daemon *d);

#endif /* SERVICE_PROCESS_DAEMON_H */
