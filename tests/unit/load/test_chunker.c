#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/bench/load/chunker.h"
#include "tests/bench/load/numbered.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define KEY 77u

/* Puts packets together again from chunks, as a reader does. */
struct reader {
	struct chunker chunker;
	struct pb_writer scratch, packet, commit;
	uint32_t chunks;
	uint64_t packets;
	uint64_t broken; /* whole, but not as they were written */
	bool in_packet;
	uint8_t first[CHUNKER_BYTES]; /* of a packet, where it wants a patch */
	unsigned flags_seen;
};

static int
setup(void **state)
{
	struct reader *r = calloc(1, sizeof(*r));

	chunker_init(&r->chunker, KEY, false);
	pb_writer_init(&r->scratch);
	pb_writer_init(&r->packet);
	pb_writer_init(&r->commit);
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	struct reader *r = *state;

	chunker_done(&r->chunker);
	pb_writer_done(&r->scratch);
	pb_writer_done(&r->packet);
	pb_writer_done(&r->commit);
	free(r);
	return 0;
}

static void
look_at_packet(struct reader *r)
{
	struct pb_reader pb;
	struct numbered n;
	struct pb_field f;
	bool found = false;

	pb_init(&pb, r->packet.data, r->packet.len);
	while (pb_next(&pb, &f))
		if (f.number == 900)
			found = numbered_read(&n, &f);
	if (pb.bad || !found || !n.whole || n.key != KEY ||
	    n.number != r->packets)
		r->broken++;
	r->packets++;
	pb_writer_reset(&r->packet);
}

static void
read_chunk(void *arg, const struct chunker_chunk *c)
{
	struct reader *r = arg;
	const uint8_t *p = c->payload, *end = p + c->len;
	uint64_t len = 0;
	unsigned i;

	assert_int_equal(c->id, r->chunks++);
	assert_true(c->len <= CHUNKER_BYTES);
	r->flags_seen |= c->flags;
	assert_int_equal(r->in_packet,
	    (c->flags & SHM_FIRST_CONTINUES_FROM_PREV) != 0);
	for (i = 0; i < c->fragments; i++) {
		p = pb_varint(p, end, &len);
		assert_non_null(p);
		assert_true(len <= (uint64_t)(end - p));
		pb_put_raw(&r->packet, p, len);
		p += len;
		r->in_packet = i + 1u == c->fragments &&
		    (c->flags & SHM_LAST_CONTINUES_ON_NEXT) != 0;
		if (!r->in_packet)
			look_at_packet(r);
	}
	assert_ptr_equal(p, end);
}

static void
write_packets(struct reader *r, unsigned n, size_t min, size_t step)
{
	unsigned i;

	for (i = 0; i < n; i++)
		assert_int_equal(chunker_packet(&r->chunker, min + i * step,
		    i, &r->scratch, read_chunk, r), 0);
}

static void
packets_of_all_sizes_come_out_whole(void **state)
{
	struct reader *r = *state;

	write_packets(r, 3000, 1, 7);
	(void)chunker_flush(&r->chunker, read_chunk, r);
	assert_int_equal(r->packets, 3000);
	assert_int_equal(r->broken, 0);
	assert_int_equal(chunker_complete(&r->chunker), 3000);
	assert_false(chunker_flush(&r->chunker, read_chunk, r));
}

static void
a_packet_is_about_as_large_as_it_was_asked_to_be(void **state)
{
	static const size_t sizes[] = { 64, 100, 140, 141, 300, 5000, 16400,
		16500, 100000 };
	struct reader *r = *state;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		(void)numbered_put(&r->scratch, KEY, 1000000, UINT64_C(1) <<
		    50, 0, sizes[i]);
		assert_true(r->scratch.len <= sizes[i] + 8);
		assert_true(r->scratch.len + 8 >= sizes[i]);
	}
}

static void
what_lies_in_an_open_chunk_is_not_complete(void **state)
{
	struct reader *r = *state;

	write_packets(r, 5, 100, 0);
	assert_int_equal(r->chunks, 0);
	assert_int_equal(chunker_complete(&r->chunker), 0);
	assert_true(chunker_flush(&r->chunker, read_chunk, r));
	assert_int_equal(chunker_complete(&r->chunker), 5);
}

