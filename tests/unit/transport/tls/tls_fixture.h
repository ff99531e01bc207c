/*
 * tls_fixture: authorities and certificates for tests, made on the spot, in
 * folders that look like those of `tributary cert`.  Ends the program where
 * anything fails.
 */
#ifndef TESTS_UNIT_TRANSPORT_TLS_TLS_FIXTURE_H
#define TESTS_UNIT_TRANSPORT_TLS_TLS_FIXTURE_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "transport/tls/tls.h"

struct fix_cert {
	X509 *cert;
	EVP_PKEY *key;
	long next_serial; /* an authority's */
};

/* Zero: the default in brackets. */
struct fix_wish {
	const char *cn;   /* none */
	size_t cn_len;    /* strlen(cn) */
	const char *sans; /* none; "DNS:a,IP:127.0.0.1,URI:urn:x" */
	const char *eku;  /* none; "serverAuth", "clientAuth" */
	const char *role; /* none; "producer" */
	time_t from;      /* an hour ago */
	time_t to;        /* in a day */
	bool is_ca;
	int rsa_bits;     /* none: an ECDSA P-256 key */
};

struct fix_cert *fix_ca(const char *name);
/* issuer NULL: signed by itself. */
struct fix_cert *fix_cert(struct fix_cert *issuer, const struct fix_wish *wish);
void fix_cert_free(struct fix_cert *c);

/* A new folder, to be removed with fix_dir_free(). */
char *fix_dir(void);
void fix_dir_free(char *dir);

/*
 * Write DIR/NAME anew, as a new file that takes the place of the old one; up to
 * three certificates one after the other, NULL: none.
 */
void fix_write(const char *dir, const char *name, const void *bytes,
    size_t len);
void fix_write_text(const char *dir, const char *name, const char *text);
void fix_write_certs(const char *dir, const char *name,
    const struct fix_cert *a, const struct fix_cert *b,
    const struct fix_cert *c);
void fix_write_key(const char *dir, const char *name, const struct fix_cert *c);
/* from, to 0: an hour ago, in a day.  revoked NULL: nobody. */
void fix_write_crl(const char *dir, const char *name,
    const struct fix_cert *issuer, const struct fix_cert *revoked, time_t from,
    time_t to);
/* One of those whose key was stolen; of who is revoked otherwise there is none. */
void fix_write_partial_crl(const char *dir, const char *name,
    const struct fix_cert *issuer);

/* What is new since another list, number 1. */
void fix_write_delta_crl(const char *dir, const char *name,
    const struct fix_cert *issuer);

/* ca.pem, cert.pem and key.pem of a new folder. */
char *fix_side(const struct fix_cert *ca, const struct fix_cert *own);
/* From such a folder. */
struct tls_context *fix_context(enum tls_side side, const char *dir);

#endif /* TESTS_UNIT_TRANSPORT_TLS_TLS_FIXTURE_H */
