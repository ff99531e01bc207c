/*
 * tls_session_cache: the last TLS session with each host, for a client to
 * resume.  Knows neither connections nor how long a session may be used.
 * Private to tls_*.c.
 */
#ifndef TRANSPORT_TLS_TLS_SESSION_CACHE_H
#define TRANSPORT_TLS_TLS_SESSION_CACHE_H

#include <openssl/ssl.h>
#include <stddef.h>
#include <time.h>

#include "transport/base/compiler.h"

/* Hosts a client remembers; one more displaces the oldest. */
#define TLS_SESSIONS_MAX 16

struct tls_session {
	char *host; /* NULL: free */
	SSL_SESSION *session;
	time_t until;
};

/* Zero-initialised is ready to use. */
struct tls_sessions {
	struct tls_session all[TLS_SESSIONS_MAX];
	size_t next; /* slot to be displaced next */
};

/* NULL: there is none. */
struct tls_session *tls_sessions_find(struct tls_sessions *s,
    const char *host);
/* A slot for host, empty but for its name.  NULL: no memory. */
struct tls_session *tls_sessions_slot(struct tls_sessions *s,
    const char *host) MUST_CHECK;
void tls_session_drop(struct tls_session *e);
void tls_sessions_done(struct tls_sessions *s);

#endif /* TRANSPORT_TLS_TLS_SESSION_CACHE_H */
