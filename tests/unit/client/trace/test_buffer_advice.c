#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/trace/buffer_advice.h"
#include "protos/trace_stats.pb-c.h"

#define MIB (UINT64_C(1) << 20)

static Perfetto__Protos__TraceStats__BufferStats stats;
static struct buffer_facts facts;
static struct buffer_advice r;

static int
setup(void **state)
{
	perfetto__protos__trace_stats__buffer_stats__init(&stats);
	stats.buffer_size = 32 * MIB;
	facts = (struct buffer_facts){ .stats = &stats };
	return 0;
}

static void
read_it(void)
{
	buffer_advice_make(&r, &facts);
	assert_in_range(r.n, 1, BUFFER_ADVICE_SENTENCES);
}

static void
an_empty_buffer_is_called_so(void **state)
{
	read_it();
	assert_int_equal(r.verdict, BUFFER_EMPTY);
	assert_string_equal(r.sentences[0].text,
	    "stayed empty: nothing was written into its 32 MiB");
	assert_false(r.sentences[0].loss);
	facts.running = true;
	read_it();
	assert_string_equal(r.sentences[0].text,
	    "is empty: nothing was written into its 32 MiB");
}

/* Three buffers full came in a minute: one is left. */
static void
wrap_twice(void)
{
	stats.bytes_written = 94 * MIB;
	stats.bytes_overwritten = 94 * MIB * 2 / 3;
	stats.chunks_overwritten = 10000;
	stats.chunks_written = 15000;
	stats.write_wrap_count = 2;
	facts.duration_ms = 60000;
}

static void
a_ring_that_wrapped_lost_the_beginning(void **state)
{
	wrap_twice();
	read_it();
	assert_int_equal(r.verdict, BUFFER_CUT);
	assert_string_equal(r.sentences[0].text, "wrapped 2 times: about the "
	    "first 40 s of 60 s are gone; 96 MiB would have held it");
	assert_true(r.sentences[0].loss);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.gone_ms, 40000);
	assert_true(r.enough_bytes == 96 * MIB);
	assert_true(r.gone_share > 0.66 && r.gone_share < 0.67);
}

static void
without_a_duration_it_says_bytes(void **state)
{
	wrap_twice();
	facts.duration_ms = 0;
	read_it();
	assert_string_equal(r.sentences[0].text, "wrapped 2 times: about the "
	    "first 62.7 MiB (67 %) of the input are gone; 96 MiB would have "
	    "held it");
	assert_int_equal(r.gone_ms, 0);
}

static void
a_loss_of_no_time_is_told_in_bytes(void **state)
{
	wrap_twice();
	stats.bytes_overwritten = 4096;
	read_it();
	assert_string_equal(r.sentences[0].text, "wrapped 2 times: about the "
	    "first 4.0 KiB (0.00 %) of the input are gone; 96 MiB would have "
	    "held it");
}

static void
a_full_buffer_lost_the_end(void **state)
{
	facts.discard = true;
	facts.duration_ms = 60000;
	stats.bytes_written = 32 * MIB;
	stats.chunks_written = 8192;
	stats.chunks_discarded = 16384;
	read_it();
	assert_int_equal(r.verdict, BUFFER_CUT);
	assert_string_equal(r.sentences[0].text, "was full after 32 MiB and "
	    "refused 16,384 chunks: about the last 40 s of 60 s are gone; 98 "
	    "MiB would have held it");
	assert_true(r.gone_bytes == 64 * MIB);
	facts.running = true;
	read_it();
	assert_memory_equal(r.sentences[0].text, "is full", 7);
}

static void
a_slow_reader_loses_anywhere(void **state)
{
	wrap_twice();
	facts.streamed = true;
	read_it();
	assert_string_equal(r.sentences[0].text, "wrapped 2 times: about 40 s "
	    "of 60 s are gone; its reader was too slow: a faster disk or "
	    "reader, or 64 MiB, may hold it");
}

static void
that_it_was_streamed_shows_in_what_was_read(void **state)
{
	wrap_twice();
	stats.bytes_overwritten = 10 * MIB;
	stats.bytes_read = 84 * MIB;
	read_it();
	assert_non_null(strstr(r.sentences[0].text, "too slow"));
}

static void
wraps_without_loss_are_well(void **state)
{
	wrap_twice();
	stats.bytes_overwritten = stats.chunks_overwritten = 0;
	stats.bytes_read = 94 * MIB;
	stats.write_wrap_count = 1;
	read_it();
	assert_int_equal(r.verdict, BUFFER_WHOLE);
	assert_string_equal(r.sentences[0].text,
	    "wrapped 1 time, and all of its 94.0 MiB were read in time");
	assert_false(r.sentences[0].loss);
}

