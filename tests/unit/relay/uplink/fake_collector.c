#include "tests/unit/relay/uplink/fake_collector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/connect/listener.h"
#include "transport/link/link_clock.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"
#include "transport/wire/service_names.h"

/* ---- down ---- */

void
collector_send(struct fake_collector *c, const struct link_frame *f)
{
	uint8_t head[LINK_HEAD_MAX], *out;
	size_t n = link_put_head(head, f);

	assert_true(c->has_down);
	assert_non_null(out = malloc(n + f->len + 1));
	memcpy(out, head, n);
	if (f->len > 0)
		memcpy(out + n, f->block, f->len);
	rpc_reply(c->down, out, n + f->len, true, -1);
	free(out);
}

void
collector_say_as(struct fake_collector *c, uint64_t number, uint32_t channel,
    enum link_down kind, const char *text)
{
	uint8_t block[512];
	struct link_frame f = { .number = number, .channel = channel };
	size_t n, len = strlen(text);

	n = link_put_message_head(block, kind, len);
	assert_true(n + len <= sizeof(block));
	memcpy(block + n, text, len);
	f.block = block;
	f.len = n + len;
	if (c->zip != NULL) {
		f.compressed = true;
		f.raw_size = f.len;
		assert_int_equal(link_compress(c->zip, block, f.raw_size,
		    &f.block, &f.len), 0);
	}
	collector_send(c, &f);
}

void
collector_say(struct fake_collector *c, uint32_t channel, enum link_down kind,
    const char *text)
{
	collector_say_as(c, ++c->sent, channel, kind, text);
}

/* ---- up ---- */

static void PRINTF_LIKE(2, 3)
note(struct fake_collector *c, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(c->log + c->log_len, sizeof(c->log) - c->log_len, fmt,
	    ap);
	va_end(ap);
	assert_true(n >= 0 && (size_t)n < sizeof(c->log) - c->log_len);
	c->log_len += (size_t)n;
}

static void
note_loss(struct fake_collector *c, const struct pb_field *f)
{
	struct link_loss l;

	assert_int_equal(link_parse_loss(&l, f->data, f->len), 0);
	note(c, "loss %u of %u; ", l.cause, l.old_channel);
}

static void
note_messages(struct fake_collector *c, uint32_t channel, const uint8_t *block,
    size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, block, len);
	while (pb_next(&r, &f)) {
		note(c, "%u:", channel);
		if (f.number == LINK_UP_COMMIT)
			note(c, "commit %zu; ", f.len);
		else if (f.number == LINK_UP_LOSS)
			note_loss(c, &f);
		else if (f.wire == PB_VARINT)
			note(c, "%u %llu; ", f.number,
			    (unsigned long long)f.value);
		else
			note(c, "%u %.*s; ", f.number, (int)f.len, f.data);
	}
	assert_false(r.bad);
}

static void
take_block(struct fake_collector *c, const struct link_frame *f)
{
	const uint8_t *block = f->block;
	size_t len = f->len;

	assert_int_equal(f->compressed, c->unzip != NULL);
	if (f->compressed) {
		c->blocks_were_compressed = true;
		assert_int_equal(link_decompress(c->unzip, f->block, f->len,
		    f->raw_size, &block), 0);
		len = f->raw_size;
	}
	switch (link_in_take(&c->in, f->number)) {
	case LINK_IN_NEW:
		break;
	case LINK_IN_AGAIN:
		c->again++;
		return;
	case LINK_IN_GAP:
		fail_msg("block %llu is missing",
		    (unsigned long long)c->in.received + 1);
	}
	c->consumed += len;
	assert_true(f->channel < FAKE_CHANNELS);
	c->consumed_of[f->channel] += len;
	note_messages(c, f->channel, block, len);
}

