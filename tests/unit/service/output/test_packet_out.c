#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/consumer_port.pb-c.h"
#include "service/output/packet_out.h"
#include "service/sink/file_sink.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/wire/pb_reader.h"

#define PARTS(...) (&(struct packet_parts){ __VA_ARGS__ })

/* A test asks for more memory than there is. */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void);
const char *
__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

#define SOURCE_BYTES (1u << 20)

static uint8_t source[SOURCE_BYTES];

static int
fill_source(void **state)
{
	size_t i;

	for (i = 0; i < SOURCE_BYTES; i++)
		source[i] = (uint8_t)(i * 131 + (i >> 8));
	return 0;
}

/* What came out, as a reader sees it: bytes of packets, one after another. */
struct packets {
	uint8_t *data;
	size_t len;
	size_t ends[4096]; /* of each packet */
	size_t n;
};

static void
packets_append(struct packets *p, const uint8_t *data, size_t len, bool last)
{
	p->data = realloc(p->data, p->len + len + 1);
	if (len > 0)
		memcpy(p->data + p->len, data, len);
	p->len += len;
	if (last) {
		assert_true(p->n < sizeof(p->ends) / sizeof(*p->ends));
		p->ends[p->n++] = p->len;
	}
}

static void
packets_done(struct packets *p)
{
	free(p->data);
	memset(p, 0, sizeof(*p));
}

/* The i-th packet is size bytes of source, then the tail. */
static void
assert_packet(const struct packets *p, size_t i, const uint8_t *from,
    size_t size, const void *tail, size_t tail_len)
{
	size_t start = i == 0 ? 0 : p->ends[i - 1];

	assert_true(i < p->n);
	assert_int_equal(p->ends[i] - start, size + tail_len);
	assert_memory_equal(p->data + start, from, size);
	if (tail_len > 0)
		assert_memory_equal(p->data + start + size, tail, tail_len);
}

static void
take_batch(struct packets *p, const struct sink_batch *b)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, b->data, b->len);
	while (pb_next(&r, &f)) {
		assert_int_equal(f.number, 1);
		assert_int_equal(f.wire, PB_BYTES);
		packets_append(p, f.data, f.len, true);
	}
	assert_false(r.bad);
}

/* Takes the reply as a client does, and begins the next. */
static void
take_reply(struct packet_out *o, struct packets *p)
{
	Perfetto__Protos__ReadBuffersResponse *msg;
	const uint8_t *reply;
	size_t len, i;
	bool open = false;

	reply = packet_out_reply(o, &len);
	assert_true(len <= PACKET_REPLY_MAX);
	msg = perfetto__protos__read_buffers_response__unpack(NULL, len, reply);
	assert_non_null(msg);
	for (i = 0; i < msg->n_slices; i++) {
		open = !msg->slices[i]->last_slice_for_packet;
		packets_append(p, msg->slices[i]->data.data,
		    msg->slices[i]->data.len, !open);
		if (open)
			assert_int_equal(i, msg->n_slices - 1);
	}
	assert_int_equal(open, packet_out_pending(o));
	perfetto__protos__read_buffers_response__free_unpacked(msg, NULL);
	packet_out_next(o);
}

static void
take_replies(struct packet_out *o, struct packets *p)
{
	while (!packet_out_empty(o))
		take_reply(o, p);
}

static struct packet_trailer
trailer_of(int32_t uid, int32_t pid, uint32_t sequence, uint32_t machine)
{
	struct packet_trailer t;

	packet_trailer_init(&t, uid, pid, sequence, machine);
	return t;
}

static bool
put(struct packet_out *o, const uint8_t *data, size_t size,
    const struct packet_trailer *t, uint32_t loss)
{
	struct tb_slice s = { data, size };

	assert_true(packet_out_room(o));
	return packet_out_put(o, PARTS(&s, 1, size, t, loss));
}

static struct sink_batch
new_batch(void)
{
	struct sink_batch b = {
		.cap = SINK_BATCH_BYTES, .nominal = SINK_BATCH_BYTES,
	};

	b.data = malloc(b.cap);
	return b;
}

#define ASSERT_TRAILER(t, ...)                                           \
	do {                                                             \
		static const uint8_t want_[] = { __VA_ARGS__ };          \
		assert_int_equal((t).len, sizeof(want_));                \
		assert_memory_equal((t).bytes, want_, sizeof(want_));    \
	} while (0)

static void
the_trailer_is_the_recorded_one(void **state)
{
	struct packet_trailer t = trailer_of(0, 32100, 2, 0);

	/* consumer-record.jsonl */
	ASSERT_TRAILER(t, 0x18, 0x00, 0x50, 0x02, 0xf8, 0x04, 0xe4, 0xfa, 0x01);
}

