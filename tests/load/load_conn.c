#include "tests/load/load_conn.h"

#include <errno.h>
#include <linux/vm_sockets.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/load/load_tls.h"
#include "transport/wire/frame.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Field numbers of IPCFrame and its parts. */
enum {
	FRAME_REQUEST_ID = 2,
	FRAME_BIND = 3,
	FRAME_BIND_REPLY = 4,
	FRAME_INVOKE = 5,
	FRAME_INVOKE_REPLY = 6,
};

void
load_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("load: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

uint64_t
load_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int
connect_unix(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	socklen_t len;
	int fd;

	if (strlen(path) >= sizeof(sun.sun_path))
		load_die("%s: too long", path);
	strcpy(sun.sun_path, path);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
	    strlen(path));
	if (path[0] == '@')
		sun.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sun, len) < 0)
		load_die("%s: %s", path, strerror(errno));
	return fd;
}

static int
connect_vsock(const char *address)
{
	struct sockaddr_vm svm = { .svm_family = AF_VSOCK };
	unsigned cid, port;
	int fd;

	if (sscanf(address, "vsock:%u:%u", &cid, &port) != 2 &&
	    sscanf(address, "vsock://%u:%u", &cid, &port) != 2)
		load_die("%s: not vsock:CID:PORT", address);
	svm.svm_cid = cid;
	svm.svm_port = port;
	fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&svm, sizeof(svm)) < 0)
		load_die("%s: %s", address, strerror(errno));
	return fd;
}

/* The host of "host:port" into host; returns where the port begins. */
static const char *
split_host(const char *address, char host[LOAD_HOST_SIZE])
{
	const char *colon = strrchr(address, ':');

	if (colon == NULL || colon - address >= LOAD_HOST_SIZE)
		load_die("%s: not host:port", address);
	snprintf(host, LOAD_HOST_SIZE, "%.*s", (int)(colon - address),
	    address);
	if (host[0] == '[') {
		memmove(host, host + 1, strlen(host));
		host[strcspn(host, "]")] = '\0';
	}
	return colon + 1;
}

static int
connect_tcp(const char *address)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV }, *ai;
	char host[LOAD_HOST_SIZE];
	const char *port = split_host(address, host);
	int fd, one = 1;

	if (getaddrinfo(host, port, &hints, &ai) != 0)
		load_die("%s: not a numeric address", address);
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen) < 0)
		load_die("%s: %s", address, strerror(errno));
	freeaddrinfo(ai);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* Sends as much as goes: bytes, or 0 when nothing goes now. */
static size_t
send_some(struct load_conn *c, const struct iovec *iov, int niov)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov,
		.msg_iovlen = (size_t)niov };
	ssize_t n;

	if (c->tls != NULL)
		n = tls_conn_send(c->tls, iov, niov);
	else
		n = sendmsg(c->fd, &msg, MSG_NOSIGNAL);
	if (n > 0)
		return (size_t)n;
	if (errno != EAGAIN && errno != EINTR)
		load_die("send: %s", c->tls != NULL ?
		    tls_conn_error(c->tls) : strerror(errno));
	return 0;
}

static void
wait_to_send(struct load_conn *c)
{
	struct pollfd pfd = { c->fd, POLLOUT, 0 };

	if (c->tls != NULL)
		load_tls_wait(c->fd, c->tls);
	else
		poll(&pfd, 1, -1);
}

static void
send_tls_frame(struct load_conn *c, const uint8_t header[4],
    const struct pb_writer *w)
{
	struct iovec iov[2] = { { (void *)header, 4 }, { w->data, w->len } };
	size_t n;

	while ((n = send_some(c, iov, 2)) == 0)
		wait_to_send(c);
	if (n < 4)
		load_die("a frame's header was cut");
	load_conn_write(c, w->data + (n - 4), w->len - (n - 4));
}

