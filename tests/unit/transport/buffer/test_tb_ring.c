/* Overwriting, discarding, sizes: what becomes of the ring and its counters. */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/unit/transport/buffer/tb_fixture.h"
#include "tests/unit/transport/buffer/tb_overhead.h"
#include "transport/buffer/tb_record.h"

static const struct tb_stats *
stats(const struct trace_buffer *tb)
{
	return trace_buffer_stats(tb);
}

static void
a_ring_overwrites_the_oldest_and_says_so(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	/* 8 chunks of 512 bytes fill the page */
	for (i = 0; i < 10; i++)
		commit(tb, 1, 1, i, 0, "a494");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a494", TB_LOSS_OVERWRITE);
	for (i = 0; i < 7; i++)
		expect_packet(tb, "a494", 0);
	expect_end(tb);
	assert_int_equal(stats(tb)->chunks_written, 10);
	assert_int_equal(stats(tb)->bytes_written, 10 * 512);
	assert_int_equal(stats(tb)->chunks_overwritten, 2);
	assert_int_equal(stats(tb)->bytes_overwritten, 2 * 512);
	assert_int_equal(stats(tb)->chunks_read, 8);
	assert_int_equal(stats(tb)->bytes_read, 8 * 512);
	assert_int_equal(stats(tb)->write_wrap_count, 1);
	assert_int_equal(stats(tb)->padding_bytes_written, 0);
	assert_int_equal(stats(tb)->buffer_size, 4096);
	expect_balance(tb, 0, 0, 0);
}

static void
the_rest_of_the_ring_is_padded_when_a_chunk_does_not_fit(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	for (i = 0; i < 4; i++)
		commit(tb, 1, 1, i, 0, "a974");
	assert_int_equal(outer("a974"), 992);
	assert_int_equal(stats(tb)->padding_bytes_written, 0);
	/* 4096 - 3968 = 128 bytes are left; a chunk of 992 goes to 0. */
	commit(tb, 1, 1, 4, 0, "a974");
	assert_int_equal(stats(tb)->padding_bytes_written, 128);
	assert_int_equal(stats(tb)->padding_bytes_cleared, 0);
	assert_int_equal(stats(tb)->write_wrap_count, 1);
	assert_int_equal(stats(tb)->chunks_overwritten, 1);
	for (i = 5; i < 9; i++)
		commit(tb, 1, 1, i, 0, "a974");
	/* Cleared and padded again. */
	assert_int_equal(stats(tb)->padding_bytes_written, 256);
	assert_int_equal(stats(tb)->padding_bytes_cleared, 128);
	assert_int_equal(stats(tb)->write_wrap_count, 2);
	expect_balance(tb, 4, 4 * 992, 128);
}

static void
what_a_chunk_leaves_of_those_it_overwrites_is_padding(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	for (i = 0; i < 8; i++)
		commit(tb, 1, 1, i, 0, "a494");
	/* 600 bytes over two chunks of 512: 424 are left. */
	assert_int_equal(outer("b582"), 600);
	commit(tb, 2, 1, 0, 0, "b582");
	assert_int_equal(stats(tb)->chunks_overwritten, 2);
	assert_int_equal(stats(tb)->padding_bytes_written, 424);
	/* 100 of them, 324 are left. */
	assert_int_equal(outer("c79"), 96);
	commit(tb, 2, 1, 1, 0, "c79");
	assert_int_equal(stats(tb)->chunks_overwritten, 2);
	assert_int_equal(stats(tb)->padding_bytes_cleared, 424);
	assert_int_equal(stats(tb)->padding_bytes_written, 424 + 328);
	expect_balance(tb, 8, 6 * 512 + 600 + 96, 328);
}

static void
what_is_left_of_a_chunk_that_was_read_is_no_padding(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	for (i = 0; i < 8; i++)
		commit(tb, 1, 1, i, 0, "a494");
	trace_buffer_begin_read(tb);
	for (i = 0; i < 8; i++)
		expect_packet(tb, "a494", 0);
	commit(tb, 2, 1, 0, 0, "b582");
	assert_int_equal(stats(tb)->chunks_overwritten, 0);
	assert_int_equal(stats(tb)->padding_bytes_written, 0);
	expect_balance(tb, 1, 600, 0);
}