static void
the_trailer_leaves_out_what_is_not_known(void **state)
{
	struct packet_trailer t = trailer_of(1000, 0, 300, 0);

	ASSERT_TRAILER(t, 0x18, 0xe8, 0x07, 0x50, 0xac, 0x02);
	t = trailer_of(1000, -1, 300, 0);
	ASSERT_TRAILER(t, 0x18, 0xe8, 0x07, 0x50, 0xac, 0x02);
}

static void
the_trailer_names_a_remote_machine(void **state)
{
	struct packet_trailer t = trailer_of(0, 32578, 2, 2306351469u);

	/* trace-relay.pftrace */
	ASSERT_TRAILER(t, 0x18, 0x00, 0x50, 0x02, 0xf8, 0x04, 0xc2, 0xfe, 0x01,
	    0x90, 0x06, 0xed, 0xc2, 0xe0, 0xcb, 0x08);
}

static void
the_longest_trailer_fits(void **state)
{
	struct packet_trailer t = trailer_of(-1, INT32_MAX, UINT32_MAX,
	    UINT32_MAX);

	assert_true(t.len <= PACKET_TRAILER_MAX);
	/* -1 takes ten bytes, as every int32 that is negative */
	assert_memory_equal(t.bytes,
	    "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x50", 12);
}

static void
a_file_gets_packets_with_their_trailer_and_loss(void **state)
{
	struct packet_trailer t = trailer_of(0, 32100, 2, 0);
	struct packet_out *o = packet_out_new_file();
	struct sink_batch b = new_batch();
	struct packets p = { 0 };
	static const uint8_t tail[] = { 0x18, 0x00, 0x50, 0x02, 0xf8, 0x04,
		0xe4, 0xfa, 0x01, 0xd0, 0x02, 0xc1, 0x02 };

	assert_non_null(o);
	packet_out_set_batch(o, &b);
	assert_true(packet_out_empty(o));
	assert_true(put(o, source, 100, &t, 0));
	assert_false(packet_out_empty(o));
	assert_int_equal(b.len, packet_out_size(100, &t, 0));
	assert_true(put(o, source, 100, &t, TB_LOSS_PRESENT | TB_LOSS_OVERWRITE
	    | TB_LOSS_SMB_FULL));
	assert_true(put(o, source, 200, NULL, 0));
	assert_true(put(o, source, 0, &t, 0));
	assert_int_equal(b.data[0], 0x0a);
	take_batch(&p, &b);
	assert_int_equal(p.n, 4);
	assert_packet(&p, 0, source, 100, t.bytes, t.len);
	assert_packet(&p, 1, source, 100, tail, sizeof(tail));
	assert_packet(&p, 2, source, 200, NULL, 0);
	assert_packet(&p, 3, source, 0, t.bytes, t.len);
	packets_done(&p);
	free(b.data);
	packet_out_free(o);
}

static void
the_size_in_a_file_is_known_before(void **state)
{
	static const size_t sizes[] = { 0, 1, 100, 118, 119, 127, 128, 16383,
		16384, 100000 };
	struct packet_trailer t = trailer_of(0, 32100, 2, 0);
	struct packet_out *o = packet_out_new_file();
	struct sink_batch b = new_batch();
	size_t i, loss;

	packet_out_set_batch(o, &b);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (loss = 0; loss < 512; loss += 100) {
			b.len = 0;
			assert_true(put(o, source, sizes[i], &t,
			    (uint32_t)loss));
			assert_int_equal(b.len, packet_out_size(sizes[i], &t,
			    (uint32_t)loss));
		}
	}
	free(b.data);
	packet_out_free(o);
}

static void
slices_are_joined(void **state)
{
	struct packet_trailer t = trailer_of(0, 1, 2, 0);
	struct packet_out *file = packet_out_new_file();
	struct packet_out *reply = packet_out_new_reply();
	struct sink_batch b = new_batch();
	struct packets p = { 0 };
	struct tb_slice s[4] = {
		{ source, 10 }, { source + 10, 0 }, { source + 10, 4000 },
		{ source + 4010, 1 },
	};

	packet_out_set_batch(file, &b);
	assert_true(packet_out_put(file, PARTS(s, 4, 4011, &t, 0)));
	take_batch(&p, &b);
	assert_true(packet_out_put(reply, PARTS(s, 4, 4011, &t, 0)));
	take_reply(reply, &p);
	assert_int_equal(p.n, 2);
	assert_packet(&p, 0, source, 4011, t.bytes, t.len);
	assert_packet(&p, 1, source, 4011, t.bytes, t.len);
	packets_done(&p);
	free(b.data);
	packet_out_free(file);
	packet_out_free(reply);
}

