/*
 * daemon: the collector as a process: its loop, its sockets, its state, and
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
 * Opens everything: from then on clients can connect.  settings is borrowed,
 * and so is next, who takes its place at an upgrade; the sockets of a are
 * taken.  NULL with a sentence in err.
 */
struct daemon *daemon_new(const struct settings *settings,
    struct activation *a, const struct successor *next, char *err,
    size_t err_size) MUST_CHECK;

/*
 * Starts the threads that the settings ask for, when nothing that concerns the
 * whole process (users, system calls) is to be done any more.  -1 with a
 * sentence.
 */
int daemon_start(struct daemon *d, char *err, size_t err_size) MUST_CHECK;

/* Tells whoever waits for it that the sockets are open. */
void daemon_tell_ready(struct daemon *d);

enum daemon_end {
	DAEMON_ENDED,   /* all files are complete */
	DAEMON_UNCLEAN, /* a session was not done in time: no daemon_free() */
	DAEMON_UPGRADE, /* all files are complete; next has the sockets */
};

/*
 * Serves until SIGTERM or SIGINT, then ends sessions and connections; a second
 * one ends the process on the spot.  Reads certificates anew on SIGHUP.  On
 * SIGUSR2 it sees whether next could take its place, and only then does the
 * same with the sockets left open; they stand in h, to be done by the caller.
 */
enum daemon_end daemon_run(struct daemon *d, struct handover *h) MUST_CHECK;

void daemon_free(struct daemon *d);

#endif /* SERVICE_PROCESS_DAEMON_H */
