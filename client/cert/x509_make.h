/*
 * x509_make: makes keys, certificates and revocation lists (X.509, RFC 5280).
 *
 * Pure but for the random numbers: no files, no clock.  Everything is signed
 * with SHA-256, or the hash of Ed25519.  Validity begins X509_MAKE_SKEW before
 * now, for devices whose clock is slow.
 */
#ifndef CLIENT_CERT_X509_MAKE_H
#define CLIENT_CERT_X509_MAKE_H

#include <openssl/types.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "client/cert/index.h"
#include "transport/base/compiler.h"

#define X509_MAKE_SKEW (5 * 60) /* seconds */

enum cert_key_kind { CERT_KEY_P256, CERT_KEY_ED25519 };

/* The content of a certificate to be made; everything is borrowed. */
struct cert_request {
	const X509_NAME *subject;
	const GENERAL_NAMES *names; /* NULL: none */
	EVP_PKEY *key;
	bool server; /* may serve, too; all may be clients */
	time_t now;
	time_t until;
};

/*
 * Functions that return a pointer: the caller owns it; NULL when memory, or
 * OpenSSL, fails; see cert_pem.
 */
EVP_PKEY *x509_make_key(enum cert_key_kind kind) MUST_CHECK;
enum cert_key_kind x509_make_kind_of(const EVP_PKEY *key);

/* organization may be NULL. */
X509_NAME *x509_make_subject(const char *name, const char *organization)
    MUST_CHECK;

/*
 * Appends a name (name.h) unless it is there already; *names is made if
 * it is NULL.  -1: text is no name, or no memory.
 */
int x509_make_add_name(GENERAL_NAMES **names, const char *text) MUST_CHECK;
/* Appends the URI of a role (transport/socket/roles.h); else as add_name. */
int x509_make_add_role(GENERAL_NAMES **names, uint32_t role) MUST_CHECK;

/* A CA that signs itself, and certificates and lists, but no other CA. */
X509 *x509_make_ca(const X509_NAME *subject, EVP_PKEY *key, time_t now,
    time_t until) MUST_CHECK;
X509 *x509_make_certificate(const struct cert_request *r, X509 *ca,
    EVP_PKEY *ca_key) MUST_CHECK;
/* Lists the revoked certificates of index; good until the CA ends. */
X509_CRL *x509_make_crl(const struct cert_index *index, X509 *ca,
    EVP_PKEY *ca_key, uint64_t number, time_t now) MUST_CHECK;

/* Writes the serial number in hexadecimal digits; "?": no memory. */
void x509_make_serial(const X509 *x, char out[CERT_SERIAL_SIZE]);
/* Begin and end of validity; 0: that time cannot be read. */
time_t x509_make_from(const X509 *x);
time_t x509_make_until(const X509 *x);
/* 0: it has none, or one that is too large. */
uint64_t x509_make_crl_number(const X509_CRL *crl);

#endif /* CLIENT_CERT_X509_MAKE_H */
