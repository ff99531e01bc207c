#include "client/tracing/port/port_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protos/fields.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"

#define READ_BYTES 16384u

void
port_wire_init(struct port_wire *w, int fd, const struct port_service *offer)
{
	memset(w, 0, sizeof(*w));
	w->offer = offer;
	w->fd = fd;
	w->in_fd = -1;
	pb_writer_init(&w->out);
}

void
port_wire_done(struct port_wire *w)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->in_fd >= 0)
		close(w->in_fd);
	pb_writer_done(&w->out);
	free(w->in);
	free(w->calls);
	w->fd = w->in_fd = -1;
	w->in = NULL;
	w->calls = NULL;
}

/* ---- Sending ---- */

static void
queue(struct port_wire *w, const void *data, size_t len)
{
	if (w->sent > 0 && w->sent == w->out.len) {
		pb_writer_reset(&w->out);
		w->sent = 0;
	}
	pb_put_raw(&w->out, data, len);
}

void
port_wire_bind(struct port_wire *w, const struct pb_writer *own)
{
	struct pb_writer b;
	size_t mark;

	if (own != NULL)
		queue(w, own->data, own->len);
	pb_writer_init(&b);
	mark = ipc_frame_begin(&b, ++w->last_request, IPC_BIND_SERVICE);
	pb_put_string(&b, BindService_service_name, w->offer->name);
	ipc_frame_end(&b, mark);
	queue(w, b.data, b.len);
	if (b.failed)
		w->out.failed = true;
	pb_writer_done(&b);
}

static void
remember_call(struct port_wire *w, unsigned m)
{
	struct port_call *calls;
	size_t room = w->room_calls > 0 ? w->room_calls * 2 : 16;

	if (w->n_calls == w->room_calls) {
		calls = realloc(w->calls, room * sizeof(*calls));
		if (calls == NULL) {
			w->out.failed = true;
			return;
		}
		w->calls = calls;
		w->room_calls = room;
	}
	w->calls[w->n_calls].request = w->last_request;
	w->calls[w->n_calls++].method = m;
}

static size_t
put_head(struct port_wire *w, uint8_t head[IPC_HEAD_MAX], unsigned m,
    size_t len, bool wants_reply)
{
	size_t n = ipc_put_invoke_head(head, ++w->last_request, w->service,
	    w->methods[m], !wants_reply, len);

	if (wants_reply)
		remember_call(w, m);
	return n;
}

uint64_t
port_wire_call(struct port_wire *w, unsigned m, const void *args, size_t len,
    bool wants_reply)
{
	uint8_t head[IPC_HEAD_MAX];

	if (!port_wire_offers(w, m) || len > FRAME_MAX_BYTES - IPC_HEAD_MAX)
		return 0;
	queue(w, head, put_head(w, head, m, len, wants_reply));
	if (len > 0)
		queue(w, args, len);
	return w->last_request;
}