static void
overwriting_reads_in_sequence_order_what_is_about_to_go(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	/* Chunk 1 is the oldest in the ring, but 0 comes before it. */
	commit(tb, 1, 1, 1, 0, "b494");
	commit(tb, 1, 1, 0, 0, "a494");
	commit(tb, 1, 1, 2, 0, "c494");
	for (i = 0; i < 6; i++)
		commit(tb, 2, 1, i, 0, "x494");
	assert_int_equal(stats(tb)->chunks_overwritten, 2);
	assert_int_equal(stats(tb)->bytes_overwritten, 2 * 512);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "c494", TB_LOSS_OVERWRITE);
	expect_packet(tb, "x494", 0);
}

static void
overwriting_the_begin_of_a_packet_takes_its_end_along(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	commit(tb, 1, 1, 0, TO_NEXT, "a494");
	commit(tb, 1, 1, 1, FROM_PREV, "b243 c249");
	for (i = 0; i < 7; i++)
		commit(tb, 2, 1, i, 0, "x494");
	assert_int_equal(stats(tb)->readaheads_succeeded, 1);
	assert_int_equal(stats(tb)->chunks_overwritten, 1);
	trace_buffer_begin_read(tb);
	/* b is no orphan: it went with a. */
	expect_packet(tb, "c249", TB_LOSS_OVERWRITE);
}

static void
overwriting_what_was_read_in_part_is_a_loss(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	commit(tb, 1, 1, 0, 0, "a243 b241");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a243", 0);
	for (i = 0; i < 8; i++)
		commit(tb, 2, 1, i, 0, "x494");
	commit(tb, 1, 1, 1, 0, "c1");
	assert_int_equal(stats(tb)->chunks_overwritten, 2);
	assert_int_equal(stats(tb)->chunks_read, 0);
	trace_buffer_begin_read(tb);
	for (i = 1; i < 8; i++)
		expect_packet(tb, "x494", i == 1 ? TB_LOSS_OVERWRITE : 0);
	expect_packet(tb, "c1", TB_LOSS_OVERWRITE);
	expect_end(tb);
}

static void
discard_stops_for_good_at_the_end(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(4096, TB_DISCARD);
	uint32_t i;

	(void)state;
	for (i = 0; i < 7; i++)
		assert_true(commit(tb, 1, 1, i, 0, "a494"));
	assert_false(trace_buffer_would_lose(tb, 496));
	assert_true(trace_buffer_would_lose(tb, 497));
	assert_false(commit(tb, 1, 1, 7, 0, "a495"));
	/* It would fit; but it is over, read or not. */
	assert_true(trace_buffer_would_lose(tb, 1));
	assert_false(commit(tb, 1, 1, 8, 0, "a1"));
	trace_buffer_begin_read(tb);
	for (i = 0; i < 7; i++)
		expect_packet(tb, "a494", 0);
	expect_end(tb);
	assert_false(commit(tb, 1, 1, 9, 0, "a1"));
	assert_int_equal(stats(tb)->chunks_discarded, 3);
	assert_int_equal(stats(tb)->chunks_written, 7);
	assert_int_equal(stats(tb)->chunks_overwritten, 0);
	assert_int_equal(stats(tb)->write_wrap_count, 0);
	trace_buffer_free(tb);
}

static void
a_full_discard_buffer_still_takes_patches(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(4096, TB_DISCARD);

	(void)state;
	commit(tb, 1, 1, 0, TO_NEXT | PATCH, "a4");
	commit(tb, 1, 1, 1, FROM_PREV, "b4");
	assert_false(commit(tb, 1, 1, 2, 0, "c4040"));
	assert_true(patch(tb, 1, 1, 0, 1, "zzzz", false));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "z4b4", 0);
	trace_buffer_free(tb);
}

static void
would_lose_tells_what_a_write_would_overwrite(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	assert_false(trace_buffer_would_lose(tb, 4096 - HEADER));
	assert_true(trace_buffer_would_lose(tb, 4097 - HEADER));
	for (i = 0; i < 8; i++)
		commit(tb, 1, 1, i, 0, "a494");
	assert_true(trace_buffer_would_lose(tb, 0));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a494", 0);
	assert_false(trace_buffer_would_lose(tb, 512 - HEADER));
	assert_true(trace_buffer_would_lose(tb, 513 - HEADER));
	expect_packet(tb, "a494", 0);
	assert_false(trace_buffer_would_lose(tb, 1024 - HEADER));
}

