#include "tests/fuzz/stage/wire.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/rpc/rpc_host.h"
#include "transport/stream/stream.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"

void
wire_init(struct wire *w)
{
	memset(w, 0, sizeof(*w));
	w->fd = -1;
}

void
wire_close(struct wire *w)
{
	if (w->fd >= 0)
		close(w->fd);
	free(w->in);
	w->fd = -1;
	w->in = NULL;
	w->in_len = 0;
	w->deaf = false;
}

static void
bind_to(struct wire *w, const char *name)
{
	struct pb_writer f;
	size_t mark;

	pb_writer_init(&f);
	mark = ipc_frame_begin(&f, 0, IPC_BIND_SERVICE);
	pb_put_string(&f, 1, name);
	ipc_frame_end(&f, mark);
	wire_send(w, f.data, f.len, -1);
	pb_writer_done(&f);
}

void
wire_open(struct wire *w, const struct wire_entry *e, size_t which,
    const struct peer *peer)
{
	struct stream_setup over = { .peer = peer };
	struct rpc_conn_setup setup = { .services = e->services,
	    .n_services = e->n_services, .stats = e->stats,
	    .guard = e->guard, .stream = peer != NULL ? &over : NULL };
	int pair[2];

	wire_close(w);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0 ||
	    rpc_conn_new(e->loop, pair[1], &setup) == NULL)
		abort();
	w->fd = pair[0];
	w->service = (uint32_t)which + 1;
	if (w->hello != NULL)
		wire_send(w, w->hello->data, w->hello->len, -1);
	bind_to(w, e->services[which]->name);
}

void
wire_send(struct wire *w, const void *data, size_t len, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (w->fd < 0 || len == 0)
		return;
	if (fd >= 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	(void)!sendmsg(w->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

uint64_t
wire_call(struct wire *w, uint32_t method, const struct pb_writer *args,
    int fd, bool drop_reply)
{
	size_t len = args != NULL ? args->len : 0;
	uint8_t head[IPC_HEAD_MAX];
	struct pb_writer f;

	pb_writer_init(&f);
	pb_put_raw(&f, head, ipc_put_invoke_head(head, ++w->request,
	    w->service, method, drop_reply, len));
	if (len > 0)
		pb_put_raw(&f, args->data, len);
	wire_send(w, f.data, f.len, fd);
	pb_writer_done(&f);
	return w->request;
}

static void
one_frame(struct wire *w, const uint8_t *payload, size_t len, int *fd)
{
	struct ipc_invoke_reply reply;
	struct ipc_frame f;

	/* What the service says is well-formed. */
	if (ipc_parse_frame(&f, payload, len) != 0)
		abort();
	if (f.kind != IPC_INVOKE_METHOD_REPLY)
		return;
	if (ipc_parse_invoke_reply(&reply, f.body) != 0)
		abort();
	w->reply(w->arg, f.request_id, reply.success, reply.has_more,
	    reply.reply.data, reply.reply.len, *fd);
	*fd = -1;
}

static void
take_frames(struct wire *w, int fd)
{
	const uint8_t *payload;
	size_t len, used, need, at = 0;

	while (w->in != NULL && frame_next(w->in + at, w->in_len - at,
	    &payload, &len, &used, &need) == FRAME_OK) {
		one_frame(w, payload, len, &fd);
		at += used;
	}
	if (fd >= 0)
		close(fd);
	if (w->in == NULL)
		return; /* closed by what it said */
	memmove(w->in, w->in + at, w->in_len - at);
	w->in_len -= at;
}

static int
fd_of(struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fd = -1;

	if (c != NULL)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

void
wire_read(struct wire *w)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	static uint8_t buf[65536];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = control.buf,
	    .msg_controllen = sizeof(control.buf) };
	ssize_t n;
	int fd;

	if (w->fd < 0 || w->deaf)
		return;
	n = recvmsg(w->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return;
	fd = fd_of(&msg);
	if (w->reply == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	w->in = realloc(w->in, w->in_len + (size_t)n);
	if (w->in == NULL)
		abort();
	memcpy(w->in + w->in_len, buf, (size_t)n);
	w->in_len += (size_t)n;
	take_frames(w, fd);
}
