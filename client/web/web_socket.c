#include "client/web/web_socket.h"

#include <libwebsockets.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REST_BYTES 16384u

/* Bytes on their way to one side. */
struct piece {
	unsigned char *bytes; /* owned, behind LWS_PRE; NULL: none */
	size_t len;
};

struct web_socket {
	struct lws *ws, *near; /* NULL: gone */
	struct piece to_ws, to_near;
};

/*
 * Holds what `from` (NULL: it has ended) said until `to` takes it, if that is
 * there still.  -1: no memory.
 */
static int
keep(struct piece *p, struct lws *from, struct lws *to, const void *data,
    size_t len)
{
	unsigned char *grown;

	if (to == NULL)
		return 0;
	/* More may come of what was read before the flow stopped. */
	grown = realloc(p->bytes, LWS_PRE + p->len + len);
	if (grown == NULL)
		return -1;
	memcpy(grown + LWS_PRE + p->len, data, len);
	p->bytes = grown;
	p->len += len;
	if (from != NULL)
		lws_rx_flow_control(from, 0);
	lws_callback_on_writable(to);
	return 0;
}

/* -1: `to` takes nothing more. */
static int
hand_over(struct piece *p, struct lws *to, struct lws *from,
    enum lws_write_protocol how)
{
	int n;

	if (p->bytes == NULL)
		return 0;
	n = lws_write(to, p->bytes + LWS_PRE, p->len, how);
	free(p->bytes);
	if (n < (int)p->len)
		n = -1;
	*p = (struct piece){ .len = 0 };
	if (from != NULL)
		lws_rx_flow_control(from, 1);
	return n < 0 ? -1 : 0;
}

static void
drop_if_over(struct web_socket *s)
{
	if (s->ws != NULL || s->near != NULL)
		return;
	free(s->to_ws.bytes);
	free(s->to_near.bytes);
	free(s);
}

/* ---- the local side ---- */

/*
 * Takes what is left in the socket, which the library closes as soon as the
 * other end has: a socket's buffer at most.
 */
static void
take_rest(struct web_socket *s)
{
	char bytes[REST_BYTES];
	ssize_t n;

	while (s->ws != NULL && (n = recv(lws_get_socket_fd(s->near), bytes,
	    sizeof(bytes), MSG_DONTWAIT)) > 0)
		if (keep(&s->to_ws, NULL, s->ws, bytes, (size_t)n) != 0)
			return;
}

static int
near_closed(struct web_socket *s)
{
	take_rest(s);
	s->near = NULL;
	/* First goes what it said last. */
	if (s->ws != NULL)
		lws_callback_on_writable(s->ws);
	drop_if_over(s);
	return 0;
}

int
web_socket_near_callback(struct lws *wsi, int reason, void *user, void *in,
    size_t len)
{
	struct web_socket *s = user == NULL ? NULL : *(void **)user;

	switch (reason) {
	/* A WebSocket that asks for this protocol by name. */
	case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
	case LWS_CALLBACK_ESTABLISHED:
		return -1;
	case LWS_CALLBACK_RAW_RX:
		return s == NULL ? -1 : keep(&s->to_ws, wsi, s->ws, in, len);
	case LWS_CALLBACK_RAW_WRITEABLE:
		if (s == NULL ||
		    hand_over(&s->to_near, wsi, s->ws, LWS_WRITE_RAW) != 0)
			return -1;
		return s->ws == NULL ? -1 : 0;
	case LWS_CALLBACK_RAW_CLOSE:
		return s == NULL ? 0 : near_closed(s);
	}
	return 0;
}

/* ---- the WebSocket ---- */

struct web_socket *
web_socket_new(struct lws *ws, struct lws_vhost *host, int fd)
{
	struct web_socket *s = calloc(1, sizeof(*s));
	lws_sock_file_fd_type handle = { .sockfd = fd };

	if (s == NULL) {
		close(fd);
		return NULL;
	}
	/* The library closes what it has no place for. */
	s->near = lws_adopt_descriptor_vhost(host, LWS_ADOPT_SOCKET, handle,
	    WEB_SOCKET_NEAR, NULL);
	if (s->near == NULL) {
		free(s);
		return NULL;
	}
	s->ws = ws;
	*(void **)lws_wsi_user(s->near) = s;
	return s;
}

int
web_socket_received(struct web_socket *s, const void *data, size_t len)
{
	static const char why[] = "binary messages alone";

	if (!lws_frame_is_binary(s->ws)) {
		lws_close_reason(s->ws,
		    LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE,
		    (unsigned char *)why, sizeof(why) - 1);
		return -1;
	}
	return len == 0 ? 0 : keep(&s->to_near, s->ws, s->near, data, len);
}

int
web_socket_writable(struct web_socket *s)
{
	static const char why[] = "the collector has closed the connection, or "
	    "cannot be reached";

	bool wrote = s->to_ws.bytes != NULL;

	if (hand_over(&s->to_ws, s->ws, s->near, LWS_WRITE_BINARY) != 0)
		return -1;
	/* The end comes once all is with the kernel. */
	if (s->near == NULL && wrote)
		lws_callback_on_writable(s->ws);
	if (s->near != NULL || wrote)
		return 0;
	lws_close_reason(s->ws, LWS_CLOSE_STATUS_GOINGAWAY,
	    (unsigned char *)why, sizeof(why) - 1);
	return -1;
}

void
web_socket_closed(struct web_socket *s)
{
	s->ws = NULL;
	/* The local side ends when it has got what was said last. */
	if (s->near != NULL)
		lws_callback_on_writable(s->near);
	drop_if_over(s);
}
