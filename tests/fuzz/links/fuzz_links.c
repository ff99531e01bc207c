/*
 * Hostile relays at a live collector: the input chooses who connects, with which
 * link, what the frames and blocks say, who is cut off and comes back, what
 * sessions run meanwhile.  In the end everybody leaves, and nothing may be
 * left.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protos/fields.h"
#include "protos/text_parse.h"
#include "protos/trace_config.pb-c.h"
#include "service/collector/service.h"
#include "service/config/config.h"
#include "service/link/link.h"
#include "service/link/link_internal.h"
#include "service/port/consumer_port.h"
#include "service/port/link_port.h"
#include "service/session/session.h"
#include "service/settings/settings.h"
#include "tests/fuzz/stage/turns.h"
#include "transport/base/budget.h"
#include "transport/base/log.h"
#include "transport/link/link_clock.h"
#include "transport/link/link_zstd.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/socket/peer.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"
#include "transport/wire/service_names.h"

#define RELAYS    3u
#define LINKS     4u
#define STEPS_MAX 400u

enum { L_OPEN = 1, L_UP, L_DOWN, L_MOVE };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct relay {
	int fd; /* -1: not connected */
	unsigned link; /* which it opened */
	bool zstd;
	bool deaf;
	struct link_compressor *compressor;
};

static struct {
	struct loop *loop;
	struct service *service;
	struct rpc_service ports[2];
	const struct rpc_service *list[2];
	struct rpc_stats stats;
	struct budget memory;
	struct relay relays[RELAYS];
	uint64_t sent[LINKS]; /* blocks, as far as a relay would know */
	int consumer; /* -1: not connected */
	int disk;     /* the other end of a session's file, or -1 */
	bool stuck;   /* it is not read */
	uint32_t chunk; /* of the flood */
	uint64_t request;
	const uint8_t *p;
	const uint8_t *end;
} w;

static struct settings settings;
static struct {
	uint8_t *bytes;
	size_t len;
} configs[8];
static size_t n_configs;

/* With a file: one that holds producers back, as it is small. */
static const char *const config_texts[] = {
	"buffers { size_kb: 16 } data_sources { config { name: \"a\" } } "
	    "trace_all_machines: true flush_timeout_ms: 1 "
	    "data_source_stop_timeout_ms: 1",
	"buffers { size_kb: 64 } data_sources { config { name: \"a\" } } "
	    "trace_all_machines: true write_into_file: true "
	    "flush_timeout_ms: 1 data_source_stop_timeout_ms: 1",
	"buffers { size_kb: 8 fill_policy: DISCARD } data_sources { config { "
	    "name: \"b\" } } trace_all_machines: true flush_period_ms: 1 "
	    "incremental_state_config { clear_period_ms: 1 }",
	"buffers { size_kb: 8 } data_sources { config { name: \"a\" } } "
	    "trace_all_machines: true trigger_config { trigger_mode: "
	    "STOP_TRACING trigger_timeout_ms: 50 triggers { name: \"t\" "
	    "stop_delay_ms: 1 } }",
	/* Those that another collector may have, too. */
	"buffers { size_kb: 8 } buffers { size_kb: 16 } data_sources { config { "
	    "name: \"a\" } } data_sources { config { name: \"b\" "
	    "target_buffer: 1 } } trace_all_machines: true trace_uuid_msb: 1",
	"buffers { size_kb: 8 } data_sources { config { name: \"a\" } "
	    "machine_name_filter: \"other\" } trace_uuid_lsb: 2",
};

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
	static const char *const names[] = { "a", "b", "t", "", "a\nb" };

	return names[byte() % 5];
}

/* One machine of several is held back, and reaches what it may have. */
static char held[] = "a";
static struct quota_setting quotas[] = { {
	.machine = held,
	.each_machine = { .bytes_per_second = 1 << 20, .burst = 2048,
		.max_producers = 3, .max_connections = 1 },
	.each_producer = { .bytes_per_second = 1 << 18, .burst = 1024,
		.max_data_sources = 3, .max_sequences = 5 },
	.guaranteed_percent = 50,
} };

