#include "client/cert/x509_make.h"

#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdio.h>

#include "client/cert/name.h"
#include "transport/socket/roles.h"

#define SERIAL_BITS 128
#define X509_VERSION_3_VALUE 2
#define CRL_VERSION_2_VALUE 1

EVP_PKEY *
x509_make_key(enum cert_key_kind kind)
{
	switch (kind) {
	case CERT_KEY_P256:
		return EVP_EC_gen("P-256");
	case CERT_KEY_ED25519:
		return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	}
	return NULL;
}

enum cert_key_kind
x509_make_kind_of(const EVP_PKEY *key)
{
	return EVP_PKEY_is_a(key, "ED25519") ? CERT_KEY_ED25519 : CERT_KEY_P256;
}

/* Ed25519 hashes by itself. */
static const EVP_MD *
digest_for(const EVP_PKEY *key)
{
	return EVP_PKEY_is_a(key, "ED25519") || EVP_PKEY_is_a(key, "ED448")
	    ? NULL
	    : EVP_sha256();
}

static int
add_entry(X509_NAME *name, const char *field, const char *text)
{
	return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
		   (const unsigned char *)text, -1, -1, 0) == 1
	    ? 0
	    : -1;
}

X509_NAME *
x509_make_subject(const char *name, const char *organization)
{
	X509_NAME *n = X509_NAME_new();

	if (n == NULL)
		return NULL;
	if ((organization == NULL || add_entry(n, "O", organization) == 0) &&
	    add_entry(n, "CN", name) == 0)
		return n;
	X509_NAME_free(n);
	return NULL;
}

/* Alternative names. */

static int
set_string(GENERAL_NAME *g, int type, const char *text)
{
	ASN1_IA5STRING *s = ASN1_IA5STRING_new();

	if (s == NULL)
		return -1;
	if (ASN1_STRING_set(s, text, -1) != 1) {
		ASN1_IA5STRING_free(s);
		return -1;
	}
	GENERAL_NAME_set0_value(g, type, s);
	return 0;
}

static int
set_address(GENERAL_NAME *g, const char *text)
{
	ASN1_OCTET_STRING *s = a2i_IPADDRESS(text);

	if (s == NULL)
		return -1;
	GENERAL_NAME_set0_value(g, GEN_IPADD, s);
	return 0;
}

static bool
has_name(const GENERAL_NAMES *names, GENERAL_NAME *g)
{
	int i;

	for (i = 0; i < sk_GENERAL_NAME_num(names); i++)
		if (GENERAL_NAME_cmp(sk_GENERAL_NAME_value(names, i), g) == 0)
			return true;
	return false;
}

/* Takes g, also when it fails. */
static int
append_name(GENERAL_NAMES **names, GENERAL_NAME *g)
{
	if (*names == NULL && (*names = GENERAL_NAMES_new()) == NULL)
		goto fail;
	if (has_name(*names, g)) {
		GENERAL_NAME_free(g);
		return 0;
	}
	if (sk_GENERAL_NAME_push(*names, g) > 0)
		return 0;
fail:
	GENERAL_NAME_free(g);
	return -1;
}

int
x509_make_add_name(GENERAL_NAMES **names, const char *text)
{
	GENERAL_NAME *g = GENERAL_NAME_new();
	int r = -1;

	if (g == NULL)
		return -1;
	switch (cert_name_kind(text)) {
	case CERT_NAME_DNS:
		r = set_string(g, GEN_DNS, text);
		break;
	case CERT_NAME_IP:
		r = set_address(g, text);
		break;
	case CERT_NAME_URI:
		r = set_string(g, GEN_URI, text);
		break;
	case CERT_NAME_EMAIL:
		r = set_string(g, GEN_EMAIL, text);
		break;
	case CERT_NAME_NONE:
		break;
	}
	if (r == 0)
		return append_name(names, g);
	GENERAL_NAME_free(g);
	return -1;
}

int
x509_make_add_role(GENERAL_NAMES **names, uint32_t role)
{
	char uri[64];

	snprintf(uri, sizeof(uri), "%s%s", ROLE_URI_PREFIX,
	    role_name((enum role)role));
	return x509_make_add_name(names, uri);
}

