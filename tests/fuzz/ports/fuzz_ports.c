/*
 * Whole connections of producers, consumers and operators (TributaryControl) at
 * a live collector without a daemon: the input chooses who connects, what is called with what, when
 * the loop turns, what is written into shared memory, who stops reading and who
 * leaves.  In the end everybody leaves, and nothing may be left.
 */
#include <errno.h>
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

#include "protos/text_parse.h"
#include "protos/trace_config.pb-c.h"
#include "service/port/consumer_port.h"
#include "service/port/control_port.h"
#include "service/port/producer_port.h"
#include "service/session/service.h"
#include "service/session/session.h"
#include "service/session/settings.h"
#include "transport/ipc_frame.h"
#include "transport/log.h"
#include "transport/loop.h"
#include "transport/pb_writer.h"
#include "transport/rpc_host.h"

#define PEERS 5u
#define STEPS_MAX 400u
#define TURNS_MAX 200000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *p;
	const uint8_t *end;
};

struct peer_end {
	int fd; /* -1: not connected */
	bool producer;
	bool control; /* else a consumer */
	bool tcp;
	bool deaf;
	uint8_t *shm; /* as it came with SetupTracing */
	size_t shm_len;
};

static struct {
	struct loop *loop;
	struct service *service;
	struct rpc_service ports[3];
	const struct rpc_service *list[3];
	struct rpc_stats stats;
	struct peer_end peers[PEERS];
	uint64_t request;
	struct input in;
} w;

/* Once: settings with small limits, encoded configs, a listening socket. */
static struct settings settings;
static struct {
	uint8_t *bytes;
	size_t len;
} configs[16];
static size_t n_configs;
static int listener = -1;

static const char *const config_texts[] = {
	"buffers { size_kb: 16 } data_sources { config { name: \"a\" } }",
	"buffers { size_kb: 8 } buffers { size_kb: 8 fill_policy: DISCARD } "
	    "data_sources { config { name: \"a\" } } data_sources { config { "
	    "name: \"b\" target_buffer: 1 } } bugreport_score: 3 "
	    "unique_session_name: \"n\"",
	"buffers { size_kb: 16 } data_sources { config { name: \"a\" } } "
	    "write_into_file: true output_path: \"f\" flush_timeout_ms: 1 "
	    "data_source_stop_timeout_ms: 1",
	"buffers { size_kb: 8 } data_sources { config { name: \"b\" } } "
	    "write_into_file: true file_write_period_ms: 100 "
	    "max_file_size_bytes: 20000 write_flush_mode: WRITE_FLUSH_ENABLED",
	"buffers { size_kb: 16 } data_sources { config { name: \"a\" } } "
	    "deferred_start: true duration_ms: 1",
	"buffers { size_kb: 16 } data_sources { config { name: \"a\" } } "
	    "trigger_config { trigger_mode: START_TRACING trigger_timeout_ms: "
	    "50 triggers { name: \"t\" stop_delay_ms: 1 } }",
	"buffers { size_kb: 16 } data_sources { config { name: \"a\" } } "
	    "trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: "
	    "50 triggers { name: \"t\" max_per_24_h: 1 } triggers { name: "
	    "\"u\" producer_name_regex: \"p.*\" } }",
	"buffers { size_kb: 16 transfer_on_clone: true } data_sources { config"
	    " { name: \"a\" } } trigger_config { trigger_mode: CLONE_SNAPSHOT "
	    "trigger_timeout_ms: 50 triggers { name: \"t\" } }",
	"buffers { size_kb: 16 clear_before_clone: true } data_sources { "
	    "config { name: \"a\" } producer_name_filter: \"p\" } "
	    "data_sources { config { name: \"c\" } } trace_all_machines: true "
	    "incremental_state_config { clear_period_ms: 1 } "
	    "flush_period_ms: 1 exclusive_prio: 1",
	"buffers { size_kb: 4 } exclusive_prio: 2 session_semaphores { name: "
	    "\"s\" }",
};

