/*
 * certificates: the daemon's own certificate and key for its TLS doors, and the
 * CAs and CRL that peers are checked by; read anew when the files change.
 */
#ifndef SERVICE_FRONT_CERTIFICATES_H
#define SERVICE_FRONT_CERTIFICATES_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "transport/base/compiler.h"

struct certificates;
struct loop;
struct tls_context;
struct tls_setting;

/*
 * Reads the files, and looks every two seconds whether they changed.
 * renewed(arg) is called after they were read anew, as connected peers may be
 * revoked now.  setting is borrowed for this call.  NULL with a sentence in
 * err.
 */
struct certificates *certificates_new(struct loop *l,
    const struct tls_setting *setting, void (*renewed)(void *arg), void *arg,
    char *err, size_t err_size) MUST_CHECK;

/* The context for new connections; borrowed, lives as long as c. */
struct tls_context *certificates_context(const struct certificates *c);

/*
 * Reads the files again, changed or not, and logs the result; broken files
 * leave everything as it was.
 */
void certificates_reload(struct certificates *c);

#define CERTIFICATES_TEXT_MAX 192
/* "certificate NAME until 2027-02-01 12:00:00 UTC"; returns out. */
const char *certificates_text(const struct certificates *c, char *out,
    size_t out_size);

/* When the certificate ends. */
time_t certificates_not_after(const struct certificates *c);

/*
 * Whether to warn the operator of a certificate that ends at not_after: in the
 * last two weeks and afterwards; then a sentence for the log is in out.  Pure.
 */
bool certificates_ends_soon(const char *name, time_t not_after, time_t now,
    char *out, size_t out_size);

/* Connections that were made with the certificates go on.  NULL is fine. */
void certificates_free(struct certificates *c);

#endif /* SERVICE_FRONT_CERTIFICATES_H */
