/*
 * listen_once: listens at a UNIX socket for exactly one connection.
 *
 * Several processes may do so at one path.  They take turns: the process that
 * holds the lock on PATH.lock listens, the others wait for the lock; each takes
 * one connection.  Where another program listens (a collector), fn gets an
 * error.
 */
#ifndef CLIENT_TUNNEL_LISTEN_ONCE_H
#define CLIENT_TUNNEL_LISTEN_ONCE_H

#include "transport/base/compiler.h"

struct listen_once;
struct addr;
struct loop;

/*
 * fd is the connection, non-blocking, owned by the callee; or -1 with a
 * sentence.  Called once, not from inside listen_once_new().  The listening
 * socket is closed and the lock released before, for the next process.
 */
typedef void (*listen_once_fn)(void *arg, int fd, const char *error);

/* a is a UNIX address.  NULL: no memory. */
struct listen_once *listen_once_new(struct loop *l, const struct addr *a,
    listen_once_fn fn, void *arg) MUST_CHECK;
/* Legal inside fn.  NULL is fine. */
void listen_once_free(struct listen_once *o);

#endif /* CLIENT_TUNNEL_LISTEN_ONCE_H */
