#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "transport/buffer/trace_buffer.h"
#include "transport/wire/pb_writer.h"

#define BUFFER_BYTES (64u * 1024u)
#define WRITERS 10u
#define CHUNK_BYTES 2048u
#define ROUNDS 20000u

/*
 * A writer of numbered packets of random size, each a run of bytes of its
 * number, that go on from chunk to chunk.
 */
struct writer {
	struct tb_origin origin;
	uint32_t chunk_id;
	uint32_t number;    /* of the packet being written */
	size_t left;        /* of it; 0: the next chunk begins a new one */
	uint32_t expected;  /* of the next packet to be read */
};

struct world {
	struct trace_buffer *tb;
	struct writer writers[WRITERS];
	uint32_t seed;
	size_t read;
	size_t compacted;
};

static uint32_t
dice(struct world *w)
{
	w->seed = w->seed * 1664525u + 1013904223u;
	return w->seed >> 8;
}

static void
read_all(struct world *w)
{
	struct tb_packet p;
	struct writer *wr;
	size_t i, k;

	trace_buffer_begin_read(w->tb);
	while (trace_buffer_read(w->tb, &p)) {
		wr = &w->writers[p.origin->writer - 1];
		assert_int_equal(p.loss, 0);
		for (i = 0; i < p.n_slices; i++)
			for (k = 0; k < p.slices[i].len; k++)
				assert_int_equal(p.slices[i].data[k],
				    (uint8_t)wr->expected);
		wr->expected++;
		w->read++;
	}
}

/* The next chunk of a writer, full. */
static void
write_chunk(struct world *w, struct writer *wr)
{
	uint8_t payload[CHUNK_BYTES];
	struct tb_chunk c = { .complete = true, .payload = payload };
	size_t take, room, n;

	c.id = wr->chunk_id++;
	if (wr->left > 0)
		c.flags |= TB_FIRST_CONTINUES_FROM_PREV;
	for (;;) {
		room = CHUNK_BYTES - c.len;
		if (room < 8)
			break;
		if (wr->left == 0) {
			wr->number++;
			wr->left = 1 + dice(w) % 3000;
		}
		take = wr->left < room - 4 ? wr->left : room - 4;
		n = pb_encode_varint(payload + c.len, take);
		memset(payload + c.len + n, (int)(uint8_t)wr->number, take);
		c.len += n + take;
		c.num_fragments++;
		wr->left -= take;
		if (wr->left > 0) {
			c.flags |= TB_LAST_CONTINUES_ON_NEXT;
			break;
		}
	}
	if (trace_buffer_would_lose(w->tb, c.len))
		read_all(w);
	if (trace_buffer_would_lose(w->tb, c.len)) {
		w->compacted++;
		assert_true(trace_buffer_compact(w->tb));
	}
	assert_false(trace_buffer_would_lose(w->tb, c.len));
	assert_true(trace_buffer_write(w->tb, &wr->origin, &c));
}

static void
check_sums(const struct trace_buffer *tb)
{
	const struct tb_stats *st = trace_buffer_stats(tb);

	assert_int_equal(st->chunks_overwritten, 0);
	assert_int_equal(st->bytes_overwritten, 0);
	assert_true(st->chunks_written >= st->chunks_read);
	assert_true(st->bytes_written >= st->bytes_read);
}

static void
run(uint32_t seed)
{
	struct world w = { .seed = seed };
	uint32_t i, k;

	assert_non_null(w.tb = trace_buffer_new(BUFFER_BYTES, TB_RING));
	for (i = 0; i < WRITERS; i++) {
		w.writers[i].origin.producer = 7;
		w.writers[i].origin.writer = i + 1;
		w.writers[i].expected = 1;
	}
	for (i = 0; i < ROUNDS; i++) {
		/* Some write all the time, some leave a packet open for long. */
		k = dice(&w) % 100 < 95 ? dice(&w) % 3 : dice(&w) % WRITERS;
		write_chunk(&w, &w.writers[k]);
		if (i % 64 == 0)
			check_sums(w.tb);
	}
	read_all(&w);
	for (i = 0; i < WRITERS; i++)
		assert_int_equal(w.writers[i].expected,
		    w.writers[i].number + (w.writers[i].left == 0));
	assert_true(w.compacted > 0);
	assert_true(w.read > ROUNDS / 2);
	trace_buffer_free(w.tb);
}

static void
packets_left_open_for_long_survive_in_a_small_ring(void **state)
{
	uint32_t seed;

	for (seed = 1; seed <= 5; seed++)
		run(seed);
}

static void
a_buffer_that_is_mostly_unread_is_not_compacted(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(4096, TB_RING);
	struct tb_origin o = { .producer = 1, .writer = 1 };
	uint8_t payload[3000];
	struct tb_chunk c = { .complete = true, .num_fragments = 1,
		.payload = payload, .len = 2 + 2500 };

	assert_non_null(tb);
	memset(payload, 0, sizeof(payload));
	(void)pb_encode_varint(payload, 2500);
	assert_true(trace_buffer_write(tb, &o, &c));
	assert_false(trace_buffer_compact(tb));
	trace_buffer_free(tb);
}

static void
an_empty_buffer_can_be_compacted(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(4096, TB_RING);

	assert_non_null(tb);
	assert_true(trace_buffer_compact(tb));
	assert_false(trace_buffer_would_lose(tb, 4000));
	trace_buffer_free(tb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    packets_left_open_for_long_survive_in_a_small_ring),
		cmocka_unit_test(
		    a_buffer_that_is_mostly_unread_is_not_compacted),
		cmocka_unit_test(an_empty_buffer_can_be_compacted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
