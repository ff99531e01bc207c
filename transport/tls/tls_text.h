/*
 * tls_text: sentences for people about a TLS connection that failed.
 *
 * Pure: everything they name is given, the time as well.  What comes from the
 * peer is escaped.  Private to tls_*.c and their tests.
 */
#ifndef TRANSPORT_TLS_TLS_TEXT_H
#define TRANSPORT_TLS_TLS_TEXT_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "transport/tls/tls.h"

/* All borrowed. */
struct tls_words {
	enum tls_side side; /* ours */
	bool allow_tls12;
	const char *peer;
	const char *host; /* that a client asked for */
	const char *ca;
	const char *cert;
	const char *crl; /* NULL: none */
	time_t now;
	time_t own_not_before;
	time_t own_not_after;
};

#define TLS_TIME_SIZE 40

/* "2026-11-21 07:19:08 UTC"; returns out. */
const char *tls_text_time(time_t t, char out[TLS_TIME_SIZE]);

/* The name of a certificate: CN, first name, or serial number; escaped. */
const char *tls_text_name(const X509 *cert, char *out, size_t out_size);

struct tls_refusal {
	int error;     /* X509_V_ERR_* */
	X509 *cert;    /* the one that it is about, */
	int depth;     /* at this place in the chain; 0: the peer's own */
	X509_CRL *crl; /* the list that it is about; NULL: none */
};
/* We refuse a certificate. */
void tls_text_refused(const struct tls_words *w, const struct tls_refusal *r,
    char *out, size_t out_size);
/*
 * The certificate names its holder in a way that we do not take: why, as
 * tls_identity_init().
 */
void tls_text_bad_name(const struct tls_words *w, const char *why, char *out,
    size_t out_size);

/* The peer refuses: the description of its alert (RFC 8446, 6.2). */
void tls_text_alert(const struct tls_words *w, int alert, char *out,
    size_t out_size);

/* OpenSSL's reason (SSL_R_*), and its words for it (may be NULL). */
void tls_text_reason(const struct tls_words *w, int reason, const char *detail,
    char *out, size_t out_size);

/* Whether bytes can be the beginning of a TLS conversation. */
bool tls_text_is_tls(const uint8_t *head, size_t n);
/* The peer's first bytes are not TLS. */
void tls_text_not_tls(const struct tls_words *w, const uint8_t *head, size_t n,
    char *out, size_t out_size);

/*
 * The connection ended in the middle of the handshake, with an errno (0: the
 * peer closed it); heard: the peer had said something.
 */
void tls_text_left(const struct tls_words *w, int error, bool heard, char *out,
    size_t out_size);

#endif /* TRANSPORT_TLS_TLS_TEXT_H */
