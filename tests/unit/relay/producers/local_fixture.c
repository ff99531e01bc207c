#include "tests/unit/relay/producers/local_fixture.h"

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

#include "relay/producers/producers_internal.h"
#include "tests/unit/transport/socket/tcp_pair.h"
#include "transport/base/log.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"

#define WAIT_MS 10000

void (*client_pass_time)(void);
/* Of a config that no relay knows. */
#define ODD_FIELD 777u

/* ---- upward ---- */

static struct said *
note(struct locals *t, uint32_t channel, enum link_up kind, const void *data,
    size_t len, uint64_t value)
{
	struct said *s = &t->said[t->n_said];

	assert_true(t->n_said < SAID_MAX);
	t->n_said++;
	*s = (struct said){ .channel = channel, .kind = kind, .len = len,
	    .value = value, .data = malloc(len + 1) };
	assert_non_null(s->data);
	if (len > 0)
		memcpy(s->data, data, len);
	return s;
}

static void
op_put(void *arg, uint32_t channel, enum link_up kind, const void *data,
    size_t len, uint64_t value)
{
	assert_int_not_equal(kind, LINK_UP_COMMIT);
	assert_true(len <= LINK_MESSAGE_MAX);
	note(arg, channel, kind, data, len, value);
}

static enum upstream_room
op_reserve(void *arg, uint32_t channel, size_t max, size_t data_len,
    uint8_t **out)
{
	struct locals *t = arg;

	assert_null(t->reserved);
	assert_true(max <= LINK_MESSAGE_MAX);
	if (data_len > 0 && t->room != UPSTREAM_ROOM) {
		if (t->room_left == 0)
			return t->room;
		t->room_left--;
	}
	t->reserved = malloc(max);
	assert_non_null(t->reserved);
	t->reserved_max = max;
	t->reserved_data = data_len > 0;
	*out = t->reserved;
	return UPSTREAM_ROOM;
}

static void
op_commit(void *arg, uint32_t channel, size_t len)
{
	struct locals *t = arg;

	assert_non_null(t->reserved);
	assert_true(len <= t->reserved_max);
	if (len > 0)
		note(t, channel, LINK_UP_COMMIT, t->reserved, len, 0)->is_data =
		    t->reserved_data;
	free(t->reserved);
	t->reserved = NULL;
}

static void
op_dropped(void *arg, uint32_t channel, const struct link_loss *loss)
{
	struct locals *t = arg;

	assert_true(t->n_losses < sizeof(t->losses) / sizeof(t->losses[0]));
	t->losses[t->n_losses++] = *loss;
}

static const struct upstream_ops upstream_ops = {
	.put = op_put,
	.reserve = op_reserve,
	.commit = op_commit,
	.dropped = op_dropped,
};

static uint32_t
new_channel(void *arg)
{
	return ++((struct locals *)arg)->last_channel;
}

static bool
has_arrived(void *arg, uint32_t channel, uint64_t place)
{
	return ((struct locals *)arg)->all_has_arrived;
}

void
locals_start(struct locals *t)
{
	struct producers_setup setup = {
		.loop = t->loop,
		.settings = &t->settings,
		.state_dirfd = t->dirfd,
		.upward = { &upstream_ops, t },
		.new_channel = new_channel,
		.has_arrived = has_arrived,
		.channel_arg = t,
	};
	char err[200];

	t->producers = producers_new(&setup, err, sizeof(err));
	assert_non_null(t->producers);
}

void
locals_stop(struct locals *t)
{
	uint64_t end = loop_now_ms() + WAIT_MS;

	rpc_conns_close_all(&t->stats);
	while (t->producers->n_connections > 0) {
		assert_true(loop_now_ms() < end);
		loop_run_once(t->loop);
	}
	producers_free(t->producers);
	t->producers = NULL;
}

