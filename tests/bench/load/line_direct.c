#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protos/fields.h"
#include "tests/bench/load/line.h"
#include "tests/bench/load/place.h"
#include "transport/loop/loop.h"
#include "transport/process/child.h"
#include "transport/stream/stream.h"
#include "transport/tls/tls.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"

#define QUEUE_HARD (4u << 20)
#define QUEUE_LOW  (128u << 10)

static const char *const call_names[LINE_CALLS] = {
	[LINE_INITIALIZE] = "InitializeConnection",
	[LINE_COMMANDS] = "GetAsyncCommand",
	[LINE_REGISTER_SOURCE] = "RegisterDataSource",
	[LINE_REGISTER_WRITER] = "RegisterTraceWriter",
	[LINE_UNREGISTER_WRITER] = "UnregisterTraceWriter",
	[LINE_COMMIT] = "CommitData",
	[LINE_STARTED] = "NotifyDataSourceStarted",
	[LINE_STOPPED] = "NotifyDataSourceStopped",
	[LINE_SYNC] = "Sync",
	[LINE_LINK_OPEN] = "Open",
	[LINE_LINK_UP] = "Up",
	[LINE_LINK_DOWN] = "Down",
	[LINE_INIT_RELAY] = "InitRelay",
};

struct direct {
	struct line line;
	struct loop *loop;
	const struct place *place; /* borrowed */
	const struct line_ops *ops;
	void *arg;
	const char *service;  /* borrowed */
	uint32_t device;
	struct line_identity id; /* its strings are borrowed */
	struct dial *dial;
	struct stream *stream;
	int fd; /* the stream's; -1: none */
	uint32_t service_id;
	uint32_t methods[LINE_CALLS]; /* 0: not offered */
	uint64_t last_request;
	uint64_t commands; /* request of LINE_COMMANDS, or LINE_LINK_DOWN */
	bool bound;
	char refusal[160];
	struct loop_call last;
};

static void
destroy(void *arg)
{
	free(arg);
}

static void
down(struct direct *d, const char *kind, const char *text)
{
	if (d->stream != NULL)
		stream_close(d->stream, false);
	d->stream = NULL;
	d->fd = -1;
	d->ops->down(d->arg, kind, text);
}

static void
method_cb(void *arg, const struct ipc_method_info *info)
{
	struct direct *d = arg;
	int i;

	for (i = 0; i < LINE_CALLS && info->name.data != NULL; i++)
		if (strlen(call_names[i]) == info->name.len &&
		    memcmp(call_names[i], info->name.data,
			info->name.len) == 0)
			d->methods[i] = info->id;
}

static void
take_reply(struct direct *d, const struct ipc_frame *f, const uint8_t *unit,
    size_t unit_len)
{
	struct ipc_invoke_reply r;

	if (ipc_parse_invoke_reply(&r, f->body) != 0) {
		down(d, "protocol", "a reply that cannot be parsed");
		return;
	}
	if (f->request_id != d->commands) {
		d->ops->replied(d->arg, f->request_id, r.success,
		    r.reply.data, r.reply.len);
		return;
	}
	if (!r.success || !r.has_more) {
		down(d, "refused", "the service gives no commands");
		return;
	}
	d->ops->command(d->arg, r.reply.data, r.reply.len,
	    stream_take_fd_of(d->stream, unit, unit_len));
}

static void
take_frame(struct direct *d, const uint8_t *payload, size_t len,
    const uint8_t *unit, size_t unit_len)
{
	struct ipc_bind_reply bind;
	struct ipc_slice text;
	struct ipc_frame f;

	if (ipc_parse_frame(&f, payload, len) != 0) {
		down(d, "protocol", "a frame that cannot be parsed");
		return;
	}
	switch (f.kind) {
	case IPC_BIND_SERVICE_REPLY:
		if (ipc_parse_bind_reply(&bind, f.body, method_cb, d) != 0 ||
		    !bind.success) {
			down(d, "refused", d->refusal[0] != '\0' ?
			    d->refusal : "the service is not offered");
			return;
		}
		d->service_id = bind.service_id;
		d->bound = true;
		d->ops->up(d->arg);
		return;
	case IPC_INVOKE_METHOD_REPLY:
		take_reply(d, &f, unit, unit_len);
		return;
	case IPC_REQUEST_ERROR:
		if (ipc_parse_text(&text, f.body) == 0 && text.data != NULL)
			snprintf(d->refusal, sizeof(d->refusal), "%.*s",
			    (int)text.len, (const char *)text.data);
		if (f.request_id != 0 && d->bound)
			d->ops->replied(d->arg, f.request_id, false, NULL, 0);
		return;
	case IPC_NONE:
	case IPC_BIND_SERVICE:
	case IPC_INVOKE_METHOD:
	case IPC_SET_PEER_IDENTITY:
		return;
	}
}