static void
set_up_once(void)
{
	size_t i;

	log_init("fuzz", LOG_LEVEL_ERROR);
	if (settings_init(&settings) != 0)
		abort();
	settings.limits.max_sessions = 4;
	settings.limits.max_producers = 12;
	settings.limits.max_data_sources_per_producer = 4;
	settings.limits.max_writers_per_producer = 8;
	settings.limits.max_name_bytes = 32;
	settings.limits.max_connection_memory_per_peer_kb = 512;
	settings.link.max_links = 3;
	settings.link.max_producers_per_link = 4;
	settings.link.max_commands_kb = 4;
	settings.link.window_kb = 256;
	settings.link.end_wait_ms = 5;
	settings.quotas = quotas;
	settings.n_quotas = sizeof(quotas) / sizeof(quotas[0]);
	for (i = 0; i < sizeof(config_texts) / sizeof(config_texts[0]); i++) {
		if (text_parse(&perfetto__protos__trace_config__descriptor,
		    config_texts[i], strlen(config_texts[i]),
		    &configs[i].bytes, &configs[i].len, NULL) != 0)
			abort();
		n_configs++;
	}
}

/* ---- the wire ---- */

static void
drain(int fd)
{
	static uint8_t buf[65536];

	if (fd >= 0)
		(void)!recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
}

static void
turn(unsigned n)
{
	static uint8_t buf[4096];
	size_t i;

	while (n-- > 0) {
		loop_run_once(w.loop);
		for (i = 0; i < RELAYS; i++)
			if (!w.relays[i].deaf)
				drain(w.relays[i].fd);
		drain(w.consumer);
		if (w.disk >= 0 && !w.stuck)
			(void)!read(w.disk, buf, sizeof(buf));
		turns_pass();
	}
}

static void
send_bytes(int fd, const uint8_t *data, size_t len, int pass)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (fd < 0 || len == 0)
		return;
	if (pass >= 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &pass, sizeof(pass));
	}
	/* What does not fit now is cut: the peer sees a broken frame. */
	(void)!sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
call(int fd, unsigned service, unsigned method, const struct pb_writer *args,
    int pass)
{
	uint8_t head[IPC_HEAD_MAX];
	struct pb_writer f;

	pb_writer_init(&f);
	pb_put_raw(&f, head, ipc_put_invoke_head(head, ++w.request, service,
	    method, false, args->len));
	pb_put_raw(&f, args->data, args->len);
	send_bytes(fd, f.data, f.len, pass);
	pb_writer_done(&f);
}

static int
join(const char *service, const struct peer *as)
{
	struct stream_setup stream = { .peer = as };
	struct rpc_conn_setup setup = { .services = w.list, .n_services = 2,
		.stats = &w.stats, .stream = as != NULL ? &stream : NULL };
	struct pb_writer f;
	size_t mark;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return -1;
	if (rpc_conn_new(w.loop, pair[1], &setup) == NULL)
		abort();
	pb_writer_init(&f);
	mark = ipc_frame_begin(&f, 0, IPC_BIND_SERVICE);
	pb_put_string(&f, 1, service);
	ipc_frame_end(&f, mark);
	send_bytes(pair[0], f.data, f.len, -1);
	pb_writer_done(&f);
	return pair[0];
}

/* ---- relays ---- */

static void
leave(struct relay *r)
{
	if (r->fd >= 0)
		close(r->fd);
	link_compressor_free(r->compressor);
	memset(r, 0, sizeof(*r));
	r->fd = -1;
}

