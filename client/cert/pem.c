#include "client/cert/pem.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void
cert_pem_append_reason(char *err, size_t err_size)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());
	size_t len = strlen(err);

	if (reason != NULL && len < err_size)
		snprintf(err + len, err_size - len, ": %s", reason);
	ERR_clear_error();
}

static FILE *
open_pem(const char *path, char *err, size_t err_size)
{
	FILE *f = fopen(path, "re");

	ERR_clear_error();
	if (f == NULL)
		snprintf(err, err_size, "cannot read %s: %s", path,
		    strerror(errno));
	return f;
}

/* f: NULL where open_pem() has said why. */
static void
close_pem(FILE *f, bool good, const char *path, const char *what, char *err,
    size_t err_size)
{
	if (f == NULL)
		return;
	fclose(f);
	if (good)
		return;
	snprintf(err, err_size, "%s holds no %s in PEM that can be read", path,
	    what);
	cert_pem_append_reason(err, err_size);
}

X509 *
cert_pem_read_certificate(const char *path, char *err, size_t err_size)
{
	FILE *f = open_pem(path, err, err_size);
	X509 *x = f == NULL ? NULL : PEM_read_X509(f, NULL, NULL, NULL);

	close_pem(f, x != NULL, path, "certificate", err, err_size);
	return x;
}

EVP_PKEY *
cert_pem_read_key(const char *path, char *err, size_t err_size)
{
	FILE *f = open_pem(path, err, err_size);
	EVP_PKEY *key = f == NULL ? NULL : PEM_read_PrivateKey(f, NULL, NULL, NULL);

	close_pem(f, key != NULL, path, "private key", err, err_size);
	return key;
}

X509_CRL *
cert_pem_read_crl(const char *path, char *err, size_t err_size)
{
	FILE *f = open_pem(path, err, err_size);
	X509_CRL *crl = f == NULL ? NULL : PEM_read_X509_CRL(f, NULL, NULL, NULL);

	close_pem(f, crl != NULL, path, "revocation list", err, err_size);
	return crl;
}

BIO *
cert_pem_of_certificate(X509 *x)
{
	BIO *b = BIO_new(BIO_s_mem());

	if (b == NULL || PEM_write_bio_X509(b, x) == 1)
		return b;
	BIO_free(b);
	return NULL;
}

BIO *
cert_pem_of_key(const EVP_PKEY *key)
{
	BIO *b = BIO_new(BIO_s_secmem());

	if (b == NULL ||
	    PEM_write_bio_PKCS8PrivateKey(b, key, NULL, NULL, 0, NULL, NULL) ==
		1)
		return b;
	BIO_free(b);
	return NULL;
}

BIO *
cert_pem_of_crl(X509_CRL *crl)
{
	BIO *b = BIO_new(BIO_s_mem());

	if (b == NULL || PEM_write_bio_X509_CRL(b, crl) == 1)
		return b;
	BIO_free(b);
	return NULL;
}
