#include "client/cert/x509_text.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "transport/socket/roles.h"

/* Moves the bytes of a BIO into out, printable, and frees the BIO. */
static void
take_bio(BIO *b, char *out, size_t out_size)
{
	size_t i;
	int n = b == NULL ? 0 : BIO_read(b, out, (int)out_size - 1);

	out[n > 0 ? n : 0] = '\0';
	for (i = 0; out[i] != '\0'; i++)
		if ((unsigned char)out[i] < 0x20 || out[i] == 0x7f)
			out[i] = '?';
	BIO_free(b);
}

static void
print_name(const X509_NAME *name, char *out, size_t out_size)
{
	BIO *b = BIO_new(BIO_s_mem());

	/* 7 bits: everything else is escaped */
	if (b != NULL)
		X509_NAME_print_ex(b, name, 0,
		    XN_FLAG_RFC2253 & ~XN_FLAG_DN_REV);
	take_bio(b, out, out_size);
}

void
x509_text_subject(const X509 *x, char *out, size_t out_size)
{
	print_name(X509_get_subject_name(x), out, out_size);
}

void
x509_text_issuer(const X509 *x, char *out, size_t out_size)
{
	print_name(X509_get_issuer_name(x), out, out_size);
}

void
x509_text_crl_issuer(const X509_CRL *crl, char *out, size_t out_size)
{
	print_name(X509_CRL_get_issuer(crl), out, out_size);
}

void
x509_text_common_name(const X509 *x, char *out, size_t out_size)
{
	const X509_NAME *name = X509_get_subject_name(x);
	int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
	BIO *b = at < 0 ? NULL : BIO_new(BIO_s_mem());

	if (b != NULL)
		ASN1_STRING_print_ex(b,
		    X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)),
		    ASN1_STRFLGS_ESC_CTRL | ASN1_STRFLGS_UTF8_CONVERT);
	take_bio(b, out, out_size);
}

uint32_t
x509_text_names(const X509 *x, char *out, size_t out_size)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL,
	    NULL);
	BIO *b = BIO_new(BIO_s_mem());
	uint32_t roles = 0;
	GENERAL_NAME *g;
	int i, n = names == NULL ? 0 : sk_GENERAL_NAME_num(names);

	for (i = 0; i < n; i++) {
		g = sk_GENERAL_NAME_value(names, i);
		if (g->type == GEN_URI)
			roles |= role_from_uri(
			    (const char *)ASN1_STRING_get0_data(
				g->d.uniformResourceIdentifier),
			    (size_t)ASN1_STRING_length(
				g->d.uniformResourceIdentifier));
		if (b == NULL)
			continue;
		if (i > 0)
			BIO_puts(b, ", ");
		GENERAL_NAME_print(b, g);
	}
	if (n == 0 && b != NULL)
		BIO_puts(b, "none");
	take_bio(b, out, out_size);
	/* IA5 has 7 bits: other bytes are no text, and would break JSON. */
	for (; *out != '\0'; out++)
		if ((unsigned char)*out >= 0x80)
			*out = '?';
	GENERAL_NAMES_free(names);
	return roles;
}

const char *
x509_text_key(const X509 *x)
{
	EVP_PKEY *key = X509_get0_pubkey(x);
	char group[32];

	if (key == NULL)
		return "unknown";
	if (EVP_PKEY_is_a(key, "ED25519"))
		return "Ed25519";
	if (EVP_PKEY_is_a(key, "RSA"))
		return "RSA";
	if (EVP_PKEY_get_group_name(key, group, sizeof(group), NULL) != 1)
		return "unknown";
	return strcmp(group, "prime256v1") == 0 ? "ECDSA P-256" : "ECDSA";
}

const char *
x509_text_purpose(X509 *x)
{
	int server = X509_check_purpose(x, X509_PURPOSE_SSL_SERVER, 0);
	int client = X509_check_purpose(x, X509_PURPOSE_SSL_CLIENT, 0);

	if (X509_check_ca(x) != 0)
		return "sign certificates";
	if (server == 1 && client == 1)
		return "serve and connect";
	return server == 1 ? "serve" : client == 1 ? "connect" : "do nothing";
}

