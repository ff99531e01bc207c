/*
 * listener_internal: a listener's sockets, which listener_open.c opens or takes
 * over, and listener.c accepts from.  Private to the room.
 */
#ifndef TRANSPORT_CONNECT_LISTENER_INTERNAL_H
#define TRANSPORT_CONNECT_LISTENER_INTERNAL_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "transport/connect/listener.h"
#include "transport/connect/socket_file.h"

struct listener_socket {
	int fd;
	struct event ev;
	struct listener *owner;
};

struct listener {
	struct loop *loop;
	listener_fn fn;
	void *arg;
	struct listener_socket sockets[LISTENER_SOCKETS_MAX];
	int n_sockets;
	struct loop_timer *retry; /* armed while out of descriptors */
	bool out_of_fds;          /* and the log says so */
	bool accepting;           /* inside of listener_accept_cb */
	bool freed;               /* inside fn: destroyed after it */
	bool resting;
	bool paced;               /* stops after each few newcomers */

	struct socket_file file;
	bool remake_failed;       /* and the log says so */
};

/* ---- listener.c ---- */

/* Takes what connects to a struct listener_socket. */
void listener_accept_cb(evutil_socket_t fd, short what, void *socket);
/* Accepts again, after descriptors ran out. */
void listener_retry_cb(void *listener);
/* Frees the listener with its sockets, and removes its file. */
void listener_destroy(struct listener *l);

#endif /* TRANSPORT_CONNECT_LISTENER_INTERNAL_H */
