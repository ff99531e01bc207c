#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/link.pb-c.h"
#include "tests/unit/transport/wire/put_fixed64.h"
#include "transport/link/link_in.h"
#include "transport/link/link_wire.h"
#include "transport/link/link_zstd.h"
#include "transport/wire/frame.h"
#include "transport/wire/pb_writer.h"

static struct pb_writer w;

static int
setup(void **state)
{
	pb_writer_init(&w);
	return 0;
}

static int
teardown(void **state)
{
	pb_writer_done(&w);
	return 0;
}

/* A frame as f says, with `fill` as its block, in w. */
static void
put_frame(const struct link_frame *f, int fill)
{
	uint8_t head[LINK_HEAD_MAX], *block;

	pb_put_raw(&w, head, link_put_head(head, f));
	if (f->number != 0) {
		assert_non_null(block = malloc(f->len));
		memset(block, fill, f->len);
		pb_put_raw(&w, block, f->len);
		free(block);
	}
	assert_false(w.failed);
}

static int
parse(struct link_frame *f)
{
	return link_parse_frame(f, w.data, w.len);
}

static void
a_frame_with_all_it_may_hold_reads_back_as_written(void **state)
{
	static const uint8_t clock[] = { 0x08, 0x01 }, status[] = { 0x28, 0x07 };
	struct link_frame f = {
		.number = UINT64_MAX,
		.channel = UINT32_MAX,
		.len = 1000,
		.has_received = true,
		.received = 77,
		.has_consumed_in_all = true,
		.consumed_in_all = UINT64_MAX - 1,
		.clock = clock,
		.clock_len = sizeof(clock),
		.status = status,
		.status_len = sizeof(status),
	}, got;
	uint8_t consumed[LINK_CONSUMED_MAX];
	uint32_t channel;
	uint64_t bytes;

	pb_put_raw(&w, consumed, link_put_consumed(consumed, 3, 4000));
	pb_put_raw(&w, consumed, link_put_consumed(consumed, UINT32_MAX,
	    UINT64_MAX));
	pb_put_raw(&w, consumed, link_put_consumed(consumed, 0, 0));
	put_frame(&f, 'b');

	assert_int_equal(parse(&got), 0);
	assert_true(got.number == UINT64_MAX);
	assert_int_equal(got.channel, UINT32_MAX);
	assert_int_equal(got.len, 1000);
	assert_ptr_equal(got.block, w.data + w.len - 1000);
	assert_false(got.compressed);
	assert_true(got.has_received && got.received == 77);
	assert_true(got.has_consumed_in_all);
	assert_true(got.consumed_in_all == UINT64_MAX - 1);
	assert_int_equal(got.clock_len, sizeof(clock));
	assert_memory_equal(got.clock, clock, sizeof(clock));
	assert_int_equal(got.status_len, sizeof(status));
	assert_memory_equal(got.status, status, sizeof(status));

	assert_true(link_next_consumed(&got, &channel, &bytes));
	assert_true(channel == 3 && bytes == 4000);
	assert_true(link_next_consumed(&got, &channel, &bytes));
	assert_true(channel == UINT32_MAX && bytes == UINT64_MAX);
	assert_true(link_next_consumed(&got, &channel, &bytes));
	assert_true(channel == 0 && bytes == 0);
	assert_false(link_next_consumed(&got, &channel, &bytes));
}

static void
generated_code_reads_the_same(void **state)
{
	struct link_frame f = { .number = 5, .channel = 2, .len = 300,
		.compressed = true, .raw_size = 4096, .has_received = true };
	uint8_t consumed[LINK_CONSUMED_MAX];
	Tributary__LinkFrame *m;

	pb_put_raw(&w, consumed, link_put_consumed(consumed, 9, 81));
	put_frame(&f, 'z');
	m = tributary__link_frame__unpack(NULL, w.len, w.data);
	assert_non_null(m);
	assert_int_equal(m->number, 5);
	assert_int_equal(m->channel, 2);
	assert_false(m->has_block);
	assert_int_equal(m->zstd_block.len, 300);
	assert_int_equal(m->zstd_block.data[299], 'z');
	assert_int_equal(m->raw_size, 4096);
	assert_true(m->has_received && m->received == 0);
	assert_int_equal(m->n_consumed, 1);
	assert_int_equal(m->consumed[0]->channel, 9);
	assert_int_equal(m->consumed[0]->bytes, 81);
	assert_null(m->clock);
	tributary__link_frame__free_unpacked(m, NULL);
}

static void
a_frame_may_be_empty_and_unknown_fields_are_skipped(void **state)
{
	struct link_frame f;

	assert_int_equal(link_parse_frame(&f, NULL, 0), 0);
	assert_int_equal(f.number, 0);
	assert_null(f.block);
	assert_false(f.has_received);
	assert_false(f.has_consumed_in_all);
	pb_put_uint(&w, 200, 1);
	pb_put_string(&w, 201, "later");
	put_fixed64(&w, 202, 7);
	pb_put_uint(&w, 6, 4);
	assert_int_equal(parse(&f), 0);
	assert_true(f.has_received && f.received == 4);
}

