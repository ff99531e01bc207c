#include "transport/tls/tls_setup.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/base/log.h"
#include "transport/tls/tls_identity.h"
#include "transport/tls/tls_text.h"

/* Below our own certificate; its issuers and theirs. */
#define TLS_CHAIN_DEPTH 8
/* Memory that an unknown peer may make us hold. */
#define TLS_CHAIN_BYTES_MAX (32 * 1024)
/* Names of CAs that clients are told. */
#define TLS_CA_NAMES_MAX 32
#define TLS_NAME_TEXT 160

static const char tls12_ciphers[] =
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:"
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256";
static const char tls13_ciphers[] =
    "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:"
    "TLS_AES_128_GCM_SHA256";
static const char groups[] = "X25519:P-256:P-384";

/* Where a sentence about the files goes. */
struct complaint {
	char *err;
	size_t size;
};

/* "PATH: what: OpenSSL's reason", and the queue of reasons is empty. */
static void
complain(const struct complaint *to, const char *path, const char *what)
{
	unsigned long e = ERR_peek_last_error();
	const char *reason = e == 0 ? NULL : ERR_reason_error_string(e);

	snprintf(to->err, to->size, "%s: %s%s%s", path, what,
	    reason == NULL ? "" : ": ", reason == NULL ? "" : reason);
	ERR_clear_error();
}

/* The PEM of a file ends, and nothing is wrong with it. */
static bool
pem_is_over(void)
{
	unsigned long e = ERR_peek_last_error();

	if (ERR_GET_LIB(e) != ERR_LIB_PEM ||
	    ERR_GET_REASON(e) != PEM_R_NO_START_LINE)
		return false;
	ERR_clear_error();
	return true;
}

static void
warn_of_dates(const struct tls_setup *s, const char *path, const X509 *cert)
{
	time_t now = tls_setup_now(s);
	time_t from = tls_identity_time(X509_get0_notBefore(cert));
	time_t to = tls_identity_time(X509_get0_notAfter(cert));
	char name[TLS_NAME_TEXT], then[TLS_TIME_SIZE], here[TLS_TIME_SIZE];

	if (now >= from && now <= to)
		return;
	log_warn("%s: the certificate \"%s\" %s %s, and it is %s here: %s",
	    path, tls_text_name(cert, name, sizeof(name)),
	    now > to ? "expired at" : "is not valid before",
	    tls_text_time(now > to ? to : from, then),
	    tls_text_time(now, here),
	    now > to ? "renew it, other ends refuse it" : "is the clock right?");
}

/* ---- trusted authorities ---- */

static int
setup_add_ca(struct tls_setup *s, X509_STORE *store, X509 *ca,
    STACK_OF(X509_NAME) *names)
{
	X509_NAME *name;

	warn_of_dates(s, s->paths[TLS_FILE_CA], ca);
	if (X509_STORE_add_cert(store, ca) != 1)
		return -1;
	if (sk_X509_NAME_num(names) >= TLS_CA_NAMES_MAX)
		return 0;
	name = X509_NAME_dup(X509_get_subject_name(ca));
	if (name == NULL || sk_X509_NAME_push(names, name) <= 0) {
		X509_NAME_free(name);
		return -1;
	}
	return 0;
}

static int
setup_read_ca(struct tls_setup *s, const struct tls_pem *pem,
    const struct complaint *to)
{
	X509_STORE *store = SSL_CTX_get_cert_store(s->ssl);
	STACK_OF(X509_NAME) *names = sk_X509_NAME_new_null();
	BIO *in = BIO_new_mem_buf(pem->bytes, (int)pem->len);
	X509 *ca = NULL;
	int n = 0, rc = -1;

	if (names == NULL || in == NULL) {
		complain(to, pem->path, "out of memory");
		goto out;
	}
	while ((ca = PEM_read_bio_X509_AUX(in, NULL, NULL, NULL)) != NULL) {
		if (setup_add_ca(s, store, ca, names) != 0) {
			complain(to, pem->path, "a certificate cannot be used");
			goto out;
		}
		X509_free(ca);
		n++;
	}
	if (!pem_is_over()) {
		complain(to, pem->path, "not a PEM file of certificates");
		goto out;
	}
	if (n == 0) {
		complain(to, pem->path,
		    "there is no certificate (in PEM form) in this file");
		goto out;
	}
	/* A server tells its clients which certificates to choose from. */
	if (s->side == TLS_SERVER) {
		SSL_CTX_set_client_CA_list(s->ssl, names);
		names = NULL;
	}
	rc = 0;
out:
	X509_free(ca);
	BIO_free(in);
	sk_X509_NAME_pop_free(names, X509_NAME_free);
	return rc;
}