static void
arrive(struct relay *r)
{
	static const struct peer other = { .kind = ADDR_TCP, .addr_hash = 5,
	    .uid = PEER_UID_UNKNOWN, .text = "10.0.0.1:1" };
	uint8_t id[LINK_ID_BYTES];
	unsigned how = byte(), link = byte();
	struct pb_writer a;

	leave(r);
	r->fd = join(LINK_SERVICE, how & 1 ? &other : NULL);
	r->link = link % LINKS;
	r->zstd = how & 2;
	if (r->zstd && (r->compressor = link_compressor_new(1)) == NULL)
		abort();
	pb_writer_init(&a);
	pb_put_uint(&a, 1, how >= 250 ? 0 : 1);
	memset(id, (int)r->link + 1, sizeof(id));
	pb_put_bytes(&a, 2, id, how >= 245 ? 3 : sizeof(id));
	memset(id, (int)(link >> 4 & 1), sizeof(id));
	pb_put_bytes(&a, 3, id, sizeof(id));
	if (how & 4)
		pb_put_bytes(&a, 4, how & 8 ?
		    links_collector_id(w.service->links) : id, sizeof(id));
	pb_put_uint(&a, 5, how & 16 ? w.sent[r->link] : number());
	pb_put_uint(&a, 6, how & 16 ? 0 : number());
	pb_put_uint(&a, 7, how & 16 ? 0 : number());
	if (r->zstd)
		pb_put_uint(&a, 8, 1);
	if (how & 32)
		pb_put_string(&a, 9, name());
	pb_put_string(&a, 10, "machine");
	if (how & 64)
		pb_put_bytes(&a, 11, "\x0a\x02\x0a\x00", 1 + byte() % 4);
	call(r->fd, 1, L_OPEN, &a, -1);
	pb_writer_reset(&a);
	if (how & 128)
		call(r->fd, 1, L_DOWN, &a, -1);
	pb_writer_done(&a);
	if ((how & 24) != 24)
		w.sent[r->link] = 0; /* it begins anew */
}

/* ---- relays that come from another collector ---- */

static void
open_of_another(struct relay *r, bool moves)
{
	uint8_t id[LINK_ID_BYTES];
	struct pb_writer a;

	pb_writer_init(&a);
	pb_put_uint(&a, LinkOpen_version, 1);
	memset(id, (int)r->link + 1, sizeof(id));
	pb_put_bytes(&a, LinkOpen_link_id, id, sizeof(id));
	memset(id, 0, sizeof(id));
	pb_put_bytes(&a, LinkOpen_relay_id, id, sizeof(id));
	memset(id, 0xcc, sizeof(id));
	pb_put_bytes(&a, LinkOpen_collector_id, id, sizeof(id));
	pb_put_uint(&a, LinkOpen_last_sent, w.sent[r->link]);
	pb_put_uint(&a, LinkOpen_last_acknowledged, w.sent[r->link]);
	pb_put_string(&a, LinkOpen_machine_name, "machine");
	pb_put_uint(&a, LinkOpen_can_move, 1);
	if (moves) {
		pb_put_uint(&a, LinkOpen_moves, 1);
		pb_put_uint(&a, LinkOpen_buffer_tag, 1 + number());
		pb_put_uint(&a, LinkOpen_consumed_in_all, number());
	}
	call(r->fd, 1, L_OPEN, &a, -1);
	pb_writer_done(&a);
}

static void
put_move_buffer(struct pb_writer *a, unsigned how)
{
	const struct session *s = TAILQ_FIRST(&w.service->sessions);
	size_t mark = pb_nest_begin(a, LinkMove_buffer);

	if (s != NULL && (how & 16) && TAILQ_NEXT(s, link) != NULL)
		s = TAILQ_NEXT(s, link);
	pb_put_uint(a, LinkMoveBuffer_id, number());
	if (s != NULL)
		pb_put_bytes(a, LinkMoveBuffer_session, s->config->digest,
		    CONFIG_DIGEST_BYTES - (how >= 250));
	pb_put_uint(a, LinkMoveBuffer_index, byte() % 3);
	pb_nest_end(a, mark);
}