struct locals *
locals_new(const char *dir)
{
	struct locals *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	snprintf(t->dir, sizeof(t->dir), "%s", dir);
	t->dirfd = open(t->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(t->dirfd >= 0);
	assert_non_null(t->loop = loop_new());
	memset(&t->settings, 0, sizeof(t->settings));
	t->settings.limits = (struct relay_limits){
		.max_producers = 16,
		.max_data_sources_per_producer = 8,
		.max_shm_kb = 1024,
		.max_total_shm_kb = 4096,
		.max_send_queue_kb = 256,
		.max_name_bytes = 64,
	};
	t->room = UPSTREAM_ROOM;
	locals_start(t);
	return t;
}

int
locals_setup(void **state)
{
	char dir[] = "/tmp/tributary-test-XXXXXX";

	log_init("test", LOG_LEVEL_ERROR);
	setvbuf(stdout, NULL, _IONBF, 0);
	assert_non_null(mkdtemp(dir));
	*state = locals_new(dir);
	return 0;
}

int
locals_teardown(void **state)
{
	struct locals *t = *state;
	char cmd[96];

	if (t->producers != NULL)
		locals_stop(t);
	assert_null(t->reserved);
	said_forget(t);
	loop_free(t->loop);
	close(t->dirfd);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", t->dir);
	assert_int_equal(system(cmd), 0);
	free(t);
	return 0;
}

void
said_forget(struct locals *t)
{
	size_t i;

	for (i = 0; i < t->n_said; i++)
		free(t->said[i].data);
	t->n_said = t->seen = 0;
}

const struct said *
said_next(struct locals *t, enum link_up kind)
{
	uint64_t end = loop_now_ms() + WAIT_MS;

	for (;;) {
		while (t->seen < t->n_said)
			if (t->said[t->seen++].kind == kind)
				return &t->said[t->seen - 1];
		assert_true(loop_now_ms() < end);
		loop_run_once(t->loop);
	}
}

size_t
said_count(const struct locals *t, enum link_up kind)
{
	size_t i, n = 0;

	for (i = 0; i < t->n_said; i++)
		n += t->said[i].kind == kind;
	return n;
}

size_t
said_chunks(const struct locals *t)
{
	size_t i, n = 0;

	for (i = 0; i < t->n_said; i++)
		n += t->said[i].is_data;
	return n;
}

bool
has_field(const uint8_t *msg, size_t len, uint32_t field, struct pb_field *f)
{
	struct pb_reader r;

	pb_init(&r, msg, len);
	while (pb_next(&r, f))
		if (f->number == field)
			return true;
	assert_false(r.bad);
	return false;
}

uint64_t
uint_in(const uint8_t *msg, size_t len, uint32_t field)
{
	struct pb_field f;

	assert_true(has_field(msg, len, field, &f));
	assert_int_equal(f.wire, PB_VARINT);
	return f.value;
}

void
said_chunk(const struct said *s, struct up_chunk *out)
{
	struct pb_field move, f;

	assert_int_equal(s->kind, LINK_UP_COMMIT);
	assert_true(has_field(s->data, s->len, 1, &move));
	out->buffer = (uint32_t)uint_in(move.data, move.len, 3);
	out->incomplete = has_field(move.data, move.len, 5, &f);
	assert_true(has_field(move.data, move.len, 4, &f));
	assert_int_equal(shm_chunk_from_bytes(f.data, f.len, &out->chunk), 0);
}

uint64_t
said_flush(const struct said *s)
{
	struct pb_field f;

	return has_field(s->data, s->len, 3, &f) ? f.value : 0;
}

/* ---- a producer ---- */

static void
send_all(struct client *c, const uint8_t *data, size_t len, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	uint64_t end = loop_now_ms() + WAIT_MS;
	struct cmsghdr *cm;
	struct iovec iov;
	struct msghdr msg;
	ssize_t n;

	while (len > 0 && !c->closed) {
		assert_true(loop_now_ms() < end);
		iov = (struct iovec){ (void *)(uintptr_t)data, len };
		msg = (struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 };
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
		n = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0) {
			fd = -1;
			data += n;
			len -= (size_t)n;
		} else if (errno != EAGAIN) {
			c->closed = true;
		} else {
			client_turn(c);
		}
	}
}

void
locals_accept(struct locals *t, int fd)
{
	static const struct rpc_service *services[1];
	struct rpc_conn_setup setup = { .services = services, .n_services = 1,
	    .stats = &t->stats, .guard = producers_guard(t->producers) };

	services[0] = producers_service(t->producers);
	assert_non_null(rpc_conn_new(t->loop, fd, &setup));
}

void
client_open(struct client *c, struct locals *t, bool tcp)
{
	int pair[2];

	if (tcp)
		tcp_pair(pair);
	else
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM |
		    SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	locals_accept(t, pair[1]);
	client_over(c, t, pair[0]);
}

