#include "relay/status/status_server.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "relay/state/private_socket.h"
#include "relay/state/state_dir.h"
#include "relay/status/report.h"
#include "transport/stream/stream.h"

/* A report of a thousand producers with the longest names is smaller. */
#define REPORT_MAX (8u << 20)

struct status_server {
	struct loop *loop;
	struct report_sources from;
	struct private_socket *socket;
};

/* Clients send nothing. */
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
	struct status_server *c = arg;
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

struct status_server *
status_server_new(struct loop *l, const char *state_dir,
    const struct report_sources *from, char *err, size_t err_size)
{
	struct status_server *c;

	if ((c = calloc(1, sizeof(*c))) == NULL) {
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	c->loop = l;
	c->from = *from;
	c->socket = private_socket_new(&(struct private_socket_setup){
	    .loop = l, .state_dir = state_dir, .name = STATE_DIR_CONTROL,
	    .fn = accept_cb, .arg = c }, err, err_size);
	if (c->socket == NULL) {
		free(c);
		return NULL;
	}
	return c;
}

void
status_server_free(struct status_server *c)
{
	if (c == NULL)
		return;
	private_socket_free(c->socket);
	free(c);
}