static void
a_file_has_room_until_its_batch_is_complete(void **state)
{
	struct packet_trailer t = trailer_of(0, 1, 2, 0);
	struct packet_out *o = packet_out_new_file();
	struct sink_batch b = new_batch();
	struct packets p = { 0 };
	size_t n = 0;

	assert_false(packet_out_room(o));
	assert_true(packet_out_empty(o));
	packet_out_set_batch(o, &b);
	for (; packet_out_room(o); n++)
		assert_true(put(o, source, 100, &t, 1));
	assert_true(b.len >= SINK_BATCH_BYTES);
	assert_true(b.len < SINK_BATCH_BYTES + 200);
	take_batch(&p, &b);
	assert_int_equal(p.n, n);
	packet_out_set_batch(o, NULL);
	assert_false(packet_out_room(o));
	packets_done(&p);
	free(b.data);
	packet_out_free(o);
}

static void
a_file_takes_the_packet_that_was_asked_for_however_large(void **state)
{
	struct packet_trailer t = trailer_of(0, 1, 2, 0);
	struct packet_out *o = packet_out_new_file();
	struct sink_batch b = new_batch();
	struct packets p = { 0 };

	packet_out_set_batch(o, &b);
	assert_true(put(o, source, SINK_BATCH_BYTES - 100, &t, 0));
	assert_true(put(o, source, SOURCE_BYTES, &t, 0));
	assert_false(packet_out_room(o));
	take_batch(&p, &b);
	assert_int_equal(p.n, 2);
	assert_packet(&p, 1, source, SOURCE_BYTES, t.bytes, t.len);
	packets_done(&p);
	free(b.data);
	packet_out_free(o);
}

static void
without_memory_the_output_stays_as_it_was(void **state)
{
	struct packet_trailer t = trailer_of(0, 1, 2, 0);
	struct packet_out *file = packet_out_new_file();
	struct packet_out *reply = packet_out_new_reply();
	struct sink_batch b = new_batch();
	size_t huge = SIZE_MAX / 4, before, after;

	packet_out_set_batch(file, &b);
	assert_true(put(file, source, 100, &t, 0));
	before = b.len;
	assert_false(packet_out_put(file, PARTS(NULL, 0, huge, &t, 0)));
	assert_int_equal(b.len, before);
	assert_true(packet_out_room(file));

	assert_true(put(reply, source, 100, &t, 0));
	packet_out_reply(reply, &before);
	assert_false(packet_out_put(reply, PARTS(NULL, 0, huge, &t, 0)));
	packet_out_reply(reply, &after);
	assert_int_equal(after, before);
	assert_false(packet_out_pending(reply));
	assert_true(packet_out_room(reply));
	free(b.data);
	packet_out_free(file);
	packet_out_free(reply);
}

static void
an_empty_reply_is_an_empty_message(void **state)
{
	struct packet_out *o = packet_out_new_reply();
	struct packets p = { 0 };
	size_t len = 1;

	assert_true(packet_out_empty(o));
	packet_out_reply(o, &len);
	assert_int_equal(len, 0);
	take_reply(o, &p);
	assert_int_equal(p.n, 0);
	assert_true(packet_out_room(o));
	packets_done(&p);
	packet_out_free(o);
}

static void
a_reply_gathers_small_packets(void **state)
{
	struct packet_trailer t = trailer_of(0, 1, 2, 0);
	struct packet_out *o = packet_out_new_reply();
	struct packets p = { 0 };
	size_t n = 0, i, len;

	for (; packet_out_room(o); n++)
		assert_true(put(o, source + n, 100, &t, n == 3));
	assert_true(n > 900);
	assert_false(packet_out_pending(o));
	packet_out_reply(o, &len);
	assert_true(len > 100 * 1024);
	take_reply(o, &p);
	assert_int_equal(p.n, n);
	assert_true(packet_out_empty(o));
	for (i = 0; i < n; i++)
		if (i != 3)
			assert_packet(&p, i, source + i, 100, t.bytes, t.len);
	packets_done(&p);
	packet_out_free(o);
}