static void
a_chunk_larger_than_the_buffer_is_a_violation(void **state)
{
	struct trace_buffer *tb = *state;

	assert_false(commit(tb, 1, 1, 0, 0, "a4090"));
	assert_int_equal(stats(tb)->abi_violations, 1);
	assert_int_equal(stats(tb)->chunks_discarded, 0);
	/* With its header exactly the size of the ring. */
	assert_true(commit(tb, 1, 1, 1, 0, "a4078"));
	assert_true(commit(tb, 1, 1, 2, 0, "b4078"));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b4078", TB_LOSS_OVERWRITE);
	expect_end(tb);
}

static void
sizes_are_rounded_up_to_pages(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(0, TB_RING);

	(void)state;
	assert_int_equal(stats(tb)->buffer_size, 4096);
	trace_buffer_free(tb);
	tb = trace_buffer_new(4097, TB_RING);
	assert_int_equal(stats(tb)->buffer_size, 8192);
	trace_buffer_free(tb);
	assert_null(trace_buffer_new(UINT64_MAX, TB_RING));
}

/*
 * What is read becomes one run of free space.  A pass that goes back to where a
 * scraped chunk was, which a larger run has swallowed meanwhile, begins another
 * one in there; then a write leaves off just where that begins.
 */
static void
a_write_may_end_where_a_run_of_free_space_begins_in_another(void **state)
{
	struct trace_buffer *tb = *state;

	assert_true(commit(tb, 1, 1, 0, TO_NEXT, "a494"));   /* [0, 512) */
	assert_true(scrape(tb, 1, 2, 0, 0, "s10 s1", 496));  /* [512, 1024) */
	assert_true(commit(tb, 1, 3, 0, 0, "f494"));         /* [1024, 1536) */
	trace_buffer_begin_read(tb);
	expect_packet(tb, "s10", 0);
	expect_packet(tb, "f494", 0);
	expect_end(tb);
	assert_true(commit(tb, 1, 1, 1, FROM_PREV, "a494")); /* [1536, 2048) */
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a988", 0);
	/* Moves to [2048, 2560); the next pass will go back to 512. */
	assert_true(commit(tb, 1, 2, 0, 0, "s10 \001478"));
	expect_end(tb); /* free: [0, 2048) */
	assert_true(commit(tb, 1, 3, 1, 0, "g238"));         /* [2560, 2816) */
	assert_true(commit(tb, 1, 3, 2, 0, "h494"));         /* [2816, 3328) */
	assert_true(commit(tb, 1, 3, 3, 0, "i750"));         /* [3328, 4096) */
	trace_buffer_begin_read(tb);
	expect_packet(tb, "\001478", 0);
	expect_packet(tb, "g238", 0); /* free: [512, 2560), inside the other */
	assert_true(commit(tb, 1, 4, 0, 0, "j494"));         /* [0, 512) */
	expect_packet(tb, "h494", 0);
	/* The bytes of 1 must not be taken for a record. */
	assert_true(commit(tb, 1, 4, 1, 0, "k2030"));        /* [512, 2560) */
	assert_int_equal(stats(tb)->padding_bytes_cleared, 0);
	assert_int_equal(stats(tb)->padding_bytes_written, 0);
	assert_int_equal(stats(tb)->chunks_overwritten, 0);
	expect_packet(tb, "i750", 0);
	expect_packet(tb, "j494", 0);
	expect_packet(tb, "k2030", 0);
	expect_end(tb);
	expect_balance(tb, 0, 0, 0);
}

/* Resident bytes of this process. */
static size_t
resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*u %lu", &pages), 1);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void
an_unused_gigabyte_costs_nothing(void **state)
{
	size_t before = resident();
	struct trace_buffer *tb = trace_buffer_new(1ull << 30, TB_RING), *copy;

	(void)state;
	assert_non_null(tb);
	commit(tb, 1, 1, 0, 0, "a10");
	copy = whole_clone(tb, false);
	assert_non_null(copy);
	/* One huge page for each of them, at most. */
	assert_true(resident() < before + (6u << 20));
	assert_true(tb_overhead(tb) < 65536);
	trace_buffer_free(copy);
	trace_buffer_free(tb);
}