/* Certificates. */

static int
set_serial(X509 *x)
{
	BIGNUM *n = BN_new();
	int r = -1;

	/* The top bit is set, so that all have the same number of digits. */
	if (n != NULL &&
	    BN_rand(n, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
	    BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x)) != NULL)
		r = 0;
	BN_free(n);
	return r;
}

static int
add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;
	int r;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	if ((e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value)) == NULL)
		return -1;
	r = X509_add_ext(x, e, -1) == 1 ? 0 : -1;
	X509_EXTENSION_free(e);
	return r;
}

/* All but the extensions and the signature. */
static X509 *
begin(const X509_NAME *subject, EVP_PKEY *key, const X509_NAME *issuer,
    time_t now, time_t until)
{
	X509 *x = X509_new();

	if (x == NULL)
		return NULL;
	if (X509_set_version(x, X509_VERSION_3_VALUE) == 1 &&
	    set_serial(x) == 0 && X509_set_subject_name(x, subject) == 1 &&
	    X509_set_issuer_name(x, issuer) == 1 &&
	    X509_set_pubkey(x, key) == 1 &&
	    ASN1_TIME_set(X509_getm_notBefore(x), now - X509_MAKE_SKEW) !=
		NULL &&
	    ASN1_TIME_set(X509_getm_notAfter(x), until) != NULL)
		return x;
	X509_free(x);
	return NULL;
}

X509 *
x509_make_ca(const X509_NAME *subject, EVP_PKEY *key, time_t now, time_t until)
{
	X509 *x = begin(subject, key, subject, now, until);

	if (x == NULL)
		return NULL;
	if (add_extension(x, x, NID_basic_constraints,
		"critical,CA:TRUE,pathlen:0") == 0 &&
	    add_extension(x, x, NID_key_usage,
		"critical,keyCertSign,cRLSign") == 0 &&
	    add_extension(x, x, NID_subject_key_identifier, "hash") == 0 &&
	    add_extension(x, x, NID_authority_key_identifier, "keyid:always") ==
		0 &&
	    X509_sign(x, key, digest_for(key)) > 0)
		return x;
	X509_free(x);
	return NULL;
}

X509 *
x509_make_certificate(const struct cert_request *r, X509 *ca, EVP_PKEY *ca_key)
{
	X509 *x = begin(r->subject, r->key, X509_get_subject_name(ca), r->now,
	    r->until);

	if (x == NULL)
		return NULL;
	if (add_extension(x, ca, NID_basic_constraints, "critical,CA:FALSE") ==
		0 &&
	    add_extension(x, ca, NID_key_usage, "critical,digitalSignature") ==
		0 &&
	    add_extension(x, ca, NID_ext_key_usage,
		r->server ? "serverAuth,clientAuth" : "clientAuth") == 0 &&
	    add_extension(x, ca, NID_subject_key_identifier, "hash") == 0 &&
	    add_extension(x, ca, NID_authority_key_identifier,
		"keyid:always") == 0 &&
	    (r->names == NULL ||
		X509_add1_ext_i2d(x, NID_subject_alt_name, (void *)r->names, 0,
		    0) == 1) &&
	    X509_sign(x, ca_key, digest_for(ca_key)) > 0)
		return x;
	X509_free(x);
	return NULL;
}

/* Revocation lists. */

static int
set_reason(X509_REVOKED *r, enum cert_reason reason)
{
	ASN1_ENUMERATED *e;
	int ok;

	/* RFC 5280, 5.3.1: "unspecified" is said by saying nothing. */
	if (reason == CERT_REASON_UNSPECIFIED)
		return 0;
	if ((e = ASN1_ENUMERATED_new()) == NULL)
		return -1;
	ok = ASN1_ENUMERATED_set(e, (long)reason) == 1 &&
	    X509_REVOKED_add1_ext_i2d(r, NID_crl_reason, e, 0, 0) == 1;
	ASN1_ENUMERATED_free(e);
	return ok ? 0 : -1;
}