static void
put_move_part(struct pb_writer *a)
{
	unsigned how = byte();
	size_t mark;

	switch (how % 5) {
	case 0:
		put_move_buffer(a, how);
		break;
	case 1:
		mark = pb_nest_begin(a, LinkMove_register_writer);
		pb_put_uint(a, LinkWriter_writer, number());
		pb_put_uint(a, LinkWriter_buffer, number());
		pb_nest_end(a, mark);
		break;
	case 2:
		mark = pb_nest_begin(a, LinkMove_instance);
		pb_put_uint(a, LinkMoveInstance_id, number());
		pb_put_uint(a, LinkMoveInstance_buffer, number());
		pb_put_uint(a, LinkMoveInstance_source, byte() % 3);
		pb_put_uint(a, LinkMoveInstance_started, how >> 7);
		pb_put_uint(a, LinkMoveInstance_runs, how >> 6 & 1);
		pb_nest_end(a, mark);
		break;
	case 3:
		mark = pb_nest_begin(a, LinkMove_register_source);
		pb_put_string(a, DataSourceDescriptor_name, name());
		pb_put_uint(a,
		    DataSourceDescriptor_handles_incremental_state_clear,
		    how >> 7);
		pb_nest_end(a, mark);
		break;
	case 4:
		mark = pb_nest_begin(a, LinkMove_part);
		pb_put_uint(a, LinkMovePart_writer, number());
		pb_put_uint(a, LinkMovePart_chunk, number());
		pb_put_uint(a, LinkMovePart_bytes, number());
		pb_nest_end(a, mark);
		break;
	}
}

static void
send_move(struct relay *r)
{
	unsigned how = byte(), n = byte() % 8;
	struct pb_writer a;
	const uint8_t *p;
	size_t mark;

	pb_writer_init(&a);
	pb_put_uint(&a, LinkMove_channel, how & 1 ? 1 : how & 7);
	mark = pb_nest_begin(&a, LinkMove_producer);
	pb_put_string(&a, LinkProducer_name, name());
	pb_nest_end(&a, mark);
	while (n-- > 0)
		put_move_part(&a);
	if (how & 8)
		pb_put_uint(&a, LinkMove_consumed, number());
	if (how >= 245) {
		n = (unsigned)some_bytes(&p, 20);
		pb_put_raw(&a, p, n);
	}
	call(r->fd, 1, L_MOVE, &a, -1);
	pb_writer_done(&a);
}

static void
arrive_from_another(struct relay *r)
{
	unsigned how = byte(), n = how % 4;
	struct pb_writer a;

	leave(r);
	r->fd = join(LINK_SERVICE, NULL);
	r->link = byte() % LINKS;
	open_of_another(r, false);
	turn(1 + (how >> 7));
	while (n-- > 0)
		send_move(r);
	open_of_another(r, how < 250);
	pb_writer_init(&a);
	call(r->fd, 1, L_DOWN, &a, -1);
	pb_writer_done(&a);
}

/* ---- blocks ---- */

static void
put_chunk(struct pb_writer *b)
{
	static const uint8_t big[30000];
	uint32_t id = (uint32_t)number();
	uint16_t writer = (uint16_t)number(), count = (uint16_t)(byte() % 4);
	size_t mark = pb_nest_begin(b, 4), n;
	unsigned how = byte();
	const uint8_t *p;

	count |= (uint16_t)((how & 0x3f) << 10);
	pb_put_raw(b, &id, 4);
	pb_put_raw(b, &writer, 2);
	pb_put_raw(b, &count, 2);
	if (how & 0x40) {
		pb_put_varint(b, 2 + 3 + sizeof(big));
		pb_put_bytes(b, 500, big, sizeof(big));
	}
	n = some_bytes(&p, 40);
	pb_put_varint(b, n);
	pb_put_raw(b, p, n);
	pb_nest_end(b, mark);
}

static uint64_t
some_buffer(void)
{
	unsigned b = byte();

	if (b == 255) /* of a link that was moved, mostly */
		return 1u << LINK_TAG_SHIFT | w.service->last_buffer_id;
	return b < 200 ? w.service->last_buffer_id : b % 4;
}

static void
put_commit(struct pb_writer *b)
{
	size_t mark = pb_nest_begin(b, LINK_UP_COMMIT), one;
	unsigned how = byte();

	one = pb_nest_begin(b, 1 + (how >> 7));
	pb_put_uint(b, 3, some_buffer());
	if (how & 1)
		put_chunk(b);
	pb_put_uint(b, 5, how >> 1 & 1);
	pb_nest_end(b, one);
	if (how & 2)
		pb_put_uint(b, 3, how & 4 ? w.service->last_flush_id :
		    number());
	pb_nest_end(b, mark);
}

