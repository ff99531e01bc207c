#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/fleet/crowd_internal.h"
#include "tests/load/load_conn.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define IN_BYTES (256u * 1024u)
#define EVENTS 256
/*
 * Of one local address and one remote one a kernel has 28,000 ports: the next
 * members come from the next address of the loopback interface.
 */
#define MEMBERS_AN_ADDRESS 20000u
/* What waits in a kernel's queue belongs to no figure of the daemon. */
#define SEND_BUFFER (64 * 1024)

/* ---- writing ---- */

static void
watch(struct crowd *c, struct member *m, int op)
{
	struct epoll_event ev = { .data.ptr = m };

	ev.events = EPOLLIN | (m->wants_room ? EPOLLOUT : 0u);
	if (epoll_ctl(c->ep, op, m->fd, &ev) != 0)
		load_die("epoll: %s", strerror(errno));
}

static void
want_room(struct crowd *c, struct member *m, bool wants)
{
	if (m->wants_room == wants)
		return;
	m->wants_room = wants;
	watch(c, m, EPOLL_CTL_MOD);
}

static void
keep_rest(struct member *m, const uint8_t *data, size_t len)
{
	uint8_t *grown;
	size_t left = m->rest_len - m->rest_at;

	if ((grown = malloc(left + len)) == NULL)
		load_die("no memory");
	if (left > 0)
		memcpy(grown, m->rest + m->rest_at, left);
	memcpy(grown + left, data, len);
	free(m->rest);
	m->rest = grown;
	m->rest_at = 0;
	m->rest_len = left + len;
}

void
member_write(struct crowd *c, struct member *m, const uint8_t *data,
    size_t len)
{
	ssize_t n = 0;

	if (m->state == MEMBER_GONE)
		return;
	if (m->rest == NULL)
		n = send(m->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		n = 0; /* no room, or an end that the next read finds */
	if ((size_t)n == len)
		return;
	keep_rest(m, data + n, len - (size_t)n);
	want_room(c, m, true);
}

/* True: nothing is kept any more. */
static bool
write_rest(struct crowd *c, struct member *m)
{
	ssize_t n;

	if (m->rest != NULL) {
		n = send(m->fd, m->rest + m->rest_at, m->rest_len - m->rest_at,
		    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0)
			m->rest_at += (size_t)n;
		if (m->rest_at < m->rest_len)
			return false;
		free(m->rest);
		m->rest = NULL;
		m->rest_at = m->rest_len = 0;
	}
	want_room(c, m, false);
	return true;
}

static void
put_call(struct pb_writer *w, uint64_t id, uint32_t method, bool drop_reply,
    const struct pb_writer *args)
{
	uint8_t head[IPC_HEAD_MAX];
	size_t n = ipc_put_invoke_head(head, id, CROWD_SERVICE, method,
	    drop_reply, args->len);

	pb_put_raw(w, head, n);
	pb_put_raw(w, args->data, args->len);
}

static void
call_with(struct crowd *c, struct member *m, uint32_t method, uint32_t field,
    uint64_t value)
{
	struct pb_writer w, args;

	pb_writer_init(&w);
	pb_writer_init(&args);
	pb_put_uint(&args, field, value);
	put_call(&w, ID_OTHER, method, true, &args);
	member_write(c, m, w.data, w.len);
	pb_writer_done(&args);
	pb_writer_done(&w);
}

/* What every member says first: it does not wait for answers in between. */
static void
make_hello(struct crowd *c)
{
	struct pb_writer w, args;
	size_t mark;

	pb_writer_init(&w);
	pb_writer_init(&args);
	mark = ipc_frame_begin(&w, ID_BIND, IPC_BIND_SERVICE);
	pb_put_string(&w, 1, "ProducerPort");
	ipc_frame_end(&w, mark);
	pb_put_uint(&args, 1, 4096);
	pb_put_string(&args, 3, c->name);
	put_call(&w, ID_INIT, METHOD_INIT, false, &args);
	pb_writer_reset(&args);
	put_call(&w, ID_COMMANDS, METHOD_COMMANDS, false, &args);
	mark = pb_nest_begin(&args, 1);
	pb_put_string(&args, 1, c->name);
	pb_put_uint(&args, 2, 1); /* will_notify_on_stop */
	pb_put_uint(&args, 3, 1); /* will_notify_on_start */
	pb_nest_end(&args, mark);
	put_call(&w, ID_REGISTER, METHOD_REGISTER, false, &args);
	if (w.failed || args.failed)
		load_die("no memory");
	pb_writer_done(&args);
	c->hello = w.data;
	c->hello_len = w.len;
}

/* ---- reading ---- */

static uint64_t
field_value(const uint8_t *data, size_t len, uint32_t number)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, data, len);
	while (pb_next(&r, &f))
		if (f.number == number)
			return f.value;
	return 0;
}

