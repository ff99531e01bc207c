#include "client/tunnel/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "client/tunnel/connect_options.h"
#include "client/tunnel/listen_once.h"
#include "protos/plain_text.h"
#include "transport/base/failure.h"
#include "transport/connect/bridge.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"
#include "transport/socket/sock.h"

struct connection {
	struct loop *loop;
	const struct connect_options *options;
	struct addr addr;
	struct dial *dial;         /* NULL: not under way */
	struct listen_once *accept; /* NULL: not under way */
	struct bridge *bridge;
	int status;
};

/* Writes a sentence that ssh shows at its other end. */
static void
complain(const char *sentence)
{
	plain_printf(stderr, "tributary connect: %s\n", sentence);
}

static void
finish(struct connection *c, int status)
{
	c->status = status;
	loop_stop(c->loop);
}

static const char *
variable_of(enum connect_service service)
{
	switch (service) {
	case CONNECT_PRODUCER:
		return "PERFETTO_PRODUCER_SOCK_NAME";
	case CONNECT_CONSUMER:
		return "PERFETTO_CONSUMER_SOCK_NAME";
	case CONNECT_RELAY:
		return "PERFETTO_RELAY_SOCK_NAME";
	}
	return "";
}

/* Default socket; for a relay its variable's, else the producers'. */
static const char *
default_address(enum connect_service service)
{
	const char *relay = getenv(variable_of(CONNECT_RELAY));

	switch (service) {
	case CONNECT_PRODUCER:
		break;
	case CONNECT_CONSUMER:
		return addr_default_consumer();
	case CONNECT_RELAY:
		if (relay != NULL && *relay != '\0')
			return relay;
		break;
	}
	return addr_default_producer();
}

/* Defaults may be lists: the first is ours. */
static int
find_address(struct connection *c, char *err, size_t err_size)
{
	const struct connect_options *o = c->options;
	const char *list = o->accept ? o->accept_path : o->socket;
	char item[ADDR_TEXT_MAX];

	if (list == NULL)
		list = default_address(o->accept ? CONNECT_PRODUCER :
		    o->service);
	if (addr_list_next(&list, item, sizeof(item)) != 1)
		return FAILURE(err, err_size, "\"%.80s\" names no socket",
		    list);
	if (addr_parse(&c->addr, item, err, err_size) != 0)
		return -1;
	if (c->addr.kind == ADDR_TLS || c->addr.kind == ADDR_SSH)
		return FAILURE(err, err_size, "%s: this side leads to a socket "
		    "of this machine, or to a plain port", c->addr.text);
	if (o->accept && (c->addr.kind != ADDR_UNIX || item[0] == '@'))
		return FAILURE(err, err_size, "%s: --accept listens at the "
		    "path of a UNIX socket", c->addr.text);
	return 0;
}

/* ---- events ---- */

static void
abandoned_cb(void *arg)
{
	finish(arg, 0);
}

static void
ended_cb(void *arg, int error)
{
	struct connection *c = arg;
	char text[512];

	/* A producer that ends with commands unread resets: nothing is wrong. */
	if (c->options->accept && error == ECONNRESET)
		error = 0;
	if (error != 0) {
		snprintf(text, sizeof(text), "%s: %s", c->addr.text,
		    strerror(error));
		complain(text);
	}
	finish(c, error != 0);
}

static const struct bridge_ops bridge_ops = {
	.abandoned = abandoned_cb,
	.ended = ended_cb,
};

static void
dialled_cb(const struct dial_result *r, int error, void *arg)
{
	struct connection *c = arg;
	char text[DIAL_TEXT_MAX];

	if (r != NULL) {
		if (c->addr.kind == ADDR_TCP)
			sock_tune_tcp(r->fd);
		bridge_attach(c->bridge, r->fd);
		return;
	}
	dial_error_text(&c->addr, error, variable_of(c->options->service), text,
	    sizeof(text));
	complain(text);
	finish(c, 1);
}

static void
accepted_cb(void *arg, int fd, const char *error)
{
	struct connection *c = arg;

	if (fd >= 0) {
		bridge_attach(c->bridge, fd);
		return;
	}
	complain(error);
	finish(c, 1);
}

static void
signal_cb(void *arg)
{
	finish(arg, 0);
}

/* ---- life ---- */

static int
start(struct connection *c, char *err, size_t err_size)
{
	snprintf(err, err_size, "out of memory");
	if ((c->loop = loop_new()) == NULL ||
	    loop_on_signal(c->loop, SIGTERM, signal_cb, c) != 0 ||
	    loop_on_signal(c->loop, SIGINT, signal_cb, c) != 0 ||
	    loop_on_signal(c->loop, SIGHUP, signal_cb, c) != 0)
		return -1;
	c->bridge = bridge_new(c->loop, STDIN_FILENO, STDOUT_FILENO,
	    &bridge_ops, c);
	if (c->bridge == NULL)
		return -1;
	if (c->options->accept) {
		c->accept = listen_once_new(c->loop, &c->addr, accepted_cb, c);
		return c->accept != NULL ? 0 : -1;
	}
	c->dial = dial_new(c->loop, &(struct dial_request){ .addr = &c->addr,
	    .fn = dialled_cb, .arg = c }, err, err_size);
	return c->dial != NULL ? 0 : -1;
}

/* fcntl() flags of 0 and 1, which others may share. */
static int
make_nonblocking(int flags[2])
{
	int i;

	for (i = 0; i < 2; i++)
		if ((flags[i] = fcntl(i, F_GETFL)) < 0 ||
		    fcntl(i, F_SETFL, flags[i] | O_NONBLOCK) != 0)
			return -1;
	return 0;
}

static int
run(const struct connect_options *o)
{
	struct connection c = { .options = o, .status = 1 };
	char err[DIAL_TEXT_MAX];
	int flags[2];

	if (isatty(STDIN_FILENO) || isatty(STDOUT_FILENO)) {
		complain("the data that it carries is not for people: it is "
		    "run by ssh, without a terminal (see tributary connect "
		    "--help)");
		return 1;
	}
	if (make_nonblocking(flags) != 0) {
		complain("it needs a standard input and output");
		return 1;
	}
	/* The service knows by this name that bytes of another are carried. */
	prctl(PR_SET_NAME, "tributary");
	if (find_address(&c, err, sizeof(err)) != 0 ||
	    start(&c, err, sizeof(err)) != 0)
		complain(err);
	else
		loop_run(c.loop);
	dial_free(c.dial);
	listen_once_free(c.accept);
	bridge_free(c.bridge);
	loop_free(c.loop);
	(void)fcntl(STDIN_FILENO, F_SETFL, flags[0]);
	(void)fcntl(STDOUT_FILENO, F_SETFL, flags[1]);
	return c.status;
}

int
connect_main(int argc, char **argv)
{
	struct connect_options o;
	char err[512];
	int status;

	status = flags_answer(&connect_options_flags,
	    connect_options_parse(&o, argc, argv,
		getenv("SSH_ORIGINAL_COMMAND"), err, sizeof(err)), err);
	if (status >= 0)
		return status;
	return run(&o);
}
