#include "transport/tls/tls_verify.h"

#include <openssl/x509_vfy.h>

#include "transport/tls/tls_error.h"
#include "transport/tls/tls_identity.h"
#include "transport/tls/tls_internal.h"
#include "transport/tls/tls_setup.h"

static struct tls_conn *
verified_conn(X509_STORE_CTX *ctx)
{
	return SSL_get_app_data(X509_STORE_CTX_get_ex_data(ctx,
	    SSL_get_ex_data_X509_STORE_CTX_idx()));
}

/* Whether one of the revocation lists is by this issuer. */
static bool
has_list_of(const struct tls_setup *s, const X509_NAME *issuer)
{
	int i;

	for (i = 0; s->crls != NULL && i < sk_X509_CRL_num(s->crls); i++)
		if (X509_NAME_cmp(X509_CRL_get_issuer(
			sk_X509_CRL_value(s->crls, i)), issuer) == 0)
			return true;
	return false;
}

static void
refuse(struct tls_conn *t, X509_STORE_CTX *ctx)
{
	struct tls_refusal r = {
		.error = X509_STORE_CTX_get_error(ctx),
		.cert = X509_STORE_CTX_get_current_cert(ctx),
		.depth = X509_STORE_CTX_get_error_depth(ctx),
		.crl = X509_STORE_CTX_get0_current_crl(ctx),
	};
	char text[TLS_ERROR_SIZE];
	struct tls_words w;

	tls_error_words(t, &w);
	if (r.cert == NULL)
		r.cert = X509_STORE_CTX_get0_cert(ctx);
	tls_text_refused(&w, &r, text, sizeof(text));
	tls_error_say(t, text);
}

/*
 * Called on each error, and only here is it known which list the error is
 * about.  OpenSSL requires a list of every issuer; we only check those that we
 * have.
 */
static int
error_cb(int ok, X509_STORE_CTX *ctx)
{
	struct tls_conn *t = verified_conn(ctx);
	X509 *cert = X509_STORE_CTX_get_current_cert(ctx);

	if (ok)
		return 1;
	if (X509_STORE_CTX_get_error(ctx) == X509_V_ERR_UNABLE_TO_GET_CRL &&
	    cert != NULL &&
	    !has_list_of(t->setup, X509_get_issuer_name(cert))) {
		X509_STORE_CTX_set_error(ctx, X509_V_OK);
		return 1;
	}
	refuse(t, ctx);
	return 0;
}

/* Refuses a peer whose name is ambiguous or, of a client, missing. */
static int
check_name(struct tls_conn *t, X509_STORE_CTX *ctx)
{
	char text[TLS_ERROR_SIZE];
	struct tls_identity id;
	const char *why;
	struct tls_words w;
	int rc;

	rc = tls_identity_init(&id, X509_STORE_CTX_get0_cert(ctx), &why);
	if (rc == 0 && t->setup->side == TLS_SERVER && id.name[0] == '\0') {
		why = "has no name: it has neither a CN nor a DNS or URI name";
		tls_identity_done(&id);
	} else if (rc == 0) {
		tls_identity_done(&id);
		return 1;
	}
	tls_error_words(t, &w);
	tls_text_bad_name(&w, why, text, sizeof(text));
	tls_error_say(t, text);
	X509_STORE_CTX_set_error(ctx, X509_V_ERR_APPLICATION_VERIFICATION);
	return 0;
}

static int
verify_cb(X509_STORE_CTX *ctx, void *arg)
{
	struct tls_conn *t = verified_conn(ctx);

	if (X509_verify_cert(ctx) > 0)
		return check_name(t, ctx);
	refuse(t, ctx); /* unless it was said above */
	return 0;
}

void
tls_verify_attach(SSL_CTX *ctx)
{
	SSL_CTX_set_verify(ctx,
	    SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, error_cb);
	SSL_CTX_set_cert_verify_callback(ctx, verify_cb, NULL);
}
