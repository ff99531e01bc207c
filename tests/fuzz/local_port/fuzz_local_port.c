/*
 * Producers at a relay without a link: the input chooses who connects, what is
 * called with what, what is written into shared memory, and what comes from
 * upward; what goes there is held to the rules of relay/producers/upstream.h.
 * In the end everybody leaves, and nothing may be left.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "relay/producers/producers_internal.h"
#include "relay/settings/settings.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define PEERS 4u
#define STEPS_MAX 400u
#define TURNS_MAX 200000u
#define CHANNELS 64u
/* The collector's buffers are those from here on, so many. */
#define BUFFERS_FROM 40000u
#define BUFFERS 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct peer_end {
	int fd; /* -1: not connected */
	bool tcp;
	uint8_t *shm; /* as it came with SetupTracing */
	size_t shm_len;
};

struct channel {
	bool open;
	bool refused;
	bool given[BUFFERS]; /* since it is open */
	bool any;            /* commands may have given others as well */
};

static struct {
	struct loop *loop;
	struct producers *producers;
	const struct rpc_service *list[1];
	struct rpc_stats stats;
	struct peer_end peers[PEERS];
	uint64_t request;
	const uint8_t *p, *end;

	struct channel channels[CHANNELS];
	uint32_t last_channel;
	enum upstream_room room;
	unsigned room_left;
	uint8_t *reserved;
	size_t reserved_max;
	bool reserved_data;
	bool in_lost;
} w;

static struct relay_settings settings;
static int listener = -1;

static void
require(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

/* ---- upward ---- */

static struct channel *
channel_of(uint32_t id)
{
	require(id > 0 && id <= w.last_channel && id < CHANNELS,
	    "a channel that was never given");
	return &w.channels[id];
}

static void
op_put(void *arg, uint32_t channel, enum link_up kind, const void *data,
    size_t len, uint64_t value)
{
	struct channel *c = channel_of(channel);

	require(len <= LINK_MESSAGE_MAX, "a message is too long");
	require(kind != LINK_UP_COMMIT, "a commit was put");
	require(!w.in_lost, "something of what is lost");
	if (kind == LINK_UP_OPEN) {
		require(!c->open, "opened twice");
		c->open = true;
		c->refused = false;
		memset(c->given, 0, sizeof(c->given));
		c->any = false;
		return;
	}
	require(c->open, "something of a channel that is not open");
	require(!c->refused || kind == LINK_UP_CLOSE,
	    "something of a refused producer");
	if (kind == LINK_UP_CLOSE)
		c->open = false;
	require(kind != LINK_UP_REGISTER_SOURCE || pb_well_formed(data, len),
	    "a descriptor does not parse");
}

static enum upstream_room
op_reserve(void *arg, uint32_t channel, size_t max, size_t data_len,
    uint8_t **out)
{
	struct channel *c = channel_of(channel);

	require(w.reserved == NULL, "reserved twice");
	require(max <= LINK_MESSAGE_MAX, "a commit is too long");
	require(c->open && !c->refused, "a commit of a closed channel");
	if (data_len > 0 && w.room != UPSTREAM_ROOM && w.room_left-- == 0) {
		w.room_left = 0;
		return w.room;
	}
	w.reserved = malloc(max);
	if (w.reserved == NULL)
		abort();
	w.reserved_max = max;
	w.reserved_data = data_len > 0;
	*out = w.reserved;
	return UPSTREAM_ROOM;
}

static void
check_buffer(const struct channel *c, const struct pb_field *part,
    uint32_t field)
{
	struct pb_reader r;
	struct pb_field f;
	bool found = false;

	pb_init(&r, part->data, part->len);
	while (pb_next(&r, &f))
		if (f.number == field) {
			found = true;
			require(c->any || (f.value >= BUFFERS_FROM &&
			    f.value < BUFFERS_FROM + BUFFERS &&
			    c->given[f.value - BUFFERS_FROM]),
			    "a buffer that was not given");
		}
	require(found && !r.bad, "a part without a buffer");
}

static void
op_commit(void *arg, uint32_t channel, size_t len)
{
	struct channel *c = channel_of(channel);
	struct pb_reader r;
	struct pb_field f;
	size_t moves = 0;

	require(w.reserved != NULL && len <= w.reserved_max,
	    "more was committed than reserved");
	pb_init(&r, w.reserved, len);
	while (pb_next(&r, &f)) {
		moves += f.number == 1;
		if (f.number == 1)
			check_buffer(c, &f, 3);
		if (f.number == 2)
			check_buffer(c, &f, 1);
	}
	require(!r.bad, "a commit does not parse");
	require(moves == w.reserved_data, "not one chunk a commit");
	free(w.reserved);
	w.reserved = NULL;
}

static void
op_dropped(void *arg, uint32_t channel, const struct link_loss *loss)
{
	require(channel_of(channel)->open, "a loss of a closed channel");
	require(loss->chunks == 1, "a loss of nothing");
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
	return w.last_channel + 1 < CHANNELS ? ++w.last_channel : 0;
}

/* ---- the input ---- */

static unsigned
byte(void)
{
	return w.p < w.end ? *w.p++ : 0;
}

/* Small mostly, huge at times. */
static uint64_t
number(void)
{
	unsigned b = byte();

	if (b < 200)
		return b % 10;
	if (b < 230)
		return (uint64_t)b << 5 | byte();
	return UINT64_MAX >> (b % 64);
}

static size_t
some_bytes(const uint8_t **p, size_t most)
{
	size_t n = byte() % (most + 1);

	if (n > (size_t)(w.end - w.p))
		n = (size_t)(w.end - w.p);
	*p = w.p;
	w.p += n;
	return n;
}

static const char *
name(void)
{
	static const char *const names[] = { "a", "b", "c", "", "a\nb" };

	return names[byte() % 5];
}

/* ---- peers ---- */

static void
set_up_once(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	log_init("fuzz", LOG_LEVEL_ERROR);
	settings.limits = (struct relay_limits){
		.max_producers = 3,
		.max_data_sources_per_producer = 4,
		.max_shm_kb = 1024,
		.max_total_shm_kb = 1024,
		.max_send_queue_kb = 64,
		.max_name_bytes = 32,
	};
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&sin, sizeof(sin)) != 0 ||
	    listen(listener, 16) != 0)
		abort();
}