static size_t
data_cb(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	struct direct *d = arg;
	const uint8_t *payload;
	size_t at, payload_len, used, need;

	for (at = 0; at < len; at += used) {
		switch (frame_next(buf + at, len - at, &payload, &payload_len,
		    &used, &need)) {
		case FRAME_OK:
			break;
		case FRAME_MORE:
			stream_want(s, need);
			return at;
		case FRAME_TOO_BIG:
			down(d, "protocol", "a frame over 128 KiB");
			return at;
		}
		take_frame(d, payload, payload_len, buf + at, used);
		if (d->stream != s)
			return at;
	}
	return at;
}

static void
drained_cb(struct stream *s, void *arg)
{
	struct direct *d = arg;

	if (d->bound || d->service == NULL)
		d->ops->drained(d->arg);
}

static const char *
end_kind(enum stream_end why)
{
	switch (why) {
	case STREAM_EOF:
		return "closed";
	case STREAM_RESET:
		return "reset";
	case STREAM_SLOW:
		return "not_read";
	case STREAM_REFUSED:
		return "handshake";
	case STREAM_BUDGET:
	case STREAM_PROTOCOL:
	case STREAM_NO_MEMORY:
	case STREAM_SHUTDOWN:
		break;
	}
	return "other";
}

static void
closed_cb(struct stream *s, enum stream_end why, void *arg)
{
	struct direct *d = arg;
	const char *detail = stream_end_detail(s);

	d->stream = NULL;
	down(d, d->refusal[0] != '\0' ? "refused" : end_kind(why),
	    d->refusal[0] != '\0' ? d->refusal :
	    *detail != '\0' ? detail : stream_end_text(why));
}

static void
put_identity(const struct direct *d, struct pb_writer *w)
{
	size_t mark = ipc_frame_begin(w, 0, IPC_SET_PEER_IDENTITY);

	pb_put_int(w, 1, d->id.pid != 0 ? d->id.pid : getpid());
	pb_put_int(w, 2, (int32_t)getuid());
	if (d->id.machine_id_hint != NULL)
		pb_put_string(w, 3, d->id.machine_id_hint);
	if (d->id.machine_name != NULL)
		pb_put_string(w, 4, d->id.machine_name);
	if (d->id.clocks != NULL)
		pb_put_string(w, SetPeerIdentity_tributary_clocks,
		    d->id.clocks);
	if (d->place->no_shm)
		pb_put_uint(w, SetPeerIdentity_tributary_forwarded, 1);
	ipc_frame_end(w, mark);
}

static void
send_bind(struct direct *d)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	if (d->id.machine_id_hint != NULL || d->place->no_shm) {
		put_identity(d, &w);
		stream_write(d->stream, w.data, w.len, -1);
	}
	mark = ipc_frame_begin(&w, ++d->last_request, IPC_BIND_SERVICE);
	pb_put_string(&w, 1, d->service);
	ipc_frame_end(&w, mark);
	stream_write(d->stream, w.data, w.len, -1);
	pb_writer_done(&w);
}

