#include "tests/fuzz/clients/hostile_replies.h"

#include <string.h>

#include "tests/fuzz/stage/script.h"
#include "transport/clock/clock_snapshot.h"
#include "transport/link/link_clock.h"
#include "transport/link/link_wire.h"
#include "transport/wire/pb_writer.h"

/* ---- for producers ---- */

static enum hostile_reply
command(struct pb_writer *m, const uint8_t how[6])
{
	enum hostile_reply r = HOSTILE_ALONE;
	size_t mark, config;

	switch (how[0] % 7) {
	case 0:
		mark = pb_nest_begin(m, 3); /* SetupTracing */
		pb_put_uint(m, 1, how[1] < 200 ? 4 : script_number(how[1]));
		r = how[2] < 230 ? HOSTILE_WITH_MEMORY : HOSTILE_ALONE;
		break;
	case 1:
	case 2:
		mark = pb_nest_begin(m, how[0] % 7 == 1 ? 6 : 1);
		pb_put_uint(m, 1, how[1] % 4);
		config = pb_nest_begin(m, 2);
		pb_put_string(m, 1, how[2] < 200 ? "a" :
		    script_name(how[2]));
		pb_put_uint(m, 2, script_number(how[3]));
		pb_put_uint(m, 4, how[4]);
		pb_nest_end(m, config);
		break;
	case 3:
		mark = pb_nest_begin(m, 2);
		pb_put_uint(m, 1, how[1] % 4);
		break;
	case 4:
		mark = pb_nest_begin(m, 5);
		pb_put_uint(m, 1, how[1] % 4);
		pb_put_uint(m, 1, how[2]);
		pb_put_uint(m, 2, script_number(how[3]));
		break;
	case 5:
		mark = pb_nest_begin(m, 7);
		pb_put_uint(m, 1, how[1] % 4);
		break;
	default:
		mark = pb_nest_begin(m, how[1] % 9 + 1);
		pb_put_raw(m, how + 2, 4);
		break;
	}
	pb_nest_end(m, mark);
	return r;
}

static enum hostile_reply
to_producer(struct pb_writer *m, uint32_t method, const uint8_t how[6])
{
	if (method == 5)
		return command(m, how);
	if (method == 1) {
		pb_put_uint(m, 1, how[0] & 1);
		pb_put_uint(m, 2, how[0] >> 1 & 1);
		pb_put_uint(m, 3, how[0] >> 2 & 1);
	} else if (how[0] >= 200) {
		pb_put_string(m, 1, script_name(how[1]));
	}
	return HOSTILE_ALONE;
}

/* ---- for consumers and operators ---- */

/* Slices of packets, whole and in parts, empty, without an end. */
static void
slices(struct pb_writer *m, const uint8_t how[6])
{
	unsigned n = how[0] % 5, i;
	uint8_t bytes[256];
	size_t mark;

	for (i = 0; i < n; i++) {
		script_fill(bytes, sizeof(bytes), how[1] + i);
		mark = pb_nest_begin(m, 2);
		pb_put_bytes(m, 1, bytes, how[2] * i % sizeof(bytes));
		pb_put_uint(m, 2, how[3] >> i & 1);
		pb_nest_end(m, mark);
	}
}

/* A message in a message, of fields by the input. */
static void
nested(struct pb_writer *m, const uint8_t how[6])
{
	size_t outer = pb_nest_begin(m, 1 + how[0] % 8), inner;

	pb_put_uint(m, 1 + how[1] % 20, script_number(how[2]));
	pb_put_string(m, 1 + how[1] / 20u, script_name(how[3]));
	if (how[4] & 1) {
		inner = pb_nest_begin(m, 1 + how[4] / 16u);
		pb_put_string(m, 1 + how[5] % 12, script_name(how[5]));
		pb_put_uint(m, 1 + how[2] % 12, how[3]);
		pb_nest_end(m, inner);
	}
	pb_nest_end(m, outer);
}

static void
to_consumer(struct pb_writer *m, uint32_t method, const uint8_t how[6])
{
	switch (method) {
	case 3:
		slices(m, how);
		break;
	case 1:
	case 15:
		pb_put_uint(m, 1, how[0] & 1);
		if (how[0] & 2)
			pb_put_bytes(m, method == 1 ? 3 : 2, how + 1, 5);
		break;
	default:
		nested(m, how);
		break;
	}
}