/* ---- revocation lists ---- */

static void
warn_of_crl(const struct tls_setup *s, const char *path, X509_CRL *crl)
{
	const ASN1_TIME *next = X509_CRL_get0_nextUpdate(crl);
	X509_STORE *store = SSL_CTX_get_cert_store(s->ssl);
	X509_OBJECT *ca;
	X509_STORE_CTX *lookup = X509_STORE_CTX_new();
	char then[TLS_TIME_SIZE], here[TLS_TIME_SIZE];

	if (next != NULL && tls_identity_time(next) < tls_setup_now(s))
		log_warn("%s: this revocation list was to be replaced at %s, "
		    "and it is %s here: every certificate of its issuer is "
		    "refused until there is a new one", path,
		    tls_text_time(tls_identity_time(next), then),
		    tls_text_time(tls_setup_now(s), here));
	if (lookup == NULL ||
	    X509_STORE_CTX_init(lookup, store, NULL, NULL) != 1) {
		X509_STORE_CTX_free(lookup);
		return;
	}
	ca = X509_STORE_CTX_get_obj_by_subject(lookup, X509_LU_X509,
	    X509_CRL_get_issuer(crl));
	if (ca == NULL)
		log_warn("%s: a revocation list in this file is by no issuer "
		    "in %s", path, s->paths[TLS_FILE_CA]);
	X509_OBJECT_free(ca);
	X509_STORE_CTX_free(lookup);
	ERR_clear_error();
}

/*
 * OpenSSL takes a delta list alone for a complete one: certificates in the base
 * list, which it only amends, would be accepted.
 */
static bool
is_delta(const X509_CRL *crl)
{
	return X509_CRL_get_ext_by_NID(crl, NID_delta_crl, -1) >= 0;
}

static int
setup_read_crl(struct tls_setup *s, const struct tls_pem *pem,
    const struct complaint *to)
{
	X509_STORE *store = SSL_CTX_get_cert_store(s->ssl);
	X509_CRL *crl = NULL;
	BIO *in = NULL;
	int rc = -1;

	if (pem->bytes == NULL)
		return 0;
	if ((in = BIO_new_mem_buf(pem->bytes, (int)pem->len)) == NULL ||
	    (s->crls = sk_X509_CRL_new_null()) == NULL) {
		complain(to, pem->path, "out of memory");
		goto out;
	}
	while ((crl = PEM_read_bio_X509_CRL(in, NULL, NULL, NULL)) != NULL) {
		if (is_delta(crl)) {
			X509_CRL_free(crl);
			complain(to, pem->path, "there is a delta list in "
			    "this file, which does not name all that are "
			    "revoked: put the complete list here");
			goto out;
		}
		if (X509_STORE_add_crl(store, crl) != 1 ||
		    sk_X509_CRL_push(s->crls, crl) <= 0) {
			X509_CRL_free(crl);
			complain(to, pem->path, "cannot be used");
			goto out;
		}
		warn_of_crl(s, pem->path, crl);
	}
	if (!pem_is_over()) {
		complain(to, pem->path, "not a PEM file of revocation lists");
		goto out;
	}
	if (sk_X509_CRL_num(s->crls) == 0) {
		complain(to, pem->path, "there is no revocation list (X509 "
		    "CRL, in PEM form) in this file");
		goto out;
	}
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(s->ssl),
	    X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	rc = 0;
out:
	BIO_free(in);
	return rc;
}