static void
put_loss(struct pb_writer *b)
{
	struct link_loss l = {
		.writer = (uint32_t)number(),
		.buffer = (uint32_t)some_buffer(),
		.cause = (uint32_t)number(),
		.chunks = number(),
		.packets = number(),
		.bytes = number(),
		.old_channel = (uint32_t)number(),
		.first_chunk = (uint32_t)number(),
		.last_chunk = (uint32_t)number(),
	};
	uint8_t bytes[LINK_LOSS_MAX];

	pb_put_bytes(b, LINK_UP_LOSS, bytes, link_put_loss(bytes, &l));
}

static void
put_message(struct pb_writer *b)
{
	unsigned kind = byte();
	size_t mark, n;
	const uint8_t *p;

	if (kind >= 240) {
		/* Anything, of any kind. */
		n = some_bytes(&p, 20);
		if (kind & 1)
			pb_put_bytes(b, 1 + byte() % 16, p, n);
		else
			pb_put_uint(b, 1 + byte() % 16, number());
		return;
	}
	switch (kind % 16) {
	case LINK_UP_OPEN:
		mark = pb_nest_begin(b, LINK_UP_OPEN);
		pb_put_string(b, 1, name());
		pb_put_uint(b, 3, number());
		pb_nest_end(b, mark);
		break;
	case LINK_UP_CLOSE:
	case LINK_UP_LEAVE:
		pb_put_bytes(b, kind % 16, "", 0);
		break;
	case LINK_UP_REGISTER_SOURCE:
	case LINK_UP_UPDATE_SOURCE:
		mark = pb_nest_begin(b, kind % 16);
		pb_put_string(b, 1, name());
		pb_put_uint(b, 2, byte() & 1);
		pb_put_uint(b, 3, byte() & 1);
		pb_nest_end(b, mark);
		break;
	case LINK_UP_UNREGISTER_SOURCE:
	case LINK_UP_TRIGGER:
		pb_put_string(b, kind % 16, name());
		break;
	case LINK_UP_REGISTER_WRITER:
		mark = pb_nest_begin(b, LINK_UP_REGISTER_WRITER);
		pb_put_uint(b, 1, number());
		pb_put_uint(b, 2, some_buffer());
		pb_nest_end(b, mark);
		break;
	case LINK_UP_UNREGISTER_WRITER:
		pb_put_uint(b, kind % 16, number());
		break;
	case LINK_UP_STARTED:
	case LINK_UP_STOPPED:
		pb_put_uint(b, kind % 16, w.service->last_instance_id -
		    byte() % 3);
		break;
	case LINK_UP_LOSS:
		put_loss(b);
		break;
	case LINK_UP_CLOSE_BELOW:
		pb_put_uint(b, LINK_UP_CLOSE_BELOW, number());
		break;
	default:
		put_commit(b);
		break;
	}
}

static void
send_frame(struct relay *r, const struct link_frame *f, unsigned damage)
{
	uint8_t head[LINK_HEAD_MAX];
	struct pb_writer a;

	pb_writer_init(&a);
	pb_put_raw(&a, head, link_put_head(head, f));
	if (f->number != 0)
		pb_put_raw(&a, f->block, f->len);
	if (damage != 0 && a.len > 0)
		a.data[damage % a.len] ^= (uint8_t)(1u << (damage >> 5));
	call(r->fd, 1, L_UP, &a, -1);
	pb_writer_done(&a);
}

static void
send_block(struct relay *r)
{
	unsigned how = byte(), n = 1 + byte() % 8;
	struct link_frame f = { .channel = how & 1 ? 1 : how & 7 };
	struct pb_writer b;

	pb_writer_init(&b);
	while (n-- > 0)
		put_message(&b);
	f.number = how >= 250 ? number() + 1 : ++w.sent[r->link];
	f.block = b.data;
	f.len = b.len;
	if (b.len > LINK_BLOCK_MAX)
		goto out;
	if (r->compressor != NULL && (how & 8)) {
		f.compressed = true;
		f.raw_size = b.len - (how >= 248);
		if (link_compress(r->compressor, b.data, b.len, &f.block,
		    &f.len) != 0)
			abort();
	}
	send_frame(r, &f, how >= 240 ? byte() : 0);
out:
	pb_writer_done(&b);
}

