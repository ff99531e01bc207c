/*
 * dial: connects to an address without blocking, trying each address that a
 * name stands for in turn.
 */
#ifndef TRANSPORT_DIAL_H
#define TRANSPORT_DIAL_H

#include <stddef.h>

#include "transport/addr.h"
#include "transport/compiler.h"

struct dial;
struct loop;

/*
 * The outcome, once, never from inside dial_new(): fd >= 0 is a connected,
 * non-blocking, close-on-exec socket that the callee owns; or fd is -1 and
 * error the errno of the last address that failed.  Afterwards the dial does
 * nothing more; dial_free() is legal inside.
 */
typedef void (*dial_fn)(int fd, int error, void *arg);

/*
 * Resolves at once (may block on a name server).  NULL with a sentence in err
 * when it does not resolve or memory is short.
 */
struct dial *dial_new(struct loop *l, const struct addr *a, dial_fn fn,
    void *arg, char *err, size_t err_size) MUST_CHECK;

/* Also gives up what is under way.  NULL is fine. */
void dial_free(struct dial *d);

/*
 * A sentence for people about an error of dial_fn: what is wrong at a and what
 * to do; variable is the environment variable that names such an address.
 */
void dial_error_text(const struct addr *a, int error, const char *variable,
    char *out, size_t out_size);

#endif /* TRANSPORT_DIAL_H */
