#include <stdlib.h>
#include <sys/socket.h>

#include "transport/loop/loop.h"
#include "transport/process/child.h"
#include "transport/ssh/ssh.h"
#include "transport/stream/stream_internal.h"
#include "transport/tls/tls.h"

/* Time for a child's last messages, and to send the output it was given. */
#define STREAM_CHILD_MS 1000u

struct stream_child {
	struct child *child; /* owned; NULL: dropped */
	struct addr addr;
	char detail[TLS_ERROR_SIZE];
};

static void
said_cb(void *arg)
{
	struct stream *s = arg;
	struct stream_child *c = s->lower;
	int status = child_status(c->child);

	/* A child that closed its end and runs on has failed if it says so. */
	if (status > 0 || (status < 0 && child_stderr(c->child)[0] != '\0')) {
		ssh_error_text(&c->addr, child_stderr(c->child), status,
		    c->detail, sizeof(c->detail));
		s->why = STREAM_REFUSED;
	}
	stream_end_now(s, s->why);
}

/* The socket's error does not tell the cause; the child's messages may. */
static bool
child_put_off_end(struct stream *s, enum stream_end why)
{
	struct stream_child *c = s->lower;

	if (s->state == ST_LAST || (why != STREAM_EOF && why != STREAM_RESET))
		return false;
	s->why = why;
	stream_set_state(s, ST_LAST);
	output_queue_done(&s->out);
	stream_count(s);
	child_when_ended(c->child, STREAM_CHILD_MS, said_cb, s);
	return true;
}

static void
sent_cb(void *arg)
{
	stream_die(arg);
}

/* The child has got all, and has not sent it yet. */
static void
child_flushed(struct stream *s)
{
	struct stream_child *c = s->lower;

	stream_arm_output(s);
	/* Reading the end, the child sends what it has got, and ends. */
	(void)shutdown(s->fd, SHUT_WR);
	child_when_ended(c->child, STREAM_CHILD_MS, sent_cb, s);
}

static void
child_drop(struct stream *s)
{
	struct stream_child *c = s->lower;

	stream_plain_drop(s);
	child_free(c->child);
	c->child = NULL;
}

static void
child_done(struct stream *s)
{
	free(s->lower);
}

static const char *
child_detail(const struct stream *s)
{
	const struct stream_child *c = s->lower;

	return c->detail;
}

int
stream_child_begin(struct stream *s, struct child *child,
    const struct addr *a)
{
	static const struct stream_backend over_child = {
		.read = stream_plain_read,
		.write = stream_plain_write,
		.arm_input = stream_plain_arm_input,
		.peer_left = stream_plain_peer_left,
		.put_off_end = child_put_off_end,
		.flushed = child_flushed,
		.drop = child_drop,
		.free = child_done,
		.detail = child_detail,
	};
	struct stream_child *c = calloc(1, sizeof(*c));

	if (c == NULL || stream_watch_first(s) != 0) {
		free(c);
		return -1;
	}
	c->child = child;
	if (a != NULL)
		c->addr = *a;
	s->backend = &over_child;
	s->lower = c;
	s->peer.can_pass_fds = false;
	return 0;
}
