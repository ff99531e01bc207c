#include "tests/unit/service/port/relay_end.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "transport/link/link_zstd.h"

#define WAIT_MS 10000

void
relay_end_init(struct relay_end *r, struct ports *p, uint8_t n)
{
	memset(r, 0, sizeof(*r));
	r->ports = p;
	r->c.fd = -1;
	memset(r->link_id, 0xa0 + n, sizeof(r->link_id));
	memset(r->relay_id, 0xb0 + n, sizeof(r->relay_id));
	r->hint = "hint";
	r->name = "door";
	r->software = "test 1";
}

void
relay_end_cut(struct relay_end *r)
{
	uint64_t end = loop_now_ms() + WAIT_MS;
	size_t before = r->ports->stats.n_conns;

	client_close(&r->c);
	r->down = 0;
	r->seen = r->pending_len = 0;
	link_compressor_free(r->compressor);
	r->compressor = NULL;
	while (!r->c.closed && r->ports->stats.n_conns == before) {
		assert_true(loop_now_ms() < end);
		loop_run_once(r->ports->loop);
	}
}

void
relay_end_done(struct relay_end *r)
{
	client_close(&r->c);
	link_compressor_free(r->compressor);
	if (r->opened != NULL)
		tributary__link_opened__free_unpacked(r->opened, NULL);
	r->opened = NULL;
}

/* ---- Open ---- */

static void
put_open(const struct relay_end *r, struct pb_writer *w, bool moves)
{
	pb_writer_init(w);
	pb_put_uint(w, 1, LINK_VERSION);
	pb_put_bytes(w, 2, r->link_id, LINK_ID_BYTES);
	pb_put_bytes(w, 3, r->relay_id, LINK_ID_BYTES);
	if (r->knows_collector)
		pb_put_bytes(w, 4, r->collector_id, LINK_ID_BYTES);
	pb_put_uint(w, 5, r->sent);
	pb_put_uint(w, 6, r->acked);
	pb_put_uint(w, 7, r->received);
	if (r->zstd)
		pb_put_uint(w, 8, 1);
	if (r->hint != NULL)
		pb_put_string(w, 9, r->hint);
	if (r->name != NULL)
		pb_put_string(w, 10, r->name);
	if (r->info != NULL)
		pb_put_bytes(w, 11, r->info, r->info_len);
	pb_put_string(w, 12, r->software);
	pb_put_uint(w, 13, r->can_move);
	if (!moves)
		return;
	pb_put_uint(w, 14, 1);
	pb_put_uint(w, 15, r->buffer_tag);
	pb_put_uint(w, 16, r->consumed_before);
}

static void
take_opened(struct relay_end *r, const struct reply *reply)
{
	if (r->opened != NULL)
		tributary__link_opened__free_unpacked(r->opened, NULL);
	r->opened = tributary__link_opened__unpack(NULL, reply->len,
	    reply->msg);
	assert_non_null(r->opened);
	assert_int_equal(r->opened->collector_id.len, LINK_ID_BYTES);
	if (r->opened->why == TRIBUTARY__LINK_OPENED__WHY__MOVES)
		return;
	memcpy(r->collector_id, r->opened->collector_id.data, LINK_ID_BYTES);
	r->knows_collector = true;
	r->consumed_in_all = r->opened->consumed_in_all;
	if (r->opened->why == TRIBUTARY__LINK_OPENED__WHY__MOVED)
		r->received = 0;
	else if (r->opened->why != TRIBUTARY__LINK_OPENED__WHY__RESUMED) {
		r->sent = r->acked = r->received = 0;
		memset(r->consumed, 0, sizeof(r->consumed));
	}
	r->acked = r->opened->received;
	if (r->opened->compression == TRIBUTARY__LINK_COMPRESSION__LINK_ZSTD)
		r->compressor = link_compressor_new(3);
}

