#include "tests/unit/transport/buffer/tb_fixture.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
fixture_setup(void **state)
{
	*state = trace_buffer_new(4096, TB_RING);
	return *state == NULL;
}

int
fixture_teardown(void **state)
{
	trace_buffer_free(*state);
	return 0;
}

void
build_start(struct build *b)
{
	b->len = 0;
	b->fragments = 0;
}

void
build_raw(struct build *b, const void *bytes, size_t len)
{
	assert_true(b->len + len <= sizeof(b->bytes));
	memcpy(b->bytes + b->len, bytes, len);
	b->len += len;
}

static void
build_size(struct build *b, size_t v)
{
	uint8_t byte;

	for (; v >= 0x80; v >>= 7) {
		byte = (uint8_t)(v | 0x80);
		build_raw(b, &byte, 1);
	}
	byte = (uint8_t)v;
	build_raw(b, &byte, 1);
}

void
build_fragment(struct build *b, char c, size_t len)
{
	build_size(b, len);
	assert_true(b->len + len <= sizeof(b->bytes));
	memset(b->bytes + b->len, c, len);
	b->len += len;
	b->fragments++;
}

static void
build_text(struct build *b, const char *text)
{
	char *end;
	char c;

	build_start(b);
	while (*text != '\0') {
		c = *text++;
		if (c == ' ') {
			continue;
		} else if (c == '!') {
			build_raw(b, "\xff\xff\xff\x7f", 4);
			b->fragments++;
		} else if (c == '?') {
			build_raw(b, "\xff\xff\x7f", 3);
			b->fragments++;
		} else {
			build_fragment(b, c, strtoul(text, &end, 10));
			text = end;
		}
	}
}

static bool
commit_built(struct trace_buffer *tb, uint64_t producer, uint32_t writer,
    struct tb_chunk *c, const struct build *b)
{
	struct tb_origin origin = {
		.producer = producer,
		.writer = writer,
		.share = 7,
		.machine = 7,
		.uid = (int32_t)producer + 1000,
		.pid = (int32_t)writer + 2000,
	};

	c->num_fragments = b->fragments;
	c->payload = b->bytes;
	return trace_buffer_write(tb, &origin, c);
}

bool
commit(struct trace_buffer *tb, uint64_t producer, uint32_t writer, uint32_t id,
    uint8_t flags, const char *text)
{
	struct tb_chunk c = {.id = id, .flags = flags, .complete = true};
	static struct build b;

	build_text(&b, text);
	c.len = b.len;
	return commit_built(tb, producer, writer, &c, &b);
}

bool
scrape(struct trace_buffer *tb, uint64_t producer, uint32_t writer, uint32_t id,
    uint8_t flags, const char *text, size_t reserved)
{
	struct tb_chunk c = {.id = id, .flags = flags, .complete = false};
	static struct build b;

	build_text(&b, text);
	assert_true(reserved >= b.len && reserved <= sizeof(b.bytes));
	memset(b.bytes + b.len, 0, reserved - b.len);
	c.len = reserved;
	return commit_built(tb, producer, writer, &c, &b);
}

bool
commit_bytes(struct trace_buffer *tb, uint32_t id, uint16_t fragments,
    uint8_t flags, const void *bytes, size_t len)
{
	struct tb_chunk c = {.id = id, .flags = flags, .complete = true,
	    .len = len};
	static struct build b;

	build_start(&b);
	build_raw(&b, bytes, len);
	b.fragments = fragments;
	return commit_built(tb, 1, 1, &c, &b);
}

bool
patch(struct trace_buffer *tb, uint64_t producer, uint32_t writer, uint32_t id,
    uint32_t offset, const char *text, bool more)
{
	struct tb_patch p = {.offset = offset, .data = (const uint8_t *)text,
	    .len = strlen(text)};

	return trace_buffer_patch(tb, producer, writer, id,
	    &(struct tb_patches){ &p, 1, more });
}

uint64_t
outer(const char *text)
{
	static struct build b;

	build_text(&b, text);
	return (b.len + HEADER + 7) / 8 * 8;
}

static void
packet_text(const struct tb_packet *p, char *text, size_t room)
{
	size_t i, j, run = 0, n = 0, total = 0;
	char last = 0;

	text[0] = '\0';
	for (i = 0; i < p->n_slices; i++) {
		total += p->slices[i].len;
		for (j = 0; j < p->slices[i].len; j++) {
			char c = (char)p->slices[i].data[j];

			if (run > 0 && c != last) {
				n += (size_t)snprintf(text + n, room - n,
				    "%c%zu", last, run);
				run = 0;
			}
			last = c;
			run++;
		}
	}
	if (run > 0)
		snprintf(text + n, room - n, "%c%zu", last, run);
	assert_int_equal(total, p->size);
}

static void
expect_this(const struct tb_packet *p, const char *text, uint32_t loss)
{
	char got[4096];

	packet_text(p, got, sizeof(got));
	assert_string_equal(got, text);
	if (loss != 0)
		loss |= TB_LOSS_PRESENT;
	assert_int_equal(p->loss, loss);
}

void
expect_packet(struct trace_buffer *tb, const char *text, uint32_t loss)
{
	struct tb_packet p;

	if (!trace_buffer_read(tb, &p))
		fail_msg("no packet, expected %s", text);
	expect_this(&p, text, loss);
}

void
expect_packet_of(struct trace_buffer *tb, uint64_t producer, uint32_t writer,
    const char *text, uint32_t loss)
{
	struct tb_packet p;

	if (!trace_buffer_read(tb, &p))
		fail_msg("no packet, expected %s", text);
	expect_this(&p, text, loss);
	assert_int_equal(p.origin->producer, producer);
	assert_int_equal(p.origin->writer, writer);
	assert_int_equal(p.origin->machine, 7);
	assert_int_equal(p.origin->uid, (int32_t)producer + 1000);
	assert_int_equal(p.origin->pid, (int32_t)writer + 2000);
}

void
expect_end(struct trace_buffer *tb)
{
	struct tb_packet p;
	char got[4096];

	if (trace_buffer_read(tb, &p)) {
		packet_text(&p, got, sizeof(got));
		fail_msg("unexpected packet %s", got);
	}
}

void
expect_balance(const struct trace_buffer *tb, uint64_t chunks, uint64_t bytes,
    uint64_t padding)
{
	const struct tb_stats *s = trace_buffer_stats(tb);

	assert_int_equal(s->chunks_written,
	    s->chunks_read + s->chunks_overwritten + chunks);
	assert_int_equal(s->bytes_written,
	    s->bytes_read + s->bytes_overwritten + bytes);
	assert_int_equal(s->padding_bytes_written,
	    s->padding_bytes_cleared + padding);
}

struct trace_buffer *
whole_clone(struct trace_buffer *tb, bool take)
{
	struct trace_buffer *copy = take ? trace_buffer_take(tb) :
	    trace_buffer_clone(tb);
	enum tb_fill result;

	assert_non_null(copy);
	while ((result = trace_buffer_fill(copy, 100)) == TB_FILL_MORE)
		;
	assert_int_equal(result, TB_FILL_DONE);
	return copy;
}
