/*
 * activation: listening sockets that the service manager opened for us and
 * passed on (LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES).
 */
#ifndef SERVICE_ACTIVATION_H
#define SERVICE_ACTIVATION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "service/session/settings.h"
#include "transport/compiler.h"
#include "transport/passed_sockets.h"

#define ACTIVATION_MAX PASSED_SOCKETS_MAX

struct activated_socket {
	int fd; /* -1: taken by listener_adopt() */
	enum listen_port port;
	bool tls;
};

struct activation {
	struct activated_socket sockets[ACTIVATION_MAX];
	size_t n;
};

/*
 * Reads and removes the variables.  A socket named "producer", "consumer" or
 * "relay" serves that port, over TLS where "-tls" follows; without such a name
 * the first is for producers and the second for consumers.  a->n is 0 when
 * nothing was passed to this process.  -1 with a sentence: then the descriptors
 * stay open.
 */
int activation_from_environment(struct activation *a, char *err,
    size_t err_size) MUST_CHECK;

/* Closes what was not taken. */
void activation_done(struct activation *a);

bool activation_has(const struct activation *a, enum listen_port port);
bool activation_has_tls(const struct activation *a);

/* Whether one of the sockets is bound to this UNIX address. */
bool activation_is_bound_to(const struct activation *a,
    const struct sockaddr_storage *sa, socklen_t len);

#endif /* SERVICE_ACTIVATION_H */
