/*
 * web_socket: a WebSocket whose binary messages are the bytes of a local socket,
 * and back: a message is a piece of the stream, as with Perfetto's
 * websocket_bridge.  Either side is read only when what it said last has gone to
 * the other, so that a slow one slows the other down.
 *
 * On libwebsockets' thread.  It lives until both sides are gone.
 */
#ifndef CLIENT_WEB_WEB_SOCKET_H
#define CLIENT_WEB_WEB_SOCKET_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct lws;
struct lws_vhost;
struct web_socket;

/*
 * The local side's protocol in the vhost: its name, its callback, and the bytes
 * of user data of a connection.
 */
#define WEB_SOCKET_NEAR      "tributary-near"
#define WEB_SOCKET_NEAR_USER sizeof(void *)
int web_socket_near_callback(struct lws *wsi, int reason, void *user, void *in,
    size_t len);

/* fd: the local socket, taken over.  NULL: no memory, or no place. */
struct web_socket *web_socket_new(struct lws *ws, struct lws_vhost *host,
    int fd) MUST_CHECK;

/*
 * Calls of libwebsockets for the WebSocket: the next bytes of a message; that it
 * can be written to.  -1: it is to be closed.
 */
int web_socket_received(struct web_socket *s, const void *data, size_t len)
    MUST_CHECK;
int web_socket_writable(struct web_socket *s) MUST_CHECK;
/* Called when it is closed; s is dead. */
void web_socket_closed(struct web_socket *s);

#endif /* CLIENT_WEB_WEB_SOCKET_H */