static unsigned
byte(void)
{
	return w.in.p < w.in.end ? *w.in.p++ : 0;
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
	size_t n = byte();

	n = n % (most + 1);
	if (n > (size_t)(w.in.end - w.in.p))
		n = (size_t)(w.in.end - w.in.p);
	*p = w.in.p;
	w.in.p += n;
	return n;
}

static const char *
name(void)
{
	static const char *const names[] = { "a", "b", "c", "p", "t", "u", "n",
		"key", "", "a\nb" };

	return names[byte() % 10];
}

/* So little that it is reached, and dropped where it is. */
static struct quota_setting quotas[] = { {
	.each_machine = { .max_producers = 2, .max_sequences = 12 },
	.each_producer = { .bytes_per_second = 65536, .burst = 4096,
		.max_data_sources = 3, .max_sequences = 7 },
	.drop = true,
	.guaranteed_percent = 80,
} };

static void
set_up_once(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	size_t i;

	log_init("fuzz", LOG_LEVEL_ERROR);
	if (settings_init(&settings) != 0)
		abort();
	settings.limits.max_sessions = 4;
	settings.limits.max_total_buffer_kb = 96;
	settings.limits.max_producers = 3;
	settings.limits.max_data_sources_per_producer = 4;
	settings.limits.max_writers_per_producer = 8;
	settings.limits.max_name_bytes = 32;
	settings.limits.max_send_queue_kb = 1024;
	settings.quotas = quotas;
	settings.n_quotas = sizeof(quotas) / sizeof(quotas[0]);
	for (i = 0; i < sizeof(config_texts) / sizeof(config_texts[0]); i++) {
		if (text_parse(&perfetto__protos__trace_config__descriptor,
		    config_texts[i], strlen(config_texts[i]),
		    &configs[i].bytes, &configs[i].len, NULL) != 0)
			abort();
		n_configs++;
	}
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&sin, sizeof(sin)) != 0 ||
	    listen(listener, 16) != 0)
		abort();
}

