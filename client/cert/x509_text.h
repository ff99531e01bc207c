/*
 * x509_text: parts of certificates and revocation lists as printable text.
 * Untrusted input: control characters and bytes that are no text are replaced.
 */
#ifndef CLIENT_CERT_X509_TEXT_H
#define CLIENT_CERT_X509_TEXT_H

#include <openssl/types.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "client/cert/index.h"
#include "transport/base/compiler.h"

/* Longest text of one field; longer text is cut. */
#define X509_TEXT_SIZE 4096

void x509_text_subject(const X509 *x, char *out, size_t out_size);
void x509_text_issuer(const X509 *x, char *out, size_t out_size);
void x509_text_crl_issuer(const X509_CRL *crl, char *out, size_t out_size);
/* "" where there is none. */
void x509_text_common_name(const X509 *x, char *out, size_t out_size);
/*
 * "DNS:a, IP Address:10.0.0.1" or "none"; returns the roles among them,
 * ROLE_UNKNOWN too.
 */
uint32_t x509_text_names(const X509 *x, char *out, size_t out_size);
/* "ECDSA P-256", "Ed25519" */
const char *x509_text_key(const X509 *x);
/* "serve and connect", "connect", ... */
const char *x509_text_purpose(X509 *x);
/* "AB:CD:..." of SHA-256 */
void x509_text_fingerprint(const X509 *x, char *out, size_t out_size);
/* Serial number and time of one entry of a list. */
void x509_text_revoked(const X509_REVOKED *r, char *serial, size_t serial_size,
    char when[CERT_TIME_SIZE]);
time_t x509_text_time(const ASN1_TIME *t);

/*
 * The certificates and lists of a PEM file, one after the other.  Open fails,
 * with a sentence, when there are none.
 */
struct x509_text_file;
struct x509_text_file *x509_text_file_open(const char *path, char *err,
    size_t err_size) MUST_CHECK;
/* One of the two is set, to be freed; 0: no more. */
int x509_text_file_next(struct x509_text_file *f, X509 **x, X509_CRL **crl);
void x509_text_file_close(struct x509_text_file *f);

#endif /* CLIENT_CERT_X509_TEXT_H */
