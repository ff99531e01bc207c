#include "tests/unit/service/port/port_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "protos/text_parse.h"
#include "protos/trace_config.pb-c.h"
#include "service/port/consumer_port.h"
#include "service/port/control_port.h"
#include "service/port/link_port.h"
#include "service/port/producer_port.h"
#include "transport/base/log.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"

#define WAIT_MS 10000

int
ports_setup(void **state)
{
	struct ports *p = calloc(1, sizeof(*p));
	int fd;

	assert_non_null(p);
	log_init("test", LOG_LEVEL_ERROR);
	setvbuf(stdout, NULL, _IONBF, 0);
	snprintf(p->dir, sizeof(p->dir), "/tmp/tributary-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	assert_non_null(p->loop = loop_new());
	assert_int_equal(settings_init(&p->settings), 0);
	fd = open(p->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	p->service = service_new(p->loop, &p->settings, fd);
	assert_non_null(p->service);
	producer_port_init(&p->producer_port, p->service);
	consumer_port_init(&p->consumer_port, p->service);
	control_port_init(&p->control_port, p->service);
	link_port_init(&p->link_port, p->service);
	*state = p;
	return 0;
}

int
ports_teardown(void **state)
{
	struct ports *p = *state;
	uint64_t end = loop_now_ms() + WAIT_MS;
	char cmd[96];

	while (p->stats.n_conns > 0 || p->service->n_sessions > 0 ||
	    p->service->n_producers > 0) {
		assert_true(loop_now_ms() < end);
		loop_run_once(p->loop);
	}
	service_free(p->service);
	loop_free(p->loop);
	settings_done(&p->settings);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", p->dir);
	assert_int_equal(system(cmd), 0);
	free(p);
	return 0;
}

void
client_open(struct client *c, struct ports *p, int port)
{
	client_open_as(c, p, port, NULL);
}

void
client_open_as(struct client *c, struct ports *p, int port,
    const struct peer *who)
{
	static const struct rpc_service *services[4];
	struct stream_setup stream = { .peer = who };
	struct rpc_conn_setup setup = {
		.services = services,
		.n_services = 4,
		.stats = &p->stats,
		.stream = who != NULL ? &stream : NULL,
	};
	struct pb_writer w;
	size_t mark;
	int pair[2];

	memset(c, 0, sizeof(*c));
	c->ports = p;
	services[0] = &p->producer_port;
	services[1] = &p->consumer_port;
	services[2] = &p->control_port;
	services[3] = &p->link_port;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0, pair), 0);
	c->fd = pair[0];
	assert_non_null(rpc_conn_new(p->loop, pair[1], &setup));
	pb_writer_init(&w);
	mark = ipc_frame_begin(&w, 0, IPC_BIND_SERVICE);
	pb_put_string(&w, 1, services[port - 1]->name);
	ipc_frame_end(&w, mark);
	client_send_bytes(c, w.data, w.len);
	pb_writer_done(&w);
	/* Its service's id is its place above. */
	c->last_request = (uint64_t)port << 32;
}

void
client_close(struct client *c)
{
	size_t i;

	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	for (i = 0; i < c->n_replies; i++) {
		free(c->replies[i].msg);
		if (c->replies[i].fd >= 0)
			close(c->replies[i].fd);
	}
	free(c->in);
	c->in = NULL;
	c->n_replies = c->in_len = 0;
}

static bool
send_some(struct client *c, const uint8_t *data, size_t len, int fd,
    size_t *sent)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;
	ssize_t n;

	if (fd >= 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		cm = CMSG_FIRSTHDR(&msg);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cm), &fd, sizeof(fd));
	}
	n = sendmsg(c->fd, &msg, MSG_NOSIGNAL);
	*sent = n > 0 ? (size_t)n : 0;
	if (n < 0 && errno != EAGAIN)
		c->closed = true;
	return n > 0;
}

