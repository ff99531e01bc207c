/*
 * handover: listening sockets that go from a daemon to the one that takes its
 * place in the same process, at an upgrade.
 *
 * They are open descriptors, and a text in the environment that says what each
 * is.  The text is a contract between versions.  Its first line is the form's
 * number and the process id of the daemon that wrote it, then one line a socket:
 *
 *     1 4711
 *     7 passed consumer-tls
 *     9 made producer /run/perfetto/traced-producer.sock
 *
 * "passed": the service manager gave it, with this name.  "made": the daemon
 * opened it, for this port and at this address as its settings named it; one
 * listener may have several.
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

/* All zero at first. */
struct handover {
	int fds[HANDOVER_MAX];
	size_t n;
	char *text; /* NAME=VALUE of the environment; NULL: no memory */
	size_t len;
};

/* -1: no memory, or too many. */
int handover_begin(struct handover *h) MUST_CHECK;
int handover_add_made(struct handover *h, int fd, enum listen_port port,
    const char *address) MUST_CHECK;
int handover_add_passed(struct handover *h, int fd, enum listen_port port,
    bool tls) MUST_CHECK;
void handover_done(struct handover *h);

/*
 * Adds the sockets of the variable to a, and removes the variable.  None where
 * it is not there, or was not meant for this process: it is the writer of it,
 * or (a->trial) a child of that.  -1 with a sentence.
 */
int handover_from_environment(struct activation *a, char *err, size_t err_size)
    MUST_CHECK;

#endif /* SERVICE_FRONT_HANDOVER_H */
