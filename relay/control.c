#include "relay/control.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "relay/own_socket.h"
#include "relay/report.h"
#include "relay/state_dir.h"
#include "transport/stream.h"

/* A report of a thousand producers with the longest names is smaller. */
#define REPORT_MAX (8u << 20)

struct control {
	struct loop *loop;
	struct report_sources from;
	struct own_socket *socket;
};

/* Nobody says anything here. */
static size_t
data_cb(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	return len;
}

static void
closed_cb(struct stream *s, enum stream_end why, void *arg)
{
}

static const struct stream_ops ops = {
	.data = data_cb,
	.closed = closed_cb,
};

static void
accept_cb(void *arg, int fd)
{
	struct control *c = arg;
	struct stream *s;
	uint8_t *report;
	size_t len;

	if ((s = stream_new(c->loop, fd, &ops, c)) == NULL) {
		close(fd);
		return;
	}
	stream_set_limits(s, REPORT_MAX, 0);
	if ((report = report_make(&c->from, &len)) != NULL)
		stream_write(s, report, len, -1);
	free(report);
	stream_close(s, true);
}

struct control *
control_new(struct loop *l, const char *state_dir,
    const struct report_sources *from, char *err, size_t err_size)
{
	struct control *c;

	if ((c = calloc(1, sizeof(*c))) == NULL) {
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	c->loop = l;
	c->from = *from;
	c->socket = own_socket_new(l, state_dir, STATE_DIR_CONTROL, accept_cb,
	    c, err, err_size);
	if (c->socket == NULL) {
		free(c);
		return NULL;
	}
	return c;
}

void
control_free(struct control *c)
{
	if (c == NULL)
		return;
	own_socket_free(c->socket);
	free(c);
}
