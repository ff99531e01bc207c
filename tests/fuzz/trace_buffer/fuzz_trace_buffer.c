/*
 * The trace buffer under hostile producers.  The first byte chooses: a script
 * (tests/unit/transport/buffer/tb_script.h) that runs on the buffer and its
 * model, which must agree; or raw calls whose chunks, flags, counts and patches
 * are whatever the input says, where what counts is that nothing breaks: the
 * records of the ring stay whole, packets lie within it, and every loop ends.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/transport/buffer/tb_script.h"
#include "transport/buffer/tb_state.h"

#define PAYLOAD_MAX 3000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *p;
	size_t left;
};

static uint32_t
take(struct input *in, unsigned bytes)
{
	uint32_t v = 0;

	for (; bytes > 0 && in->left > 0; bytes--, in->left--)
		v = v << 8 | *in->p++;
	return v;
}

static const uint8_t *
take_bytes(struct input *in, size_t want, size_t *got)
{
	const uint8_t *p = in->p;

	*got = want < in->left ? want : in->left;
	in->p += *got;
	in->left -= *got;
	return p;
}

static void
check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

/* ---- Raw calls ---- */

static void
check_ring(const struct trace_buffer *tb)
{
	uint64_t off, held = 0, unread = 0, chunks = 0, padding = 0;
	uint64_t left = 0;
	const struct tb_stats *st = trace_buffer_stats(tb);
	const struct tb_record *r;

	for (off = 0; off < tb->top; off += tb_record_size(r)) {
		r = tb_record_at(tb, off);
		check(tb_record_size(r) > 0, "empty record");
		check(tb_record_size(r) <= tb->top - off, "record too long");
		if (r->kind == TB_PADDING)
			padding += tb_record_size(r);
		left += r->kind == TB_LEFT;
		if (r->kind != TB_CHUNK)
			continue;
		check(r->read <= r->used && r->used <= tb_capacity(r),
		    "marks of a chunk");
		held += tb_record_size(r);
		unread += tb_has_unread(r) ? tb_record_size(r) : 0;
		chunks++;
	}
	check(off == tb->top, "records do not tile the ring");
	check(held == tb->held && unread == tb->unread, "bytes held");
	check(st->chunks_written == st->chunks_read + st->chunks_overwritten +
	    chunks, "balance of chunks");
	check(st->bytes_written == st->bytes_read + st->bytes_overwritten +
	    held, "balance of bytes");
	check(st->padding_bytes_written == st->padding_bytes_cleared + padding,
	    "balance of padding");
	check(trace_buffer_sequences(tb) <= TB_KEEP_EMPTY + TB_SWEEP_EMPTY + 1 +
	    chunks + left, "number of sequences");
}

static void
check_packet(const struct trace_buffer *tb, const struct tb_packet *p)
{
	size_t i, sum = 0;

	check(p->n_slices > 0 && p->size > 0, "empty packet");
	for (i = 0; i < p->n_slices; i++) {
		check(p->slices[i].data >= tb->ring &&
		    p->slices[i].data + p->slices[i].len <=
		    tb->ring + tb->size, "slice outside the ring");
		sum += p->slices[i].len;
	}
	check(sum == p->size, "size of a packet");
	check((p->loss == 0) == ((p->loss & TB_LOSS_PRESENT) == 0), "loss");
}

static void
raw_write(struct trace_buffer *tb, struct input *in)
{
	struct tb_origin origin = {.producer = take(in, 1) & 3,
	    .writer = take(in, 1) & 7};
	struct tb_chunk c = { 0 };
	uint8_t bytes;

	bytes = (uint8_t)take(in, 1);
	/* Mostly near each other, now and then anywhere. */
	c.id = (bytes & 0x80) != 0 ? take(in, 4) : bytes & 31;
	c.num_fragments = (uint16_t)take(in, (bytes & 0x40) != 0 ? 2 : 1);
	c.flags = (uint8_t)take(in, 1);
	c.complete = (c.flags & 0x10) == 0;
	c.payload = take_bytes(in, take(in, 2) % PAYLOAD_MAX, &c.len);
	trace_buffer_write(tb, &origin, &c);
}

static void
raw_patch(struct trace_buffer *tb, struct input *in)
{
	struct tb_patch patch[3];
	uint32_t producer = take(in, 1) & 3, writer = take(in, 1) & 7;
	uint32_t id = take(in, 1) & 31, n = take(in, 1) & 3, i;
	bool more = (take(in, 1) & 1) != 0;

	for (i = 0; i < n; i++) {
		patch[i].offset = take(in, 2);
		patch[i].data = take_bytes(in, take(in, 1) & 7, &patch[i].len);
	}
	(void)trace_buffer_patch(tb, producer, writer, id,
	    &(struct tb_patches){ patch, n, more });
}

static void
read_some(struct trace_buffer *tb, uint32_t n)
{
	struct tb_packet p;

	for (; n > 0 && trace_buffer_read(tb, &p); n--)
		check_packet(tb, &p);
}

/* Fills the clone that is under way: all of it, or some. */
static void
fill_clone(struct trace_buffer **copy, uint64_t bytes)
{
	if (*copy == NULL || trace_buffer_fill(*copy, bytes) == TB_FILL_MORE)
		return;
	trace_buffer_begin_read(*copy);
	read_some(*copy, UINT32_MAX);
	trace_buffer_free(*copy);
	*copy = NULL;
}

static void
raw_call(struct trace_buffer *tb, struct trace_buffer **copy, struct input *in)
{
	uint32_t op = take(in, 1);

	switch (op % 16) {
	default:
		raw_write(tb, in);
		break;
	case 9:
	case 10:
		raw_patch(tb, in);
		break;
	case 11:
		trace_buffer_begin_read(tb);
		break;
	case 12:
	case 13:
		read_some(tb, op >> 4);
		break;
	case 14:
		(void)trace_buffer_compact(tb);
		break;
	case 15:
		if (*copy == NULL)
			*copy = trace_buffer_clone(tb);
		fill_clone(copy, (uint64_t)(op >> 4) * 256);
		break;
	}
	(void)trace_buffer_would_lose(tb, op * 16);
}

static bool
wants_odd(void *arg, uint64_t producer)
{
	return (producer & 1) != 0;
}

static void
leaves_cb(void *arg, const struct tb_packet *p, bool overwritten)
{
	check(p != NULL && (p->origin->producer & 1) != 0, "packet shown");
	check_packet(arg, p);
}

static void
run_raw(struct input *in)
{
	uint32_t how = take(in, 1);
	struct trace_buffer *tb, *copy = NULL;
	struct tb_watch watch = { .wants = wants_odd, .leaves = leaves_cb };

	tb = trace_buffer_new(4096u << (how & 1),
	    (how & 6) == 6 ? TB_DISCARD : TB_RING);
	if (tb == NULL)
		return;
	watch.arg = tb;
	if ((how & 8) != 0)
		trace_buffer_watch(tb, &watch);
	while (in->left > 0) {
		raw_call(tb, &copy, in);
		check_ring(tb);
	}
	fill_clone(&copy, 4 * 4096);
	trace_buffer_begin_read(tb);
	read_some(tb, UINT32_MAX);
	check_ring(tb);
	trace_buffer_free(tb);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.p = data, .left = size};
	struct script_result r;

	if (size == 0)
		return 0;
	if ((take(&in, 1) & 1) != 0) {
		run_raw(&in);
	} else if (!script_run(in.p, in.left, &r)) {
		fprintf(stderr, "operation %zu: %s\n", r.ops, r.what);
		abort();
	}
	return 0;
}
