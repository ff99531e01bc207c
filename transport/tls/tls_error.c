#include "transport/tls/tls_error.h"

#include <openssl/err.h>
#include <string.h>

#include "transport/tls/tls_internal.h"
#include "transport/tls/tls_setup.h"

static const char no_memory[] = "out of memory";

void
tls_error_words(const struct tls_conn *t, struct tls_words *w)
{
	const struct tls_setup *s = t->setup;

	w->side = s->side;
	w->allow_tls12 = s->allow_tls12;
	w->peer = t->peer_text;
	w->host = t->host;
	w->ca = s->paths[TLS_FILE_CA];
	w->cert = s->paths[TLS_FILE_CERT];
	w->crl = s->paths[TLS_FILE_CRL];
	w->now = tls_setup_now(s);
	w->own_not_before = s->own_not_before;
	w->own_not_after = s->own_not_after;
}

void
tls_error_say(struct tls_conn *t, const char *sentence)
{
	if (t->error == NULL)
		t->speechless = (t->error = strdup(sentence)) == NULL;
}

const char *
tls_conn_error(const struct tls_conn *t)
{
	return t->error != NULL ? t->error : t->speechless ? no_memory : "";
}

void
tls_error_left(struct tls_conn *t, int error)
{
	char text[TLS_ERROR_SIZE];
	struct tls_words w;

	tls_error_words(t, &w);
	if (t->n_head > 0 && !tls_text_is_tls(t->head, t->n_head))
		tls_text_not_tls(&w, t->head, t->n_head, text, sizeof(text));
	else
		tls_text_left(&w, error, t->n_head > 0, text, sizeof(text));
	tls_error_say(t, text);
}

void
tls_error_reason(struct tls_conn *t, unsigned long code)
{
	int reason = ERR_GET_REASON(code);
	char text[TLS_ERROR_SIZE];
	struct tls_words w;

	tls_error_words(t, &w);
	if (!tls_conn_is_open(t) && t->n_head > 0 &&
	    !tls_text_is_tls(t->head, t->n_head))
		tls_text_not_tls(&w, t->head, t->n_head, text, sizeof(text));
	else if (ERR_GET_LIB(code) == ERR_LIB_SSL &&
	    reason >= SSL_AD_REASON_OFFSET)
		tls_text_alert(&w, reason - SSL_AD_REASON_OFFSET, text,
		    sizeof(text));
	else
		tls_text_reason(&w,
		    ERR_GET_LIB(code) == ERR_LIB_SSL ? reason : 0,
		    ERR_reason_error_string(code), text, sizeof(text));
	tls_error_say(t, text);
}