static void
send_frame(struct load_conn *c, const struct pb_writer *w, int fd)
{
	uint8_t header[4];
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov[2] = { { header, sizeof(header) },
		{ w->data, w->len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	struct cmsghdr *cmsg;
	ssize_t n;

	if (w->failed || w->len > FRAME_PAYLOAD_MAX)
		load_die("a frame of %zu bytes", w->len);
	frame_put_header(header, (uint32_t)w->len);
	if (c->tls != NULL) {
		send_tls_frame(c, header, w);
		return;
	}
	if (fd >= 0) {
		memset(control, 0, sizeof(control));
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	}
	n = sendmsg(c->fd, &msg, MSG_NOSIGNAL);
	if (n < 0)
		load_die("send: %s", strerror(errno));
	if ((size_t)n < sizeof(header))
		load_die("a frame's header was cut");
	load_conn_write(c, w->data + (n - 4), w->len - (size_t)(n - 4));
}

void
load_conn_write(struct load_conn *c, const void *data, size_t len)
{
	struct iovec iov = { (void *)data, len };
	size_t n;

	while (iov.iov_len > 0) {
		n = send_some(c, &iov, 1);
		if (n == 0)
			wait_to_send(c);
		iov.iov_base = (uint8_t *)iov.iov_base + n;
		iov.iov_len -= n;
	}
}

/* More bytes into c->in.  False: none for now (only when !block). */
static bool
fill(struct load_conn *c, bool block)
{
	char control[CMSG_SPACE(8 * sizeof(int))];
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg;
	struct pollfd pfd = { c->fd, POLLIN, 0 };
	ssize_t n;

	memmove(c->in, c->in + c->in_used, c->in_len - c->in_used);
	c->in_len -= c->in_used;
	c->in_used = 0;
	iov.iov_base = c->in + c->in_len;
	iov.iov_len = 2 * LOAD_FRAME_MAX - c->in_len;
	for (;;) {
		if (c->tls != NULL)
			n = tls_conn_receive(c->tls, &iov, 1);
		else
			n = recvmsg(c->fd, &msg,
			    MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n > 0)
			break;
		if (n == 0)
			load_die("the daemon hung up");
		if (errno != EAGAIN && errno != EINTR)
			load_die("receive: %s", c->tls != NULL ?
			    tls_conn_error(c->tls) : strerror(errno));
		if (!block)
			return false;
		if (c->tls != NULL)
			load_tls_wait(c->fd, c->tls);
		else
			poll(&pfd, 1, -1);
	}
	c->in_len += (size_t)n;
	cmsg = c->tls == NULL ? CMSG_FIRSTHDR(&msg) : NULL;
	if (cmsg != NULL && cmsg->cmsg_type == SCM_RIGHTS) {
		if (c->received_fd >= 0)
			close(c->received_fd);
		memcpy(&c->received_fd, CMSG_DATA(cmsg), sizeof(int));
	}
	return true;
}

/* The next whole frame; borrowed until the next call. */
static bool
next_frame(struct load_conn *c, bool block, const uint8_t **frame, size_t *len)
{
	size_t used, need;

	for (;;) {
		switch (frame_next(c->in + c->in_used, c->in_len - c->in_used,
		    frame, len, &used, &need)) {
		case FRAME_OK:
			c->in_used += used;
			return true;
		case FRAME_TOO_BIG:
			load_die("the daemon sent a frame over 128 KiB");
		case FRAME_MORE:
			break;
		}
		if (!fill(c, block))
			return false;
	}
}

static void
read_method(struct load_conn *c, const uint8_t *data, size_t len)
{
	struct load_method *m = &c->methods[c->n_methods];
	struct pb_reader r;
	struct pb_field f;

	if (c->n_methods == LOAD_METHODS)
		return;
	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1)
			m->id = (uint32_t)f.value;
		else if (f.number == 2)
			snprintf(m->name, sizeof(m->name), "%.*s", (int)f.len,
			    (const char *)f.data);
	}
	c->n_methods++;
}

static void
read_bind_reply(struct load_conn *c, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	bool success = false;

	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1)
			success = f.value != 0;
		else if (f.number == 2)
			c->service_id = (uint32_t)f.value;
		else if (f.number == 3)
			read_method(c, f.data, f.len);
	}
	if (!success)
		load_die("the daemon refused to bind");
}

void
load_conn_adopt(struct load_conn *c, int fd, struct tls_conn *tls)
{
	memset(c, 0, sizeof(*c));
	c->next_id = 1;
	c->received_fd = -1;
	c->fd = fd;
	c->tls = tls;
	if ((c->in = malloc(2 * LOAD_FRAME_MAX)) == NULL)
		load_die("no memory");
}

void
load_conn_ask_bind(struct load_conn *c, const char *service)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	pb_put_uint(&w, FRAME_REQUEST_ID, c->next_id++);
	mark = pb_nest_begin(&w, FRAME_BIND);
	pb_put_string(&w, 1, service);
	pb_nest_end(&w, mark);
	send_frame(c, &w, -1);
	pb_writer_done(&w);
}

