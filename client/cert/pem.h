/*
 * pem: keys, certificates and revocation lists as PEM, from files and
 * into memory.
 */
#ifndef CLIENT_CERT_PEM_H
#define CLIENT_CERT_PEM_H

#include <openssl/types.h>
#include <stddef.h>

#include "transport/base/compiler.h"

/* Owned by the caller.  NULL with a sentence that names the file and why. */
X509 *cert_pem_read_certificate(const char *path, char *err, size_t err_size)
    MUST_CHECK;
/* A key with a passphrase asks for it on the terminal. */
EVP_PKEY *cert_pem_read_key(const char *path, char *err, size_t err_size)
    MUST_CHECK;
X509_CRL *cert_pem_read_crl(const char *path, char *err, size_t err_size)
    MUST_CHECK;

/*
 * The text in a memory BIO (BIO_get_mem_data), owned by the caller; that of a
 * key is wiped when it is freed.  NULL: no memory.
 */
BIO *cert_pem_of_certificate(X509 *x) MUST_CHECK;
BIO *cert_pem_of_key(const EVP_PKEY *key) MUST_CHECK;
BIO *cert_pem_of_crl(X509_CRL *crl) MUST_CHECK;

/* Appends ": " and the reason of OpenSSL's last error to err. */
void cert_pem_append_reason(char *err, size_t err_size);

#endif /* CLIENT_CERT_PEM_H */
