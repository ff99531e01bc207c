/*
 * tls_setup: the result of one reading of the files: an SSL_CTX, and the names
 * for sentences about its connections.
 *
 * Reference-counted: the context holds the setup that was read last, each
 * connection the one it was made from.  Knows PEM bytes, not files:
 * transport/tls/tls_context.c reads those.  Private to tls_*.c and their tests.
 */
#ifndef TRANSPORT_TLS_TLS_SETUP_H
#define TRANSPORT_TLS_TLS_SETUP_H

#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "transport/base/compiler.h"
#include "transport/tls/tls.h"
#include "transport/tls/tls_session_cache.h"

enum tls_file {
	TLS_FILE_CA,
	TLS_FILE_CERT,
	TLS_FILE_KEY,
	TLS_FILE_CRL,
};
#define TLS_N_FILES 4

/* A file as it was read; bytes NULL: it is not there (the CRL only). */
struct tls_pem {
	const char *path;
	char *bytes;
	size_t len;
};

struct tls_setup {
	atomic_uint refs; /* connections may be on several threads */
	enum tls_side side;
	bool allow_tls12;
	SSL_CTX *ssl;
	STACK_OF(X509_CRL) *crls; /* NULL: none */
	char *paths[TLS_N_FILES]; /* for messages */
	time_t own_not_before;    /* of our certificate */
	time_t own_not_after;
	time_t (*now)(void); /* NULL: the machine's clock */
	struct tls_sessions sessions; /* TLS_CLIENT */
};

/*
 * With one reference, the caller's; tls_verify and tls_sessions are to be
 * attached to its ssl.  NULL with a sentence in err.
 */
struct tls_setup *tls_setup_new(enum tls_side side, bool allow_tls12,
    const struct tls_pem pem[TLS_N_FILES], time_t (*now)(void), char *err,
    size_t err_size) MUST_CHECK;
struct tls_setup *tls_setup_ref(struct tls_setup *s);
void tls_setup_unref(struct tls_setup *s);

/* Now, by the clock that certificates are verified by. */
static inline time_t
tls_setup_now(const struct tls_setup *s)
{
	return s->now != NULL ? s->now() : time(NULL);
}

/* The setup that was read last; borrowed from the context. */
struct tls_setup *tls_context_setup(const struct tls_context *c);
/* For tests: another clock, for new connections of c. */
void tls_context_set_clock(struct tls_context *c, time_t (*now)(void));

#endif /* TRANSPORT_TLS_TLS_SETUP_H */