static void
send_all(struct client *c, const uint8_t *data, size_t len, int fd)
{
	uint64_t end = loop_now_ms() + WAIT_MS;
	size_t n;

	while (len > 0 && !c->closed) {
		assert_true(loop_now_ms() < end);
		if (send_some(c, data, len, fd, &n))
			fd = -1;
		else
			client_turn(c);
		data += n;
		len -= n;
	}
}

void
client_send_bytes(struct client *c, const void *data, size_t len)
{
	send_all(c, data, len, -1);
}

uint64_t
client_send(struct client *c, uint32_t method, struct pb_writer *args, int fd)
{
	uint8_t head[IPC_HEAD_MAX];
	uint64_t id = ++c->last_request;
	struct pb_writer w;
	size_t n = ipc_put_invoke_head(head, id, (uint32_t)(id >> 32), method,
	    false, args != NULL ? args->len : 0);

	pb_writer_init(&w);
	pb_put_raw(&w, head, n);
	if (args != NULL) {
		pb_put_raw(&w, args->data, args->len);
		pb_writer_done(args);
	}
	send_all(c, w.data, w.len, fd);
	pb_writer_done(&w);
	return id;
}

void
client_tell(struct client *c, uint32_t method, const void *args, size_t len)
{
	uint8_t head[IPC_HEAD_MAX];
	uint64_t id = ++c->last_request;
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_raw(&w, head, ipc_put_invoke_head(head, id,
	    (uint32_t)(id >> 32), method, true, len));
	pb_put_raw(&w, args, len);
	send_all(c, w.data, w.len, -1);
	pb_writer_done(&w);
}

static void
note_reply(struct client *c, const uint8_t *frame, size_t len, int *fd)
{
	struct ipc_invoke_reply m;
	struct ipc_frame f;
	struct reply *r;

	assert_int_equal(ipc_parse_frame(&f, frame, len), 0);
	if (f.kind != IPC_INVOKE_METHOD_REPLY)
		return;
	assert_int_equal(ipc_parse_invoke_reply(&m, f.body), 0);
	assert_true(c->n_replies < REPLIES_MAX);
	r = &c->replies[c->n_replies++];
	r->request = f.request_id;
	r->ok = m.success;
	r->more = m.has_more;
	r->fd = *fd;
	*fd = -1;
	r->len = m.reply.len;
	r->msg = malloc(r->len + 1);
	if (r->len > 0)
		memcpy(r->msg, m.reply.data, r->len);
}

static ssize_t
receive(struct client *c, uint8_t *buf, size_t len, int *fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = control.buf,
	    .msg_controllen = sizeof(control.buf) };
	struct cmsghdr *cm;
	ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n > 0 && (cm = CMSG_FIRSTHDR(&msg)) != NULL)
		memcpy(fd, CMSG_DATA(cm), sizeof(*fd));
	return n;
}

static void
take_frames(struct client *c, int *fd)
{
	const uint8_t *payload;
	size_t at = 0, len, used, need;

	while (frame_next(c->in + at, c->in_len - at, &payload, &len, &used,
	    &need) == FRAME_OK) {
		note_reply(c, payload, len, fd);
		at += used;
	}
	c->in_len -= at;
	memmove(c->in, c->in + at, c->in_len);
}

void
client_turn(struct client *c)
{
	static uint8_t buf[65536];
	int fd = -1;
	ssize_t n;

	loop_run_once(c->ports->loop);
	if (c->disk > 0 && (n = read(c->disk, buf, 4096)) > 0)
		c->disk_bytes += (size_t)n;
	if (c->deaf || c->fd < 0)
		return;
	if ((n = receive(c, buf, sizeof(buf), &fd)) > 0) {
		c->in = realloc(c->in, c->in_len + (size_t)n);
		assert_non_null(c->in);
		memcpy(c->in + c->in_len, buf, (size_t)n);
		c->in_len += (size_t)n;
		take_frames(c, &fd);
	} else if (n == 0 || errno != EAGAIN) {
		c->closed = true;
	}
	if (fd >= 0)
		close(fd);
}

