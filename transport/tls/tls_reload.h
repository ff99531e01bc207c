/*
 * tls_reload: for the owner of a context that was reloaded: our certificate as
 * it is now, and whether an open connection's certificate is revoked.
 */
#ifndef TRANSPORT_TLS_TLS_RELOAD_H
#define TRANSPORT_TLS_TLS_RELOAD_H

#include <stdbool.h>
#include <time.h>

struct tls_context;
struct tls_identity;

/* Our own certificate, as it was read last. */
struct tls_own {
	char name[128]; /* as struct tls_identity has it */
	time_t not_after;
};
void tls_context_own(const struct tls_context *c, struct tls_own *out);

/*
 * Whether a revocation list of c names the certificate of an open connection,
 * or one of those between it and the CA.  id is tls_conn_identity() of it.
 */
bool tls_context_revokes(const struct tls_context *c,
    const struct tls_identity *id);

#endif /* TRANSPORT_TLS_TLS_RELOAD_H */