void
client_over(struct client *c, struct locals *t, int fd)
{
	struct pb_writer w;
	size_t mark;

	memset(c, 0, sizeof(*c));
	c->t = t;
	c->fd = fd;
	pb_writer_init(&w);
	mark = ipc_frame_begin(&w, 0, IPC_BIND_SERVICE);
	pb_put_string(&w, 1, "ProducerPort");
	ipc_frame_end(&w, mark);
	send_all(c, w.data, w.len, -1);
	pb_writer_done(&w);
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
	shm_free(c->shm);
	c->shm = NULL;
	c->in = NULL;
	c->n_replies = c->in_len = 0;
}

uint64_t
client_send(struct client *c, uint32_t method, struct pb_writer *args, int fd)
{
	uint8_t head[IPC_HEAD_MAX];
	uint64_t id = ++c->last_request;
	struct pb_writer w;
	size_t n = ipc_put_invoke_head(head, id, 1, method, false,
	    args != NULL ? args->len : 0);

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
	*r = (struct reply){ .request = f.request_id, .ok = m.success,
	    .more = m.has_more, .fd = *fd, .len = m.reply.len,
	    .msg = malloc(m.reply.len + 1) };
	*fd = -1;
	if (r->len > 0)
		memcpy(r->msg, m.reply.data, r->len);
}

void
client_turn(struct client *c)
{
	static uint8_t buf[65536];
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = control.buf,
	    .msg_controllen = sizeof(control.buf) };
	const uint8_t *payload;
	size_t at = 0, len, used, need;
	struct cmsghdr *cm;
	int fd = -1;
	ssize_t n;

	loop_run_once(c->t->loop);
	if (client_pass_time != NULL)
		client_pass_time();
	if (c->fd < 0)
		return;
	n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		c->closed = true;
	if (n <= 0)
		return;
	if ((cm = CMSG_FIRSTHDR(&msg)) != NULL)
		memcpy(&fd, CMSG_DATA(cm), sizeof(fd));
	c->in = realloc(c->in, c->in_len + (size_t)n);
	assert_non_null(c->in);
	memcpy(c->in + c->in_len, buf, (size_t)n);
	c->in_len += (size_t)n;
	while (frame_next(c->in + at, c->in_len - at, &payload, &len, &used,
	    &need) == FRAME_OK) {
		note_reply(c, payload, len, &fd);
		at += used;
	}
	c->in_len -= at;
	memmove(c->in, c->in + at, c->in_len);
	if (fd >= 0)
		close(fd);
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

void
client_sync(struct client *c)
{
	assert_true(client_call(c, P_SYNC, NULL)->ok);
}

bool
client_has_command(struct client *c)
{
	client_sync(c);
	return find_reply(c, c->commands, c->taken) != NULL;
}

uint32_t
client_command(struct client *c, struct pb_field *f, int *fd)
{
	const struct reply *r = client_wait(c, c->commands, c->taken++);
	struct pb_reader rd;

	assert_true(r->ok && r->more);
	pb_init(&rd, r->msg, r->len);
	assert_true(pb_next(&rd, f));
	assert_int_equal(f->wire, PB_BYTES);
	if (fd != NULL)
		*fd = r->fd;
	return f->number;
}

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

struct pb_writer *
args_two(uint64_t one, uint64_t two)
{
	pb_writer_init(&shared_args);
	pb_put_uint(&shared_args, 1, one);
	pb_put_uint(&shared_args, 2, two);
	return &shared_args;
}

const char *
error_of(const struct reply *r)
{
	static char text[256];
	struct pb_field f;

	if (!has_field(r->msg, r->len, 1, &f))
		return NULL;
	snprintf(text, sizeof(text), "%.*s", (int)f.len,
	    (const char *)f.data);
	return text;
}

void
client_register(struct client *c, const char *name, bool no_flush,
    bool notifies_stop)
{
	struct pb_writer *w = &shared_args;
	const struct reply *r;
	size_t mark;

	pb_writer_init(w);
	mark = pb_nest_begin(w, 1);
	pb_put_string(w, 1, name);
	pb_put_uint(w, 2, notifies_stop);
	pb_put_uint(w, 9, no_flush);
	pb_nest_end(w, mark);
	r = client_call(c, P_REGISTER, w);
	assert_true(r->ok);
	assert_null(error_of(r));
}