static int
add_revoked(X509_CRL *crl, const struct cert_entry *e)
{
	X509_REVOKED *r = X509_REVOKED_new();
	ASN1_INTEGER *serial = NULL;
	ASN1_TIME *when = ASN1_TIME_set(NULL, e->revoked);
	BIGNUM *n = NULL;
	int ok = 0;

	if (r != NULL && when != NULL && BN_hex2bn(&n, e->serial) > 0 &&
	    (serial = BN_to_ASN1_INTEGER(n, NULL)) != NULL &&
	    X509_REVOKED_set_serialNumber(r, serial) == 1 &&
	    X509_REVOKED_set_revocationDate(r, when) == 1 &&
	    set_reason(r, e->reason) == 0)
		ok = X509_CRL_add0_revoked(crl, r);
	if (!ok)
		X509_REVOKED_free(r);
	ASN1_INTEGER_free(serial);
	ASN1_TIME_free(when);
	BN_free(n);
	return ok ? 0 : -1;
}

static int
add_crl_extensions(X509_CRL *crl, X509 *ca, uint64_t number)
{
	ASN1_INTEGER *n = ASN1_INTEGER_new();
	X509_EXTENSION *e = NULL;
	X509V3_CTX ctx;
	int ok = 0;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, ca, NULL, NULL, crl, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, NID_authority_key_identifier,
	    "keyid:always");
	if (n != NULL && e != NULL && X509_CRL_add_ext(crl, e, -1) == 1 &&
	    ASN1_INTEGER_set_uint64(n, number) == 1)
		ok = X509_CRL_add1_ext_i2d(crl, NID_crl_number, n, 0, 0);
	X509_EXTENSION_free(e);
	ASN1_INTEGER_free(n);
	return ok == 1 ? 0 : -1;
}

X509_CRL *
x509_make_crl(const struct cert_index *index, X509 *ca, EVP_PKEY *ca_key,
    uint64_t number, time_t now)
{
	ASN1_TIME *from = ASN1_TIME_set(NULL, now - X509_MAKE_SKEW);
	X509_CRL *crl = X509_CRL_new();
	size_t i;

	if (crl == NULL || from == NULL ||
	    X509_CRL_set_version(crl, CRL_VERSION_2_VALUE) != 1 ||
	    X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca)) != 1 ||
	    X509_CRL_set1_lastUpdate(crl, from) != 1 ||
	    X509_CRL_set1_nextUpdate(crl, X509_get0_notAfter(ca)) != 1)
		goto fail;
	for (i = 0; i < index->n; i++)
		if (index->entries[i].state == CERT_REVOKED &&
		    add_revoked(crl, &index->entries[i]) < 0)
			goto fail;
	if (add_crl_extensions(crl, ca, number) < 0 ||
	    X509_CRL_sort(crl) != 1 ||
	    X509_CRL_sign(crl, ca_key, digest_for(ca_key)) <= 0)
		goto fail;
	ASN1_TIME_free(from);
	return crl;

fail:
	ASN1_TIME_free(from);
	X509_CRL_free(crl);
	return NULL;
}

/* Reading back. */

void
x509_make_serial(const X509 *x, char out[CERT_SERIAL_SIZE])
{
	BIGNUM *n = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x), NULL);
	char *hex = n == NULL ? NULL : BN_bn2hex(n);

	snprintf(out, CERT_SERIAL_SIZE, "%s", hex == NULL ? "?" : hex);
	OPENSSL_free(hex);
	BN_free(n);
}

static time_t
time_of(const ASN1_TIME *t)
{
	struct tm tm;

	return ASN1_TIME_to_tm(t, &tm) == 1 ? timegm(&tm) : 0;
}

time_t
x509_make_from(const X509 *x)
{
	return time_of(X509_get0_notBefore(x));
}

time_t
x509_make_until(const X509 *x)
{
	return time_of(X509_get0_notAfter(x));
}

uint64_t
x509_make_crl_number(const X509_CRL *crl)
{
	ASN1_INTEGER *n = X509_CRL_get_ext_d2i(crl, NID_crl_number, NULL, NULL);
	uint64_t v = 0;

	if (n != NULL && ASN1_INTEGER_get_uint64(&v, n) != 1)
		v = 0;
	ASN1_INTEGER_free(n);
	return v;
}