static void
a_size_that_is_to_be_patched_is_zero_until_then(void **state)
{
	struct reader *r = *state;
	struct pb_reader pb;
	struct pb_field f;

	r->chunker.patching = true;
	write_packets(r, 1, 100, 0);
	write_packets(r, 1, 9000, 0);
	assert_true(r->flags_seen & SHM_NEEDS_PATCHING);
	assert_int_equal(r->packets, 2);
	assert_int_equal(r->broken, 1);
	assert_int_equal(chunker_complete(&r->chunker), 1);

	chunker_put_patches(&r->chunker, 3, 4, &r->commit);
	assert_int_equal(chunker_complete(&r->chunker), 2);
	pb_init(&pb, r->commit.data, r->commit.len);
	assert_true(pb_next(&pb, &f));
	assert_int_equal(f.number, 2); /* chunks_to_patch */
	assert_false(pb_next(&pb, &f));
	assert_false(pb.bad);
}

static void
a_sequence_with_state_begins_anew_when_it_is_told(void **state)
{
	static const uint32_t expected[] = { 3, 2, 2, 3, 2 };
	struct reader *r = *state;
	uint64_t flags;
	struct pb_reader pb;
	struct pb_field f;
	size_t i;

	chunker_begin_anew(&r->chunker);
	for (i = 0; i < 5; i++) {
		if (i == 3)
			chunker_begin_anew(&r->chunker);
		write_packets(r, 1, 100, 0);
		flags = 0;
		PB_FOREACH(&f, &pb, r->scratch.data, r->scratch.len)
			if (f.number == 13)
				flags = f.value;
		assert_int_equal(flags, expected[i]);
	}
}

static void
a_byte_that_was_changed_is_noticed(void **state)
{
	struct reader *r = *state;
	struct numbered n;
	struct pb_reader pb;
	struct pb_field f, event = { .data = NULL };
	size_t i, noticed = 0, readable = 0;

	(void)numbered_put(&r->scratch, KEY, 3, 4, 0, 200);
	pb_init(&pb, r->scratch.data, r->scratch.len);
	while (pb_next(&pb, &f))
		if (f.number == 900)
			event = f;
	for (i = 0; i < event.len; i++) {
		((uint8_t *)event.data)[i] ^= 1;
		if (numbered_read(&n, &event)) {
			readable++;
			noticed += !n.whole;
		}
		((uint8_t *)event.data)[i] ^= 1;
	}
	assert_true(readable > 100);
	assert_int_equal(noticed, readable);
	assert_true(numbered_read(&n, &event));
	assert_true(n.whole);
}

/* The same packets again: what counts them begins anew. */
static void
read_repeated(void *arg, const struct chunker_chunk *c)
{
	struct reader *r = arg;

	r->packets = 0;
	read_chunk(r, c);
	assert_int_equal(r->packets, c->fragments);
}

static void
a_repeated_chunk_is_full_of_whole_packets(void **state)
{
	static const size_t sizes[] = { 64, 200, 1500, CHUNKER_REPEAT_MAX };
	struct reader *r;
	uint64_t packets;
	size_t i, k, first = 0;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		teardown(state);
		setup(state);
		r = *state;
		for (k = 0; k < 3; k++) {
			assert_int_equal(chunker_repeat(&r->chunker, sizes[i],
			    k, &r->scratch, read_repeated, r), 0);
			assert_int_equal(r->chunks, k + 1);
			first = k == 0 ? r->chunker.bytes : first;
			assert_int_equal(r->chunker.bytes, (k + 1) * first);
		}
		packets = r->packets;
		assert_int_equal(r->broken, 0);
		assert_int_equal(r->flags_seen, 0);
		assert_true(first + sizes[i] + 100 + packets * 4 >
		    CHUNKER_BYTES);
		assert_int_equal(r->chunker.next_packet, 3 * packets);
		assert_int_equal(chunker_complete(&r->chunker), 3 * packets);
		assert_false(chunker_flush(&r->chunker, read_repeated, r));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    packets_of_all_sizes_come_out_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_packet_is_about_as_large_as_it_was_asked_to_be, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    what_lies_in_an_open_chunk_is_not_complete, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    a_size_that_is_to_be_patched_is_zero_until_then, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    a_sequence_with_state_begins_anew_when_it_is_told, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    a_byte_that_was_changed_is_noticed, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_repeated_chunk_is_full_of_whole_packets, setup,
		    teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