static void
set_up(struct member *m, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1)
			m->instance = f.value;
		else if (f.number == 2)
			m->buffer = (uint32_t)field_value(f.data, f.len, 2);
	}
}

static void
command(struct crowd *c, struct member *m, const struct pb_field *f)
{
	uint64_t id;

	switch (f->number) {
	case 6: /* SetupDataSource */
		set_up(m, f->data, f->len);
		break;
	case 1: /* StartDataSource */
		id = field_value(f->data, f->len, 1);
		call_with(c, m, METHOD_STARTED, 1, id);
		c->counts.started++;
		break;
	case 2: /* StopDataSource */
		id = field_value(f->data, f->len, 1);
		call_with(c, m, METHOD_STOPPED, 1, id);
		c->counts.stopped++;
		break;
	case 5: /* Flush */
		id = field_value(f->data, f->len, 2);
		call_with(c, m, METHOD_COMMIT, 3, id);
		c->counts.flushed++;
		break;
	}
}

static void
gone(struct crowd *c, struct member *m)
{
	if (m->state == MEMBER_GONE)
		return;
	if (m->state == MEMBER_CONNECTING || m->state == MEMBER_ASKED)
		c->waiting--;
	m->state = MEMBER_GONE;
	c->counts.refused++;
	close(m->fd);
	m->fd = -1;
	free(m->rest);
	free(m->part);
	m->rest = m->part = NULL;
}

static void
take_reply(struct crowd *c, struct member *m, uint64_t id,
    struct ipc_slice body)
{
	struct ipc_invoke_reply reply;
	struct pb_reader r;
	struct pb_field f;

	if (ipc_parse_invoke_reply(&reply, body) != 0)
		load_die("a reply does not parse");
	switch (id) {
	case ID_COMMANDS:
		pb_init(&r, reply.reply.data, reply.reply.len);
		while (pb_next(&r, &f))
			command(c, m, &f);
		break;
	case ID_REGISTER:
		if (!reply.success || reply.reply.len > 0) {
			gone(c, m);
			return;
		}
		m->state = MEMBER_IN;
		c->waiting--;
		c->counts.registered++;
		break;
	case ID_COMMIT:
		c->counts.replies++;
		if (c->sending != NULL)
			crowd_send_replied(c, m);
		break;
	}
}

static void
take_frame(struct crowd *c, struct member *m, const uint8_t *data, size_t len)
{
	struct ipc_frame f;

	if (ipc_parse_frame(&f, data, len) != 0)
		load_die("a frame does not parse");
	switch (f.kind) {
	case IPC_INVOKE_METHOD_REPLY:
		take_reply(c, m, f.request_id, f.body);
		break;
	case IPC_REQUEST_ERROR:
		gone(c, m);
		break;
	default:
		break;
	}
}

static void
member_read(struct crowd *c, struct member *m)
{
	static uint8_t in[IN_BYTES];
	const uint8_t *payload;
	size_t at = 0, len = m->part_len, used, need, size;
	ssize_t n;

	if (len > 0)
		memcpy(in, m->part, len);
	n = recv(m->fd, in + len, sizeof(in) - len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		gone(c, m);
		return;
	}
	len += (size_t)n;
	while (m->state != MEMBER_GONE && frame_next(in + at, len - at,
	    &payload, &size, &used, &need) == FRAME_OK) {
		at += used;
		take_frame(c, m, payload, size);
	}
	free(m->part);
	m->part = NULL;
	m->part_len = 0;
	if (at == len || m->state == MEMBER_GONE)
		return;
	m->part_len = len - at;
	if ((m->part = malloc(m->part_len)) == NULL)
		load_die("no memory");
	memcpy(m->part, in + at, m->part_len);
}