bool
port_wire_call_with_fd(struct port_wire *w, unsigned m,
    const void *args, size_t len, int fd)
{
	uint8_t head[IPC_HEAD_MAX];
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov[2] = { { head, 0 }, { (void *)args, len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2,
	    .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	iov[0].iov_len = put_head(w, head, m, len, true);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	do
		n = sendmsg(w->fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < (ssize_t)iov[0].iov_len)
		return false;
	/* The descriptor has gone with the first byte. */
	if ((size_t)n < iov[0].iov_len + len)
		queue(w, (const uint8_t *)args + (n - iov[0].iov_len),
		    iov[0].iov_len + len - (size_t)n);
	return true;
}

bool
port_wire_send(struct port_wire *w)
{
	ssize_t n;

	while (port_wire_queued(w) > 0 && !w->out.failed) {
		n = send(w->fd, w->out.data + w->sent, port_wire_queued(w),
		    MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK;
		w->sent += (size_t)n;
	}
	return !w->out.failed;
}

/* ---- Receiving ---- */

static void
keep_fd(struct port_wire *w, struct msghdr *msg)
{
	struct cmsghdr *c;
	int fd;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		if (w->in_fd >= 0)
			close(w->in_fd);
		w->in_fd = fd;
	}
}

static bool
make_room(struct port_wire *w)
{
	uint8_t *in;

	memmove(w->in, w->in + w->in_used, w->in_len - w->in_used);
	w->in_len -= w->in_used;
	w->in_used = 0;
	if (w->in_cap - w->in_len >= READ_BYTES)
		return true;
	in = realloc(w->in, w->in_len + READ_BYTES);
	if (in == NULL)
		return false;
	w->in = in;
	w->in_cap = w->in_len + READ_BYTES;
	return true;
}

bool
port_wire_receive(struct port_wire *w)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = control, .msg_controllen = sizeof(control) };
	ssize_t n;

	if (w->in == NULL && (w->in = malloc(w->in_cap = READ_BYTES)) == NULL)
		return false;
	if (!make_room(w))
		return false;
	iov.iov_base = w->in + w->in_len;
	iov.iov_len = w->in_cap - w->in_len;
	n = recvmsg(w->fd, &msg, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ||
		    errno == EINTR;
	keep_fd(w, &msg);
	w->in_len += (size_t)n;
	return n > 0;
}

static void
note_method(void *arg, const struct ipc_method_info *info)
{
	struct port_wire *w = arg;
	const char *name;
	unsigned m;

	for (m = 0; m < PORT_WIRE_METHODS_MAX; m++) {
		name = w->offer->methods[m];
		if (name != NULL && strlen(name) == info->name.len &&
		    memcmp(name, info->name.data, info->name.len) == 0)
			w->methods[m] = info->id;
	}
}

static void
broken(struct port_event *e, const char *why)
{
	e->kind = PORT_BROKEN;
	e->why = why;
}

static void
bound(struct port_wire *w, struct port_event *e, struct ipc_slice body)
{
	struct ipc_bind_reply reply;

	if (ipc_parse_bind_reply(&reply, body, note_method, w) != 0)
		broken(e, "the service's answer cannot be read");
	else if (!reply.success)
		broken(e, w->offer->refusal);
	else {
		e->kind = PORT_BOUND;
		w->service = reply.service_id;
	}
}

static void
replied(struct port_wire *w, struct port_event *e, uint64_t request,
    struct ipc_slice body)
{
	struct ipc_invoke_reply reply;
	size_t i;

	if (ipc_parse_invoke_reply(&reply, body) != 0) {
		broken(e, "the service's reply cannot be read");
		return;
	}
	for (i = 0; i < w->n_calls && w->calls[i].request != request; i++)
		;
	if (i == w->n_calls)
		return; /* to none of our calls */
	e->kind = PORT_REPLY;
	e->method = w->calls[i].method;
	e->request = request;
	e->ok = reply.success;
	e->more = reply.has_more;
	e->data = reply.reply.data;
	e->len = reply.reply.len;
	if (!reply.has_more)
		w->calls[i] = w->calls[--w->n_calls];
}

/* RequestError: the service's own words, where it has some. */
static void
refused(struct port_wire *w, struct port_event *e, struct ipc_slice body)
{
	struct ipc_slice text;
	size_t i;

	broken(e, "the service refused a request");
	if (ipc_parse_text(&text, body) != 0 || text.len == 0)
		return;
	for (i = 0; i < text.len && i < sizeof(w->said) - 1; i++)
		w->said[i] = text.data[i] < ' ' ? '?' : (char)text.data[i];
	w->said[i] = '\0';
	e->why = w->said;
}

/* One frame. */
static void
read_frame(struct port_wire *w, struct port_event *e, const uint8_t *data,
    size_t len)
{
	struct ipc_frame f;

	if (ipc_parse_frame(&f, data, len) != 0) {
		broken(e, "the service's frame cannot be read");
		return;
	}
	switch (f.kind) {
	case IPC_BIND_SERVICE_REPLY:
		bound(w, e, f.body);
		break;
	case IPC_INVOKE_METHOD_REPLY:
		replied(w, e, f.request_id, f.body);
		break;
	case IPC_REQUEST_ERROR:
		refused(w, e, f.body);
		break;
	default:
		break;
	}
}

void
port_wire_next(struct port_wire *w, struct port_event *e)
{
	const uint8_t *payload;
	size_t len, used, need;

	memset(e, 0, sizeof(*e));
	while (e->kind == PORT_NOTHING && w->in_used < w->in_len) {
		switch (frame_next(w->in + w->in_used, w->in_len - w->in_used,
		    &payload, &len, &used, &need)) {
		case FRAME_OK:
			w->in_used += used;
			read_frame(w, e, payload, len);
			break;
		case FRAME_MORE:
			return;
		case FRAME_TOO_BIG:
			broken(e, "the service's frame is too long");
			break;
		}
	}
}

int
port_wire_take_fd(struct port_wire *w)
{
	int fd = w->in_fd;

	w->in_fd = -1;
	return fd;
}
