#include "transport/tls/tls_session_cache.h"

#include <stdlib.h>
#include <string.h>

struct tls_session *
tls_sessions_find(struct tls_sessions *s, const char *host)
{
	size_t i;

	for (i = 0; i < TLS_SESSIONS_MAX; i++)
		if (s->all[i].host != NULL && strcmp(s->all[i].host, host) == 0)
			return &s->all[i];
	return NULL;
}

void
tls_session_drop(struct tls_session *e)
{
	SSL_SESSION_free(e->session);
	free(e->host);
	memset(e, 0, sizeof(*e));
}

struct tls_session *
tls_sessions_slot(struct tls_sessions *s, const char *host)
{
	struct tls_session *e = tls_sessions_find(s, host);
	size_t i;

	for (i = 0; e == NULL && i < TLS_SESSIONS_MAX; i++)
		if (s->all[i].host == NULL)
			e = &s->all[i];
	if (e == NULL) {
		e = &s->all[s->next];
		s->next = (s->next + 1) % TLS_SESSIONS_MAX;
	}
	tls_session_drop(e);
	e->host = strdup(host);
	return e->host == NULL ? NULL : e;
}

void
tls_sessions_done(struct tls_sessions *s)
{
	size_t i;

	for (i = 0; i < TLS_SESSIONS_MAX; i++)
		tls_session_drop(&s->all[i]);
}
