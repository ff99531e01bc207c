/*
 * accept_one: listens at a UNIX socket for exactly one connection.
 *
 * Several processes may do so at one path.  They take turns: the one that holds
 * PATH.lock listens, the others wait for it; each takes one connection.  Where
 * somebody else listens (a collector) it says so and gives up.
 */
#ifndef CLIENT_ACCEPT_ONE_H
#define CLIENT_ACCEPT_ONE_H

#include <stddef.h>

#include "transport/compiler.h"

struct accept_one;
struct addr;
struct loop;

/*
 * fd is the connection, non-blocking, the callee's; or -1 with a sentence.
 * Called once, not from inside accept_one_new().  By then nobody listens at the
 * path any more, and the next one has its turn.
 */
typedef void (*accept_one_fn)(void *arg, int fd, const char *error);

/* a is a UNIX address.  NULL: no memory. */
struct accept_one *accept_one_new(struct loop *l, const struct addr *a,
    accept_one_fn fn, void *arg) MUST_CHECK;
/* Legal inside fn.  NULL is fine. */
void accept_one_free(struct accept_one *o);

#endif /* CLIENT_ACCEPT_ONE_H */
