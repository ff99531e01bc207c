#include "client/tunnel/passage.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/process/child.h"
#include "transport/socket/addr.h"
#include "transport/socket/peer.h"
#include "transport/stream/stream.h"
#include "transport/tls/tls.h"

/*
 * High-water and low-water mark of one direction's queue, in bytes: above HIGH
 * reading from its source pauses until LOW.  One read may come on top, far
 * below HARD, the stream's own limit.
 */
#define PASSAGE_HIGH (512u * 1024u)
#define PASSAGE_LOW  (128u * 1024u)
#define PASSAGE_HARD (4u * 1024u * 1024u)
/* A TLS server that accepts and stays silent costs this long. */
#define PASSAGE_HANDSHAKE_MS 30000u

struct passage {
	struct loop *loop;
	struct passage_setup setup;
	struct stream *near; /* NULL: it has ended */
	struct stream *far;  /* NULL: dial is under way, or it has ended */
	struct dial *dial;
	struct loop_timer *handshake; /* armed while one is under way */
	struct addr child_addr;
};

static void
end(struct passage *p, const char *why)
{
	p->setup.ops->ended(p->setup.arg, why);
}

static size_t
pass_on(struct stream *from, struct stream *to, const uint8_t *buf, size_t len)
{
	stream_write(to, buf, len, -1);
	if (stream_queued(to) > PASSAGE_HIGH)
		stream_pause(from);
	return len;
}

/* ---- the far side ---- */

static size_t
far_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	struct passage *p = arg;

	return pass_on(s, p->near, buf, len);
}

static void
far_drained(struct stream *s, void *arg)
{
	struct passage *p = arg;

	stream_resume(p->near);
}

static void
far_opened(struct stream *s, void *arg)
{
	struct passage *p = arg;

	loop_timer_clear(p->handshake);
}

static void
far_closed(struct stream *s, enum stream_end why, void *arg)
{
	struct passage *p = arg;
	const char *detail = stream_end_detail(s);
	char text[DIAL_TEXT_MAX + ADDR_TEXT_MAX];

	p->far = NULL;
	snprintf(text, sizeof(text), "%s: %s", p->setup.to->text,
	    *detail != '\0' ? detail : stream_end_text(why));
	end(p, *detail != '\0' || why != STREAM_EOF ? text : NULL);
}

static const struct stream_ops far_ops = {
	.data = far_data,
	.opened = far_opened,
	.drained = far_drained,
	.closed = far_closed,
};

static void
handshake_late(void *arg)
{
	struct passage *p = arg;
	char text[ADDR_TEXT_MAX + 100];

	snprintf(text, sizeof(text), "the daemon at %s does not answer the TLS "
	    "handshake: is this a port for TLS?", p->setup.to->text);
	end(p, text);
}

/* Owns what r holds.  -1: no memory. */
static int
open_far(struct passage *p, const struct dial_result *r)
{
	struct stream_setup setup = { .tls = r->tls, .child = r->child,
	    .child_addr = &p->child_addr, .peer = r->peer };

	p->child_addr = *p->setup.to;
	p->far = stream_new_over(p->loop, r->fd, &setup, &far_ops, p);
	if (p->far == NULL) {
		tls_conn_free(r->tls);
		child_free(r->child);
		close(r->fd);
		return -1;
	}
	stream_set_limits(p->far, PASSAGE_HARD, PASSAGE_LOW);
	if (stream_is_opening(p->far))
		loop_timer_set(p->handshake, PASSAGE_HANDSHAKE_MS, 0);
	if (p->setup.ops->opened == NULL)
		return 0;
	return p->setup.ops->opened(p->setup.arg, p->near, p->far);
}

static void
dial_failed(struct passage *p, int error)
{
	const char *detail = dial_error_detail(p->dial);
	char text[DIAL_TEXT_MAX + ADDR_TEXT_MAX];

	if (*detail != '\0')
		snprintf(text, sizeof(text), "%s: %s", p->setup.to->text,
		    detail);
	else
		dial_error_text(p->setup.to, error, p->setup.variable, text,
		    sizeof(text));
	end(p, text);
}

static void
dial_cb(const struct dial_result *r, int error, void *arg)
{
	struct passage *p = arg;

	if (r == NULL) {
		dial_failed(p, error);
		return;
	}
	dial_free(p->dial);
	p->dial = NULL;
	if (open_far(p, r) != 0)
		end(p, "out of memory for one more connection");
	else
		stream_resume(p->near);
}

/* ---- the near side ---- */

static size_t
near_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	struct passage *p = arg;

	return pass_on(s, p->far, buf, len);
}

static void
near_drained(struct stream *s, void *arg)
{
	struct passage *p = arg;

	if (p->far != NULL)
		stream_resume(p->far);
}

static void
near_closed(struct stream *s, enum stream_end why, void *arg)
{
	struct passage *p = arg;

	p->near = NULL;
	end(p, NULL);
}

static const struct stream_ops near_ops = {
	.data = near_data,
	.drained = near_drained,
	.closed = near_closed,
};

/* ---- life ---- */

struct passage *
passage_new(struct loop *l, int fd, const struct passage_setup *setup,
    char *err, size_t err_size)
{
	struct passage *p;

	snprintf(err, err_size, "out of memory for one more connection");
	if ((p = calloc(1, sizeof(*p))) == NULL) {
		close(fd);
		return NULL;
	}
	p->loop = l;
	p->setup = *setup;
	if ((p->near = stream_new(l, fd, &near_ops, p)) == NULL) {
		close(fd);
		goto fail;
	}
	stream_set_limits(p->near, PASSAGE_HARD, PASSAGE_LOW);
	stream_pause(p->near); /* until the service is connected */
	if ((p->handshake = loop_timer_new(l, handshake_late, p)) == NULL)
		goto fail;
	p->dial = dial_new(l, &(struct dial_request){ .addr = setup->to,
	    .how = setup->how, .fn = dial_cb, .arg = p }, err, err_size);
	if (p->dial != NULL)
		return p;

fail:
	passage_free(p);
	return NULL;
}

void
passage_free(struct passage *p)
{
	if (p == NULL)
		return;
	dial_free(p->dial);
	loop_timer_free(p->handshake);
	if (p->near != NULL)
		stream_close(p->near, true);
	if (p->far != NULL)
		stream_close(p->far, true);
	free(p);
}