/* As much as a block holds: a file that is not read soon holds it back. */
static void
send_flood(struct relay *r)
{
	struct link_frame f = { .channel = 1 };
	struct pb_writer b;
	size_t commit, move, chunk;
	uint32_t i;
	static const uint8_t big[30000];
	uint16_t writer = 1, count = 1;

	pb_writer_init(&b);
	for (i = 0; i < 3; i++) {
		commit = pb_nest_begin(&b, LINK_UP_COMMIT);
		move = pb_nest_begin(&b, 1);
		pb_put_uint(&b, 3, w.service->last_buffer_id);
		chunk = pb_nest_begin(&b, 4);
		w.chunk++;
		pb_put_raw(&b, &w.chunk, 4);
		pb_put_raw(&b, &writer, 2);
		pb_put_raw(&b, &count, 2);
		pb_put_varint(&b, 2 + 3 + sizeof(big));
		pb_put_bytes(&b, 500, big, sizeof(big));
		pb_nest_end(&b, chunk);
		pb_nest_end(&b, move);
		pb_nest_end(&b, commit);
	}
	f.number = ++w.sent[r->link];
	f.block = b.data;
	f.len = b.len;
	send_frame(r, &f, 0);
	pb_writer_done(&b);
}

static void
send_other(struct relay *r)
{
	uint8_t clock[LINK_CLOCK_MAX];
	struct link_frame f = { 0 };
	struct link_clock c = { .kind = LINK_CLOCK_PING };
	unsigned how = byte();
	struct pb_writer a;
	const uint8_t *p;
	size_t n;

	if (how & 1) {
		f.has_received = true;
		f.received = number();
	}
	if (how & 2) {
		c.kind = (enum link_clock_kind)(1 + byte() % 3);
		clock_snapshot_take(&c.before);
		c.host = c.after = c.before;
		f.clock = clock;
		f.clock_len = link_clock_put(clock, &c);
	}
	if (how & 4) {
		f.status = (const uint8_t *)"\x08\x01\x10\x02";
		f.status_len = 1 + how % 4;
	}
	if (how < 220) {
		send_frame(r, &f, how >= 200 ? byte() : 0);
		return;
	}
	pb_writer_init(&a);
	n = some_bytes(&p, 60);
	pb_put_raw(&a, p, n);
	call(r->fd, 1, 1 + how % 3, &a, -1);
	pb_writer_done(&a);
}

/* ---- the consumer ---- */

static void
enable(void)
{
	size_t i = byte() % n_configs;
	int pipefd[2], flags;
	struct pb_writer a;

	if (w.consumer < 0)
		w.consumer = join("ConsumerPort", NULL);
	if (pipe2(pipefd, O_CLOEXEC) != 0)
		abort();
	/* Only our end: a slow file holds its writer up. */
	flags = fcntl(pipefd[0], F_GETFL);
	fcntl(pipefd[0], F_SETFL, flags | O_NONBLOCK);
	fcntl(pipefd[1], F_SETPIPE_SZ, 4096);
	if (w.disk >= 0)
		close(w.disk);
	w.disk = pipefd[0];
	pb_writer_init(&a);
	pb_put_bytes(&a, 1, configs[i].bytes, configs[i].len);
	call(w.consumer, 2, 1, &a, pipefd[1]);
	close(pipefd[1]);
	pb_writer_done(&a);
}

static void
consume(void)
{
	static const uint8_t methods[] = { 2, 4, 5, 3, 10 };
	unsigned how = byte(), method = methods[how % sizeof(methods)];
	struct pb_writer a;

	if (w.consumer < 0 || how < 128) {
		enable();
		return;
	}
	pb_writer_init(&a);
	if (method == 5)
		pb_put_uint(&a, 1, number() % 20);
	call(w.consumer, 2, method, &a, -1);
	pb_writer_done(&a);
	if (how >= 250) {
		close(w.consumer);
		w.consumer = -1;
	}
}

/* ---- a run ---- */

