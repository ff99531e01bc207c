#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <cmocka.h>

#include "protos/consumer_port.pb-c.h"
#include "service/output/packet_out.h"
#include "service/output/read_reply.h"
#include "tests/unit/service/session/fixture.h"
#include "transport/wire/pb_reader.h"

#define CONFIG "buffers { size_kb: 4096 } " \
	"data_sources { config { name: \"src\" } } "
#define INNER_MAX (8u << 20)

/* What a reader got. */
struct got {
	struct fixture *f;
	struct read_reply *r;
	struct pb_writer packets; /* Trace.packet fields, expanded */
	struct pb_writer open;    /* a packet whose last slice is to come */
	size_t replies;
	size_t waits;
	size_t compressed;
	bool ready;
};

static void
ready_cb(void *arg)
{
	((struct got *)arg)->ready = true;
}

static bool
is_ready(void *arg)
{
	return ((struct got *)arg)->ready;
}

static void
take_packet(struct got *g)
{
	struct pb_reader r;
	struct pb_field f;
	uint8_t *out;
	uLongf n = INNER_MAX;

	pb_init(&r, g->open.data, g->open.len);
	assert_true(pb_next(&r, &f));
	if (f.number == 50 || f.number == 133) {
		out = malloc(INNER_MAX);
		if (f.number == 133)
			n = ZSTD_decompress(out, INNER_MAX, f.data, f.len);
		else
			assert_int_equal(uncompress(out, &n, f.data, f.len),
			    Z_OK);
		assert_true(n < INNER_MAX);
		pb_put_raw(&g->packets, out, n);
		free(out);
		g->compressed++;
	} else {
		pb_put_bytes(&g->packets, 1, g->open.data, g->open.len);
	}
	pb_writer_reset(&g->open);
}

static void
take_reply(struct got *g, const uint8_t *msg, size_t len)
{
	Perfetto__Protos__ReadBuffersResponse *m;
	size_t i;

	assert_true(len <= PACKET_REPLY_MAX);
	g->replies++;
	m = perfetto__protos__read_buffers_response__unpack(NULL, len, msg);
	assert_non_null(m);
	for (i = 0; i < m->n_slices; i++) {
		pb_put_raw(&g->open, m->slices[i]->data.data,
		    m->slices[i]->data.len);
		if (m->slices[i]->last_slice_for_packet)
			take_packet(g);
	}
	perfetto__protos__read_buffers_response__free_unpacked(m, NULL);
}

static void
read_all(struct got *g, struct fixture *f, struct session *s)
{
	enum read_reply_result r;
	const uint8_t *msg;
	size_t len;

	memset(g, 0, sizeof(*g));
	g->f = f;
	pb_writer_init(&g->packets);
	pb_writer_init(&g->open);
	assert_non_null(g->r = read_reply_new(s, ready_cb, g));
	do {
		g->ready = false;
		r = read_reply_next(g->r, &msg, &len);
		if (r == READ_REPLY_WAIT) {
			g->waits++;
			fixture_wait(f, is_ready, g);
		} else {
			take_reply(g, msg, len);
		}
	} while (r != READ_REPLY_LAST);
	assert_int_equal(g->open.len, 0);
	assert_false(g->packets.failed);
	read_reply_free(g->r);
}

static void
got_done(struct got *g)
{
	pb_writer_done(&g->packets);
	pb_writer_done(&g->open);
}

/* The producer's packets among them, from ts on, one after another. */
static size_t
count_numbered(const struct got *g, uint64_t ts)
{
	struct pb_reader r, inner;
	struct pb_field packet, f;
	size_t n = 0;
	bool ours;
	uint64_t at;

	pb_init(&r, g->packets.data, g->packets.len);
	while (pb_next(&r, &packet)) {
		ours = false;
		at = 0;
		pb_init(&inner, packet.data, packet.len);
		while (pb_next(&inner, &f)) {
			if (f.number == 8)
				at = f.value;
			ours = ours || f.number == 900;
		}
		if (ours)
			assert_int_equal(at, ts + n++);
	}
	assert_false(r.bad);
	return n;
}

static void
write_numbered(struct fake_producer *p, uint64_t ts, size_t n)
{
	static uint32_t chunk;
	char text[900];
	size_t i, k;

	/* Half of it is text that repeats, half of it is not. */
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	for (i = 0; i < n; i++) {
		for (k = 0; k < sizeof(text) / 2; k++)
			text[k] = (char)('!' + rand() % 90);
		assert_int_equal(fake_commit(p, p->last_buffer, 1, chunk++,
		    ts + i, text), 0);
	}
}

static void
replies_hold_the_same_packets_however_compressed(void **state)
{
	static const char *const configs[] = {
		CONFIG,
		CONFIG "compression_type: COMPRESSION_TYPE_DEFLATE",
		CONFIG "compression { zstd {} }",
	};
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct got g;
	size_t i;

	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	for (i = 0; i < 3; i++) {
		assert_non_null(fake_enable(f, &c, configs[i], -1));
		write_numbered(&p, 1000 * i, 2000);
		read_all(&g, f, c.s);
		assert_int_equal(count_numbered(&g, 1000 * i), 2000);
		/* several batches, and each of them in several replies */
		assert_true(g.replies > 5);
		assert_int_equal(g.compressed > 2, i > 0);
		assert_int_equal(g.waits > 2, i > 0);
		got_done(&g);
		fake_end(f, &c);
	}
	fake_producer_done(&p);
}

static void
nothing_to_read_is_an_empty_reply_at_once(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct got g;

	assert_non_null(fake_enable(f, &c, CONFIG "compression { zstd {} }",
	    -1));
	read_all(&g, f, c.s);
	assert_true(g.packets.len > 0); /* what the service says */
	got_done(&g);
	read_all(&g, f, c.s);
	assert_int_equal(g.packets.len, 0);
	assert_int_equal(g.replies, 1);
	assert_int_equal(g.waits, 0);
	got_done(&g);
	fake_end(f, &c);
}

static void
it_may_be_freed_while_a_batch_is_compressed(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct got g = { .f = f };
	const uint8_t *msg;
	size_t len;

	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, CONFIG
	    "compression { zstd { level: 19 } }", -1));
	write_numbered(&p, 1, 800);
	assert_non_null(g.r = read_reply_new(c.s, ready_cb, &g));
	assert_int_equal(read_reply_next(g.r, &msg, &len), READ_REPLY_WAIT);
	/* Asked again too early it says the same. */
	assert_int_equal(read_reply_next(g.r, &msg, &len), READ_REPLY_WAIT);
	read_reply_free(g.r);
	fake_end(f, &c);
	assert_false(g.ready);
	fake_producer_done(&p);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup,           \
	fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(replies_hold_the_same_packets_however_compressed),
		T(nothing_to_read_is_an_empty_reply_at_once),
		T(it_may_be_freed_while_a_batch_is_compressed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