/* ---- peers ---- */

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
	struct msghdr msg;
	struct cmsghdr *c;
	int fd;

	if (e->fd < 0 || e->deaf)
		return;
	memset(&msg, 0, sizeof(msg));
	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	msg.msg_control = control.buf;
	msg.msg_controllen = sizeof(control.buf);
	if (recvmsg(e->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
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
	struct msghdr msg;
	struct cmsghdr *c;

	if (e->fd < 0 || len == 0)
		return;
	memset(&msg, 0, sizeof(msg));
	memset(&control, 0, sizeof(control));
	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	if (fd >= 0 && !e->tcp) {
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	/* What does not fit now is cut: the peer sees a broken frame. */
	(void)!sendmsg(e->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
arrive(struct peer_end *e, unsigned how)
{
	struct pb_writer f;
	size_t mark;
	int pair[2];

	leave(e);
	e->producer = how & 1;
	e->control = !e->producer && (how & 0x30) == 0x30;
	e->tcp = (how & 6) == 6;
	if (e->tcp ? tcp_pair(pair) != 0 : socketpair(AF_UNIX, SOCK_STREAM |
	    SOCK_CLOEXEC, 0, pair) != 0)
		return;
	if (rpc_conn_new(w.loop, pair[1], w.list, 3, &w.stats) == NULL)
		abort();
	e->fd = pair[0];
	pb_writer_init(&f);
	if (how & 8) {
		mark = ipc_frame_begin(&f, 0, IPC_SET_PEER_IDENTITY);
		pb_put_uint(&f, 1, number());
		pb_put_uint(&f, 2, number());
		pb_put_string(&f, 3, name());
		pb_put_string(&f, 4, name());
		ipc_frame_end(&f, mark);
		send_frame(e, f.data, f.len, -1);
	}
	mark = ipc_frame_begin(&f, 0, IPC_BIND_SERVICE);
	pb_put_string(&f, 1, e->producer ? "ProducerPort" : e->control ?
	    CONTROL_SERVICE : "ConsumerPort");
	ipc_frame_end(&f, mark);
	send_frame(e, f.data, f.len, -1);
	pb_writer_done(&f);
}

/* ---- arguments ---- */

static void
put_descriptor(struct pb_writer *a)
{
	size_t mark = pb_nest_begin(a, 1);
	unsigned flags = byte();

	pb_put_string(a, 1, name());
	pb_put_uint(a, 2, flags & 1);
	pb_put_uint(a, 3, flags >> 1 & 1);
	pb_put_uint(a, 4, flags >> 2 & 1);
	pb_put_uint(a, 9, flags >> 3 & 1);
	pb_nest_end(a, mark);
}

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
	if ((count & 0xff) > 3)
		count &= 0xfc03;
	pb_put_raw(&c, &id, 4);
	pb_put_raw(&c, &writer, 2);
	pb_put_raw(&c, &count, 2);
	if (count & 0x8000) {
		/* A large one, to fill buffers. */
		static const uint8_t big[3000] = { 0 };

		pb_put_varint(&c, 2 + sizeof(big) + 2);
		pb_put_bytes(&c, 500, big, sizeof(big));
	}
	n = some_bytes(&p, 40);
	pb_put_varint(&c, n);
	pb_put_raw(&c, p, n);
	pb_put_bytes(a, 4, c.data, c.len);
	pb_writer_done(&c);
}

static void
put_commit(struct pb_writer *a)
{
	unsigned n = byte() % 6;
	const uint8_t *p;
	size_t mark, one, k, len;
	unsigned how;

	while (n-- > 0) {
		how = byte();
		mark = pb_nest_begin(a, how & 1 ? 1 : 2);
		if (how & 1) {
			pb_put_uint(a, 1, number());
			pb_put_uint(a, 2, number());
			pb_put_uint(a, 3, number());
			if (how & 2)
				put_chunk(a);
			pb_put_uint(a, 5, how >> 2 & 1);
		} else {
			pb_put_uint(a, 1, number());
			pb_put_uint(a, 2, number());
			pb_put_uint(a, 3, number());
			for (k = how >> 4; k > 0; k--) {
				one = pb_nest_begin(a, 4);
				pb_put_uint(a, 1, number());
				len = some_bytes(&p, 8);
				pb_put_bytes(a, 2, p, len);
				pb_nest_end(a, one);
			}
			pb_put_uint(a, 5, how >> 1 & 1);
		}
		pb_nest_end(a, mark);
	}
	if (byte() & 1)
		pb_put_uint(a, 3, number());
}

static void
put_producer_args(struct pb_writer *a, unsigned method)
{
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
		put_descriptor(a);
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

static void
put_config(struct pb_writer *a)
{
	unsigned i = byte() % n_configs;

	pb_put_bytes(a, 1, configs[i].bytes, configs[i].len);
}

static void
put_consumer_args(struct pb_writer *a, unsigned method)
{
	switch (method) {
	case 1:
		put_config(a);
		if (byte() > 240)
			pb_put_uint(a, 2, 1);
		break;
	case 5:
		pb_put_uint(a, 1, number());
		break;
	case 7:
		put_config(a);
		break;
	case 8:
	case 9:
		pb_put_string(a, 1, name());
		break;
	case 11:
		pb_put_uint(a, 1, byte());
		break;
	case 12:
		pb_put_uint(a, 1, byte() & 1);
		break;
	case 15: {
		unsigned how = byte();

		pb_put_uint(a, 1, number());
		pb_put_uint(a, 3, how & 1);
		if (how & 2)
			pb_put_string(a, 4, name());
		if (how & 4) {
			pb_put_string(a, 5, name());
			pb_put_string(a, 6, name());
		}
		break;
	}
	default:
		break;
	}
}

static void
put_control_args(struct pb_writer *a, unsigned method)
{
	unsigned how = byte();

	if (how & 1)
		pb_put_uint(a, 1, number());
	if (how & 2)
		pb_put_string(a, 2, name());
	if (how & 4)
		pb_put_uint(a, 3, number());
	if (method > 2)
		pb_put_uint(a, 4, how >> 3 & 1);
}

static int
some_fd(unsigned how)
{
	switch (how % 8) {
	case 0:
		return open("/dev/full", O_WRONLY | O_CLOEXEC);
	case 1:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 2:
	case 3: {
		int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

		if (fd >= 0 && how & 8) {
			(void)!ftruncate(fd, 65536);
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
		}
		return fd;
	}
	default:
		return -1;
	}
}

static void
call(struct peer_end *e)
{
	uint8_t head[IPC_HEAD_MAX];
	unsigned port = e->producer ? 1 : e->control ? 3 : 2;
	unsigned method = 1 + byte() % (port == 1 ? 12 : port == 2 ? 15 : 5);
	unsigned how = byte();
	struct pb_writer a, f;
	const uint8_t *p;
	size_t n;
	int fd = -1;

	pb_writer_init(&a);
	pb_writer_init(&f);
	if (how >= 250) {
		n = some_bytes(&p, 64);
		pb_put_raw(&a, p, n);
	} else if (port == 1)
		put_producer_args(&a, method);
	else if (port == 2)
		put_consumer_args(&a, method);
	else
		put_control_args(&a, method);
	if (how >= 245 && a.len > 0)
		a.len -= 1 + how % a.len % 3;
	if (method == 1 || method == 15 || how < 4)
		fd = some_fd(byte());
	n = ipc_put_invoke_head(head, ++w.request, port, method,
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
	memcpy(e->shm + at, p, n);
	if (how & 1) {
		/* One complete chunk of writer 1: layout and state. */
		uint32_t word = 1u << 28 | 3u;
		uint8_t head[8] = { (uint8_t)(how >> 4), 0, 0, 0, 1, 0, 1, 0 };

		at &= ~(size_t)4095;
		memcpy(e->shm + at, &word, 4);
		memcpy(e->shm + at + 8, head, 8);
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
		poke(e);
		break;
	case 4:
		e->deaf = byte() > 200;
		break;
	case 5:
		if (byte() < 240)
			break;
		n = some_bytes(&p, 100);
		send_frame(e, p, n, -1);
		break;
	default:
		if (e->fd < 0)
			arrive(e, (unsigned)(e - w.peers) & 1 ? 0 : 1);
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
	size_t i;

	memset(&w, 0, sizeof(w));
	for (i = 0; i < PEERS; i++)
		w.peers[i].fd = -1;
	w.in.p = data;
	w.in.end = data + size;
	if ((w.loop = loop_new()) == NULL ||
	    (w.service = service_new(w.loop, &settings, -1)) == NULL)
		abort();
	producer_port_init(&w.ports[0], w.service);
	consumer_port_init(&w.ports[1], w.service);
	control_port_init(&w.ports[2], w.service);
	w.list[0] = &w.ports[0];
	w.list[1] = &w.ports[1];
	w.list[2] = &w.ports[2];
}

static void
end(void)
{
	struct session *s, *next;
	unsigned turns = 0;
	size_t i;

	for (i = 0; i < PEERS; i++)
		leave(&w.peers[i]);
	while (w.stats.n_conns > 0 || w.service->n_producers > 0 ||
	    w.service->n_sessions > 0) {
		loop_run_once(w.loop);
		TAILQ_FOREACH_SAFE(s, &w.service->sessions, link, next)
			if (s->detach_key != NULL && !s->freeing)
				session_free(s);
		if (++turns > TURNS_MAX) {
			fprintf(stderr, "left: %zu connections, %zu producers, "
			    "%zu sessions\n", w.stats.n_conns,
			    w.service->n_producers, w.service->n_sessions);
			abort();
		}
	}
	if (w.service->n_buffers != 0 || w.service->total_buffer_bytes != 0 ||
	    w.service->n_lossless != 0)
		abort();
	service_free(w.service);
	loop_free(w.loop);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned steps = 0;

	if (listener < 0)
		set_up_once();
	begin(data, size);
	while (w.in.p < w.in.end && steps++ < STEPS_MAX)
		step();
	turn(3);
	end();
	return 0;
}
