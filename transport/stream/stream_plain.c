#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/socket/sock.h"
#include "transport/stream/stream_internal.h"

ssize_t
stream_plain_read(struct stream *s, struct iovec *iov, int niov, bool *lost)
{
	/* Streams may be served by several threads. */
	static _Thread_local struct log_limit no_fds;
	int fds[SOCK_FDS_MAX], n_fds = 0, i;
	int *take = s->peer.can_pass_fds ? fds : NULL;
	ssize_t n;

	n = sock_receive(s->fd, iov, niov, take, &n_fds);
	if (n > 0) {
		s->received += (uint64_t)n;
		s->last_in_ms = loop_turn_ms(s->loop);
	}
	if (UNLIKELY(n_fds < 0))
		log_limited(&no_fds, loop_now_ms(), LOG_LEVEL_WARN,
		    "%s: it passed a file descriptor, and there is none left "
		    "to take it with; raise their limit (LimitNOFILE=, "
		    "ulimit -n)", s->peer.text);
	for (i = 0; take != NULL && i < n_fds; i++)
		*lost |= fd_queue_add(&s->fds, take[i], s->received) != 0;
	return n;
}

ssize_t
stream_plain_write(struct stream *s, struct iovec *iov, int niov, int fd)
{
	return sock_send(s->fd, iov, niov, fd, MSG_DONTWAIT);
}

void
stream_plain_arm_input(struct stream *s)
{
	stream_watch(s, stream_input_wanted(s));
}

bool
stream_plain_peer_left(struct stream *s, enum stream_end *why)
{
	char byte;
	ssize_t n;

	if (input_rest_len(&s->kept) > 0)
		return false;
	n = recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	*why = n == 0 ? STREAM_EOF : STREAM_RESET;
	return n == 0 || (n < 0 && !sock_error_is_transient(errno));
}

void
stream_plain_drop(struct stream *s)
{
	close(s->fd);
	s->fd = -1;
}

int
stream_plain_begin(struct stream *s)
{
	static const struct stream_backend plain = {
		.read = stream_plain_read,
		.write = stream_plain_write,
		.arm_input = stream_plain_arm_input,
		.peer_left = stream_plain_peer_left,
		.drop = stream_plain_drop,
	};

	s->backend = &plain;
	return stream_watch_first(s);
}
