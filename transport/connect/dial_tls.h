/*
 * dial_tls: the TLS contexts of dials.
 *
 * Dials from the same loop with the same directory share one, so that its
 * session tickets resume and 64 producers read the files once.  Files that
 * changed are read again before the next dial.  Contexts live as long as their
 * loop.
 */
#ifndef TRANSPORT_CONNECT_DIAL_TLS_H
#define TRANSPORT_CONNECT_DIAL_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct loop;
struct tls_context;

/* Directories times settings, in a process. */
#define DIAL_TLS_CONTEXTS_MAX 64

/*
 * Files that changed and cannot be read are a warning in the log; then it goes
 * on with what it has.  NULL with a sentence in err.  Borrowed until
 * loop_free().
 */
struct tls_context *dial_tls_context(struct loop *l, const char *dir,
    bool allow_tls12, char *err, size_t err_size) MUST_CHECK;

#endif /* TRANSPORT_CONNECT_DIAL_TLS_H */
