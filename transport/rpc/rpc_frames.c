#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_conn_internal.h"
#include "transport/rpc/rpc_frame.h"
#include "transport/wire/frame.h"
#include "transport/wire/pb_writer.h"

/*
 * Frames of a few bytes may ask for a lot: one read may hold thousands.  After
 * this time other connections have their turn; the clock is read every few
 * frames.
 */
#define RPC_TURN_MS          5u
#define RPC_FRAMES_PER_CLOCK 8u

static void
malformed(struct rpc_conn *c, uint64_t request_id, const char *text)
{
	c->stats->frames_malformed++;
	rpc_conn_warn(c, "%s", text);
	rpc_conn_tell(c, request_id, text);
}

static bool
slice_is(struct ipc_slice s, const char *text)
{
	return text != NULL && s.len == strlen(text) &&
	    memcmp(s.data, text, s.len) == 0;
}

static const struct rpc_service *
find_service(const struct rpc_conn *c, struct ipc_slice name, uint32_t *id)
{
	size_t i;

	if (name.data == NULL)
		return NULL;
	for (i = 0; i < c->n_services; i++) {
		if (slice_is(name, c->services[i]->name) ||
		    slice_is(name, c->services[i]->alias)) {
			*id = (uint32_t)i + 1;
			return c->services[i];
		}
	}
	return NULL;
}

static void
put_methods(struct pb_writer *w, const struct rpc_service *s)
{
	size_t i, mark;

	for (i = 0; i < s->n_methods; i++) {
		mark = pb_nest_begin(w, BindServiceReply_methods);
		pb_put_uint(w, MethodInfo_id, i + 1);
		pb_put_string(w, MethodInfo_name, s->methods[i].name);
		pb_nest_end(w, mark);
	}
}

static void
conn_bind_reply(struct rpc_conn *c, uint64_t request_id, bool success)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = ipc_frame_begin(&w, request_id, IPC_BIND_SERVICE_REPLY);
	if (success) {
		pb_put_uint(&w, BindServiceReply_success, 1);
		pb_put_uint(&w, BindServiceReply_service_id, c->service_id);
		put_methods(&w, c->service);
	}
	ipc_frame_end(&w, mark);
	rpc_conn_send(c, &w);
	pb_writer_done(&w);
}

static bool
conn_may_bind(struct rpc_conn *c, const struct rpc_service *s)
{
	const struct rpc_guard *g = c->guard;
	char why[RPC_WHY_MAX] = "";

	if (g == NULL || g->may_bind == NULL ||
	    g->may_bind(c, s, g->arg, why))
		return !c->closing;
	c->stats->refused_bind++;
	if (!c->closing)
		rpc_conn_tell(c, 0, why);
	rpc_conn_warn(c, "was refused \"%s\": %s", s->name, why);
	return false;
}

/* Returns whether name is bound now; else logs why not. */
static bool
conn_bind(struct rpc_conn *c, struct ipc_slice name)
{
	const struct rpc_service *s;
	char text[80];
	uint32_t id;

	log_escape(text, sizeof(text),
	    name.data != NULL ? (const char *)name.data : "", name.len);
	if ((s = find_service(c, name, &id)) == NULL) {
		c->stats->unknown_service++;
		rpc_conn_warn(c, "asked for a service that is not offered here: "
		    "\"%s\"", text);
		return false;
	}
	if (c->service != NULL) {
		rpc_conn_warn(c, "asked for a second service on its connection: "
		    "\"%s\"", text);
		return false;
	}
	if (!conn_may_bind(c, s))
		return false;
	if ((c->ctx = s->bind(c, s->arg)) == NULL) {
		if (!c->closing)
			rpc_conn_warn(c, "was refused \"%s\"", text);
		return false;
	}
	c->service = s;
	c->service_id = id;
	return true;
}

static void
handle_bind(struct rpc_conn *c, const struct ipc_frame *f)
{
	struct ipc_slice name;
	bool bound;

	if (ipc_parse_text(&name, f->body) != 0) {
		malformed(c, f->request_id,
		    "BindService cannot be parsed");
		return;
	}
	bound = conn_bind(c, name);
	if (!c->closing)
		conn_bind_reply(c, f->request_id, bound);
}

/* A string up to its first NUL, cut before a character that does not fit. */
static void
copy_label(char *out, size_t size, struct ipc_slice s)
{
	size_t n = s.data != NULL ? strnlen((const char *)s.data, s.len) : 0;

	if (n >= size) {
		n = size - 1;
		while (n > 0 && (s.data[n] & 0xc0) == 0x80)
			n--;
	}
	if (n > 0)
		memcpy(out, s.data, n);
	out[n] = '\0';
}

/*
 * Whether the peer may claim an identity: not where the kernel tells it (UNIX).
 * A UNIX peer that forwards the bytes of another program says so before it
 * binds a service, and then may.
 */
static bool
may_claim(struct rpc_conn *c, const struct ipc_identity *m)
{
	const struct peer *p = stream_peer(c->stream);

	if (c->identity != NULL || c->service != NULL)
		return false;
	if (p->kind == ADDR_UNIX && m->forwarded)
		stream_set_forwarded(c->stream);
	return p->kind != ADDR_UNIX || p->forwarded;
}