static int
tcp_pair(int out[2])
{
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);
	/* Reset at close: no port stays taken. */
	struct linger now = { 1, 0 };

	if (getsockname(listener, (struct sockaddr *)&sin, &len) != 0)
		return -1;
	out[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(out[0], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	if (connect(out[0], (struct sockaddr *)&sin, len) != 0) {
		close(out[0]);
		return -1;
	}
	out[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	return out[1] < 0 ? -1 : 0;
}

static void
leave(struct peer_end *e)
{
	if (e->fd >= 0)
		close(e->fd);
	if (e->shm != NULL)
		munmap(e->shm, e->shm_len);
	memset(e, 0, sizeof(*e));
	e->fd = -1;
}

static void
take_memory(struct peer_end *e, int fd)
{
	off_t len = lseek(fd, 0, SEEK_END);

	require(ftruncate(fd, 0) != 0, "its memory can shrink");
	if (e->shm == NULL && len > 0) {
		e->shm = mmap(NULL, (size_t)len, PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
		e->shm_len = (size_t)len;
		if (e->shm == MAP_FAILED)
			e->shm = NULL;
	}
	close(fd);
}

static void
drain(struct peer_end *e)
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
	struct cmsghdr *c;
	int fd;

	if (e->fd < 0 ||
	    recvmsg(e->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
		return;
	if ((c = CMSG_FIRSTHDR(&msg)) != NULL) {
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		take_memory(e, fd);
	}
}

static void
turn(unsigned n)
{
	size_t i;

	while (n-- > 0) {
		loop_run_once(w.loop);
		for (i = 0; i < PEERS; i++)
			drain(&w.peers[i]);
	}
}

static void
send_frame(struct peer_end *e, const uint8_t *data, size_t len, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (e->fd < 0 || len == 0)
		return;
	memset(&control, 0, sizeof(control));
	if (fd >= 0 && !e->tcp) {
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	/* What does not fit now is cut: the relay sees a broken frame. */
	(void)!sendmsg(e->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
arrive(struct peer_end *e, unsigned how)
{
	struct rpc_conn_setup setup = { .services = w.list, .n_services = 1,
	    .stats = &w.stats, .guard = producers_guard(w.producers) };
	struct pb_writer f;
	size_t mark;
	int pair[2];

	leave(e);
	e->tcp = (how & 6) == 6;
	if (e->tcp ? tcp_pair(pair) != 0 : socketpair(AF_UNIX, SOCK_STREAM |
	    SOCK_CLOEXEC, 0, pair) != 0)
		return;
	if (rpc_conn_new(w.loop, pair[1], &setup) == NULL)
		abort();
	e->fd = pair[0];
	pb_writer_init(&f);
	if (how & 8) {
		mark = ipc_frame_begin(&f, 0, IPC_SET_PEER_IDENTITY);
		pb_put_uint(&f, 1, number());
		pb_put_uint(&f, 2, number());
		pb_put_string(&f, 3, name());
		ipc_frame_end(&f, mark);
		send_frame(e, f.data, f.len, -1);
	}
	mark = ipc_frame_begin(&f, 0, IPC_BIND_SERVICE);
	pb_put_string(&f, 1, "ProducerPort");
	ipc_frame_end(&f, mark);
	send_frame(e, f.data, f.len, -1);
	pb_writer_done(&f);
}

/* ---- calls ---- */

static void
put_chunk(struct pb_writer *a)
{
	struct pb_writer c;
	const uint8_t *p;
	uint32_t id = (uint32_t)number();
	uint16_t writer = (uint16_t)number(), count;
	size_t n;

	pb_writer_init(&c);
	count = (uint16_t)(byte() | byte() << 8);
	pb_put_raw(&c, &id, 4);
	pb_put_raw(&c, &writer, 2);
	pb_put_raw(&c, &count, 2);
	n = some_bytes(&p, 40);
	pb_put_varint(&c, n);
	pb_put_raw(&c, p, n);
	pb_put_bytes(a, 4, c.data, c.len);
	pb_writer_done(&c);
}

static void
put_commit(struct pb_writer *a)
{
	unsigned n = byte() % 6, how;
	const uint8_t *p;
	size_t mark, one, k, len;

	while (n-- > 0) {
		how = byte();
		mark = pb_nest_begin(a, how & 1 ? 1 : 2);
		pb_put_uint(a, 1, number());
		pb_put_uint(a, 2, number());
		pb_put_uint(a, 3, number());
		if ((how & 3) == 3)
			put_chunk(a);
		for (k = how & 1 ? 0 : how >> 4; k > 0; k--) {
			one = pb_nest_begin(a, 4);
			pb_put_uint(a, 1, number());
			len = some_bytes(&p, 8);
			pb_put_bytes(a, 2, p, len);
			pb_nest_end(a, one);
		}
		pb_put_uint(a, 5, how >> 2 & 1);
		pb_nest_end(a, mark);
	}
	if (byte() & 1)
		pb_put_uint(a, 3, number());
}

static void
put_args(struct pb_writer *a, unsigned method)
{
	size_t mark;
	unsigned flags;

	switch (method) {
	case 1:
		pb_put_uint(a, 1, number() << 12);
		pb_put_uint(a, 2, number() << 14);
		pb_put_string(a, 3, name());
		pb_put_uint(a, 4, byte() % 3);
		pb_put_uint(a, 6, byte() & 1);
		break;
	case 2:
	case 12:
		mark = pb_nest_begin(a, 1);
		flags = byte();
		pb_put_string(a, 1, name());
		pb_put_uint(a, 2, flags & 1);
		pb_put_uint(a, 9, flags >> 3 & 1);
		pb_nest_end(a, mark);
		break;
	case 3:
		pb_put_string(a, 1, name());
		break;
	case 4:
		put_commit(a);
		break;
	case 6:
	case 7:
	case 8:
	case 9:
		pb_put_uint(a, 1, number());
		pb_put_uint(a, 2, number());
		break;
	case 10:
		pb_put_string(a, 1, name());
		pb_put_string(a, 1, name());
		break;
	default:
		break;
	}
}

static int
some_fd(unsigned how)
{
	int fd;

	if (how % 4 != 0)
		return how % 4 == 1 ? open("/dev/null", O_RDWR | O_CLOEXEC) :
		    -1;
	fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && how & 8) {
		(void)!ftruncate(fd, 65536);
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	}
	return fd;
}

static void
call(struct peer_end *e)
{
	uint8_t head[IPC_HEAD_MAX];
	unsigned method = 1 + byte() % 12, how = byte();
	struct pb_writer a, f;
	const uint8_t *p;
	size_t n;
	int fd = -1;

	pb_writer_init(&a);
	pb_writer_init(&f);
	if (how >= 250) {
		n = some_bytes(&p, 64);
		pb_put_raw(&a, p, n);
	} else {
		put_args(&a, method);
	}
	if (how >= 245 && a.len > 0)
		a.len -= 1 + how % a.len % 3;
	if (method == 1 || how < 4)
		fd = some_fd(byte());
	n = ipc_put_invoke_head(head, ++w.request, 1, method,
	    how >= 230 && how < 245, a.len);
	pb_put_raw(&f, head, n);
	pb_put_raw(&f, a.data, a.len);
	send_frame(e, f.data, f.len, fd);
	if (fd >= 0)
		close(fd);
	pb_writer_done(&a);
	pb_writer_done(&f);
}

/* Writes into the shared memory: page headers, or anything. */
static void
poke(struct peer_end *e)
{
	const uint8_t *p;
	size_t at = number() % 64 * 4096 + (byte() & 1 ? 0 : number() * 4), n;
	unsigned how = byte();

	n = some_bytes(&p, 64);
	if (e->shm == NULL || at + n + 64 > e->shm_len)
		return;
	if (n > 0)
		memcpy(e->shm + at, p, n);
	if (how & 1) {
		/* One chunk of writer 1, complete or not: layout and state. */
		uint32_t word = 1u << 28 | (how & 2 ? 3u : 1u);
		uint8_t head[8] = { (uint8_t)(how >> 4), 0, 0, 0, 1, 0,
		    (uint8_t)(how >> 2 & 3), 0 };

		at &= ~(size_t)4095;
		memcpy(e->shm + at, &word, 4);
		memcpy(e->shm + at + 8, head, 8);
	}
}

/* ---- from upward ---- */

static void
put_setup(struct pb_writer *a, struct channel *c)
{
	uint64_t buffer = byte() % BUFFERS;
	size_t mark;

	pb_put_uint(a, 1, number());
	mark = pb_nest_begin(a, 2);
	pb_put_string(a, 1, name());
	pb_put_uint(a, 2, BUFFERS_FROM + buffer);
	pb_put_uint(a, 4, byte() % 4);
	pb_nest_end(a, mark);
	c->given[buffer] = true;
}

static void
command(uint32_t channel, unsigned how)
{
	struct channel *c = &w.channels[channel];
	struct pb_writer a, m;
	const uint8_t *p;
	unsigned n;

	if (!c->open)
		return;
	pb_writer_init(&a);
	pb_writer_init(&m);
	switch (how % 7) {
	case 0:
	case 1:
		put_setup(&a, c);
		pb_put_bytes(&m, how % 7 == 0 ? 6 : 1, a.data, a.len);
		break;
	case 2:
		pb_put_uint(&a, 1, number());
		pb_put_bytes(&m, 2, a.data, a.len);
		break;
	case 3:
		pb_put_uint(&a, 1, byte());
		pb_put_bytes(&m, 3, a.data, a.len);
		break;
	case 4:
	case 5:
		for (n = byte() % 4; n > 0; n--)
			pb_put_uint(&a, 1, number());
		pb_put_uint(&a, 2, number());
		pb_put_bytes(&m, how % 7 == 4 ? 5 : 7, a.data, a.len);
		break;
	case 6:
		n = (unsigned)some_bytes(&p, 64);
		c->any = true;
		pb_put_bytes(&m, 1 + byte() % 7, p, n);
		break;
	}
	producers_command(w.producers, channel, m.data, m.len);
	pb_writer_done(&a);
	pb_writer_done(&m);
}

static void
lost(uint32_t channel)
{
	uint32_t i;

	/* Chunks may still go up meanwhile, to be counted. */
	w.in_lost = true;
	producers_lost(w.producers, channel, byte() % LINK_LOSS_OF_RELAYS);
	w.in_lost = false;
	for (i = 0; i < CHANNELS; i++)
		if (channel == 0 || i == channel)
			w.channels[i].open = false;
}

static void
from_upward(void)
{
	unsigned how = byte();
	uint32_t channel = w.last_channel == 0 ? 0 :
	    1 + byte() % w.last_channel;

	switch (how % 16) {
	case 0:
		lost(0);
		break;
	case 1:
		lost(channel);
		break;
	case 2:
		producers_announce(w.producers, channel);
		break;
	case 3:
		if (w.channels[channel].open) {
			w.channels[channel].refused = true;
			producers_refused(w.producers, channel, name());
		}
		break;
	case 4:
		w.room = byte() & 1 ? UPSTREAM_LATER : UPSTREAM_DROPPED;
		w.room_left = byte() % 8;
		break;
	case 5:
		w.room = UPSTREAM_ROOM;
		producers_resume(w.producers, channel);
		break;
	case 6:
		producers_announce(w.producers, 0);
		break;
	default:
		command(channel, how / 16 + how);
		break;
	}
}

static void
step(void)
{
	unsigned op = byte();
	struct peer_end *e = &w.peers[op % PEERS];
	const uint8_t *p;
	size_t n;

	switch (op / PEERS % 16) {
	case 0:
		arrive(e, byte());
		break;
	case 1:
		if (byte() < 100)
			leave(e);
		break;
	case 2:
		turn(1 + byte() % 4);
		break;
	case 3:
	case 4:
		poke(e);
		break;
	case 5:
		if (byte() < 240)
			break;
		n = some_bytes(&p, 100);
		send_frame(e, p, n, -1);
		break;
	case 6:
	case 7:
	case 8:
	case 9:
		from_upward();
		break;
	default:
		if (e->fd < 0)
			arrive(e, 0);
		call(e);
		if (op & 1)
			turn(1);
		break;
	}
}

/* ---- a run ---- */

static void
begin(const uint8_t *data, size_t size)
{
	struct producers_setup setup = {
		.settings = &settings,
		.state_dirfd = -1,
		.upward = { &upstream_ops, NULL },
		.new_channel = new_channel,
	};
	char err[200];
	size_t i;

	memset(&w, 0, sizeof(w));
	for (i = 0; i < PEERS; i++)
		w.peers[i].fd = -1;
	w.p = data;
	w.end = data + size;
	w.room = UPSTREAM_ROOM;
	if ((w.loop = loop_new()) == NULL)
		abort();
	setup.loop = w.loop;
	w.producers = producers_new(&setup, err, sizeof(err));
	if (w.producers == NULL)
		abort();
	w.list[0] = producers_service(w.producers);
	producers_announce(w.producers, 0);
}

static void
end(void)
{
	unsigned turns = 0;
	size_t i;

	for (i = 0; i < PEERS; i++)
		leave(&w.peers[i]);
	w.room = UPSTREAM_ROOM;
	producers_resume(w.producers, 0);
	while (w.producers->n_connections > 0 || w.stats.n_conns > 0 ||
	    w.producers->n_locals > 0) {
		loop_run_once(w.loop);
		require(++turns < TURNS_MAX, "somebody is left");
	}
	for (i = 0; i < CHANNELS; i++)
		require(!w.channels[i].open, "a channel is left open");
	require(w.producers->shm_bytes == 0, "shared memory is left");
	producers_free(w.producers);
	loop_free(w.loop);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned steps = 0;

	if (listener < 0)
		set_up_once();
	begin(data, size);
	while (w.p < w.end && steps++ < STEPS_MAX)
		step();
	turn(3);
	end();
	return 0;
}
