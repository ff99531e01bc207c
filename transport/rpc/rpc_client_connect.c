#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protos/fields.h"
#include "transport/connect/dial.h"
#include "transport/process/child.h"
#include "transport/rpc/rpc_client_internal.h"
#include "transport/stream/stream.h"
#include "transport/tls/tls.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"
#include "transport/wire/service_names.h"

/* A TLS server that accepts and stays silent costs this long. */
#define CLIENT_HANDSHAKE_MS 30000u

void
rpc_client_stop_connecting(struct rpc_client *c)
{
	dial_free(c->dial);
	c->dial = NULL;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	loop_timer_free(c->handshake);
	c->handshake = NULL;
}

/* ---- who we are ---- */

void
rpc_client_set_identity(struct rpc_client *c, int32_t pid, int32_t uid,
    const char *machine_id_hint, const char *machine_name)
{
	struct client_identity *id = &c->identity;

	id->set = true;
	id->pid = pid;
	id->uid = uid;
	snprintf(id->machine_id_hint, sizeof(id->machine_id_hint), "%s",
	    machine_id_hint != NULL ? machine_id_hint : "");
	snprintf(id->machine_name, sizeof(id->machine_name), "%s",
	    machine_name != NULL ? machine_name : "");
}

void
rpc_client_set_own_identity(struct rpc_client *c, const char *machine_name)
{
	struct client_identity *id = &c->identity;
	char clocks[THIS_MACHINE_CLOCKS_MAX], name[256];

	this_machine_clocks(clocks, sizeof(clocks));
	this_machine_name(name, sizeof(name));
	rpc_client_set_identity(c, getpid(), (int32_t)getuid(), clocks,
	    machine_name != NULL ? machine_name : name);
	if (machine_name == NULL)
		snprintf(id->clocks, sizeof(id->clocks), "%s", clocks);
}

/* Whether the service sees a tunnel's end where we should be. */
static bool
is_tunnelled(const struct peer *p)
{
	return p->kind == ADDR_SSH || p->forwarded;
}

static void
put_identity(struct rpc_client *c, struct pb_writer *w)
{
	const struct peer *p = stream_peer(c->stream);
	struct client_identity id = c->identity;
	size_t mark;

	if (is_tunnelled(p)) {
		if (!id.set) {
			id.pid = getpid();
			id.uid = (int32_t)getuid();
		}
		if (id.machine_id_hint[0] == '\0')
			this_machine_clocks(id.machine_id_hint,
			    sizeof(id.machine_id_hint));
		if (id.machine_name[0] == '\0')
			this_machine_name(id.machine_name,
			    sizeof(id.machine_name));
	} else if (!id.set || p->kind == ADDR_UNIX) {
		return;
	}
	mark = ipc_frame_begin(w, 0, IPC_SET_PEER_IDENTITY);
	pb_put_int(w, SetPeerIdentity_pid, id.pid);
	pb_put_int(w, SetPeerIdentity_uid, id.uid);
	if (id.machine_id_hint[0] != '\0')
		pb_put_string(w, SetPeerIdentity_machine_id_hint,
		    id.machine_id_hint);
	if (id.machine_name[0] != '\0')
		pb_put_string(w, SetPeerIdentity_machine_name, id.machine_name);
	if (id.clocks[0] != '\0')
		pb_put_string(w, SetPeerIdentity_tributary_clocks, id.clocks);
	if (is_tunnelled(p))
		pb_put_uint(w, SetPeerIdentity_tributary_forwarded, 1);
	ipc_frame_end(w, mark);
}

/* ---- the connection ---- */

static void
client_stream_opened(struct stream *s, void *arg)
{
	struct rpc_client *c = arg;

	loop_timer_free(c->handshake);
	c->handshake = NULL;
}

static void
handshake_late_cb(void *arg)
{
	rpc_client_down_because(arg, "does not answer the TLS handshake: is this "
	    "a port for TLS?");
}

/* Over TLS the stream holds it back until the peer is verified. */
static void
send_bind(struct rpc_client *c)
{
	struct pb_writer w;
	size_t mark;
	bool failed;

	pb_writer_init(&w);
	put_identity(c, &w);
	if (!w.failed && w.len > 0)
		stream_write(c->stream, w.data, w.len, -1);
	failed = w.failed;
	mark = ipc_frame_begin(&w, ++c->last_request, IPC_BIND_SERVICE);
	pb_put_string(&w, BindService_service_name, c->service);
	ipc_frame_end(&w, mark);
	if (failed || w.failed) {
		rpc_client_down(c, "out of memory");
	} else {
		stream_write(c->stream, w.data, w.len, -1);
	}
	pb_writer_done(&w);
}