/* ---- our certificate and key ---- */

static void
warn_of_purpose(const struct tls_setup *s, const char *path, X509 *cert)
{
	bool server = s->side == TLS_SERVER;

	if (X509_check_purpose(cert, server ? X509_PURPOSE_SSL_SERVER :
	    X509_PURPOSE_SSL_CLIENT, 0) != 1)
		log_warn("%s is not for a %s (extendedKeyUsage lacks %s): "
		    "other ends will refuse it", path,
		    server ? "server" : "client",
		    server ? "serverAuth" : "clientAuth");
	ERR_clear_error();
}

static int
setup_read_cert(struct tls_setup *s, const struct tls_pem *pem,
    const struct complaint *to)
{
	BIO *in = BIO_new_mem_buf(pem->bytes, (int)pem->len);
	X509 *cert = NULL;
	int rc = -1;

	if (in == NULL) {
		complain(to, pem->path, "out of memory");
		goto out;
	}
	cert = PEM_read_bio_X509_AUX(in, NULL, NULL, NULL);
	if (cert == NULL) {
		complain(to, pem->path, pem_is_over() ?
		    "there is no certificate (in PEM form) in this file" :
		    "not a PEM file of certificates");
		goto out;
	}
	if (SSL_CTX_use_certificate(s->ssl, cert) != 1) {
		complain(to, pem->path, "the certificate cannot be used");
		goto out;
	}
	s->own_not_before = tls_identity_time(X509_get0_notBefore(cert));
	s->own_not_after = tls_identity_time(X509_get0_notAfter(cert));
	warn_of_dates(s, pem->path, cert);
	warn_of_purpose(s, pem->path, cert);
	X509_free(cert);
	while ((cert = PEM_read_bio_X509(in, NULL, NULL, NULL)) != NULL) {
		/* Takes it. */
		if (SSL_CTX_add0_chain_cert(s->ssl, cert) != 1) {
			complain(to, pem->path,
			    "an intermediate certificate cannot be used");
			goto out;
		}
	}
	if (!pem_is_over()) {
		complain(to, pem->path, "not a PEM file of certificates");
		goto out;
	}
	rc = 0;
out:
	X509_free(cert);
	BIO_free(in);
	return rc;
}

/* Refuses keys with a passphrase: there is no person to ask. */
static int
no_passphrase(char *buf, int size, int rwflag, void *arg)
{
	*(bool *)arg = true;
	return -1;
}

static int
setup_read_key(struct tls_setup *s, const struct tls_pem *pem,
    const struct complaint *to)
{
	BIO *in = BIO_new_mem_buf(pem->bytes, (int)pem->len);
	EVP_PKEY *key = NULL;
	bool asked = false;
	int rc = -1;

	if (in == NULL) {
		complain(to, pem->path, "out of memory");
		goto out;
	}
	key = PEM_read_bio_PrivateKey(in, NULL, no_passphrase, &asked);
	if (key == NULL) {
		/* OpenSSL's reason says nothing more in either case. */
		ERR_clear_error();
		complain(to, pem->path, asked ? "the key is protected by a "
		    "passphrase, and it cannot be typed in here: store it "
		    "without one (mode 0600)" :
		    "there is no private key (in PEM form) in this file");
		goto out;
	}
	if (X509_check_private_key(SSL_CTX_get0_certificate(s->ssl), key) !=
	    1) {
		ERR_clear_error();
		snprintf(to->err, to->size, "the key %s does not belong to the "
		    "certificate %s", pem->path, s->paths[TLS_FILE_CERT]);
		goto out;
	}
	if (SSL_CTX_use_PrivateKey(s->ssl, key) != 1) {
		complain(to, pem->path, "the key cannot be used");
		goto out;
	}
	rc = 0;
out:
	EVP_PKEY_free(key);
	BIO_free(in);
	return rc;
}

/* ---- rules ---- */

static int
refuse_all(int is_valid, X509_STORE_CTX *ctx)
{
	(void)is_valid;
	X509_STORE_CTX_set_error(ctx, X509_V_ERR_APPLICATION_VERIFICATION);
	return 0;
}

