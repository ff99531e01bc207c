/*
 * passed_sockets: listening sockets that the service manager opened for a
 * daemon and passed on (LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES).
 */
#ifndef TRANSPORT_SOCKET_PASSED_SOCKETS_H
#define TRANSPORT_SOCKET_PASSED_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "transport/base/compiler.h"

#define PASSED_SOCKETS_MAX 16u
#define PASSED_NAME_MAX    64

struct passed_sockets {
	size_t n; /* descriptors from 3 on */
	char names[PASSED_SOCKETS_MAX][PASSED_NAME_MAX]; /* "": none */
};

/*
 * Reads and removes the variables.  p->n is 0 when nothing was passed to this
 * process.  -1 with a sentence: too many.
 */
int passed_sockets_find(struct passed_sockets *p, char *err, size_t err_size)
    MUST_CHECK;

/*
 * The i-th socket, which is the caller's, and close-on-exec from now on; -1
 * with a sentence.
 */
int passed_sockets_take(const struct passed_sockets *p, size_t i, char *err,
    size_t err_size) MUST_CHECK;

/* Whether the socket is bound to this UNIX address. */
bool passed_socket_is_bound_to(int fd, const struct sockaddr_storage *sa,
    socklen_t len);

/* The address that the socket is bound to, as addresses are written. */
void passed_socket_address(int fd, char *out, size_t out_size);

#endif /* TRANSPORT_SOCKET_PASSED_SOCKETS_H */