static void
pong(struct fake_collector *c, const struct link_frame *f)
{
	struct pb_reader r;
	struct pb_field part;
	uint8_t out[16];
	size_t n = 0;
	struct link_frame answer = { .clock = out };

	pb_init(&r, f->clock, f->clock_len);
	while (pb_next(&r, &part)) {
		if (part.number == 1 && part.value == LINK_CLOCK_RESULT) {
			c->results++;
			return;
		}
		if (part.number == 2)
			n = link_put_varint(out, 2, part.value);
	}
	c->pings++;
	if (c->keeps_quiet)
		return;
	n += link_put_varint(out + n, 1, LINK_CLOCK_PONG);
	answer.clock_len = n;
	collector_send(c, &answer);
}

/* Everything was taken, and is consumed. */
static void
acknowledge(struct fake_collector *c)
{
	uint8_t out[LINK_HEAD_MAX + FAKE_CHANNELS * LINK_CONSUMED_MAX];
	struct link_frame f = {
		.has_received = true,
		.received = c->in.received,
		.has_consumed_in_all = true,
		.consumed_in_all = c->consumed,
	};
	uint32_t i;
	size_t n;

	n = link_put_head(out, &f);
	for (i = 0; i < FAKE_CHANNELS; i++)
		if (c->consumed_of[i] > 0)
			n += link_put_consumed(out + n, i, c->consumed_of[i]);
	rpc_reply(c->down, out, n, true, -1);
}

static enum rpc_verdict
method_up(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct fake_collector *c = ctx;
	struct link_frame f;

	assert_int_equal(link_parse_frame(&f, args, len), 0);
	if (f.has_received)
		c->relay_has = f.received;
	if (f.status != NULL)
		c->statuses++;
	if (f.clock != NULL)
		pong(c, &f);
	if (f.number == 0)
		return RPC_OK;
	take_block(c, &f);
	if (!c->keeps_quiet && !c->acks_nothing)
		acknowledge(c);
	return RPC_OK;
}

/* ---- Open ---- */

static void
start_compression(struct fake_collector *c)
{
	link_compressor_free(c->zip);
	link_decompressor_free(c->unzip);
	c->zip = NULL;
	c->unzip = NULL;
	if (!c->zstd)
		return;
	assert_non_null(c->zip = link_compressor_new(1));
	assert_non_null(c->unzip = link_decompressor_new());
}

static enum rpc_verdict
method_open(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct fake_collector *c = ctx;
	Tributary__LinkOpened m = TRIBUTARY__LINK_OPENED__INIT;
	uint8_t out[512];

	c->opens++;
	if (c->open != NULL)
		tributary__link_open__free_unpacked(c->open, NULL);
	c->open = tributary__link_open__unpack(NULL, len, args);
	assert_non_null(c->open);
	if (c->rejects_open)
		return RPC_REJECT;
	m.why = c->wants_moves && c->open->can_move ?
	    TRIBUTARY__LINK_OPENED__WHY__MOVES : c->why;
	start_compression(c);
	if (m.why != TRIBUTARY__LINK_OPENED__WHY__RESUMED) {
		memset(&c->in, 0, sizeof(c->in));
		c->consumed = 0;
		if (m.why != TRIBUTARY__LINK_OPENED__WHY__MOVED)
			memset(c->consumed_of, 0, sizeof(c->consumed_of));
		c->sent = 0;
	}
	if (m.why == TRIBUTARY__LINK_OPENED__WHY__MOVED) {
		c->in.received = c->open->last_acknowledged;
		c->consumed = c->open->consumed_in_all;
		m.has_buffer_tag = true;
		m.buffer_tag = c->says_tag != 0 ? c->says_tag :
		    c->open->buffer_tag;
	}
	m.has_version = m.has_collector_id = m.has_why = m.has_received =
	    m.has_window = m.has_compression = m.has_consumed_in_all = true;
	m.version = 1;
	m.collector_id.data = (uint8_t *)c->id;
	m.collector_id.len = LINK_ID_BYTES;
	m.received = c->says_received ? c->received : c->in.received;
	m.has_taken_before = c->taken_before != 0;
	m.taken_before = c->taken_before;
	m.window = c->window;
	m.compression = c->zstd;
	m.consumed_in_all = c->consumed;
	rpc_reply(call, out, tributary__link_opened__pack(&m, out), false, -1);
	return RPC_OK;
}