void
x509_text_fingerprint(const X509 *x, char *out, size_t out_size)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned i, len = 0;
	size_t at = 0;

	if (X509_digest(x, EVP_sha256(), digest, &len) != 1)
		len = 0;
	out[0] = '\0';
	for (i = 0; i < len && at < out_size; i++)
		at += (size_t)snprintf(out + at, out_size - at, "%s%02X",
		    i > 0 ? ":" : "", digest[i]);
}

time_t
x509_text_time(const ASN1_TIME *t)
{
	struct tm tm;

	return t != NULL && ASN1_TIME_to_tm(t, &tm) == 1 ? timegm(&tm) : 0;
}

void
x509_text_revoked(const X509_REVOKED *r, char *serial, size_t serial_size,
    char when[CERT_TIME_SIZE])
{
	BIGNUM *n = ASN1_INTEGER_to_BN(X509_REVOKED_get0_serialNumber(r), NULL);
	char *hex = n == NULL ? NULL : BN_bn2hex(n);

	snprintf(serial, serial_size, "%s", hex == NULL ? "?" : hex);
	cert_time_text(x509_text_time(X509_REVOKED_get0_revocationDate(r)),
	    when);
	OPENSSL_free(hex);
	BN_free(n);
}

/* Files. */

struct x509_text_file {
	STACK_OF(X509_INFO) *all;
	int at;
};

static bool
is_shown(const X509_INFO *i)
{
	return i->x509 != NULL || i->crl != NULL;
}

/* Looks for this word alone; the key itself is not read. */
static bool
holds_key(FILE *f)
{
	bool found = false;
	char line[256];

	rewind(f);
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = strstr(line, "PRIVATE KEY-----") != NULL;
	return found;
}

/* A key among the certificates is skipped, not asked a passphrase for. */
static int
no_passphrase(char *buf, int size, int writing, void *arg)
{
	return 0;
}

struct x509_text_file *
x509_text_file_open(const char *path, char *err, size_t err_size)
{
	struct x509_text_file *t = NULL;
	FILE *f = fopen(path, "re");
	int i;

	if (f == NULL) {
		snprintf(err, err_size, "cannot read %s: %s", path,
		    strerror(errno));
		return NULL;
	}
	ERR_clear_error();
	if ((t = calloc(1, sizeof(*t))) != NULL)
		t->all = PEM_X509_INFO_read(f, NULL, no_passphrase, NULL);
	for (i = 0; t != NULL && t->all != NULL &&
	    i < sk_X509_INFO_num(t->all); i++)
		if (is_shown(sk_X509_INFO_value(t->all, i)))
			goto out;
	if (t == NULL)
		snprintf(err, err_size, "out of memory");
	else if (holds_key(f))
		snprintf(err, err_size, "%s holds a private key, which is "
		    "never shown", path);
	else
		snprintf(err, err_size, "%s holds no certificate and no "
		    "revocation list in PEM that can be read", path);
	x509_text_file_close(t);
	t = NULL;
out:
	ERR_clear_error();
	fclose(f);
	return t;
}

int
x509_text_file_next(struct x509_text_file *f, X509 **x, X509_CRL **crl)
{
	X509_INFO *i;

	for (; f->at < sk_X509_INFO_num(f->all); f->at++) {
		i = sk_X509_INFO_value(f->all, f->at);
		if (!is_shown(i))
			continue;
		*x = i->x509;
		*crl = i->x509 == NULL ? i->crl : NULL;
		if (i->x509 != NULL)
			i->x509 = NULL;
		else
			i->crl = NULL;
		return 1;
	}
	return 0;
}

void
x509_text_file_close(struct x509_text_file *f)
{
	if (f == NULL)
		return;
	sk_X509_INFO_pop_free(f->all, X509_INFO_free);
	free(f);
}
