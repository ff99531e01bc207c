#include "client/web/web_secrets.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/web/web_options.h"
#include "transport/base/failure.h"

enum { CERT, KEY, CLIENT_CA, CLIENT_CRL, TOKEN, FILES };

struct stamp {
	bool there;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

struct web_secrets {
	const struct web_options *options;
	const char *paths[FILES]; /* borrowed; NULL: none */
	struct stamp stamps[FILES]; /* before they were read last, or tried */
	SSL_CTX *tls; /* owned; NULL: no TLS */
	char token[WEB_TOKEN_MAX];
};

/* ---- files ---- */

static struct stamp
stamp_of(const char *path)
{
	struct stamp s = { .there = false };
	struct stat st;

	if (path == NULL || stat(path, &st) != 0)
		return s;
	s.there = true;
	s.ino = st.st_ino;
	s.size = st.st_size;
	s.mtime = st.st_mtim;
	return s;
}

static bool
is_same(const struct stamp *a, const struct stamp *b)
{
	return a->there == b->there && a->ino == b->ino &&
	    a->size == b->size && a->mtime.tv_sec == b->mtime.tv_sec &&
	    a->mtime.tv_nsec == b->mtime.tv_nsec;
}

bool
web_secrets_are_stale(const struct web_secrets *s)
{
	struct stamp now;
	size_t i;

	for (i = 0; i < FILES; i++) {
		now = stamp_of(s->paths[i]);
		if (!is_same(&now, &s->stamps[i]))
			return true;
	}
	return false;
}

/* ---- TLS ---- */

/* "--https-key: PATH: OpenSSL's reason" */
static int
complain(const char *flag, const char *path, char *err, size_t err_size)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	snprintf(err, err_size, "%s: %s: %s", flag, path, reason != NULL ?
	    reason : "it cannot be used");
	ERR_clear_error();
	return -1;
}

/* There is no person to ask. */
static int
no_passphrase(char *buf, int size, int rwflag, void *arg)
{
	return -1;
}

static int
read_own(SSL_CTX *c, const struct web_options *o, char *err, size_t err_size)
{
	SSL_CTX_set_default_passwd_cb(c, no_passphrase);
	if (SSL_CTX_use_certificate_chain_file(c, o->https_cert) != 1)
		return complain("--https-cert", o->https_cert, err, err_size);
	/* Fails, too, where certificate and key do not belong together. */
	if (SSL_CTX_use_PrivateKey_file(c, o->https_key, SSL_FILETYPE_PEM) != 1)
		return complain("--https-key", o->https_key, err, err_size);
	return 0;
}

static int
read_clients(SSL_CTX *c, const struct web_options *o, char *err,
    size_t err_size)
{
	X509_LOOKUP *files = X509_STORE_add_lookup(SSL_CTX_get_cert_store(c),
	    X509_LOOKUP_file());
	STACK_OF(X509_NAME) *names;

	if (files == NULL)
		return FAILURE(err, err_size, "no memory");
	if (X509_load_cert_file(files, o->client_ca, X509_FILETYPE_PEM) < 1 ||
	    (names = SSL_load_client_CA_file(o->client_ca)) == NULL)
		return complain("--client-ca", o->client_ca, err, err_size);
	SSL_CTX_set_client_CA_list(c, names);
	SSL_CTX_set_verify(c, SSL_VERIFY_PEER |
	    SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	if (o->client_crl == NULL)
		return 0;
	if (X509_load_crl_file(files, o->client_crl, X509_FILETYPE_PEM) < 1)
		return complain("--client-crl", o->client_crl, err, err_size);
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(c),
	    X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	return 0;
}

/* Keeps libwebsockets from looking for another context by the name. */
static int
name_cb(SSL *ssl, int *alert, void *arg)
{
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *
read_tls(const struct web_options *o, char *err, size_t err_size)
{
	SSL_CTX *c = SSL_CTX_new(TLS_server_method());

	ERR_clear_error();
	if (c == NULL) {
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	(void)SSL_CTX_set_tlsext_servername_callback(c, name_cb);
	if (read_own(c, o, err, err_size) == 0 && (o->client_ca == NULL ||
	    read_clients(c, o, err, err_size) == 0))
		return c;
	SSL_CTX_free(c);
	return NULL;
}

/* The first that happens in a handshake. */
static int
hello_cb(SSL *ssl, int *alert, void *arg)
{
	const struct web_secrets *s = arg;

	if (SSL_set_SSL_CTX(ssl, s->tls) == NULL ||
	    X509_VERIFY_PARAM_set1(SSL_get0_param(ssl),
	    SSL_CTX_get0_param(s->tls)) != 1) {
		*alert = SSL_AD_INTERNAL_ERROR;
		return SSL_CLIENT_HELLO_ERROR;
	}
	SSL_set_verify(ssl, SSL_CTX_get_verify_mode(s->tls), NULL);
	return SSL_CLIENT_HELLO_SUCCESS;
}

void
web_secrets_attach(struct web_secrets *s, SSL_CTX *context)
{
	SSL_CTX_set_client_hello_cb(context, hello_cb, s);
	/* A session that is resumed would be verified by older files. */
	SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
	(void)SSL_CTX_set_num_tickets(context, 0);
	(void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

/* ---- secrets ---- */

const char *
web_secrets_token(const struct web_secrets *s)
{
	return s->token;
}

int
web_secrets_reload(struct web_secrets *s, char *err, size_t err_size)
{
	const struct web_options *o = s->options;
	char token[WEB_TOKEN_MAX] = "";
	SSL_CTX *tls = NULL;
	size_t i;

	for (i = 0; i < FILES; i++)
		s->stamps[i] = stamp_of(s->paths[i]);
	if (o->token_file != NULL &&
	    web_options_read_token(o->token_file, token, err, err_size) != 0)
		return -1;
	if (o->https_cert != NULL &&
	    (tls = read_tls(o, err, err_size)) == NULL)
		return -1;
	SSL_CTX_free(s->tls);
	s->tls = tls;
	memcpy(s->token, token, sizeof(s->token));
	return 0;
}

struct web_secrets *
web_secrets_new(const struct web_options *o, char *err, size_t err_size)
{
	struct web_secrets *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	s->options = o;
	s->paths[CERT] = o->https_cert;
	s->paths[KEY] = o->https_key;
	s->paths[CLIENT_CA] = o->client_ca;
	s->paths[CLIENT_CRL] = o->client_crl;
	s->paths[TOKEN] = o->token_file;
	if (web_secrets_reload(s, err, err_size) == 0)
		return s;
	web_secrets_free(s);
	return NULL;
}

void
web_secrets_free(struct web_secrets *s)
{
	if (s == NULL)
		return;
	SSL_CTX_free(s->tls);
	free(s);
}