static int
watch_handshake(struct rpc_client *c)
{
	c->handshake = loop_timer_new(c->loop, handshake_late_cb, c);
	if (c->handshake == NULL)
		return -1;
	loop_timer_set(c->handshake, CLIENT_HANDSHAKE_MS, 0);
	return 0;
}

/* Owns what r holds. */
static void
client_connected(struct rpc_client *c, const struct dial_result *r)
{
	static const struct stream_ops ops = {
		.data = rpc_client_data,
		.opened = client_stream_opened,
		.drained = rpc_client_drained,
		.closed = rpc_client_closed,
	};
	struct stream_setup setup = {
		.tls = r->tls,
		.child = r->child,
		.child_addr = r->child != NULL ? &c->addr : NULL,
		.peer = r->peer,
	};

	c->stream = stream_new_over(c->loop, r->fd, &setup, &ops, c);
	if (c->stream == NULL) {
		close(r->fd);
		tls_conn_free(r->tls);
		child_free(r->child);
		rpc_client_down(c, "out of memory");
		return;
	}
	if (c->limits_set)
		stream_set_limits(c->stream, c->hard, c->low);
	if (c->paused)
		stream_pause(c->stream);
	rpc_client_set_state(c, CL_BINDING);
	if (stream_is_opening(c->stream) && watch_handshake(c) != 0) {
		rpc_client_down(c, "out of memory");
		return;
	}
	send_bind(c);
}

/* How people call a service: in `tributary connect`, and in a variable. */
struct service_words {
	const char *service;
	const char *word;
	const char *variable;
};

static const struct service_words *
words_of(const char *service)
{
	static const struct service_words all[] = {
		{ "ConsumerPort", "consumer", "PERFETTO_CONSUMER_SOCK_NAME" },
		{ CONTROL_SERVICE, "consumer", "PERFETTO_CONSUMER_SOCK_NAME" },
		{ "RelayPort", "relay", "PERFETTO_RELAY_SOCK_NAME" },
		{ LINK_SERVICE, "relay", "PERFETTO_RELAY_SOCK_NAME" },
		{ "ProducerPort", "producer", "PERFETTO_PRODUCER_SOCK_NAME" },
	};
	const struct service_words *w = all;

	while (w < &all[sizeof(all) / sizeof(all[0]) - 1] &&
	    strcmp(service, w->service) != 0)
		w++;
	return w;
}

static void
dial_failed(struct rpc_client *c, int error)
{
	const char *detail = dial_error_detail(c->dial);
	char why[CLIENT_TEXT_MAX];

	if (*detail != '\0') {
		rpc_client_down(c, "%s: %s", c->addr.text, detail);
		return;
	}
	dial_error_text(&c->addr, error, words_of(c->service)->variable, why,
	    sizeof(why));
	rpc_client_down(c, "%s", why);
}

static void
dial_cb(const struct dial_result *r, int error, void *arg)
{
	struct rpc_client *c = arg;

	if (r == NULL) {
		dial_failed(c, error);
		return;
	}
	dial_free(c->dial);
	c->dial = NULL;
	client_connected(c, r);
}

static void
start_fd_cb(void *arg)
{
	struct rpc_client *c = arg;
	struct dial_result r = { .fd = c->fd };

	c->fd = -1;
	client_connected(c, &r);
}

static struct rpc_client *
client_alloc(struct loop *l, const char *service,
    const struct rpc_client_ops *ops, void *arg)
{
	struct rpc_client *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->loop = l;
	c->ops = ops;
	c->arg = arg;
	c->fd = -1;
	TAILQ_INIT(&c->pending);
	TAILQ_INIT(&c->failed);
	snprintf(c->service, sizeof(c->service), "%s", service);
	return c;
}

struct rpc_client *
rpc_client_new(struct loop *l, const struct rpc_client_setup *setup, char *err,
    size_t err_size)
{
	struct dial_options how = { 0 };
	struct rpc_client *c;

	if (setup->how != NULL)
		how = *setup->how;
	if (how.service == NULL)
		how.service = words_of(setup->service)->word;
	c = client_alloc(l, setup->service, setup->ops, setup->arg);
	if (c == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	c->addr = *setup->addr;
	c->dial = dial_new(l, &(struct dial_request){ .addr = setup->addr,
	    .how = &how, .fn = dial_cb, .arg = c }, err, err_size);
	if (c->dial == NULL) {
		rpc_client_destroy(c);
		return NULL;
	}
	return c;
}

struct rpc_client *
rpc_client_from_fd(struct loop *l, int fd, const char *service,
    const struct rpc_client_ops *ops, void *arg)
{
	struct rpc_client *c;

	if ((c = client_alloc(l, service, ops, arg)) == NULL)
		return NULL;
	snprintf(c->addr.text, sizeof(c->addr.text),
	    "the other end of descriptor %d", fd);
	c->fd = fd;
	loop_defer(l, &c->start_call, start_fd_cb, c);
	return c;
}
