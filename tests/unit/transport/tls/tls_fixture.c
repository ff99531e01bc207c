#include "tests/unit/transport/tls/tls_fixture.h"

#include <dirent.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOUR 3600
#define DAY  (24 * HOUR)

#define MUST(cond)                                                             \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "tls_fixture:%d: %s\n", __LINE__,      \
			    #cond);                                            \
			abort();                                               \
		}                                                              \
	} while (0)

/* ---- certificates ---- */

static void
add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *e;
	X509V3_CTX ctx;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	MUST((e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value)) != NULL);
	MUST(X509_add_ext(cert, e, -1) == 1);
	X509_EXTENSION_free(e);
}

static void
add_names(X509 *cert, X509 *issuer, const struct fix_wish *w)
{
	char all[8192];

	if (w->sans == NULL && w->role == NULL)
		return;
	snprintf(all, sizeof(all), "%s%s%s%s", w->sans != NULL ? w->sans : "",
	    w->sans != NULL && w->role != NULL ? "," : "",
	    w->role != NULL ? "URI:urn:tributary:role:" : "",
	    w->role != NULL ? w->role : "");
	add_extension(cert, issuer, NID_subject_alt_name, all);
}

static void
set_subject(X509 *cert, const struct fix_wish *w)
{
	X509_NAME *name = X509_get_subject_name(cert);

	if (w->cn == NULL)
		return;
	MUST(X509_NAME_add_entry_by_NID(name, NID_commonName, V_ASN1_UTF8STRING,
	    (const unsigned char *)w->cn,
	    (int)(w->cn_len > 0 ? w->cn_len : strlen(w->cn)), -1, 0) == 1);
}