/* Every size around the edge of a reply, behind every kind of trailer. */
static void
a_packet_at_the_edge_of_a_reply_survives(void **state)
{
	struct packet_trailer t = trailer_of(0, 1, 2, 77);
	struct packet_out *o = packet_out_new_reply();
	size_t before, size, kind, tail, edge;
	uint8_t want[64];

	for (kind = 0; kind < 4; kind++) {
		bool with = kind & 1;
		uint32_t loss = kind & 2 ? 3 : 0;

		tail = 0;
		if (with) {
			memcpy(want, t.bytes, t.len);
			tail = t.len;
		}
		if (loss) {
			memcpy(want + tail, "\xd0\x02\x03", 3);
			tail += 3;
		}
		for (before = 0; before <= 2; before++) {
			/* 110: what each packet before it takes */
			edge = PACKET_REPLY_MAX - before * 110;
			for (size = edge - 110; size < edge + 20; size++) {
				struct packets p = { 0 };
				size_t i;

				for (i = 0; i < before; i++)
					assert_true(put(o, source, 100, NULL,
					    0));
				assert_true(put(o, source, size,
				    with ? &t : NULL, loss));
				take_replies(o, &p);
				assert_int_equal(p.n, before + 1);
				assert_packet(&p, before, source, size, want,
				    tail);
				packets_done(&p);
			}
		}
	}
	packet_out_free(o);
}

static void
a_large_packet_is_cut_over_replies_and_nothing_comes_between(void **state)
{
	struct packet_trailer t = trailer_of(0, 1, 2, 0);
	struct packet_out *o = packet_out_new_reply();
	struct packets p = { 0 };
	struct tb_slice s[257];
	size_t i, replies = 0;

	for (i = 0; i < 256; i++)
		s[i] = (struct tb_slice){ source + i * 4096, 4096 };
	assert_true(put(o, source, 50, &t, 0));
	assert_true(packet_out_put(o, PARTS(s, 256, SOURCE_BYTES, &t, 0)));
	while (packet_out_pending(o)) {
		assert_false(packet_out_room(o));
		take_reply(o, &p);
		replies++;
	}
	/* What is left of it shares its reply with what follows */
	assert_true(packet_out_room(o));
	assert_true(put(o, source, 60, &t, 0));
	take_reply(o, &p);
	assert_int_equal(replies, SOURCE_BYTES / PACKET_REPLY_MAX);
	assert_true(packet_out_empty(o));
	assert_int_equal(p.n, 3);
	assert_packet(&p, 0, source, 50, t.bytes, t.len);
	assert_packet(&p, 1, source, SOURCE_BYTES, t.bytes, t.len);
	assert_packet(&p, 2, source, 60, t.bytes, t.len);
	packets_done(&p);
	packet_out_free(o);
}

static void
an_output_with_a_cut_packet_can_be_thrown_away(void **state)
{
	struct packet_out *o = packet_out_new_reply();

	assert_true(put(o, source, SOURCE_BYTES, NULL, 0));
	assert_true(packet_out_pending(o));
	packet_out_free(o);
	packet_out_free(NULL);
}

/* The largest envelope that rpc_host can put around a reply. */
static void
the_frame_around_a_full_reply_is_within_the_limit(void **state)
{
	size_t reply_proto = 1 + 5 + PACKET_REPLY_MAX;
	size_t invoke_reply = 1 + 5 + reply_proto + 2 + 2;
	size_t frame = FRAME_HEADER_BYTES + 1 + 10 + invoke_reply;

	assert_true(frame <= FRAME_MAX_BYTES);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_trailer_is_the_recorded_one),
		cmocka_unit_test(the_trailer_leaves_out_what_is_not_known),
		cmocka_unit_test(the_trailer_names_a_remote_machine),
		cmocka_unit_test(the_longest_trailer_fits),
		cmocka_unit_test(
		    a_file_gets_packets_with_their_trailer_and_loss),
		cmocka_unit_test(the_size_in_a_file_is_known_before),
		cmocka_unit_test(slices_are_joined),
		cmocka_unit_test(a_file_has_room_until_its_batch_is_complete),
		cmocka_unit_test(
		    a_file_takes_the_packet_that_was_asked_for_however_large),
		cmocka_unit_test(without_memory_the_output_stays_as_it_was),
		cmocka_unit_test(an_empty_reply_is_an_empty_message),
		cmocka_unit_test(a_reply_gathers_small_packets),
		cmocka_unit_test(a_packet_at_the_edge_of_a_reply_survives),
		cmocka_unit_test(
		    a_large_packet_is_cut_over_replies_and_nothing_comes_between),
		cmocka_unit_test(
		    an_output_with_a_cut_packet_can_be_thrown_away),
		cmocka_unit_test(
		    the_frame_around_a_full_reply_is_within_the_limit),
	};

	return cmocka_run_group_tests(tests, fill_source, NULL);
}