static int
call_open(struct relay_end *r, bool moves)
{
	uint64_t id, end = loop_now_ms() + WAIT_MS;
	const struct reply *reply;
	struct pb_writer w;

	put_open(r, &w, moves);
	id = client_send(&r->c, L_OPEN, &w, -1);
	while (client_count(&r->c, id) == 0) {
		assert_true(loop_now_ms() < end);
		if (r->c.closed)
			return -1;
		client_turn(&r->c);
	}
	reply = client_wait(&r->c, id, 0);
	if (!reply->ok)
		return -1;
	take_opened(r, reply);
	if (r->opened->why == TRIBUTARY__LINK_OPENED__WHY__MOVES)
		return (int)r->opened->why;
	r->down = client_send(&r->c, L_DOWN, NULL, -1);
	r->seen = 0;
	return (int)r->opened->why;
}

int
relay_end_open(struct relay_end *r)
{
	client_open_as(&r->c, r->ports, LINK, r->as);
	return call_open(r, false);
}

int
relay_end_open_moved(struct relay_end *r)
{
	return call_open(r, true);
}

void
relay_end_move(struct relay_end *r, struct pb_writer *w)
{
	client_tell(&r->c, L_MOVE, w->data, w->len);
	pb_writer_done(w);
}

/* ---- up ---- */

void
block_put(struct pb_writer *w, enum link_up kind, const void *data, size_t len)
{
	pb_put_bytes(w, kind, data, len);
}

void
block_put_varint(struct pb_writer *w, enum link_up kind, uint64_t v)
{
	pb_put_uint(w, kind, v);
}

void
block_put_open(struct pb_writer *w, const char *name)
{
	size_t mark = pb_nest_begin(w, LINK_UP_OPEN);

	pb_put_string(w, 1, name);
	pb_put_uint(w, 2, 42);
	pb_put_uint(w, 3, 1000);
	pb_nest_end(w, mark);
}

void
block_put_source(struct pb_writer *w, const char *name)
{
	size_t mark = pb_nest_begin(w, LINK_UP_REGISTER_SOURCE);

	pb_put_string(w, 1, name);
	pb_nest_end(w, mark);
}

void
block_put_packet(struct pb_writer *w, uint32_t buffer, uint16_t writer,
    uint32_t chunk, const char *str)
{
	uint16_t count = 1;
	size_t commit, move, mark, packet;
	struct pb_writer p;

	pb_writer_init(&p);
	packet = pb_nest_begin(&p, 900);
	pb_put_string(&p, 1, str);
	pb_nest_end(&p, packet);
	commit = pb_nest_begin(w, LINK_UP_COMMIT);
	move = pb_nest_begin(w, 1);
	if (buffer != 0)
		pb_put_uint(w, 3, buffer);
	mark = pb_nest_begin(w, 4);
	pb_put_raw(w, &chunk, 4);
	pb_put_raw(w, &writer, 2);
	pb_put_raw(w, &count, 2);
	pb_put_varint(w, p.len);
	pb_put_raw(w, p.data, p.len);
	pb_nest_end(w, mark);
	pb_nest_end(w, move);
	pb_nest_end(w, commit);
	pb_writer_done(&p);
}

void
block_put_flush_ack(struct pb_writer *w, uint64_t flush)
{
	size_t mark = pb_nest_begin(w, LINK_UP_COMMIT);

	pb_put_uint(w, 3, flush);
	pb_nest_end(w, mark);
}

void
block_put_loss(struct pb_writer *w, const struct link_loss *l)
{
	uint8_t bytes[LINK_LOSS_MAX];

	pb_put_bytes(w, LINK_UP_LOSS, bytes, link_put_loss(bytes, l));
}

void
relay_end_frame(struct relay_end *r, const void *frame, size_t len)
{
	client_tell(&r->c, L_UP, frame, len);
}

void
relay_end_up_as(struct relay_end *r, uint64_t number, uint32_t channel,
    struct pb_writer *w)
{
	struct link_frame f = { .number = number, .channel = channel,
	    .block = w->data, .len = w->len };
	uint8_t head[LINK_HEAD_MAX];
	struct pb_writer all;