static void
linger(unsigned how)
{
	unsigned n = 1 + how % 4;

	while (n-- > 0) {
		if (how >= 128)
			turns_skip();
		turn(1);
	}
}

static void
step(void)
{
	unsigned op = byte();
	struct relay *r = &w.relays[op % RELAYS];

	switch (op / RELAYS % 12) {
	case 0:
		arrive(r);
		break;
	case 1:
		if (byte() < 100)
			leave(r);
		break;
	case 2:
		linger(byte());
		break;
	case 3:
		consume();
		break;
	case 4:
		send_other(r);
		break;
	case 5:
		r->deaf = byte() > 200;
		w.stuck = byte() & 1;
		settings.link.grace_ms = byte() % 3;
		if (links_drain(w.service->links, w.stuck, byte() % 3) != 0)
			abort();
		break;
	case 6:
		send_flood(r);
		turn(1);
		break;
	case 7:
		arrive_from_another(r);
		break;
	default:
		if (r->fd < 0)
			arrive(r);
		send_block(r);
		break;
	}
	if (op & 1)
		turn(1);
}

/* Mostly there is a producer that is traced to begin with. */
static void
set_the_scene(void)
{
	static const uint8_t open_new[] = { 128, 0 };
	const uint8_t *p = w.p, *end = w.end;
	struct relay *r = &w.relays[0];
	struct link_frame f = { .channel = 1 };
	struct pb_writer b;
	size_t mark;

	w.p = open_new;
	w.end = open_new + sizeof(open_new);
	arrive(r);
	w.p = p;
	w.end = end;
	pb_writer_init(&b);
	mark = pb_nest_begin(&b, LINK_UP_OPEN);
	pb_put_string(&b, 1, "p");
	pb_nest_end(&b, mark);
	mark = pb_nest_begin(&b, LINK_UP_REGISTER_SOURCE);
	pb_put_string(&b, 1, "a");
	pb_nest_end(&b, mark);
	f.number = ++w.sent[0];
	f.block = b.data;
	f.len = b.len;
	send_frame(r, &f, 0);
	pb_writer_done(&b);
	enable();
	turn(3);
}

static void
begin(const uint8_t *data, size_t size)
{
	size_t i;

	memset(&w, 0, sizeof(w));
	for (i = 0; i < RELAYS; i++)
		w.relays[i].fd = -1;
	w.consumer = w.disk = -1;
	w.p = data;
	w.end = data + size;
	settings.link.grace_ms = 2;
	if ((w.loop = turns_begin()) == NULL ||
	    (w.service = service_new(w.loop, &settings, -1)) == NULL)
		abort();
	w.memory.memory_max = 600000;
	w.service->connection_memory = &w.memory;
	link_port_init(&w.ports[0], w.service);
	consumer_port_init(&w.ports[1], w.service);
	w.list[0] = &w.ports[0];
	w.list[1] = &w.ports[1];
}

static void
end(void)
{
	unsigned turns = 0;
	size_t i;

	w.stuck = false;
	for (i = 0; i < RELAYS; i++)
		leave(&w.relays[i]);
	if (w.consumer >= 0)
		close(w.consumer);
	w.consumer = -1;
	while (w.stats.n_conns > 0 || w.service->n_producers > 0 ||
	    w.service->n_sessions > 0 || w.service->links->n > 0) {
		turn(1);
		if (!turns_wait(&turns)) {
			fprintf(stderr, "left: %zu connections, %zu producers, "
			    "%zu sessions, %zu links\n", w.stats.n_conns,
			    w.service->n_producers, w.service->n_sessions,
			    w.service->links->n);
			abort();
		}
	}
	turn(4);
	if (w.disk >= 0)
		close(w.disk);
	if (w.service->n_buffers != 0 || w.service->n_data_sources != 0 ||
	    w.memory.memory != 0)
		abort();
	service_free(w.service);
	loop_free(w.loop);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned steps = 0;

	if (n_configs == 0)
		set_up_once();
	begin(data, size);
	if (byte() < 240)
		set_the_scene();
	while (w.p < w.end && steps++ < STEPS_MAX)
		step();
	turn(3);
	end();
	return 0;
}