static void
a_running_ring_tells_when_it_will_overwrite(void **state)
{
	facts.running = true;
	facts.duration_ms = 10000;
	stats.bytes_written = facts.used = 8 * MIB;
	read_it();
	assert_int_equal(r.verdict, BUFFER_WHOLE);
	assert_string_equal(r.sentences[0].text, "holds 8.0 MiB of 32 MiB, all "
	    "that came; at this rate it begins to overwrite in about 30 s");
	assert_int_equal(r.full_in_ms, 30000);
	facts.discard = true;
	read_it();
	assert_non_null(strstr(r.sentences[0].text, "it is full in about"));
	facts.discard = false;
	facts.streamed = true;
	read_it();
	assert_string_equal(r.sentences[0].text, "has 8.0 MiB of 32 MiB waiting "
	    "to be read; all that came was kept");
	assert_int_equal(r.full_in_ms, 0);
}

/* Perfetto's buffers and ours: what was read stays where it is. */
static void
reading_makes_no_room_under_discard(void **state)
{
	facts.running = facts.discard = facts.streamed = true;
	facts.duration_ms = 10000;
	stats.bytes_written = 8 * MIB;
	facts.used = MIB; /* the rest is in the file */
	read_it();
	assert_string_equal(r.sentences[0].text, "holds 8.0 MiB of 32 MiB, all "
	    "that came; at this rate it is full in about 30 s");

	facts.running = false;
	facts.duration_ms = 60000;
	stats.bytes_written = 32 * MIB;
	stats.chunks_written = 8192;
	stats.chunks_discarded = 16384;
	read_it();
	assert_string_equal(r.sentences[0].text, "was full after 32 MiB and "
	    "refused 16,384 chunks: about the last 40 s of 60 s are gone; "
	    "reading it makes no room under DISCARD: RING_BUFFER would have "
	    "gone on");
	assert_true(r.enough_bytes == 98 * MIB);
}

static void
what_never_arrived_is_told_beside_what_was_kept(void **state)
{
	stats.bytes_written = MIB;
	stats.trace_writer_packet_loss = 1234;
	stats.abi_violations = 1;
	stats.patches_failed = 2;
	read_it();
	assert_int_equal(r.verdict, BUFFER_HURT);
	assert_int_equal(r.n, 4);
	assert_memory_equal(r.sentences[0].text, "lacks at least 1,234 packets that", 33);
	assert_string_equal(r.sentences[1].text, "refused 1 chunk, broken by "
	    "its producer");
	assert_string_equal(r.sentences[2].text, "got 2 patches for packets "
	    "that were gone already");
	assert_true(r.sentences[0].loss && r.sentences[2].loss);
	assert_string_equal(r.sentences[3].text,
	    "kept all that came: 1.0 MiB, with room for 32 MiB");
}

static void
a_buffer_smaller_than_a_chunk_is_suspected(void **state)
{
	stats.buffer_size = 16384;
	stats.abi_violations = 2;
	read_it();
	assert_int_equal(r.verdict, BUFFER_HURT);
	assert_int_equal(r.n, 1);
	assert_string_equal(r.sentences[0].text, "refused 2 chunks, broken by "
	    "their producers, or larger than the buffer itself");
}

static void
small_chunks_are_pointed_out(void **state)
{
	stats.bytes_written = 100000;
	stats.chunks_written = 1000;
	read_it();
	assert_int_equal(r.n, 2);
	assert_memory_equal(r.sentences[1].text,
	    "got 1,000 chunks of 100 bytes on average", 40);
	assert_false(r.sentences[1].loss);
}

/* Statistics come out of files, too. */
static void
absurd_numbers_do_no_harm(void **state)
{
	memset(&stats.bytes_written, 0xff, sizeof(stats.bytes_written));
	stats.bytes_overwritten = stats.chunks_discarded = UINT64_MAX;
	stats.chunks_written = stats.write_wrap_count = UINT64_MAX;
	stats.trace_writer_packet_loss = stats.abi_violations = UINT64_MAX;
	stats.patches_failed = UINT64_MAX;
	facts.duration_ms = UINT64_MAX / 1000;
	for (int i = 0; i < 16; i++) {
		stats.buffer_size = i & 1 ? UINT64_MAX : 0;
		facts.discard = i & 2;
		facts.running = i & 4;
		facts.used = i & 8 ? UINT64_MAX : 0;
		read_it();
		assert_int_equal(r.verdict, BUFFER_CUT);
		stats.bytes_written ^= i & 8 ? UINT64_MAX : 1;
		read_it();
		stats.bytes_written = UINT64_MAX;
	}
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(an_empty_buffer_is_called_so),
		T(a_ring_that_wrapped_lost_the_beginning),
		T(without_a_duration_it_says_bytes),
		T(a_loss_of_no_time_is_told_in_bytes),
		T(a_full_buffer_lost_the_end),
		T(a_slow_reader_loses_anywhere),
		T(that_it_was_streamed_shows_in_what_was_read),
		T(wraps_without_loss_are_well),
		T(a_running_ring_tells_when_it_will_overwrite),
		T(reading_makes_no_room_under_discard),
		T(what_never_arrived_is_told_beside_what_was_kept),
		T(a_buffer_smaller_than_a_chunk_is_suspected),
		T(small_chunks_are_pointed_out),
		T(absurd_numbers_do_no_harm),
	};

	return cmocka_run_group_tests_name("buffer_reading", tests, NULL, NULL);
}
