#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "transport/loop/loop.h"
#include "transport/socket/sock.h"
#include "transport/stream/stream_internal.h"

/* Sends per readiness event: one fast reader does not hold the loop. */
#define STREAM_SENDS_MAX 8

static bool
stream_takes_output(const struct stream *s)
{
	return stream_is_live(s) && s->output != OUT_REFUSED;
}

/*
 * The socket refused output for good.  Bytes that the peer sent before it left
 * are still to be read, and reading finds the end behind them; a stream that is
 * paused, or an error of another kind, is not left waiting for that.
 */
static void
stream_output_failed(struct stream *s, int error)
{
	s->output = OUT_REFUSED;
	output_queue_done(&s->out);
	stream_count(s);
	stream_arm_output(s);
	if (s->state == ST_FLUSHING)
		stream_die(s);
	else if (error != EPIPE && error != ECONNRESET)
		stream_end_later(s, STREAM_RESET);
	else if (s->flow == FLOW_PAUSED)
		stream_look_later(s);
}

/* Copies two pieces, behind the first `sent` bytes that the socket took. */
static void
stream_queue(struct stream *s, size_t sent, const struct iovec iov[2], int fd)
{
	size_t skip_a = sent < iov[0].iov_len ? sent : iov[0].iov_len;
	size_t skip_b = sent - skip_a;
	int own_fd = -1;

	if (s->out.bytes == 0)
		s->last_out_ms = loop_turn_ms(s->loop);
	if (fd >= 0 && sent == 0) {
		if ((own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
			goto fail;
	}
	if (output_queue_add(&s->out, (const char *)iov[0].iov_base + skip_a,
		iov[0].iov_len - skip_a,
		(const char *)iov[1].iov_base + skip_b,
		iov[1].iov_len - skip_b, own_fd) != 0)
		goto fail;
	if (s->out.bytes > s->hard) {
		stream_end_later(s, STREAM_SLOW);
		return;
	}
	if (s->out.bytes > s->low)
		s->output = OUT_OVER_LOW;
	stream_count(s);
	stream_arm_output(s);
	return;

fail:
	if (own_fd >= 0)
		close(own_fd);
	stream_end_later(s, STREAM_NO_MEMORY);
}

/*
 * Answers to the requests of one read go out together: each by itself would
 * cost a system call, a segment and, over TLS, a record.
 */
void
stream_cork(struct stream *s)
{
	s->corking = true;
}

void
stream_uncork(struct stream *s)
{
	size_t n = s->corked;

	s->corking = false;
	s->corked = 0;
	if (n > 0)
		stream_write(s, loop_cork(s->loop), n, -1);
}

/*
 * False: the pieces do not fit, or bring a descriptor: they are to be written,
 * behind what was gathered before, which was sent.
 */
static bool
stream_gather(struct stream *s, const void *a, size_t alen, const void *b,
    size_t blen, int fd)
{
	uint8_t *to = loop_cork(s->loop) + s->corked;

	if (fd >= 0 || alen + blen > LOOP_CORK_BYTES - s->corked) {
		stream_uncork(s);
		stream_cork(s);
		return false;
	}
	if (alen > 0)
		memcpy(to, a, alen);
	if (blen > 0)
		memcpy(to + alen, b, blen);
	s->corked += alen + blen;
	return true;
}

void
stream_gather_segments(struct stream *s, bool on)
{
	int value = on;

	/* Other sockets than TCP have no segments, and say so. */
	if (s->fd >= 0)
		(void)setsockopt(s->fd, IPPROTO_TCP, TCP_CORK, &value,
		    sizeof(value));
}

void
stream_write2(struct stream *s, const void *a, size_t alen, const void *b,
    size_t blen, int fd)
{
	struct iovec iov[2];
	ssize_t n = 0;

	if (!stream_takes_output(s) || alen + blen == 0)
		return;
	/* memcpy() from NULL is undefined, even of nothing. */
	if (a == NULL)
		a = "";
	if (b == NULL)
		b = "";
	iov[0] = (struct iovec){ (void *)a, alen };
	iov[1] = (struct iovec){ (void *)b, blen };
	if (!s->peer.can_pass_fds)
		fd = -1;
	if (s->corking && stream_gather(s, a, alen, b, blen, fd))
		return;
	if (!stream_takes_output(s))
		return;
	if (s->out.bytes == 0) {
		n = s->backend->write(s, iov, blen > 0 ? 2 : 1, fd);
		if (n < 0) {
			if (!sock_error_is_transient(errno)) {
				stream_output_failed(s, errno);
				return;
			}
			n = 0;
		}
		if ((size_t)n == alen + blen)
			return;
	}
	stream_queue(s, (size_t)n, iov, fd);
}

void
stream_write(struct stream *s, const void *data, size_t len, int fd)
{
	stream_write2(s, data, len, "", 0, fd);
}

/* Sends until the socket is full; -1: an error ended the stream. */
static int
stream_drain(struct stream *s)
{
	struct iovec iov[STREAM_IOV_MAX];
	int rounds, niov, fd;
	ssize_t n;

	for (rounds = 0; rounds < STREAM_SENDS_MAX && s->out.bytes > 0;
	     rounds++) {
		niov = output_queue_peek(&s->out, iov, STREAM_IOV_MAX, &fd);
		n = s->backend->write(s, iov, niov, fd);
		if (n < 0) {
			if (sock_error_is_transient(errno))
				break;
			stream_output_failed(s, errno);
			return -1;
		}
		output_queue_consume(&s->out, (size_t)n);
		s->last_out_ms = loop_turn_ms(s->loop);
	}
	stream_count(s);
	stream_moved(s);
	return 0;
}

void
stream_push(struct stream *s)
{
	bool corking = s->corking;

	stream_uncork(s);
	s->corking = corking;
	/* drained() and the end of a flush are left to the next event. */
	if (stream_takes_output(s) && s->out.bytes > 0)
		(void)!stream_drain(s);
}

void
stream_tell_drained(struct stream *s)
{
	if (!stream_is_live(s) || s->output != OUT_OVER_LOW)
		return;
	s->output = OUT_TAKEN;
	if (s->ops->drained != NULL)
		s->ops->drained(s, s->arg);
}

void
stream_send_queued(struct stream *s)
{
	if (stream_drain(s) != 0)
		return;
	if (s->out.bytes == 0 && s->state == ST_FLUSHING) {
		stream_flushed(s);
		return;
	}
	stream_arm_output(s);
	if (s->out.bytes <= s->low)
		stream_tell_drained(s);
}

void
stream_write_cb(evutil_socket_t fd, short what, void *arg)
{
	struct stream *s = arg;

	if (s->backend->writable == NULL || s->backend->writable(s))
		stream_send_queued(s);
}

size_t
stream_queued(const struct stream *s)
{
	if (s->backend->queued != NULL)
		return s->backend->queued(s);
	return s->out.bytes + s->corked;
}
