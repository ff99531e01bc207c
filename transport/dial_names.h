/*
 * dial_names: the addresses that a name stands for, asked for by a thread: a
 * name server that does not answer costs nobody on the loop a moment.
 */
#ifndef TRANSPORT_DIAL_NAMES_H
#define TRANSPORT_DIAL_NAMES_H

#include <sys/socket.h>

#include "transport/compiler.h"

struct addr;
struct dial_names;
struct loop;

/* What one name may stand for. */
#define DIAL_ADDRESSES_MAX 8

/*
 * The outcome, once, on the loop: n addresses, borrowed for the call; or -1
 * with a sentence in err.  dial_names_free() is legal inside.
 */
typedef void (*dial_names_fn)(void *arg, const struct sockaddr_storage *sa,
    const socklen_t *sa_len, int n, const char *err);

/* NULL: no memory, no thread, or too many of them wait for name servers. */
struct dial_names *dial_names_new(struct loop *l, const struct addr *a,
    dial_names_fn fn, void *arg) MUST_CHECK;
/*
 * Also before the outcome, which then is nobody's; the thread ends when the
 * name server has answered, or its time is over.  NULL is fine.
 */
void dial_names_free(struct dial_names *d);

#endif /* TRANSPORT_DIAL_NAMES_H */
