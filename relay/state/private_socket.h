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

/* fd is a connected, non-blocking socket, the callee's. */
typedef void (*private_socket_fn)(void *arg, int fd);

/* name: STATE_DIR_...  NULL with a sentence in err. */
struct private_socket *private_socket_new(struct loop *l, const char *state_dir,
    const char *name, private_socket_fn fn, void *arg, char *err,
    size_t err_size)
    MUST_CHECK;
/* NULL is fine. */
void private_socket_free(struct private_socket *o);

#endif /* RELAY_STATE_PRIVATE_SOCKET_H */