static int
setup_set_rules(struct tls_setup *s, const struct complaint *to)
{
	SSL_CTX *ctx = s->ssl;

	if (SSL_CTX_set_min_proto_version(ctx,
		s->allow_tls12 ? TLS1_2_VERSION : TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_cipher_list(ctx, tls12_ciphers) != 1 ||
	    SSL_CTX_set_ciphersuites(ctx, tls13_ciphers) != 1 ||
	    SSL_CTX_set1_groups_list(ctx, groups) != 1) {
		complain(to, "OpenSSL", "does not take our rules");
		return -1;
	}
	if (SSL_CTX_get_security_level(ctx) < 2)
		SSL_CTX_set_security_level(ctx, 2);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION |
	    SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
	    SSL_OP_PRIORITIZE_CHACHA | SSL_OP_ENABLE_KTLS);
	SSL_CTX_clear_options(ctx, SSL_OP_LEGACY_SERVER_CONNECT |
	    SSL_OP_ALLOW_UNSAFE_LEGACY_RENEGOTIATION |
	    SSL_OP_IGNORE_UNEXPECTED_EOF);
	/* Our chain is what the file holds; it is not looked for each time. */
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS |
	    SSL_MODE_ENABLE_PARTIAL_WRITE |
	    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_max_cert_list(ctx, TLS_CHAIN_BYTES_MAX);
	/* Until tls_verify is attached, every peer is refused. */
	SSL_CTX_set_verify(ctx,
	    SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, refuse_all);
	SSL_CTX_set_verify_depth(ctx, TLS_CHAIN_DEPTH);
	/* Every certificate of the CA file is trusted, root or not. */
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx),
	    X509_V_FLAG_PARTIAL_CHAIN);
	return 0;
}

static int
setup_copy_paths(struct tls_setup *s, const struct tls_pem pem[TLS_N_FILES])
{
	int i;

	for (i = 0; i < TLS_N_FILES; i++)
		if (pem[i].path != NULL &&
		    (s->paths[i] = strdup(pem[i].path)) == NULL)
			return -1;
	return 0;
}

struct tls_setup *
tls_setup_new(enum tls_side side, bool allow_tls12,
    const struct tls_pem pem[TLS_N_FILES], time_t (*now)(void), char *err,
    size_t err_size)
{
	struct complaint to = { err, err_size };
	struct tls_setup *s;

	ERR_clear_error();
	if ((s = calloc(1, sizeof(*s))) == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	atomic_init(&s->refs, 1);
	s->side = side;
	s->allow_tls12 = allow_tls12;
	s->now = now;
	s->ssl = SSL_CTX_new(side == TLS_SERVER ? TLS_server_method() :
	    TLS_client_method());
	if (s->ssl == NULL || setup_copy_paths(s, pem) != 0) {
		complain(&to, "OpenSSL", "out of memory");
		goto fail;
	}
	if (setup_set_rules(s, &to) != 0 ||
	    setup_read_ca(s, &pem[TLS_FILE_CA], &to) != 0 ||
	    setup_read_cert(s, &pem[TLS_FILE_CERT], &to) != 0 ||
	    setup_read_key(s, &pem[TLS_FILE_KEY], &to) != 0 ||
	    setup_read_crl(s, &pem[TLS_FILE_CRL], &to) != 0)
		goto fail;
	return s;

fail:
	tls_setup_unref(s);
	return NULL;
}

struct tls_setup *
tls_setup_ref(struct tls_setup *s)
{
	atomic_fetch_add(&s->refs, 1);
	return s;
}

void
tls_setup_unref(struct tls_setup *s)
{
	int i;

	if (s == NULL || atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	tls_sessions_done(&s->sessions);
	sk_X509_CRL_pop_free(s->crls, X509_CRL_free);
	SSL_CTX_free(s->ssl);
	for (i = 0; i < TLS_N_FILES; i++)
		free(s->paths[i]);
	free(s);
}