static enum rpc_verdict
method_move(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	Tributary__LinkMove *m = tributary__link_move__unpack(NULL, len, args);
	struct fake_collector *c = ctx;

	assert_non_null(m);
	assert_true(m->channel < FAKE_CHANNELS);
	c->move_bytes += len;
	note(c, "move %u %llu; ", m->channel, (unsigned long long)m->consumed);
	c->consumed_of[m->channel] = m->consumed;
	tributary__link_move__free_unpacked(m, NULL);
	return RPC_OK;
}

static enum rpc_verdict
method_down(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct fake_collector *c = ctx;

	c->down = call;
	c->has_down = true;
	return RPC_OK;
}

/* ---- its connections ---- */

static void *
bind_link(struct rpc_conn *conn, void *arg)
{
	struct fake_collector *c = arg;

	c->conn = conn;
	c->has_down = false;
	return c;
}

static void
link_gone(void *ctx)
{
	struct fake_collector *c = ctx;

	c->conn = NULL;
	c->has_down = false;
}

static const struct rpc_method methods[] = {
	{ "Open", method_open },
	{ "Up", method_up },
	{ "Down", method_down },
	{ "Move", method_move },
};

static void
serve(struct fake_collector *c, int fd)
{
	static struct rpc_service service;
	static const struct rpc_service *const services[] = { &service };

	service = (struct rpc_service){
		.name = c->knows_no_link ? "RelayPort" : LINK_SERVICE,
		.methods = methods,
		.n_methods = sizeof(methods) / sizeof(methods[0]),
		.bind = bind_link,
		.gone = link_gone,
		.arg = c,
	};
	c->connections++;
	assert_non_null(rpc_conn_new(c->loop, fd, &(struct rpc_conn_setup){
	    .services = services, .n_services = 1, .stats = &c->stats }));
}

static void
accepted(struct listener *l, int fd, void *arg)
{
	serve(arg, fd);
}

void
collector_init(struct fake_collector *c, struct loop *l)
{
	memset(c, 0, sizeof(*c));
	c->loop = l;
	c->why = TRIBUTARY__LINK_OPENED__WHY__NEW;
	c->window = 4u << 20;
	strcpy(c->id, "collector-number");
}

void
collector_deafen(struct fake_collector *c)
{
	listener_free(c->listener);
	c->listener = NULL;
}

void
collector_done(struct fake_collector *c)
{
	collector_deafen(c);
	rpc_conns_close_all(&c->stats);
	if (c->open != NULL)
		tributary__link_open__free_unpacked(c->open, NULL);
	link_compressor_free(c->zip);
	link_decompressor_free(c->unzip);
}

void
collector_listen(struct fake_collector *c, const char *path)
{
	char err[256] = "";
	struct addr a;

	assert_int_equal(addr_parse(&a, path, err, sizeof(err)), 0);
	c->listener = listener_new(c->loop,
	    &(struct listener_setup){ .addr = &a, .fn = accepted, .arg = c },
	    err, sizeof(err));
	if (c->listener == NULL)
		fail_msg("%s", err);
}

int
collector_socket(struct fake_collector *c)
{
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
	    sv), 0);
	serve(c, sv[0]);
	return sv[1];
}

void
collector_cut(struct fake_collector *c)
{
	assert_non_null(c->conn);
	rpc_conn_close(c->conn, "cut by the test");
}

void
collector_expect(struct fake_collector *c, const char *log)
{
	assert_string_equal(c->log, log);
	c->log_len = 0;
	c->log[0] = '\0';
}