static void
handle_identity(struct rpc_conn *c, const struct ipc_frame *f)
{
	struct ipc_identity m;
	struct rpc_claimed_identity *id;

	if (ipc_parse_identity(&m, f->body) != 0) {
		malformed(c, f->request_id,
		    "SetPeerIdentity cannot be parsed");
		return;
	}
	if (!may_claim(c, &m)) {
		log_debug("%s: SetPeerIdentity ignored",
		    rpc_conn_peer(c)->text);
		return;
	}
	if ((id = calloc(1, sizeof(*id))) == NULL) {
		rpc_conn_close(c, "out of memory");
		return;
	}
	id->present = true;
	id->pid = m.pid;
	id->uid = m.uid;
	copy_label(id->machine_id_hint, sizeof(id->machine_id_hint),
	    m.machine_id_hint);
	copy_label(id->machine_name, sizeof(id->machine_name), m.machine_name);
	copy_label(id->clocks, sizeof(id->clocks), m.clocks);
	c->identity = id;
}

static enum rpc_verdict
call_method(struct rpc_conn *c, const struct ipc_invoke *m,
    struct rpc_call call)
{
	if (c->service == NULL || m->service_id != c->service_id ||
	    m->method_id == 0 || m->method_id > c->service->n_methods) {
		c->stats->unknown_method++;
		rpc_conn_warn(c, "called method %u of service %u, which is not "
		    "bound or does not exist", m->method_id, m->service_id);
		return RPC_REJECT;
	}
	return c->service->methods[m->method_id - 1].fn(c->ctx, call,
	    m->args.data, m->args.len);
}

/* Returns whether the frame was taken. */
static bool
handle_invoke(struct rpc_conn *c, const struct ipc_frame *f)
{
	struct rpc_call call = { .conn = c, .request_id = f->request_id };
	struct ipc_invoke m;
	enum rpc_verdict verdict;

	if (ipc_parse_invoke(&m, f->body) != 0) {
		malformed(c, f->request_id,
		    "InvokeMethod cannot be parsed");
		return true;
	}
	call.wants_reply = !m.drop_reply;
	verdict = call_method(c, &m, call);
	if (c->closing)
		return true;
	switch (verdict) {
	case RPC_OK:
		return true;
	case RPC_AGAIN:
		return false;
	case RPC_BAD_ARGS:
		c->stats->bad_args++;
		rpc_conn_warn(c, "arguments of %s cannot be parsed",
		    c->service->methods[m.method_id - 1].name);
		rpc_reject(call);
		return true;
	case RPC_REJECT:
		rpc_reject(call);
		return true;
	}
	return true;
}

/* Returns whether the frame was taken. */
static bool
handle_frame(struct rpc_conn *c, const uint8_t *payload, size_t len)
{
	struct ipc_frame f;

	if (ipc_parse_frame(&f, payload, len) != 0) {
		malformed(c, f.request_id,
		    "the frame is no IPCFrame: it cannot be parsed");
		return true;
	}
	switch (f.kind) {
	case IPC_INVOKE_METHOD:
		return handle_invoke(c, &f);
	case IPC_BIND_SERVICE:
		handle_bind(c, &f);
		return true;
	case IPC_SET_PEER_IDENTITY:
		handle_identity(c, &f);
		return true;
	case IPC_NONE:
	case IPC_BIND_SERVICE_REPLY:
	case IPC_INVOKE_METHOD_REPLY:
	case IPC_REQUEST_ERROR:
		break;
	}
	malformed(c, f.request_id,
	    "the frame holds no message that this service knows");
	return true;
}

/* A client that speaks TLS to a port without it. */
static bool
begins_with_tls(const struct rpc_conn *c, const uint8_t *buf, size_t len)
{
	return c->service == NULL && c->identity == NULL &&
	    ipc_begins_with_tls(buf, len);
}

static void
refuse_tls(struct rpc_conn *c)
{
	c->stats->frames_malformed++;
	rpc_conn_warn(c, "speaks TLS to a port without it: have it connect to "
	    "a tls:// one");
	/* In plain: its end tells that from TLS. */
	rpc_conn_tell(c, 0, "this port is without TLS");
	rpc_conn_close(c, "speaks TLS");
}

size_t
rpc_conn_data(struct stream *s, const uint8_t *buf, size_t len, void *conn)
{
	struct rpc_conn *c = conn;
	struct rpc_frame f;
	size_t at;
	uint64_t start = loop_now_ms();
	unsigned n = 0;
	bool taken;

	if (begins_with_tls(c, buf, len)) {
		refuse_tls(c);
		return 0;
	}
	for (at = 0; at < len && !c->paused; at += f.len) {
		switch (rpc_frame_next(&f, s, buf + at, len - at)) {
		case FRAME_OK:
			break;
		case FRAME_MORE:
			return at;
		case FRAME_TOO_BIG:
			c->stats->frames_too_big++;
			rpc_conn_close(c, "sent a frame over 128 KiB");
			return at;
		}
		c->frame = f.start;
		c->frame_len = f.len;
		taken = handle_frame(c, f.payload, f.payload_len);
		c->frame = NULL;
		if (!taken) {
			rpc_conn_pause(c);
			return at;
		}
		c->stats->frames_in++;
		if (c->closing || stream_is_over(c->stream))
			return at;
		if (++n % RPC_FRAMES_PER_CLOCK == 0 && !c->paused &&
		    loop_now_ms() - start >= RPC_TURN_MS) {
			stream_pause(c->stream);
			stream_resume(c->stream); /* on a later turn */
			return at + f.len;
		}
	}
	return at;
}