/* Whether exactly the fields that stand in w are refused; empties it. */
static void
assert_refused(void)
{
	struct link_frame f = { .number = 99 };

	assert_int_equal(parse(&f), -1);
	assert_int_equal(f.number, 99); /* untouched */
	pb_writer_reset(&w);
}

static void
frames_that_contradict_themselves_are_refused(void **state)
{
	pb_put_uint(&w, 1, 1); /* a number without a block */
	assert_refused();
	pb_put_string(&w, 3, "block"); /* a block without a number */
	assert_refused();
	pb_put_uint(&w, 1, 0);
	pb_put_string(&w, 3, "block");
	assert_refused();
	pb_put_uint(&w, 1, 1); /* an empty block */
	pb_put_string(&w, 3, "");
	assert_refused();
	pb_put_uint(&w, 1, 1); /* two */
	pb_put_string(&w, 3, "one");
	pb_put_string(&w, 3, "two");
	assert_refused();
	pb_put_uint(&w, 1, 1); /* plain and compressed */
	pb_put_string(&w, 3, "one");
	pb_put_string(&w, 4, "two");
	pb_put_uint(&w, 5, 3);
	assert_refused();
	pb_put_uint(&w, 1, 1); /* of no size */
	pb_put_string(&w, 4, "two");
	assert_refused();
}

static void
blocks_are_refused_from_one_byte_over_the_limit(void **state)
{
	struct link_frame f = { .number = 1, .len = LINK_BLOCK_MAX }, got;

	put_frame(&f, 0);
	assert_int_equal(parse(&got), 0);
	assert_int_equal(got.len, LINK_BLOCK_MAX);
	pb_writer_reset(&w);
	f.len++;
	put_frame(&f, 0);
	assert_refused();

	f.compressed = true;
	f.len = LINK_ZSTD_BLOCK_MAX;
	f.raw_size = LINK_BLOCK_MAX;
	put_frame(&f, 0);
	assert_int_equal(parse(&got), 0);
	assert_int_equal(got.raw_size, LINK_BLOCK_MAX);
	pb_writer_reset(&w);
	f.len++;
	put_frame(&f, 0);
	assert_refused();
	f.len = 10;
	f.raw_size++;
	put_frame(&f, 0);
	assert_refused();
}

static void
fields_of_a_wrong_type_or_range_are_refused(void **state)
{
	uint32_t i;

	for (i = 1; i <= 10; i++) {
		/* none of them is a fixed64 */
		put_fixed64(&w, i, 1);
		assert_refused();
	}
	pb_put_uint(&w, 2, (uint64_t)UINT32_MAX + 1);
	assert_refused();
	pb_put_bytes(&w, 7, "\x08\x80\x80\x80\x80\x10", 6); /* channel 2^32 */
	assert_refused();
	pb_put_bytes(&w, 7, "\x08", 1);
	assert_refused();
	pb_put_bytes(&w, 7, "\x12\x00", 2); /* bytes is a varint */
	assert_refused();
	pb_put_raw(&w, "\x08\x01\x1a\x05xx", 6); /* cut short */
	assert_refused();
}

static void
the_longest_head_and_block_fit_a_frame(void **state)
{
	uint8_t clock[LINK_CLOCK_MAX] = { 0 }, status[LINK_STATUS_MAX] = { 0 };
	uint8_t head[LINK_HEAD_MAX], small[LINK_CONSUMED_MAX];
	struct link_frame f = {
		.number = UINT64_MAX,
		.channel = UINT32_MAX,
		.len = LINK_ZSTD_BLOCK_MAX,
		.compressed = true,
		.raw_size = LINK_BLOCK_MAX,
		.has_received = true,
		.received = UINT64_MAX,
		.has_consumed_in_all = true,
		.consumed_in_all = UINT64_MAX,
		.clock = clock,
		.clock_len = sizeof(clock),
		.status = status,
		.status_len = sizeof(status),
	};
	size_t n = link_put_head(head, &f);

	assert_true(n <= LINK_HEAD_MAX);
	assert_true(link_put_consumed(small, UINT32_MAX, UINT64_MAX) <=
	    LINK_CONSUMED_MAX);
	/* and there is room for what IPCFrame needs around it */
	assert_true(n + f.len + 64 <= FRAME_PAYLOAD_MAX);
}

static void
messages_of_a_block_read_back_as_written(void **state)
{
	uint8_t head[LINK_MESSAGE_HEAD_MAX];
	Tributary__LinkUpBlock *m;

	pb_put_raw(&w, head, link_put_message_head(head, LINK_UP_COMMIT, 3));
	pb_put_raw(&w, "abc", 3);
	pb_put_raw(&w, head, link_put_varint(head, LINK_UP_STARTED,
	    UINT64_MAX));
	pb_put_raw(&w, head, link_put_varint(head, LINK_UP_CLOSE_BELOW,
	    UINT32_MAX));
	pb_put_raw(&w, head, link_put_message_head(head, LINK_UP_CLOSE, 0));
	m = tributary__link_up_block__unpack(NULL, w.len, w.data);
	assert_non_null(m);
	assert_int_equal(m->n_commit, 1);
	assert_memory_equal(m->commit[0].data, "abc", 3);
	assert_int_equal(m->n_started, 1);
	assert_true(m->started[0] == UINT64_MAX);
	assert_int_equal(m->close_below[0], UINT32_MAX);
	assert_int_equal(m->n_close, 1);
	tributary__link_up_block__free_unpacked(m, NULL);
	/* the longest message fits a block */
	assert_true(link_put_message_head(head, LINK_UP_COMMIT,
	    LINK_MESSAGE_MAX) + LINK_MESSAGE_MAX <= LINK_BLOCK_MAX);
}