void
client_ready(struct client *c, struct locals *t, const char *name)
{
	client_open(c, t, false);
	client_greet(c, name);
}

void
client_greet(struct client *c, const char *name)
{
	assert_true(client_call(c, P_INITIALIZE, args_string(3, name))->ok);
	client_register(c, "ds", false, true);
	c->commands = client_send(c, P_COMMANDS, NULL, -1);
	client_sync(c);
}

/* ---- from upward ---- */

static void
command(struct locals *t, uint32_t channel, uint32_t number,
    struct pb_writer *body)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_bytes(&w, number, body->data, body->len);
	producers_command(t->producers, channel, w.data, w.len);
	pb_writer_done(&w);
	pb_writer_done(body);
}

void
up_start(struct locals *t, uint32_t channel, uint64_t instance,
    uint64_t session, uint32_t buffer, const char *name)
{
	struct pb_writer w;
	size_t mark;
	uint32_t number;

	for (number = 6;; number = 1) {
		pb_writer_init(&w);
		pb_put_uint(&w, 1, instance);
		mark = pb_nest_begin(&w, 2);
		pb_put_string(&w, 1, name);
		pb_put_uint(&w, ODD_FIELD, 42);
		pb_put_uint(&w, 2, buffer);
		pb_put_uint(&w, 4, session);
		pb_put_string(&w, 999, "legacy");
		pb_nest_end(&w, mark);
		command(t, channel, number, &w);
		if (number == 1)
			break;
	}
}

void
up_set_up_tracing(struct locals *t, uint32_t channel, uint64_t page_kb)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 1, page_kb);
	command(t, channel, 3, &w);
}

void
up_stop(struct locals *t, uint32_t channel, uint64_t instance)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 1, instance);
	command(t, channel, 2, &w);
}

void
up_flush(struct locals *t, uint32_t channel, uint64_t request,
    const uint64_t *instances, size_t n)
{
	struct pb_writer w;
	size_t i;

	pb_writer_init(&w);
	for (i = 0; i < n; i++)
		pb_put_uint(&w, 1, instances[i]);
	pb_put_uint(&w, 2, request);
	pb_put_uint(&w, 3, 5);
	command(t, channel, 5, &w);
}

static void
attach(struct client *c, const struct pb_field *f, int fd)
{
	char err[200];

	if (c->shm != NULL)
		return;
	assert_true(fd >= 0);
	c->shm = shm_adopt(dup(fd), (size_t)uint_in(f->data, f->len, 1) * 1024,
	    err, sizeof(err));
	assert_non_null(c->shm);
}

struct started
client_started(struct client *c)
{
	struct started s;
	struct pb_field f, config;
	uint32_t number;
	int fd;

	if ((number = client_command(c, &f, &fd)) == 3) {
		attach(c, &f, fd);
		number = client_command(c, &f, &fd);
	}
	assert_int_equal(number, 6);
	s.id = uint_in(f.data, f.len, 1);
	assert_true(has_field(f.data, f.len, 2, &config));
	s.buffer = (uint32_t)uint_in(config.data, config.len, 2);
	assert_int_equal(client_command(c, &f, &fd), 1);
	assert_int_equal(uint_in(f.data, f.len, 1), s.id);
	return s;
}

struct shm_slot
client_chunk(struct client *c, uint16_t writer, uint32_t id,
    const char *packet, bool complete)
{
	struct shm_slot slot;
	size_t n = strlen(packet);

	assert_true(shm_acquire(c->shm, SHM_DIV1, writer, id, 0, &slot));
	assert_true(n < 128);
	slot.payload[0] = (uint8_t)n;
	memcpy(slot.payload + 1, packet, n);
	shm_add_fragment(c->shm, &slot);
	if (complete)
		shm_complete(c->shm, &slot);
	return slot;
}

void
client_commit(struct client *c, const struct shm_slot *slot, uint32_t buffer)
{
	struct pb_writer *w = &shared_args;
	size_t mark;

	pb_writer_init(w);
	mark = pb_nest_begin(w, 1);
	pb_put_uint(w, 1, slot->page);
	pb_put_uint(w, 2, slot->index);
	pb_put_uint(w, 3, buffer);
	pb_nest_end(w, mark);
	assert_true(client_call(c, P_COMMIT, w)->ok);
}
