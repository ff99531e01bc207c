/*
 * dial_tls: the TLS contexts of dials.
 *
 * Dials from the same loop with the same directory share one context, so that
 * its TLS sessions are resumed, and 64 producers read the files once.  Files
 * that changed are read again before the next dial.  A context lives as long as
 * its loop.
 */
#ifndef TRANSPORT_CONNECT_DIAL_TLS_H
#define TRANSPORT_CONNECT_DIAL_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct loop;
struct tls_context;

/* Contexts in a process: one for each loop, directory and allow_tls12. */
#define DIAL_TLS_CONTEXTS_MAX 64

/*
 * Files that changed and cannot be read are a warning in the log; the context
 * then keeps those read before.  NULL with a sentence in err.  Borrowed until
 * loop_free().
 */
struct tls_context *dial_tls_context(struct loop *l, const char *dir,
    bool allow_tls12, char *err, size_t err_size) MUST_CHECK;

#endif /* TRANSPORT_CONNECT_DIAL_TLS_H */
