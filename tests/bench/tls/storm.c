#include "tests/bench/tls/storm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/load/load_conn.h"
#include "tests/load/load_tls.h"
#include "transport/wire/pb_writer.h"

/* The first bytes of a ClientHello: a record that promises more. */
static const uint8_t half_hello[] = { 0x16, 0x03, 0x01, 0x02, 0x00, 0x01 };

enum device_state {
	DEV_CONNECTING,   /* writable is watched */
	DEV_SHAKING,      /* what the handshake wants is watched */
	DEV_GREETING,     /* readable is, here and below */
	DEV_BINDING,
	DEV_INITIALISING,
	DEV_IN,           /* nothing is */
};

struct device {
	int fd;
	enum device_state state;
	struct tls_conn *tls;  /* owned until conn has it */
	struct load_conn conn; /* from DEV_BINDING on */
	bool has_conn;
};

struct storm {
	struct device *devices;
	size_t n;
	size_t n_in;
	enum storm_until until;
	struct sockaddr_in to;
	char host[LOAD_HOST_SIZE];
	int ep;
};

static void
watch(const struct storm *s, int op, struct device *d, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = d };

	if (epoll_ctl(s->ep, op, d->fd, &ev) != 0)
		load_die("epoll: %s", strerror(errno));
}

static void
is_in(struct storm *s, struct device *d)
{
	d->state = DEV_IN;
	watch(s, EPOLL_CTL_DEL, d, 0);
	s->n_in++;
}

static void
ask_initialise(struct device *d)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 1, 4096);
	pb_put_string(&w, 3, "device");
	load_conn_call(&d->conn, "InitializeConnection", w.data, w.len, false,
	    -1);
	pb_writer_done(&w);
	d->state = DEV_INITIALISING;
}

static void
shaken(struct storm *s, struct device *d)
{
	watch(s, EPOLL_CTL_MOD, d, EPOLLIN);
	switch (s->until) {
	case STORM_CONNECTED:
	case STORM_SHAKEN:
		is_in(s, d);
		return;
	case STORM_GREETED:
		d->state = DEV_GREETING;
		return;
	case STORM_INITIALISED:
		load_conn_adopt(&d->conn, d->fd, d->tls);
		d->has_conn = true;
		load_conn_ask_bind(&d->conn, "ProducerPort");
		d->state = DEV_BINDING;
		return;
	}
}

static void
shake(struct storm *s, struct device *d)
{
	int rc = tls_conn_handshake(d->tls);

	if (rc < 0)
		load_die("%s", tls_conn_error(d->tls));
	if (rc > 0)
		shaken(s, d);
	else
		watch(s, EPOLL_CTL_MOD, d,
		    tls_conn_wants_write(d->tls) ? EPOLLOUT : EPOLLIN);
}

static void
connected(struct storm *s, struct device *d)
{
	int error = 0, one = 1;
	socklen_t len = sizeof(error);

	getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error != 0)
		load_die("connect: %s", strerror(error));
	setsockopt(d->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (s->until == STORM_CONNECTED) {
		if (send(d->fd, half_hello, sizeof(half_hello),
			MSG_NOSIGNAL) < 0)
			load_die("send: %s", strerror(errno));
		is_in(s, d);
		return;
	}
	d->tls = load_tls_new(d->fd, s->host);
	d->state = DEV_SHAKING;
	shake(s, d);
}

static void
take_greeting(struct storm *s, struct device *d)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	ssize_t n = tls_conn_receive(d->tls, &iov, 1);

	if (n == 1)
		is_in(s, d);
	else if (n == 0 || errno != EAGAIN)
		load_die("greeting: %s", tls_conn_error(d->tls));
}

static void
move(struct storm *s, struct device *d)
{
	struct load_reply reply;

	switch (d->state) {
	case DEV_CONNECTING:
		connected(s, d);
		break;
	case DEV_SHAKING:
		shake(s, d);
		break;
	case DEV_GREETING:
		take_greeting(s, d);
		break;
	case DEV_BINDING:
		if (load_conn_try_bound(&d->conn))
			ask_initialise(d);
		break;
	case DEV_INITIALISING:
		if (!load_conn_try_receive(&d->conn, &reply))
			break;
		if (!reply.success)
			load_die("InitializeConnection was rejected");
		is_in(s, d);
		break;
	case DEV_IN:
		break;
	}
}

static void
start(struct storm *s, struct device *d)
{
	d->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (d->fd < 0)
		load_die("socket: %s", strerror(errno));
	if (connect(d->fd, (struct sockaddr *)&s->to, sizeof(s->to)) != 0 &&
	    errno != EINPROGRESS)
		load_die("connect: %s", strerror(errno));
	watch(s, EPOLL_CTL_ADD, d, EPOLLOUT);
}

static struct storm *
storm_new(const char *address, size_t n, enum storm_until until)
{
	struct storm *s = calloc(1, sizeof(*s));

	if (s == NULL || (s->devices = calloc(n, sizeof(*s->devices))) == NULL)
		load_die("no memory for %zu devices", n);
	s->n = n;
	s->until = until;
	load_conn_host(address, s->host);
	s->to.sin_family = AF_INET;
	s->to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
	if (inet_pton(AF_INET, s->host, &s->to.sin_addr) != 1 ||
	    (s->ep = epoll_create1(EPOLL_CLOEXEC)) < 0)
		load_die("%s: cannot be stormed", address);
	return s;
}

struct storm *
storm_run(const char *address, size_t n, enum storm_until until,
    double *seconds)
{
	struct storm *s = storm_new(address, n, until);
	struct epoll_event events[128];
	uint64_t began = load_now_ns();
	int ready, i;
	size_t k;

	for (k = 0; k < n; k++)
		start(s, &s->devices[k]);
	while (s->n_in < n) {
		ready = epoll_wait(s->ep, events, 128, -1);
		for (i = 0; i < ready; i++)
			move(s, events[i].data.ptr);
	}
	*seconds = (double)(load_now_ns() - began) / 1e9;
	return s;
}

static void
register_source(struct load_conn *c)
{
	struct load_reply reply;
	struct pb_writer w;
	size_t mark;
	uint64_t id;

	load_conn_call(c, "GetAsyncCommand", NULL, 0, false, -1);
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 1);
	pb_put_string(&w, 1, "idle");
	pb_nest_end(&w, mark);
	id = load_conn_call(c, "RegisterDataSource", w.data, w.len, false, -1);
	pb_writer_done(&w);
	load_conn_wait(c, id, NULL, NULL, &reply);
}

void
storm_register(struct storm *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		register_source(&s->devices[i].conn);
}

void
storm_free(struct storm *s)
{
	struct device *d;
	size_t i;

	for (i = 0; i < s->n; i++) {
		d = &s->devices[i];
		if (d->has_conn) {
			load_conn_close(&d->conn);
			continue;
		}
		tls_conn_free(d->tls);
		close(d->fd);
	}
	close(s->ep);
	free(s->devices);
	free(s);
}
