#include <stdlib.h>

#include "transport/loop/loop.h"
#include "transport/socket/sock.h"
#include "transport/stream/stream_internal.h"

#define STREAM_HARD_DEFAULT (1024u * 1024u)
#define STREAM_LOW_DEFAULT  (64u * 1024u)

/* Asks the kernel for the peer, and tunes the socket accordingly. */
static void
stream_meet_peer(struct stream *s, const struct stream_setup *setup)
{
	if (setup->peer != NULL)
		s->peer = *setup->peer;
	else
		peer_from_socket(&s->peer, s->fd);
	if (s->peer.kind == ADDR_TCP || s->peer.kind == ADDR_TLS)
		sock_tune_tcp(s->fd);
}

/* -1: no memory. */
static int
stream_choose_backend(struct stream *s, const struct stream_setup *setup)
{
	if (setup->io != NULL)
		return stream_far_begin(s, setup);
	if (setup->child != NULL)
		return stream_child_begin(s, setup->child, setup->child_addr);
	if (setup->tls != NULL)
		return stream_tls_begin(s, setup->tls);
	return stream_plain_begin(s);
}

struct stream *
stream_new_over(struct loop *l, int fd, const struct stream_setup *setup,
    const struct stream_ops *ops, void *arg)
{
	static const struct stream_setup plain;
	struct stream *s;

	if (sock_prepare(fd) != 0)
		return NULL;
	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->loop = l;
	s->ops = ops;
	s->arg = arg;
	s->fd = fd;
	s->state = ST_OPEN;
	s->hard = STREAM_HARD_DEFAULT;
	s->low = STREAM_LOW_DEFAULT;
	s->last_in_ms = loop_turn_ms(l);
	output_queue_init(&s->out);
	if (setup == NULL)
		setup = &plain;
	stream_meet_peer(s, setup);
	if (stream_choose_backend(s, setup) != 0) {
		free(s);
		return NULL;
	}
	return s;
}

struct stream *
stream_new(struct loop *l, int fd, const struct stream_ops *ops, void *arg)
{
	return stream_new_over(l, fd, NULL, ops, arg);
}
