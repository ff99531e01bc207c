#include "transport/tls/tls_sessions.h"

#include <stdint.h>
#include <string.h>

#include "transport/tls/tls_identity.h"
#include "transport/tls/tls_internal.h"
#include "transport/tls/tls_setup.h"

/* A server takes only tickets that were made for the same use. */
static const unsigned char session_use[] = "tributary";

/* Until when the verification done by the handshake is valid. */
static time_t
valid_until(struct tls_conn *t)
{
	time_t now = tls_setup_now(t->setup), until, end;
	STACK_OF(X509) *chain;
	const ASN1_TIME *next;
	int i;

	/* Resuming again and again proves nothing anew. */
	if (SSL_session_reused(t->ssl))
		return t->valid_until;
	until = now + TLS_RESUME_SECONDS;
	chain = SSL_get0_verified_chain(t->ssl);
	for (i = 0; i < sk_X509_num(chain); i++) {
		end = tls_identity_time(X509_get0_notAfter(
		    sk_X509_value(chain, i)));
		if (end < until)
			until = end;
	}
	for (i = 0; i < sk_X509_CRL_num(t->setup->crls); i++) {
		next = X509_CRL_get0_nextUpdate(
		    sk_X509_CRL_value(t->setup->crls, i));
		end = next == NULL ? until : tls_identity_time(next);
		if (end < until)
			until = end;
	}
	return until;
}

/* ---- server: tickets ---- */

static int
ticket_made_cb(SSL *ssl, void *arg)
{
	struct tls_conn *t = SSL_get_app_data(ssl);
	int64_t until = valid_until(t);

	return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), &until,
	    sizeof(until));
}

/* A ticket past its time is ignored: a full handshake follows. */
static SSL_TICKET_RETURN
ticket_seen_cb(SSL *ssl, SSL_SESSION *session, const unsigned char *key_name,
    size_t key_name_len, SSL_TICKET_STATUS status, void *arg)
{
	struct tls_conn *t = SSL_get_app_data(ssl);
	int64_t until;
	void *data;
	size_t len;

	if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	if (SSL_SESSION_get0_ticket_appdata(session, &data, &len) != 1 ||
	    len != sizeof(until))
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	memcpy(&until, data, sizeof(until));
	if (tls_setup_now(t->setup) >= until)
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	t->valid_until = until;
	return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE :
	    SSL_TICKET_RETURN_USE_RENEW;
}

/* ---- client: the last session of each host ---- */

/* Returns 1: the session is ours. */
static int
session_new_cb(SSL *ssl, SSL_SESSION *session)
{
	struct tls_conn *t = SSL_get_app_data(ssl);
	struct tls_session *e = tls_sessions_slot(&t->setup->sessions, t->host);

	if (e == NULL)
		return 0;
	e->session = session;
	e->until = valid_until(t);
	return 1;
}

void
tls_sessions_offer(struct tls_conn *t)
{
	struct tls_session *e = tls_sessions_find(&t->setup->sessions, t->host);

	if (e == NULL)
		return;
	if (tls_setup_now(t->setup) >= e->until ||
	    SSL_set_session(t->ssl, e->session) != 1) {
		tls_session_drop(e);
		return;
	}
	t->valid_until = e->until;
	t->offered = e->session;
}

void
tls_sessions_settle(struct tls_conn *t)
{
	struct tls_session *e;

	if (t->offered == NULL ||
	    (tls_conn_is_open(t) && SSL_session_reused(t->ssl)))
		return;
	e = tls_sessions_find(&t->setup->sessions, t->host);
	if (e != NULL && e->session == t->offered)
		tls_session_drop(e);
	t->offered = NULL;
}

int
tls_sessions_attach(SSL_CTX *ctx, bool is_server)
{
	SSL_CTX_set_timeout(ctx, TLS_RESUME_SECONDS);
	if (!is_server) {
		SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT |
		    SSL_SESS_CACHE_NO_INTERNAL);
		SSL_CTX_sess_set_new_cb(ctx, session_new_cb);
		return 0;
	}
	/* Tickets need no cache; their keys are this SSL_CTX's own. */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	if (SSL_CTX_set_session_id_context(ctx, session_use,
		sizeof(session_use) - 1) != 1 ||
	    SSL_CTX_set_num_tickets(ctx, 1) != 1 ||
	    SSL_CTX_set_session_ticket_cb(ctx, ticket_made_cb, ticket_seen_cb,
		NULL) != 1)
		return -1;
	return 0;
}