static void
read_bound(struct load_conn *c, const uint8_t *frame, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, frame, len);
	while (pb_next(&r, &f))
		if (f.number == FRAME_BIND_REPLY)
			read_bind_reply(c, f.data, f.len);
}

bool
load_conn_try_bound(struct load_conn *c)
{
	const uint8_t *frame;
	size_t len;

	if (!next_frame(c, false, &frame, &len))
		return false;
	read_bound(c, frame, len);
	return true;
}

static bool
is_tls(const char *address)
{
	return strncmp(address, "tls://", 6) == 0;
}

void
load_conn_host(const char *address, char host[LOAD_HOST_SIZE])
{
	split_host(is_tls(address) ? address + 6 : address, host);
}

int
load_conn_connect(const char *address)
{
	if (is_tls(address))
		address += 6;
	if (strncmp(address, "unix:", 5) == 0)
		address += 5;
	if (address[0] == '/' || address[0] == '@')
		return connect_unix(address);
	if (strncmp(address, "vsock:", 6) == 0)
		return connect_vsock(address);
	return connect_tcp(address);
}

void
load_conn_open(struct load_conn *c, const char *address, const char *service)
{
	struct tls_conn *tls = NULL;
	char host[LOAD_HOST_SIZE];
	const uint8_t *frame;
	size_t len;
	int fd;

	fd = load_conn_connect(address);
	if (is_tls(address)) {
		load_conn_host(address, host);
		tls = load_tls_open(fd, host);
	}
	load_conn_adopt(c, fd, tls);
	load_conn_ask_bind(c, service);
	next_frame(c, true, &frame, &len);
	read_bound(c, frame, len);
}

void
load_conn_close(struct load_conn *c)
{
	tls_conn_free(c->tls);
	close(c->fd);
	if (c->received_fd >= 0)
		close(c->received_fd);
	free(c->in);
}

uint32_t
load_conn_method(const struct load_conn *c, const char *name)
{
	size_t i;

	for (i = 0; i < c->n_methods; i++)
		if (strcmp(c->methods[i].name, name) == 0)
			return c->methods[i].id;
	load_die("the daemon does not offer %s", name);
}

uint64_t
load_conn_call(struct load_conn *c, const char *method, const void *args,
    size_t len, bool drop_reply, int fd)
{
	struct pb_writer w;
	uint64_t id = c->next_id++;
	size_t mark;

	pb_writer_init(&w);
	pb_put_uint(&w, FRAME_REQUEST_ID, id);
	mark = pb_nest_begin(&w, FRAME_INVOKE);
	pb_put_uint(&w, 1, c->service_id);
	pb_put_uint(&w, 2, load_conn_method(c, method));
	pb_put_bytes(&w, 3, args, len);
	if (drop_reply)
		pb_put_uint(&w, 4, 1);
	pb_nest_end(&w, mark);
	send_frame(c, &w, fd);
	pb_writer_done(&w);
	return id;
}

static void
read_invoke_reply(struct load_reply *out, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1) {
			out->success = f.value != 0;
		} else if (f.number == 2) {
			out->has_more = f.value != 0;
		} else if (f.number == 3) {
			out->msg = f.data;
			out->len = f.len;
		}
	}
}

static bool
receive(struct load_conn *c, bool block, struct load_reply *out)
{
	const uint8_t *frame;
	struct pb_reader r;
	struct pb_field f;
	size_t len;

	if (!next_frame(c, block, &frame, &len))
		return false;
	memset(out, 0, sizeof(*out));
	pb_init(&r, frame, len);
	while (pb_next(&r, &f)) {
		if (f.number == FRAME_REQUEST_ID)
			out->request_id = f.value;
		else if (f.number == FRAME_INVOKE_REPLY)
			read_invoke_reply(out, f.data, f.len);
	}
	return true;
}

void
load_conn_receive(struct load_conn *c, struct load_reply *out)
{
	receive(c, true, out);
}

bool
load_conn_try_receive(struct load_conn *c, struct load_reply *out)
{
	return receive(c, false, out);
}

void
load_conn_wait(struct load_conn *c, uint64_t request_id, load_reply_fn other,
    void *arg, struct load_reply *out)
{
	for (;;) {
		load_conn_receive(c, out);
		if (out->request_id == request_id)
			break;
		if (other != NULL)
			other(arg, out);
	}
	if (!out->success)
		load_die("call %llu was rejected",
		    (unsigned long long)request_id);
}

int
load_conn_take_fd(struct load_conn *c)
{
	int fd = c->received_fd;

	c->received_fd = -1;
	return fd;
}