static void
losses_read_back_as_written(void **state)
{
	struct link_loss l = { .writer = UINT32_MAX, .buffer = UINT32_MAX - 1,
		.cause = LINK_LOSS_OF_RELAYS - 1, .chunks = UINT64_MAX,
		.packets = UINT64_MAX - 1, .bytes = UINT64_MAX - 2,
		.old_channel = UINT32_MAX - 2, .first_chunk = UINT32_MAX - 3,
		.last_chunk = UINT32_MAX - 4 }, got, none;
	uint8_t out[LINK_LOSS_MAX];
	size_t n = link_put_loss(out, &l);

	memset(&none, 0, sizeof(none));
	assert_true(n <= LINK_LOSS_MAX);
	assert_int_equal(link_parse_loss(&got, out, n), 0);
	assert_true(got.writer == l.writer && got.buffer == l.buffer);
	assert_true(got.cause == l.cause && got.chunks == l.chunks);
	assert_true(got.packets == l.packets && got.bytes == l.bytes);
	assert_true(got.old_channel == l.old_channel);
	assert_true(got.first_chunk == l.first_chunk);
	assert_true(got.last_chunk == l.last_chunk);
	assert_int_equal(link_put_loss(out, &none), 0);
	assert_int_equal(link_parse_loss(&got, out, 0), 0);
	assert_int_equal(got.writer, 0);
	assert_int_equal(got.chunks, 0);
	assert_int_equal(got.last_chunk, 0);
}

static void
malformed_losses_are_refused_and_unknown_causes_are_read(void **state)
{
	struct link_loss got = { .writer = 5 };

	assert_int_equal(link_parse_loss(&got, (const uint8_t *)"\x08", 1), -1);
	assert_int_equal(link_parse_loss(&got, (const uint8_t *)"\x0a\x00", 2),
	    -1);
	assert_int_equal(link_parse_loss(&got,
	    (const uint8_t *)"\x08\x80\x80\x80\x80\x10", 6), -1);
	assert_int_equal(got.writer, 5);
	assert_int_equal(link_parse_loss(&got,
	    (const uint8_t *)"\x18\x08\x20\x02", 4), 0);
	assert_int_equal(got.cause, 0);
	assert_int_equal(got.chunks, 2);
}

static void
every_cause_has_words(void **state)
{
	uint32_t i, j;

	for (i = 0; i < LINK_LOSS_CAUSES; i++)
		for (j = 0; j < i; j++)
			assert_string_not_equal(link_loss_text(i),
			    link_loss_text(j));
	assert_string_equal(link_loss_text(1), "spool full");
	assert_string_equal(link_loss_text(LINK_LOSS_CAUSES),
	    link_loss_text(0));
	assert_int_equal(TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_CUT_AT_END,
	    LINK_LOSS_OF_RELAYS - 1);
	assert_int_equal(TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_QUOTA,
	    LINK_LOSS_CAUSES - 1);
}

static void
blocks_are_taken_once_and_in_order(void **state)
{
	struct link_in in = { 0 };

	assert_int_equal(link_in_take(&in, 2), LINK_IN_GAP);
	assert_int_equal(link_in_take(&in, 1), LINK_IN_NEW);
	assert_int_equal(link_in_take(&in, 2), LINK_IN_NEW);
	assert_int_equal(link_in_take(&in, 1), LINK_IN_AGAIN);
	assert_int_equal(link_in_take(&in, 2), LINK_IN_AGAIN);
	assert_int_equal(link_in_take(&in, 4), LINK_IN_GAP);
	assert_int_equal(link_in_take(&in, UINT64_MAX), LINK_IN_GAP);
	assert_int_equal(in.received, 2);
}

int
main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_frame_with_all_it_may_hold_reads_back_as_written),
		CASE(generated_code_reads_the_same),
		CASE(a_frame_may_be_empty_and_unknown_fields_are_skipped),
		CASE(frames_that_contradict_themselves_are_refused),
		CASE(blocks_are_refused_from_one_byte_over_the_limit),
		CASE(fields_of_a_wrong_type_or_range_are_refused),
		CASE(the_longest_head_and_block_fit_a_frame),
		CASE(messages_of_a_block_read_back_as_written),
		CASE(losses_read_back_as_written),
		CASE(malformed_losses_are_refused_and_unknown_causes_are_read),
		CASE(every_cause_has_words),
		CASE(blocks_are_taken_once_and_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