	if (r->compressor != NULL) {
		f.compressed = true;
		f.raw_size = w->len;
		assert_int_equal(link_compress(r->compressor, w->data, w->len,
		    &f.block, &f.len), 0);
	}
	pb_writer_init(&all);
	pb_put_raw(&all, head, link_put_head(head, &f));
	pb_put_raw(&all, f.block, f.len);
	relay_end_frame(r, all.data, all.len);
	pb_writer_done(&all);
	pb_writer_done(w);
}

void
relay_end_up(struct relay_end *r, uint32_t channel, struct pb_writer *w)
{
	relay_end_up_as(r, ++r->sent, channel, w);
}

void
relay_end_ack(struct relay_end *r)
{
	struct link_frame f = { .has_received = true,
	    .received = r->received };
	uint8_t head[LINK_HEAD_MAX];

	relay_end_frame(r, head, link_put_head(head, &f));
}

/* ---- down ---- */

static void
take_numbers(struct relay_end *r, struct link_frame *f)
{
	uint32_t channel;
	uint64_t bytes;

	r->frames++;
	if (f->has_received)
		r->acked = f->received;
	if (f->has_consumed_in_all)
		r->consumed_in_all = f->consumed_in_all;
	while (link_next_consumed(f, &channel, &bytes))
		if (channel < 16)
			r->consumed[channel] = bytes;
	if (f->clock != NULL) {
		r->pongs++;
		r->pong_len = f->clock_len;
		memcpy(r->pong, f->clock, f->clock_len);
	}
}

/* The next frame that has come; false: none. */
static bool
next_frame(struct relay_end *r, struct link_frame *f)
{
	const struct reply *reply;

	if (r->down == 0 || client_count(&r->c, r->down) <= r->seen)
		return false;
	reply = client_wait(&r->c, r->down, r->seen++);
	assert_true(reply->ok);
	assert_int_equal(link_parse_frame(f, reply->msg, reply->len), 0);
	take_numbers(r, f);
	if (f->number != 0) {
		assert_int_equal(f->number, r->received + 1);
		r->received = f->number;
	}
	return true;
}

void
relay_end_turn(struct relay_end *r)
{
	struct link_frame f;

	client_turn(&r->c);
	while (next_frame(r, &f))
		;
}

void
relay_end_wait(struct relay_end *r, bool (*cond)(void *arg), void *arg)
{
	uint64_t end = loop_now_ms() + WAIT_MS;

	while (!cond(arg)) {
		assert_true(loop_now_ms() < end);
		relay_end_turn(r);
	}
}

static bool
all_taken(void *arg)
{
	const struct relay_end *r = arg;

	return r->acked == r->sent;
}

void
relay_end_settle(struct relay_end *r)
{
	relay_end_wait(r, all_taken, r);
}

void
relay_end_expect(struct relay_end *r, uint32_t channel, enum link_down kind,
    struct pb_field *out)
{
	uint64_t end = loop_now_ms() + WAIT_MS;
	struct link_frame f;
	struct pb_reader rd;

	for (;;) {
		while (r->pending_len == 0 && !next_frame(r, &f)) {
			assert_true(loop_now_ms() < end);
			assert_false(r->c.closed);
			client_turn(&r->c);
		}
		if (r->pending_len == 0 && f.number != 0) {
			r->pending = f.block;
			r->pending_len = f.len;
			r->pending_channel = f.channel;
		}
		pb_init(&rd, r->pending, r->pending_len);
		while (pb_next(&rd, out)) {
			r->pending = rd.p;
			r->pending_len = (size_t)(rd.end - rd.p);
			if (r->pending_channel == channel &&
			    out->number == (uint32_t)kind)
				return;
		}
		assert_false(rd.bad);
	}
}

void
relay_end_command(struct relay_end *r, uint32_t channel, uint32_t command,
    struct pb_field *out)
{
	struct pb_field f;
	struct pb_reader rd;

	for (;;) {
		relay_end_expect(r, channel, LINK_DOWN_COMMAND, &f);
		pb_init(&rd, f.data, f.len);
		while (pb_next(&rd, out))
			if (out->number == command)
				return;
	}
}
