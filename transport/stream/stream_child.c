#include "transport/stream/stream_internal.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "transport/loop/loop.h"
#include "transport/process/child.h"
#include "transport/ssh/ssh.h"
#include "transport/tls/tls.h"

/* How long a child has for its last words, and to send what it was given. */
#define STREAM_CHILD_MS 1000u

struct stream_child {
	struct child *child; /* owned; NULL: dropped */
	struct addr addr;
	char detail[TLS_ERROR_SIZE];
};

int
stream_child_begin(struct stream *s, struct child *child,
    const struct addr *a)
{
	if ((s->child = calloc(1, sizeof(*s->child))) == NULL)
		return -1;
	s->child->child = child;
	if (a != NULL)
		s->child->addr = *a;
	s->peer.can_pass_fds = false;
	return 0;
}

static void
said_cb(void *arg)
{
	struct stream *s = arg;
	struct stream_child *c = s->child;
	int status = child_status(c->child);

	/* One that runs on, though it closed its end, failed if it says so. */
	if (status > 0 || (status < 0 && child_stderr(c->child)[0] != '\0')) {
		ssh_error_text(&c->addr, child_stderr(c->child), status,
		    c->detail, sizeof(c->detail));
		s->why = STREAM_REFUSED;
	}
	stream_end_now(s, s->why);
}

void
stream_child_end(struct stream *s, enum stream_end why)
{
	s->state = ST_LAST;
	s->why = why;
	stream_arm_input(s);
	stream_arm_output(s);
	output_queue_done(&s->out);
	stream_count(s);
	child_when_ended(s->child->child, STREAM_CHILD_MS, said_cb, s);
}

static void
sent_cb(void *arg)
{
	stream_die(arg);
}

void
stream_child_flush(struct stream *s)
{
	stream_arm_output(s);
	/* It sends what it has got, and ends, once it reads the end. */
	(void)shutdown(s->fd, SHUT_WR);
	child_when_ended(s->child->child, STREAM_CHILD_MS, sent_cb, s);
}

void
stream_child_drop(struct stream *s)
{
	if (s->child == NULL)
		return;
	child_free(s->child->child);
	s->child->child = NULL;
}

const char *
stream_child_detail(const struct stream *s)
{
	return s->child != NULL ? s->child->detail : "";
}

void
stream_child_free(struct stream *s)
{
	free(s->child);
}