void
ports_wait(struct client *c, bool (*cond)(void *arg), void *arg)
{
	uint64_t end = loop_now_ms() + WAIT_MS;

	while (!cond(arg)) {
		assert_true(loop_now_ms() < end);
		client_turn(c);
	}
}

static const struct reply *
find_reply(const struct client *c, uint64_t request, size_t n)
{
	size_t i;

	for (i = 0; i < c->n_replies; i++)
		if (c->replies[i].request == request && n-- == 0)
			return &c->replies[i];
	return NULL;
}

size_t
client_count(const struct client *c, uint64_t request)
{
	size_t n = 0;

	while (find_reply(c, request, n) != NULL)
		n++;
	return n;
}

const struct reply *
client_wait(struct client *c, uint64_t request, size_t n)
{
	uint64_t end = loop_now_ms() + WAIT_MS;
	const struct reply *r;

	while ((r = find_reply(c, request, n)) == NULL) {
		assert_true(loop_now_ms() < end);
		assert_false(c->closed);
		client_turn(c);
	}
	return r;
}

const struct reply *
client_call(struct client *c, uint32_t method, struct pb_writer *args)
{
	return client_wait(c, client_send(c, method, args, -1), 0);
}

/* ---- arguments and answers ---- */

static struct pb_writer shared_args;

struct pb_writer *
args_uint(uint32_t field, uint64_t v)
{
	pb_writer_init(&shared_args);
	pb_put_uint(&shared_args, field, v);
	return &shared_args;
}

struct pb_writer *
args_string(uint32_t field, const char *s)
{
	pb_writer_init(&shared_args);
	pb_put_string(&shared_args, field, s);
	return &shared_args;
}

void
client_initialize(struct client *c, const char *name)
{
	assert_true(client_call(c, P_INITIALIZE, args_string(3, name))->ok);
}

void
client_register(struct client *c, const char *data_source)
{
	struct pb_writer *w = &shared_args;
	const struct reply *r;
	struct pb_field f;
	size_t mark;

	pb_writer_init(w);
	mark = pb_nest_begin(w, 1);
	pb_put_string(w, 1, data_source);
	pb_nest_end(w, mark);
	r = client_call(c, P_REGISTER, w);
	assert_true(r->ok);
	assert_false(reply_field(r, 1, &f));
}

uint64_t
client_enable(struct client *c, const char *config, int fd)
{
	uint8_t *bytes;
	size_t len;

	assert_int_equal(text_parse(&perfetto__protos__trace_config__descriptor,
	    config, strlen(config), &bytes, &len, NULL), 0);
	pb_writer_init(&shared_args);
	pb_put_bytes(&shared_args, 1, bytes, len);
	free(bytes);
	return client_send(c, C_ENABLE, &shared_args, fd);
}

bool
reply_field(const struct reply *r, uint32_t number, struct pb_field *f)
{
	struct pb_reader rd;

	pb_init(&rd, r->msg, r->len);
	while (pb_next(&rd, f))
		if (f->number == number)
			return true;
	assert_false(rd.bad);
	return false;
}

bool
reply_says(const struct reply *r, uint32_t number, const char *text)
{
	struct pb_field f;

	return reply_field(r, number, &f) && f.wire == PB_BYTES &&
	    memmem(f.data, f.len, text, strlen(text)) != NULL;
}

size_t
client_count_in_trace(struct client *cons, const char *text)
{
	const uint8_t *at, *hit;
	const struct reply *r;
	size_t n = 0, i = 0, left;
	uint64_t id = client_send(cons, C_READ, NULL, -1);

	do {
		r = client_wait(cons, id, i++);
		at = r->msg;
		left = r->len;
		while ((hit = memmem(at, left, text, strlen(text))) != NULL) {
			n++;
			left -= (size_t)(hit + strlen(text) - at);
			at = hit + strlen(text);
		}
	} while (r->more);
	return n;
}
