/*
 * web_server: HTTP, by libwebsockets, on a thread of its own.  Connections are
 * accepted by the loop, and handed to that thread.
 *
 * GET and HEAD, one answer a request, made from a snapshot of the collector's
 * answers (web_source.h); a request that finds none waits for it.  WebSockets at
 * /traced, with --traced, whose bytes go to the collector (web_socket.h).
 * Requests for other hosts, of pages of other sites, with bodies, or without the
 * token are refused.  Connections that take their time are closed.
 */
#ifndef CLIENT_WEB_WEB_SERVER_H
#define CLIENT_WEB_WEB_SERVER_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct loop;
struct web_options;
struct web_server;
struct web_source;

/*
 * Open connections.  One more takes the place of the one that has said nothing
 * for longest, or is closed where all are being answered.
 */
#define WEB_CONNECTIONS_MAX 1000u

/* Listens; all is borrowed.  NULL with a sentence in err. */
struct web_server *web_server_new(struct loop *l, const struct web_options *o,
    struct web_source *source, char *err, size_t err_size) MUST_CHECK;
/* "https://127.0.0.1:8037/"; the server's. */
const char *web_server_url(const struct web_server *s);
/* Starts the thread.  -1 with a sentence. */
int web_server_start(struct web_server *s, char *err, size_t err_size)
    MUST_CHECK;
/* A snapshot came.  From any thread. */
void web_server_wake(struct web_server *s);
/*
 * Reads certificates and the token again, soon, on the server's thread, and logs
 * what came of it: where files have changed, or in any case.  From any thread.
 */
enum web_look {
	WEB_LOOK_NOT,
	WEB_LOOK_WHETHER_CHANGED,
	WEB_LOOK_AND_TELL,
};
void web_server_look(struct web_server *s, enum web_look how);
/* Ends the thread and all connections.  NULL is fine. */
void web_server_free(struct web_server *s);

#endif /* CLIENT_WEB_WEB_SERVER_H */