/* ---- connecting ---- */

static void
connected(struct crowd *c, struct member *m)
{
	int error = 0;
	socklen_t len = sizeof(error);

	getsockopt(m->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error != 0) {
		gone(c, m);
		return;
	}
	m->state = MEMBER_ASKED;
	want_room(c, m, false);
	if (!c->bare) {
		member_write(c, m, c->hello, c->hello_len);
		return;
	}
	m->state = MEMBER_IN;
	c->waiting--;
	c->counts.registered++;
}

static void
begin(struct crowd *c, struct member *m)
{
	struct sockaddr_in to = { .sin_family = AF_INET }, from = to;
	size_t i = (size_t)(m - c->members);
	int one = 1, room = SEND_BUFFER, port;
	char host[32];

	if (sscanf(c->address, "%31[^:]:%d", host, &port) != 2 ||
	    inet_pton(AF_INET, host, &to.sin_addr) != 1)
		load_die("%s: not ADDRESS:PORT", c->address);
	to.sin_port = htons((uint16_t)port);
	m->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0);
	if (m->fd < 0)
		load_die("socket: %s", strerror(errno));
	setsockopt(m->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(m->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	setsockopt(m->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one,
	    sizeof(one));
	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK +
	    (uint32_t)(i / MEMBERS_AN_ADDRESS));
	if (bind(m->fd, (struct sockaddr *)&from, sizeof(from)) != 0 ||
	    (connect(m->fd, (struct sockaddr *)&to, sizeof(to)) != 0 &&
	    errno != EINPROGRESS))
		load_die("connect: %s", strerror(errno));
	m->state = MEMBER_CONNECTING;
	m->wants_room = true;
	c->waiting++;
	watch(c, m, EPOLL_CTL_ADD);
}

static void
member_event(struct crowd *c, struct member *m, uint32_t events)
{
	if (m->state == MEMBER_CONNECTING &&
	    (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
		connected(c, m);
		return;
	}
	if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0)
		member_read(c, m);
	if (m->state != MEMBER_GONE && m->wants_room && write_rest(c, m) &&
	    c->sending != NULL)
		crowd_send_more(c, m);
}

void
crowd_turn(struct crowd *c, int ms)
{
	struct epoll_event events[EVENTS];
	struct member *m;
	int i, n;

	n = epoll_wait(c->ep, events, EVENTS, ms);
	for (i = 0; i < n; i++) {
		m = events[i].data.ptr;
		if (m->state != MEMBER_GONE)
			member_event(c, m, events[i].events);
	}
}

void
crowd_serve(struct crowd *c, bool (*done)(void *arg), void *arg)
{
	while (!done(arg))
		crowd_turn(c, 2);
}

void
crowd_connect(struct crowd *c, size_t upto, size_t at_once)
{
	while (c->connected < upto || c->waiting > 0) {
		while (c->connected < upto && c->waiting < at_once)
			begin(c, &c->members[c->connected++]);
		crowd_turn(c, 100);
	}
}

void
crowd_leave(struct crowd *c, size_t i)
{
	if (c->members[i].state != MEMBER_GONE)
		gone(c, &c->members[i]);
}

static void
allow_descriptors(size_t n)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < n + 100)
		load_die("%zu connections need a higher limit of open files "
		    "(ulimit -Hn)", n);
}

struct crowd *
crowd_new(const char *address, const char *name, size_t n)
{
	struct crowd *c = calloc(1, sizeof(*c));

	allow_descriptors(n);
	if (c == NULL || (c->members = calloc(n, sizeof(*c->members))) ==
	    NULL || (c->ep = epoll_create1(EPOLL_CLOEXEC)) < 0)
		load_die("no memory for %zu producers", n);
	snprintf(c->address, sizeof(c->address), "%s", address);
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->n = n;
	make_hello(c);
	return c;
}

void
crowd_make_bare(struct crowd *c)
{
	c->bare = true;
}

void
crowd_free(struct crowd *c)
{
	size_t i;

	for (i = 0; i < c->connected; i++)
		crowd_leave(c, i);
	close(c->ep);
	free(c->members);
	free(c->hello);
	free(c);
}

const struct crowd_counts *
crowd_counts(const struct crowd *c)
{
	return &c->counts;
}