static void
rings_beyond_4_gib_work(void **state)
{
	uint64_t size = 5ull << 30, written = 0;
	struct trace_buffer *tb = trace_buffer_new(size, TB_RING);
	static uint8_t zeros[480u << 10];
	struct tb_origin origin = {.producer = 1, .writer = 1};
	struct tb_chunk c = {.num_fragments = 1, .payload = zeros,
	    .len = sizeof(zeros)};
	uint32_t id = 0;

	(void)state;
	assert_non_null(tb);
	/*
	 * Scraped chunks of one held-back fragment reserve room, of which only
	 * the page with the header is touched, where pages are small.
	 */
	assert_int_equal(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
	for (; written + 2 * sizeof(zeros) < size; written += sizeof(zeros)) {
		c.id = id++;
		assert_true(trace_buffer_write(tb, &origin, &c));
	}
	assert_true(written > UINT32_MAX);
	assert_true(commit(tb, 2, 1, 0, 0, "a10 b10"));
	assert_true(commit(tb, 2, 1, 1, TO_NEXT | PATCH, "c10"));
	assert_true(commit(tb, 2, 1, 2, FROM_PREV, "d10"));
	assert_true(patch(tb, 2, 1, 1, 1, "cccc", false));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a10", 0);
	expect_packet(tb, "b10", 0);
	expect_packet(tb, "c10d10", 0);
	expect_end(tb);
	trace_buffer_free(tb);
	assert_int_equal(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
}

/* Of a page in shared memory 8 bytes are its header, 8 the chunk's. */
static void
expect_pages_to_fit(size_t page, uint32_t n)
{
	static uint8_t zeros[32768];
	struct trace_buffer *tb = trace_buffer_new(page * n, TB_RING);
	struct tb_origin origin = {.producer = 1, .writer = 1};
	struct tb_chunk c = {.num_fragments = 1, .payload = zeros,
	    .len = page - 16};

	assert_non_null(tb);
	for (; c.id < n; c.id++)
		assert_true(trace_buffer_write(tb, &origin, &c));
	assert_int_equal(stats(tb)->chunks_overwritten, 0);
	assert_int_equal(stats(tb)->padding_bytes_written, 0);
	trace_buffer_free(tb);
}

static void
a_ring_of_n_pages_holds_the_chunks_of_n_pages(void **state)
{
	(void)state;
	expect_pages_to_fit(4096, 16);
	expect_pages_to_fit(32768, 1);
}

static void
a_chunk_larger_than_a_record_can_be_is_a_violation(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(4 << 20, TB_RING);
	static uint8_t zeros[TB_CHUNK_MAX + 1];
	struct tb_origin origin = {.producer = 1, .writer = 1};
	struct tb_chunk c = {.payload = zeros, .len = TB_CHUNK_MAX};

	(void)state;
	assert_true(trace_buffer_write(tb, &origin, &c));
	c.id = 1;
	c.len++;
	assert_false(trace_buffer_write(tb, &origin, &c));
	assert_int_equal(stats(tb)->abi_violations, 1);
	trace_buffer_free(tb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(a_ring_overwrites_the_oldest_and_says_so),
		RULE(the_rest_of_the_ring_is_padded_when_a_chunk_does_not_fit),
		RULE(what_a_chunk_leaves_of_those_it_overwrites_is_padding),
		RULE(what_is_left_of_a_chunk_that_was_read_is_no_padding),
		RULE(overwriting_reads_in_sequence_order_what_is_about_to_go),
		RULE(overwriting_the_begin_of_a_packet_takes_its_end_along),
		RULE(overwriting_what_was_read_in_part_is_a_loss),
		RULE(discard_stops_for_good_at_the_end),
		RULE(a_full_discard_buffer_still_takes_patches),
		RULE(would_lose_tells_what_a_write_would_overwrite),
		RULE(a_write_may_end_where_a_run_of_free_space_begins_in_another),
		RULE(a_chunk_larger_than_the_buffer_is_a_violation),
		RULE(sizes_are_rounded_up_to_pages),
		RULE(an_unused_gigabyte_costs_nothing),
		RULE(rings_beyond_4_gib_work),
		RULE(a_ring_of_n_pages_holds_the_chunks_of_n_pages),
		RULE(a_chunk_larger_than_a_record_can_be_is_a_violation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