static void
dial_cb(const struct dial_result *r, int error, void *arg)
{
	static const struct stream_ops ops = {
		.data = data_cb,
		.drained = drained_cb,
		.closed = closed_cb,
	};
	struct direct *d = arg;
	const struct place *p = d->place;
	struct stream_setup setup = { 0 };
	char text[DIAL_TEXT_MAX];

	snprintf(text, sizeof(text), "%s", dial_error_detail(d->dial));
	dial_free(d->dial);
	d->dial = NULL;
	if (r == NULL) {
		if (text[0] == '\0')
			snprintf(text, sizeof(text), "%s", strerror(error));
		down(d, "connect", text);
		return;
	}
	setup.tls = r->tls;
	if (p->certs != NULL)
		setup.tls = tls_conn_new(p->certs[d->device % p->n_certs],
		    r->fd, p->server_name, p->tcp.text);
	setup.child = r->child;
	setup.child_addr = r->child != NULL ? (struct addr *)&p->addr : NULL;
	setup.peer = r->peer;
	d->stream = p->certs != NULL && setup.tls == NULL ? NULL :
	    stream_new_over(d->loop, r->fd, &setup, &ops, d);
	if (d->stream == NULL) {
		close(r->fd);
		tls_conn_free(setup.tls);
		child_free(r->child);
		down(d, "memory", "out of memory");
		return;
	}
	d->fd = r->fd;
	stream_set_limits(d->stream, QUEUE_HARD, QUEUE_LOW);
	if (d->service != NULL)
		send_bind(d);
	else
		d->ops->up(d->arg);
}

static uint64_t
direct_call(struct line *l, enum line_call what, const void *args, size_t len,
    bool wants_reply)
{
	struct direct *d = (struct direct *)l;
	uint8_t head[IPC_HEAD_MAX];
	size_t n;

	if (d->stream == NULL)
		return 0;
	if (what == LINE_COMMANDS || what == LINE_LINK_DOWN)
		d->commands = d->last_request + 1;
	n = ipc_put_invoke_head(head, ++d->last_request, d->service_id,
	    d->methods[what], !wants_reply && what != LINE_COMMANDS &&
	    what != LINE_LINK_DOWN, len);
	stream_write2(d->stream, head, n, args, len, -1);
	return wants_reply ? d->last_request : 0;
}

static size_t
direct_queued(const struct line *l)
{
	const struct direct *d = (const struct direct *)l;

	return d->stream != NULL ? stream_queued(d->stream) : 0;
}

static bool
direct_has_fds(const struct line *l)
{
	const struct direct *d = (const struct direct *)l;

	return d->stream != NULL && stream_peer(d->stream)->can_pass_fds &&
	    !d->place->no_shm;
}

static void
direct_pause(struct line *l, bool pause)
{
	struct direct *d = (struct direct *)l;

	if (d->stream == NULL)
		return;
	if (pause)
		stream_pause(d->stream);
	else
		stream_resume(d->stream);
}

static void
direct_raw(struct line *l, const void *data, size_t len)
{
	struct direct *d = (struct direct *)l;

	if (d->stream != NULL)
		stream_write(d->stream, data, len, -1);
}

static void
direct_end(struct line *l, enum line_cut how)
{
	struct direct *d = (struct direct *)l;
	struct linger linger = { .l_onoff = 1 };
	int on = 1;

	dial_free(d->dial);
	d->dial = NULL;
	if (d->stream != NULL && how != LINE_CLEAN)
		(void)setsockopt(d->fd, SOL_SOCKET, SO_LINGER, &linger,
		    sizeof(linger));
	if (d->stream != NULL && how == LINE_VANISH)
		(void)setsockopt(d->fd, IPPROTO_TCP, TCP_REPAIR, &on,
		    sizeof(on));
	if (d->stream != NULL)
		stream_close(d->stream, how == LINE_CLEAN);
	d->stream = NULL;
	loop_defer(d->loop, &d->last, destroy, d);
}

struct line *
line_direct_new(struct loop *l, const struct place *p, const char *service,
    uint32_t device, const struct line_identity *id,
    const struct line_ops *ops, void *arg, char *err, size_t err_size)
{
	static const struct line_type type = {
		.call = direct_call,
		.queued = direct_queued,
		.has_fds = direct_has_fds,
		.pause = direct_pause,
		.raw = direct_raw,
		.end = direct_end,
	};
	struct direct *d = calloc(1, sizeof(*d));

	if (d == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	d->line.type = &type;
	d->loop = l;
	d->place = p;
	d->ops = ops;
	d->arg = arg;
	d->service = service;
	d->device = device;
	d->fd = -1;
	if (id != NULL)
		d->id = *id;
	d->dial = dial_new(l,
	    &(struct dial_request){ .addr = p->certs != NULL ? &p->tcp : &p->addr,
	    .how = &p->how, .fn = dial_cb, .arg = d }, err, err_size);
	if (d->dial == NULL) {
		free(d);
		return NULL;
	}
	return &d->line;
}
