/*
 * own_socket: a listener in the state folder, for programs of the same user and
 * of root.
 */
#ifndef RELAY_OWN_SOCKET_H
#define RELAY_OWN_SOCKET_H

#include <stddef.h>

#include "transport/compiler.h"

struct loop;
struct own_socket;

/* fd is a connected, non-blocking socket, the callee's. */
typedef void (*own_socket_fn)(void *arg, int fd);

/* name: STATE_DIR_...  NULL with a sentence in err. */
struct own_socket *own_socket_new(struct loop *l, const char *state_dir,
    const char *name, own_socket_fn fn, void *arg, char *err, size_t err_size)
    MUST_CHECK;
/* NULL is fine. */
void own_socket_free(struct own_socket *o);

#endif /* RELAY_OWN_SOCKET_H */
