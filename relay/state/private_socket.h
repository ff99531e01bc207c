/*
 * private_socket: a listener in the state folder, for programs of the same user
 * and of root.
 */
#ifndef RELAY_STATE_PRIVATE_SOCKET_H
#define RELAY_STATE_PRIVATE_SOCKET_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct loop;
struct private_socket;

/* Called for each connection; fd is non-blocking, and the callee's. */
typedef void (*private_socket_fn)(void *arg, int fd);

struct private_socket_setup {
	struct loop *loop;
	const char *state_dir;
	const char *name; /* STATE_DIR_... */
	private_socket_fn fn;
	void *arg;
};

/* Copies setup.  NULL with a sentence in err. */
struct private_socket *private_socket_new(
    const struct private_socket_setup *setup, char *err, size_t err_size)
    MUST_CHECK;
/* NULL is fine. */
void private_socket_free(struct private_socket *o);

#endif /* RELAY_STATE_PRIVATE_SOCKET_H */
