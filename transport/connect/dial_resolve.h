/*
 * dial_resolve: resolves a name on a thread of its own, so that a name server
 * that does not answer holds up nothing on the loop.
 */
#ifndef TRANSPORT_CONNECT_DIAL_RESOLVE_H
#define TRANSPORT_CONNECT_DIAL_RESOLVE_H

#include <sys/socket.h>

#include "transport/base/compiler.h"

struct addr;
struct dial_resolve;
struct loop;

/* Addresses that are tried for one name, at most. */
#define DIAL_ADDRESSES_MAX 8

/*
 * The outcome, once, on the loop: n addresses, borrowed for the call; or -1
 * with a sentence in err.  dial_resolve_free() is legal inside.
 */
typedef void (*dial_resolve_fn)(void *arg, const struct sockaddr_storage *sa,
    const socklen_t *sa_len, int n, const char *err);

/* NULL: no memory, no thread, or too many threads wait for name servers. */
struct dial_resolve *dial_resolve_new(struct loop *l, const struct addr *a,
    dial_resolve_fn fn, void *arg) MUST_CHECK;
/*
 * Legal before the outcome, which is then dropped; the thread ends when the
 * name server has answered, or the resolver timed out.  NULL is fine.
 */
void dial_resolve_free(struct dial_resolve *d);

#endif /* TRANSPORT_CONNECT_DIAL_RESOLVE_H */
