/*
 * handover: passes listening sockets from a daemon to the program that takes
 * its place in the same process, at an upgrade.
 *
 * The sockets stay open, and a text in the environment describes each.  The
 * text is a contract between versions.  Its first line is the form's number and
 * the process id of the daemon that wrote it, then one line a socket:
 *
 *     1 4711
 *     7 passed consumer-tls
 *     9 made producer /run/perfetto/traced-producer.sock
 *
 * "passed": a socket of the service manager, with this name.  "made": one that
 * the daemon opened, for this port and at this address as its settings named
 * it; one listener may have several.
 */
#ifndef SERVICE_FRONT_HANDOVER_H
#define SERVICE_FRONT_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

#include "service/settings/settings.h"
#include "transport/base/compiler.h"

struct activation;

#define HANDOVER_VARIABLE "TRIBUTARYD_HANDOVER"
/* Every setting with the sockets of a name that has eight addresses. */
#define HANDOVER_MAX (SETTINGS_LISTEN_MAX * 8u + 16u)

/* Zero before handover_begin(). */
struct handover {
	int fds[HANDOVER_MAX]; /* borrowed */
	size_t n;
	char *text; /* NAME=VALUE of the environment; owned */
	size_t len;
};

/* -1: no memory, or too many. */
int handover_begin(struct handover *h) MUST_CHECK;
int handover_add_made(struct handover *h, int fd, enum listen_port port,
    const char *address) MUST_CHECK;
int handover_add_passed(struct handover *h, int fd, enum listen_port port,
    bool tls) MUST_CHECK;
/* Frees the text; the sockets stay open. */
void handover_done(struct handover *h);

/*
 * Adds the sockets of the variable to a, and removes the variable.  Adds none
 * where it is not set, or was written for another process: it counts for the
 * process that wrote it and (a->trial) for its children.  -1 with a sentence in
 * err.
 */
int handover_from_environment(struct activation *a, char *err, size_t err_size)
    MUST_CHECK;

#endif /* SERVICE_FRONT_HANDOVER_H */
