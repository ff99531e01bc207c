/*
 * tls: TLS over a connected socket, both ends with certificates (OpenSSL).
 *
 * A tls_context is one side's certificate and key, and the authorities it
 * trusts, from PEM files; it can be reloaded while connections made from it
 * live on.  A tls_conn is one connection: it does the reading and writing of a
 * stream (transport/stream/stream.h), which owns it, and knows nothing of
 * loops.
 *
 * TLS 1.3 (RFC 8446), 1.2 (RFC 5246, ECDHE with AEAD suites only) where the
 * options allow it; no renegotiation, no compression, no early data.  Sessions
 * resume by tickets whose keys live no longer than the files they were made
 * under: after a reload every peer is verified anew.  A context belongs to one
 * thread, which also makes its connections; a connection may then live on
 * another.
 */
#ifndef TRANSPORT_TLS_TLS_H
#define TRANSPORT_TLS_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "transport/base/compiler.h"

struct tls_conn;
struct tls_context;

enum tls_side { TLS_SERVER, TLS_CLIENT };

/* Names within a directory (--tls-dir), as `tributary cert` makes them. */
#define TLS_CA_FILE   "ca.pem"
#define TLS_CERT_FILE "cert.pem"
#define TLS_KEY_FILE  "key.pem"
#define TLS_CRL_FILE  "crl.pem"

struct tls_options {
	enum tls_side side;
	/*
	 * The directory, and single files that stand for those in it.  NULL:
	 * none; then every file but the CRL must be named.  A CRL that is named
	 * must be there, crl.pem in the directory need not; but once it was
	 * read, a reload without it fails.  Copied.
	 */
	const char *dir;
	const char *ca;   /* authorities that we trust, concatenated */
	const char *cert; /* ours, and its intermediates */
	const char *key;
	const char *crl;
	bool allow_tls12;
};

/* Room for any sentence of this module. */
#define TLS_ERROR_SIZE 768

/*
 * Reads and checks the files: key and certificate belong together, key file
 * not readable for others (a warning in the log), certificate not expired (a
 * warning), PEM that parses (else an error that names file and reason).  NULL
 * with a sentence in err.
 */
struct tls_context *tls_context_new(const struct tls_options *o, char *err,
    size_t err_size) MUST_CHECK;
/*
 * Reads the files again; connections that exist keep what they have.  -1 with
 * a sentence: nothing was changed.
 */
int tls_context_reload(struct tls_context *c, char *err, size_t err_size)
    MUST_CHECK;
/* Whether a file has changed since it was read last (by stat() only). */
bool tls_context_is_stale(const struct tls_context *c);
/* Connections made from the context live on.  NULL is fine. */
void tls_context_free(struct tls_context *c);

struct stack_st_X509;
struct x509_st;

/* The holder that a verified certificate names.  Owned by the connection. */
struct tls_identity {
	char name[128]; /* CN; where there is none, the first DNS or URI name */
	/* given by its URIs (transport/socket/roles.h), without implied ones */
	uint32_t roles;
	char serial[44]; /* hexadecimal */
	time_t not_after;
	size_t n_alternatives;
	char **alternatives; /* DNS, URI, e-mail and IP names, as text */
	/*
	 * References: the certificate, and its chain, which is NULL in a
	 * connection that was resumed, or for lack of memory.
	 */
	struct x509_st *leaf;
	struct stack_st_X509 *chain;
};

/*
 * A connection over a socket, which stays the caller's and non-blocking; the
 * handshake has not begun.  host is the name or address that the peer's
 * certificate must be for (TLS_CLIENT only; NULL on the server).  peer_text is
 * for messages ("10.0.0.7:4711", "collector:7443").  NULL: no memory.
 */
struct tls_conn *tls_conn_new(struct tls_context *c, int fd, const char *host,
    const char *peer_text) MUST_CHECK;
/* Says goodbye (close_notify) where the socket takes it at once. */
void tls_conn_free(struct tls_conn *t);

/*
 * True for a client; a server waits for the client's first bytes before it
 * calls tls_conn_handshake().
 */
bool tls_conn_speaks_first(const struct tls_conn *t);
/* 1: done; 0: to be called again when the socket is ready; -1: failed. */
int tls_conn_handshake(struct tls_conn *t) MUST_CHECK;

/*
 * As readv(2) and writev(2): bytes, 0 at an orderly end (receive), -1 with
 * EAGAIN (not now) or another errno (over, see tls_conn_error()).  Receive
 * fills as much as there is.  Send may take part of the bytes; what it did not
 * take has to be offered again, but may have moved.
 */
ssize_t tls_conn_receive(struct tls_conn *t, const struct iovec *iov, int niov)
    MUST_CHECK;
ssize_t tls_conn_send(struct tls_conn *t, const struct iovec *iov, int niov)
    MUST_CHECK;

/* After "not now": the socket has to become writable, not readable. */
bool tls_conn_wants_write(const struct tls_conn *t);
/* Input lies here already: the socket may not become readable for it. */
bool tls_conn_has_input(const struct tls_conn *t);

/*
 * The error, as a sentence for people: what failed, which side is at fault,
 * which file, and what to do.  "" where nothing failed.  Written from the side
 * of this end: a server says what was wrong with its client, a client tells
 * apart what it refuses itself and what the other end refused.
 */
const char *tls_conn_error(const struct tls_conn *t);

/* After the handshake; lives as long as the connection. */
const struct tls_identity *tls_conn_identity(const struct tls_conn *t);
/*
 * As tls_conn_identity() for an owner that outlives the connection, or is on
 * another thread: moves it out.  The caller's, for tls_identity_free(); NULL:
 * no memory.
 */
struct tls_identity *tls_conn_take_identity(struct tls_conn *t) MUST_CHECK;
/* NULL is fine. */
void tls_identity_free(struct tls_identity *id);
/* "TLSv1.3 TLS_AES_256_GCM_SHA384, resumed, kernel TLS", for the log. */
void tls_conn_describe(const struct tls_conn *t, char *out, size_t out_size);

#endif /* TRANSPORT_TLS_TLS_H */