struct fix_cert *
fix_cert(struct fix_cert *issuer, const struct fix_wish *w)
{
	struct fix_cert *c = calloc(1, sizeof(*c));
	time_t now = time(NULL);
	X509 *above;

	MUST(c != NULL);
	c->next_serial = 1;
	c->key = w->rsa_bits > 0 ? EVP_RSA_gen((unsigned)w->rsa_bits) :
	    EVP_EC_gen("P-256");
	MUST(c->key != NULL && (c->cert = X509_new()) != NULL);
	above = issuer != NULL ? issuer->cert : c->cert;
	MUST(X509_set_version(c->cert, X509_VERSION_3) == 1);
	MUST(ASN1_INTEGER_set(X509_get_serialNumber(c->cert),
	    issuer != NULL ? 0xa000 + issuer->next_serial++ : 1) == 1);
	ASN1_TIME_set(X509_getm_notBefore(c->cert),
	    w->from != 0 ? w->from : now - HOUR);
	ASN1_TIME_set(X509_getm_notAfter(c->cert),
	    w->to != 0 ? w->to : now + DAY);
	set_subject(c->cert, w);
	MUST(X509_set_issuer_name(c->cert, X509_get_subject_name(above)) == 1);
	MUST(X509_set_pubkey(c->cert, c->key) == 1);
	add_extension(c->cert, above, NID_basic_constraints,
	    w->is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
	add_extension(c->cert, above, NID_subject_key_identifier, "hash");
	add_extension(c->cert, above, NID_authority_key_identifier,
	    issuer != NULL ? "keyid:always" : "keyid");
	if (w->is_ca)
		add_extension(c->cert, above, NID_key_usage,
		    "critical,keyCertSign,cRLSign");
	if (w->eku != NULL)
		add_extension(c->cert, above, NID_ext_key_usage, w->eku);
	add_names(c->cert, above, w);
	MUST(X509_sign(c->cert, issuer != NULL ? issuer->key : c->key,
	    EVP_sha256()) > 0);
	return c;
}

struct fix_cert *
fix_ca(const char *name)
{
	struct fix_wish w = { .cn = name, .is_ca = true };

	return fix_cert(NULL, &w);
}

void
fix_cert_free(struct fix_cert *c)
{
	if (c == NULL)
		return;
	X509_free(c->cert);
	EVP_PKEY_free(c->key);
	free(c);
}

/* ---- files ---- */

char *
fix_dir(void)
{
	char path[] = "/tmp/test-tls-XXXXXX", *copy;

	MUST(mkdtemp(path) != NULL);
	MUST((copy = strdup(path)) != NULL);
	return copy;
}

void
fix_dir_free(char *dir)
{
	char path[512];
	struct dirent *e;
	DIR *d;

	if (dir == NULL)
		return;
	MUST((d = opendir(dir)) != NULL);
	while ((e = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.')
			unlink(path);
	}
	closedir(d);
	rmdir(dir);
	free(dir);
}

void
fix_write(const char *dir, const char *name, const void *bytes, size_t len)
{
	char path[512], tmp[520];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(tmp, sizeof(tmp), "%s.new", path);
	MUST((f = fopen(tmp, "w")) != NULL);
	MUST(fchmod(fileno(f), 0600) == 0);
	MUST(len == 0 || fwrite(bytes, 1, len, f) == len);
	MUST(fclose(f) == 0);
	MUST(rename(tmp, path) == 0);
}

void
fix_write_text(const char *dir, const char *name, const char *text)
{
	fix_write(dir, name, text, strlen(text));
}

/* Writes what out holds, and frees it. */
static void
write_bio(const char *dir, const char *name, BIO *out)
{
	char *bytes;
	long len = BIO_get_mem_data(out, &bytes);

	fix_write(dir, name, bytes, (size_t)len);
	BIO_free(out);
}

void
fix_write_certs(const char *dir, const char *name, const struct fix_cert *a,
    const struct fix_cert *b, const struct fix_cert *c)
{
	const struct fix_cert *all[] = { a, b, c };
	BIO *out = BIO_new(BIO_s_mem());
	size_t i;

	MUST(out != NULL);
	for (i = 0; i < 3; i++)
		if (all[i] != NULL)
			MUST(PEM_write_bio_X509(out, all[i]->cert) == 1);
	write_bio(dir, name, out);
}

void
fix_write_key(const char *dir, const char *name, const struct fix_cert *c)
{
	BIO *out = BIO_new(BIO_s_mem());

	MUST(out != NULL && PEM_write_bio_PrivateKey(out, c->key, NULL, NULL, 0,
	    NULL, NULL) == 1);
	write_bio(dir, name, out);
}

static void
crl_add(X509_CRL *crl, const struct fix_cert *revoked, const ASN1_TIME *when)
{
	X509_REVOKED *r = X509_REVOKED_new();

	MUST(r != NULL);
	MUST(X509_REVOKED_set_serialNumber(r,
	    X509_get_serialNumber(revoked->cert)) == 1);
	MUST(X509_REVOKED_set_revocationDate(r, (ASN1_TIME *)when) == 1);
	MUST(X509_CRL_add0_revoked(crl, r) == 1);
}

static X509_CRL *
make_crl(const struct fix_cert *issuer, const struct fix_cert *revoked,
    time_t from, time_t to)
{
	X509_CRL *crl = X509_CRL_new();
	time_t now = time(NULL);
	ASN1_TIME *t;

	MUST(crl != NULL);
	MUST(X509_CRL_set_version(crl, X509_CRL_VERSION_2) == 1);
	MUST(X509_CRL_set_issuer_name(crl,
	    X509_get_subject_name(issuer->cert)) == 1);
	MUST((t = ASN1_TIME_set(NULL, from != 0 ? from : now - HOUR)) != NULL);
	MUST(X509_CRL_set1_lastUpdate(crl, t) == 1);
	if (revoked != NULL)
		crl_add(crl, revoked, t);
	MUST(ASN1_TIME_set(t, to != 0 ? to : now + DAY) != NULL);
	MUST(X509_CRL_set1_nextUpdate(crl, t) == 1);
	ASN1_TIME_free(t);
	MUST(X509_CRL_sort(crl) == 1);
	return crl;
}

static void
write_crl(const char *dir, const char *name, const struct fix_cert *issuer,
    X509_CRL *crl)
{
	BIO *out = BIO_new(BIO_s_mem());

	MUST(out != NULL);
	MUST(X509_CRL_sign(crl, issuer->key, EVP_sha256()) > 0);
	MUST(PEM_write_bio_X509_CRL(out, crl) == 1);
	X509_CRL_free(crl);
	write_bio(dir, name, out);
}

void
fix_write_crl(const char *dir, const char *name, const struct fix_cert *issuer,
    const struct fix_cert *revoked, time_t from, time_t to)
{
	write_crl(dir, name, issuer, make_crl(issuer, revoked, from, to));
}

void
fix_write_partial_crl(const char *dir, const char *name,
    const struct fix_cert *issuer)
{
	X509_CRL *crl = make_crl(issuer, NULL, 0, 0);
	ISSUING_DIST_POINT *scope = ISSUING_DIST_POINT_new();

	MUST(scope != NULL);
	MUST((scope->onlysomereasons = ASN1_BIT_STRING_new()) != NULL);
	/* keyCompromise */
	MUST(ASN1_BIT_STRING_set_bit(scope->onlysomereasons, 1, 1) == 1);
	MUST(X509_CRL_add1_ext_i2d(crl, NID_issuing_distribution_point, scope,
	    1, 0) == 1);
	ISSUING_DIST_POINT_free(scope);
	write_crl(dir, name, issuer, crl);
}

void
fix_write_delta_crl(const char *dir, const char *name,
    const struct fix_cert *issuer)
{
	X509_CRL *crl = make_crl(issuer, NULL, 0, 0);
	ASN1_INTEGER *since = ASN1_INTEGER_new();

	MUST(since != NULL && ASN1_INTEGER_set(since, 1) == 1);
	MUST(X509_CRL_add1_ext_i2d(crl, NID_delta_crl, since, 1, 0) == 1);
	ASN1_INTEGER_free(since);
	write_crl(dir, name, issuer, crl);
}

char *
fix_side(const struct fix_cert *ca, const struct fix_cert *own)
{
	char *dir = fix_dir();

	fix_write_certs(dir, TLS_CA_FILE, ca, NULL, NULL);
	fix_write_certs(dir, TLS_CERT_FILE, own, NULL, NULL);
	fix_write_key(dir, TLS_KEY_FILE, own);
	return dir;
}

struct tls_context *
fix_context(enum tls_side side, const char *dir)
{
	struct tls_options o = { .side = side, .dir = dir };
	char err[TLS_ERROR_SIZE] = "";
	struct tls_context *c = tls_context_new(&o, err, sizeof(err));

	if (c == NULL)
		fprintf(stderr, "%s\n", err);
	MUST(c != NULL);
	return c;
}
