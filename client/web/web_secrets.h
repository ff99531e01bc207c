/*
 * web_secrets: what proves who is who over HTTPS: our certificate and key, the
 * CA of clients' certificates with its list of revoked ones, and the token.
 * Read at the start and again when files changed, all or nothing; connections
 * that are open keep what they have.
 *
 * After web_secrets_attach() it belongs to the thread that speaks HTTP.
 */
#ifndef CLIENT_WEB_WEB_SECRETS_H
#define CLIENT_WEB_WEB_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct ssl_ctx_st;
struct web_options;
struct web_secrets;

/* o is borrowed for its life.  NULL with a sentence that names the file. */
struct web_secrets *web_secrets_new(const struct web_options *o, char *err,
    size_t err_size) MUST_CHECK;
/* When no connection begins any more.  NULL is fine. */
void web_secrets_free(struct web_secrets *s);

/* Handshakes of this context, which is another's, use the newest files. */
void web_secrets_attach(struct web_secrets *s, struct ssl_ctx_st *context);
/* Token that clients have to send; "": none. */
const char *web_secrets_token(const struct web_secrets *s);

/* Whether a file has changed since it was read last (by stat() only). */
bool web_secrets_are_stale(const struct web_secrets *s);
/* -1 with a sentence: nothing was changed. */
int web_secrets_reload(struct web_secrets *s, char *err, size_t err_size)
    MUST_CHECK;

#endif /* CLIENT_WEB_WEB_SECRETS_H */