/* ---- for relays ---- */

static void
opened(struct pb_writer *m, const uint8_t how[6])
{
	uint8_t id[20];
	size_t mark;

	memset(id, how[1] & 1, sizeof(id));
	pb_put_uint(m, 1, how[0] < 250 ? LINK_VERSION : how[1]);
	pb_put_bytes(m, 2, id, how[0] < 240 ? LINK_ID_BYTES : how[1] % 20u);
	pb_put_uint(m, 3, how[1] / 2u % 6);
	pb_put_uint(m, 4, script_number(how[2]));
	pb_put_uint(m, 5, how[3] < 200 ? 1u << 20 : script_number(how[3]));
	pb_put_uint(m, 6, how[4] & 1);
	if (how[4] & 2)
		pb_put_bytes(m, 9, how, 6);
	if (how[4] & 4) {
		mark = pb_nest_begin(m, 10);
		pb_put_uint(m, 1, script_number(how[5]));
		pb_put_uint(m, 2, script_number(how[2]));
		pb_nest_end(m, mark);
	}
}

/* A block with one message; its bytes lie in out. */
static void
put_block(struct pb_writer *out, const uint8_t how[6])
{
	struct pb_writer c;

	pb_writer_init(&c);
	if (how[2] & 1)
		(void)command(&c, how);
	else
		pb_put_raw(&c, how + 2, 4);
	pb_put_bytes(out, 1 + how[2] / 2u % 4, c.data, c.len);
	pb_writer_done(&c);
}

static size_t
put_clock(uint8_t *out, const uint8_t how[6])
{
	struct link_clock c = { .kind = (enum link_clock_kind)(1 + how[3] % 3),
	    .id = how[4] };

	clock_snapshot_take(&c.before);
	c.host = c.after = c.before;
	return link_clock_put(out, &c);
}

static void
frame(struct pb_writer *m, const uint8_t how[6])
{
	uint8_t head[LINK_HEAD_MAX], clock[LINK_CLOCK_MAX];
	uint8_t consumed[LINK_CONSUMED_MAX];
	struct link_frame f = { .channel = how[3] % 4 };
	struct pb_writer block;

	pb_writer_init(&block);
	if (how[0] & 1) {
		f.number = how[1] < 200 ? how[1] % 8 + 1u :
		    script_number(how[1]) + 1;
		put_block(&block, how);
		f.block = block.data;
		f.len = block.len;
		f.compressed = how[0] >= 240;
		f.raw_size = f.compressed ? how[4] : 0;
	}
	if (how[0] & 2) {
		f.has_received = true;
		f.received = script_number(how[4]);
	}
	if (how[0] & 4) {
		f.has_consumed_in_all = true;
		f.consumed_in_all = script_number(how[5]);
	}
	if (how[0] & 8) {
		f.clock = clock;
		f.clock_len = put_clock(clock, how);
	}
	if (how[0] & 16)
		pb_put_raw(m, consumed, link_put_consumed(consumed,
		    how[3] % 4u, script_number(how[5])));
	pb_put_raw(m, head, link_put_head(head, &f));
	if (f.number != 0)
		pb_put_raw(m, f.block, f.len);
	pb_writer_done(&block);
}

enum hostile_reply
hostile_reply(struct pb_writer *out, enum victim v, uint32_t method,
    const struct script_op *op)
{
	enum hostile_reply r = HOSTILE_ALONE;
	const uint8_t *how = op->how;
	uint8_t bytes[64];

	if (op->what >= 248) { /* anything */
		script_fill(bytes, sizeof(bytes), how[1]);
		pb_put_raw(out, how, 6);
		pb_put_raw(out, bytes, how[2] % sizeof(bytes));
		return r;
	}
	switch (v) {
	case VICTIM_CONSUMER:
		to_consumer(out, method, how);
		break;
	case VICTIM_CONTROL:
		nested(out, how);
		break;
	case VICTIM_PRODUCER:
		r = to_producer(out, method, how);
		break;
	case VICTIM_LINK:
		if (method == 1)
			opened(out, how);
		else
			frame(out, how);
		break;
	case VICTIM_CLASSIC:
	case VICTIMS:
		break; /* its replies are empty */
	}
	if (op->what >= 240 && out->len > 0)
		out->len -= 1 + how[0] % out->len % 3;
	return r;
}
