#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "service/config/config.h"
#include "service/ingest/commit.h"
#include "service/model/model.h"
#include "service/output/file_gate.h"
#include "service/packet/sequence_map.h"
#include "tests/unit/service/session/fixture.h"
#include "transport/buffer/trace_buffer.h"

#define RING "buffers { size_kb: 64 } "
#define SOURCE "data_sources { config { name: \"src\" } } "
#define ONE_SOURCE RING SOURCE

/* A producer with one source in one running session. */
struct bed {
	struct fixture *f;
	struct fake_producer p;
	struct fake_consumer c;
};

static void
bed_init(struct bed *b, void **state, bool emulated, const char *config)
{
	memset(b, 0, sizeof(*b));
	b->f = *state;
	fake_producer_init(&b->p, b->f, "prod", emulated);
	fake_producer_register(&b->p, "src", false, false);
	assert_non_null(fake_enable(b->f, &b->c, config, -1));
}

static void
bed_done(struct bed *b)
{
	session_free(b->c.s);
	fake_producer_done(&b->p);
}

/* What is in the session's buffers now. */
static void
assert_trace(struct session *s, const char *want)
{
	struct fake_trace t;
	char text[256];

	fake_read(s, &t);
	fake_trace_text(&t, text, sizeof(text));
	assert_string_equal(text, want);
	fake_trace_done(&t);
}

static void
chunks_with_data_go_into_their_buffer_in_order(void **state)
{
	struct bed b;
	struct pb_writer w, chunk;
	uint32_t i;

	bed_init(&b, state, true, ONE_SOURCE);
	pb_writer_init(&w);
	for (i = 0; i < 3; i++) {
		pb_writer_init(&chunk);
		fake_chunk(&chunk, 1, i, i, (const char *[]){ "a", "b",
		    "c" }[i]);
		/* Page numbers mean nothing here, however large. */
		fake_move(&w, 4000000000u, 77, b.p.last_buffer, &chunk);
		pb_writer_done(&chunk);
	}
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_trace(b.c.s, "a b c ");
	bed_done(&b);
}

static void
chunks_in_shared_memory_are_copied_and_freed(void **state)
{
	struct bed b;
	struct pb_writer w;
	struct shm_slot slot, again;
	struct shm_chunk c;

	bed_init(&b, state, false, ONE_SOURCE);
	fake_shm_packet(&b.p, 1, 0, 1, "kept", true, &slot);
	pb_writer_init(&w);
	fake_move(&w, slot.page, slot.index, b.p.last_buffer, NULL);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	memset(slot.payload, 0xff, slot.len);
	assert_int_equal(shm_take(b.p.shm, slot.page, slot.index, &c),
	    SHM_BAD_INDEX);
	assert_true(shm_acquire(b.p.shm, SHM_DIV1, 1, 1, 0, &again));
	assert_trace(b.c.s, "kept ");
	bed_done(&b);
}

static void
a_bad_page_or_chunk_is_discarded_and_the_rest_taken(void **state)
{
	static const uint32_t places[][2] = {
		{ 64, 0 }, { UINT32_MAX, 0 }, { 0, 14 }, { 0, UINT32_MAX },
		{ 5, 0 }, /* not partitioned */
	};
	struct bed b;
	struct pb_writer w;
	struct shm_slot slot;
	size_t i;

	bed_init(&b, state, false, ONE_SOURCE);
	fake_shm_packet(&b.p, 1, 0, 1, "good", true, &slot);
	pb_writer_init(&w);
	for (i = 0; i < 5; i++)
		fake_move(&w, places[i][0], places[i][1], b.p.last_buffer,
		    NULL);
	fake_move(&w, slot.page, slot.index, b.p.last_buffer, NULL);
	/* Taken already: */
	fake_move(&w, slot.page, slot.index, b.p.last_buffer, NULL);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_int_equal(b.c.s->refused.chunks, 6);
	assert_int_equal(b.f->service->counters.bad_chunk_index, 6);
	assert_trace(b.c.s, "good ");
	bed_done(&b);
}

static void
a_chunk_still_being_written_is_not_taken(void **state)
{
	struct bed b;
	struct pb_writer w;
	struct shm_slot slot;

	bed_init(&b, state, false, ONE_SOURCE);
	fake_shm_packet(&b.p, 1, 0, 1, "later", false, &slot);
	pb_writer_init(&w);
	fake_move(&w, slot.page, slot.index, b.p.last_buffer, NULL);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_int_equal(b.c.s->refused.chunks, 1);
	shm_complete(b.p.shm, &slot);
	pb_writer_init(&w);
	fake_move(&w, slot.page, slot.index, b.p.last_buffer, NULL);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_trace(b.c.s, "later ");
	bed_done(&b);
}

static void
shared_memory_is_not_offered_to_emulated_producers(void **state)
{
	struct bed b;
	struct pb_writer w;

	bed_init(&b, state, true, ONE_SOURCE);
	pb_writer_init(&w);
	fake_move(&w, 0, 0, b.p.last_buffer, NULL);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_int_equal(b.c.s->refused.chunks, 1);
	bed_done(&b);
}

static void
a_producer_with_shared_memory_may_send_data_too(void **state)
{
	struct bed b;

	bed_init(&b, state, false, ONE_SOURCE);
	assert_int_equal(fake_commit(&b.p, b.p.last_buffer, 1, 0, 1, "data"),
	    COMMIT_OK);
	assert_trace(b.c.s, "data ");
	bed_done(&b);
}

static void
data_shorter_than_a_header_is_discarded(void **state)
{
	struct bed b;
	struct pb_writer w, chunk;
	size_t len;

	bed_init(&b, state, true, ONE_SOURCE);
	for (len = 0; len < SHM_CHUNK_HEADER_BYTES; len++) {
		pb_writer_init(&w);
		pb_writer_init(&chunk);
		pb_put_raw(&chunk, "\0\0\0\0\1\0\1\0", len);
		fake_move(&w, 0, 0, b.p.last_buffer, &chunk);
		pb_writer_done(&chunk);
		assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
		assert_int_equal(b.c.s->refused.chunks,
		    len + 1);
	}
	bed_done(&b);
}

static void
writers_and_buffers_out_of_range_are_discarded(void **state)
{
	struct bed b;
	struct pb_writer w, chunk;
	static const uint32_t buffers[] = { 0, 65535, 65536, 1u << 31 };
	size_t i, n = 0;

	bed_init(&b, state, true, ONE_SOURCE);
	for (i = 0; i < 4; i++) {
		pb_writer_init(&w);
		pb_writer_init(&chunk);
		fake_chunk(&chunk, 1, 0, 1, "x");
		fake_move(&w, 0, 0, buffers[i], &chunk);
		pb_writer_done(&chunk);
		assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
		assert_int_equal(b.f->service->counters.wrong_buffer, ++n);
	}
	assert_int_equal(fake_commit(&b.p, b.p.last_buffer, 0, 0, 1, "x"),
	    COMMIT_OK);
	assert_int_equal(fake_commit(&b.p, b.p.last_buffer, 32768, 0, 1, "x"),
	    COMMIT_OK);
	assert_int_equal(fake_commit(&b.p, b.p.last_buffer, 32767, 0, 1, "ok"),
	    COMMIT_OK);
	assert_int_equal(b.c.s->refused.chunks, n + 2);
	assert_trace(b.c.s, "ok ");
	bed_done(&b);
}

static void
a_writer_bound_to_one_buffer_may_not_write_to_another(void **state)
{
	struct bed b;
	struct session *s;
	uint16_t one, two;

	bed_init(&b, state, true, RING RING "data_sources { config { name: "
	    "\"src\" target_buffer: 0 } } data_sources { config { name: "
	    "\"src\" target_buffer: 1 } }");
	s = b.c.s;
	one = s->buffers[0].id;
	two = s->buffers[1].id;
	writers_register(b.p.p, 5, one);
	(void)fake_commit(&b.p, two, 5, 0, 1, "no");
	assert_int_equal(b.f->service->counters.wrong_buffer, 1);
	(void)fake_commit(&b.p, one, 5, 0, 1, "one");
	(void)fake_commit(&b.p, two, 6, 0, 1, "two");
	writers_unregister(b.p.p, 5);
	(void)fake_commit(&b.p, two, 5, 1, 1, "free");
	assert_int_equal(b.c.s->refused.chunks, 1);
	assert_trace(s, "one two free ");
	bed_done(&b);
}

/* What nobody took may have been meant for any session that it writes for. */
static void
what_is_refused_counts_once_in_each_session_that_runs(void **state)
{
	struct fake_consumer other, over;
	struct fake_producer stranger;
	struct bed b;

	bed_init(&b, state, true, RING RING "data_sources { config { name: "
	    "\"src\" target_buffer: 0 } } data_sources { config { name: "
	    "\"src\" target_buffer: 1 } }");
	assert_non_null(fake_enable(b.f, &other, ONE_SOURCE, -1));
	assert_non_null(fake_enable(b.f, &over, ONE_SOURCE, -1));
	b.p.ack_flushes = true;
	session_disable(over.s, NULL);
	fixture_wait(b.f, fake_disabled, &over);
	(void)fake_commit(&b.p, 60000, 1, 0, 1, "nowhere");
	assert_int_equal(b.c.s->refused.chunks, 1);
	assert_int_equal(other.s->refused.chunks, 1);
	assert_int_equal(over.s->refused.chunks, 0);
	/* One that writes for nobody is no loss of anybody's. */
	fake_producer_init(&stranger, b.f, "stranger", true);
	(void)fake_commit(&stranger, 60000, 1, 0, 1, "nowhere");
	assert_int_equal(b.f->service->counters.wrong_buffer, 2);
	assert_int_equal(b.c.s->refused.chunks, 1);
	assert_int_equal(stranger.p->wrote.lost, 1);
	fake_producer_done(&stranger);
	session_free(over.s);
	session_free(other.s);
	bed_done(&b);
}

/* Or a producer with many buffers could hold up everybody with 60,000 moves. */
static void
what_is_refused_of_a_commit_is_counted_in_one_go(void **state)
{
	struct pb_writer w, good;
	struct bed b;
	int i;

	bed_init(&b, state, true, ONE_SOURCE);
	pb_writer_init(&w);
	pb_writer_init(&good);
	for (i = 0; i < 1000; i++)
		fake_move(&w, 0, 0, 0, NULL);
	fake_chunk(&good, 1, 0, 1, "good");
	fake_move(&w, 0, 0, b.p.last_buffer, &good);
	pb_writer_done(&good);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_int_equal(b.c.s->refused.chunks, 1000);
	assert_int_equal(b.p.p->wrote.lost, 1000);
	assert_int_equal(b.f->service->counters.refusals, 1);
	(void)fake_commit(&b.p, 60000, 1, 0, 1, "nowhere");
	assert_int_equal(b.c.s->refused.chunks, 1001);
	assert_trace(b.c.s, "good ");
	bed_done(&b);
}

static void
a_writer_s_number_that_is_used_again_is_another_writer_s(void **state)
{
	struct bed b;
	uint16_t buffer;

	bed_init(&b, state, true, ONE_SOURCE);
	buffer = b.c.s->buffers[0].id;
	writers_register(b.p.p, 5, buffer);
	(void)fake_commit(&b.p, buffer, 5, 0, 1, "old");
	(void)fake_commit(&b.p, buffer, 5, 1, 1, "older");
	assert_trace(b.c.s, "old older ");
	writers_unregister(b.p.p, 5);
	writers_register(b.p.p, 5, buffer);
	(void)fake_commit(&b.p, buffer, 5, 0, 1, "new");
	(void)fake_commit(&b.p, buffer, 5, 1, 1, "newer");
	assert_trace(b.c.s, "new newer ");
	bed_done(&b);
}

static void
data_for_a_buffer_that_is_gone_is_late_and_no_violation(void **state)
{
	struct bed b;
	struct fake_consumer d;
	uint16_t gone;

	bed_init(&b, state, true, ONE_SOURCE);
	assert_non_null(fake_enable(b.f, &d, ONE_SOURCE, -1));
	gone = b.p.last_buffer;
	session_free(d.s);
	assert_int_equal(fake_commit(&b.p, gone, 1, 0, 1, "late"), COMMIT_OK);
	assert_int_equal(b.f->service->counters.chunks_late, 1);
	assert_int_equal(b.c.s->refused.chunks, 0);
	bed_done(&b);
}

static void
a_request_that_does_not_parse_has_no_effect_at_all(void **state)
{
	struct bed b;
	struct pb_writer good, bad;
	size_t cut, mark;

	bed_init(&b, state, true, ONE_SOURCE);
	pb_writer_init(&good);
	pb_writer_init(&bad);
	fake_chunk(&bad, 1, 0, 1, "no");
	fake_move(&good, 0, 0, b.p.last_buffer, &bad);
	pb_writer_done(&bad);
	/* Cut anywhere behind the first chunk: */
	mark = good.len;
	pb_put_uint(&good, 3, 1u << 30);
	for (cut = 1; cut < good.len - mark; cut++)
		assert_int_equal(fake_commit_data(b.p.p, good.data,
		    good.len - cut), COMMIT_BAD);
	/* A patch or a chunk that is none, behind a good one: */
	pb_writer_init(&bad);
	pb_put_raw(&bad, good.data, mark);
	pb_put_bytes(&bad, 2, "\x0a", 1);
	assert_int_equal(fake_commit_request(&b.p, &bad), COMMIT_BAD);
	pb_writer_init(&bad);
	pb_put_raw(&bad, good.data, mark);
	pb_put_bytes(&bad, 2, "\x22\x01\x0a", 3); /* inside a patch */
	assert_int_equal(fake_commit_request(&b.p, &bad), COMMIT_BAD);
	pb_writer_init(&bad);
	pb_put_raw(&bad, good.data, mark);
	pb_put_uint(&bad, 1, 7);
	assert_int_equal(fake_commit_request(&b.p, &bad), COMMIT_BAD);
	pb_writer_init(&bad);
	pb_put_raw(&bad, good.data, mark);
	pb_put_bytes(&bad, 1, "\x20\x01", 2); /* data is a number */
	assert_int_equal(fake_commit_request(&b.p, &bad), COMMIT_BAD);
	assert_trace(b.c.s, "");
	assert_true(b.f->service->counters.unparsable_commits >= 4);
	assert_int_equal(fake_commit_data(b.p.p, good.data, good.len), COMMIT_OK);
	assert_trace(b.c.s, "no ");
	pb_writer_done(&good);
	bed_done(&b);
}

/* "....." in a chunk that needs patching, then a request that fills it. */
static size_t
put_unfinished(struct pb_writer *chunk, uint32_t id, const char *str)
{
	struct pb_writer packet, fragment;
	size_t at;

	pb_writer_init(&packet);
	pb_writer_init(&fragment);
	fake_packet(&packet, 1, str);
	pb_put_varint(&fragment, packet.len);
	pb_put_raw(&fragment, packet.data, packet.len);
	/* The string ends the packet. */
	at = fragment.len - strlen(str);
	fake_raw_chunk(chunk, 1, id, 1, TB_NEEDS_PATCHING, fragment.data,
	    fragment.len);
	pb_writer_done(&packet);
	pb_writer_done(&fragment);
	return at;
}

/* A bed with a request that moves such a chunk, the first; where str stands. */
static size_t
bed_with_unfinished(struct bed *b, void **state, struct pb_writer *w,
    const char *str)
{
	struct pb_writer chunk;
	size_t at;

	bed_init(b, state, true, ONE_SOURCE);
	pb_writer_init(w);
	pb_writer_init(&chunk);
	at = put_unfinished(&chunk, 0, str);
	fake_move(w, 0, 0, b->p.last_buffer, &chunk);
	pb_writer_done(&chunk);
	return at;
}

static void
put_patch(struct pb_writer *w, uint16_t buffer, uint32_t id, size_t offset,
    const char *data, bool more)
{
	size_t mark = pb_nest_begin(w, 2), one;

	pb_put_uint(w, 1, buffer);
	pb_put_uint(w, 2, 1);
	pb_put_uint(w, 3, id);
	one = pb_nest_begin(w, 4);
	pb_put_uint(w, 1, offset);
	if (data != NULL)
		pb_put_string(w, 2, data);
	pb_nest_end(w, one);
	pb_put_uint(w, 5, more);
	pb_nest_end(w, mark);
}

static void
patches_are_applied_after_the_moves_of_their_request(void **state)
{
	struct bed b;
	struct pb_writer w, chunk;
	size_t at;

	bed_init(&b, state, true, ONE_SOURCE);
	pb_writer_init(&w);
	pb_writer_init(&chunk);
	at = put_unfinished(&chunk, 0, "....");
	/* The patch stands before what it patches. */
	put_patch(&w, b.p.last_buffer, 0, at, "done", false);
	fake_move(&w, 0, 0, b.p.last_buffer, &chunk);
	pb_writer_done(&chunk);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_int_equal(trace_buffer_stats(
	    b.c.s->buffers[0].tb)->patches_succeeded, 1);
	assert_trace(b.c.s, "done ");
	bed_done(&b);
}

static void
a_chunk_waits_until_its_last_patch_came(void **state)
{
	struct bed b;
	struct pb_writer w;
	size_t at;

	at = bed_with_unfinished(&b, state, &w, "....");
	put_patch(&w, b.p.last_buffer, 0, at, "do", true);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_trace(b.c.s, "");
	pb_writer_init(&w);
	put_patch(&w, b.p.last_buffer, 0, at + 2, "ne", false);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_trace(b.c.s, "done ");
	bed_done(&b);
}

/* Undefined behaviour once: a memcpy() of nothing, from nowhere. */
static void
a_patch_without_data_changes_nothing_and_is_a_patch(void **state)
{
	struct bed b;
	struct pb_writer w;
	size_t at;

	at = bed_with_unfinished(&b, state, &w, "done");
	put_patch(&w, b.p.last_buffer, 0, at, NULL, false);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_int_equal(trace_buffer_stats(
	    b.c.s->buffers[0].tb)->patches_succeeded, 1);
	assert_trace(b.c.s, "done ");
	bed_done(&b);
}

static void
patches_for_foreign_buffers_are_discarded_and_counted(void **state)
{
	struct bed b;
	struct fake_producer thief;
	struct fake_consumer theirs;
	struct pb_writer w, chunk;
	size_t at;

	bed_init(&b, state, true, ONE_SOURCE);
	fake_producer_init(&thief, b.f, "thief", true);
	pb_writer_init(&w);
	pb_writer_init(&chunk);
	at = put_unfinished(&chunk, 0, "mine");
	fake_move(&w, 0, 0, b.p.last_buffer, &chunk);
	pb_writer_done(&chunk);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	pb_writer_init(&w);
	put_patch(&w, b.p.last_buffer, 0, at, "hers", false);
	assert_int_equal(fake_commit_request(&thief, &w), COMMIT_OK);
	assert_int_equal(b.f->service->counters.wrong_buffer, 1);
	assert_int_equal(b.c.s->refused.patches, 0);
	/* It has a session of its own now, whose loss that is. */
	fake_producer_register(&thief, "theirs", false, false);
	assert_non_null(fake_enable(b.f, &theirs, RING "data_sources { "
	    "config { name: \"theirs\" } }", -1));
	pb_writer_init(&w);
	put_patch(&w, b.p.last_buffer, 0, at, "hers", false);
	assert_int_equal(fake_commit_request(&thief, &w), COMMIT_OK);
	assert_int_equal(theirs.s->refused.patches, 1);
	assert_int_equal(b.c.s->refused.patches, 0);
	session_free(theirs.s);
	/* Not discarded, but in vain: it has no such chunk. */
	pb_writer_init(&w);
	put_patch(&w, b.p.last_buffer, 9, at, "none", false);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_int_equal(trace_buffer_stats(
	    b.c.s->buffers[0].tb)->patches_failed, 1);
	pb_writer_init(&w);
	put_patch(&w, b.p.last_buffer, 0, at, "mine", false);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_trace(b.c.s, "mine ");
	fake_producer_done(&thief);
	bed_done(&b);
}

/* Patches of one byte each, that write this text from `offset` on. */
static void
put_bytes_one_by_one(struct pb_writer *w, size_t offset, const char *text)
{
	size_t one;

	for (; *text != '\0'; text++, offset++) {
		one = pb_nest_begin(w, 4);
		pb_put_uint(w, 1, offset);
		pb_put_bytes(w, 2, text, 1);
		pb_nest_end(w, one);
	}
}

static void
put_many_patches(struct pb_writer *w, uint16_t buffer, size_t offset,
    const char *text)
{
	size_t mark = pb_nest_begin(w, 2);

	pb_put_uint(w, 2, 1);
	put_bytes_one_by_one(w, offset, text);
	/* The order of fields means nothing. */
	pb_put_uint(w, 1, buffer);
	pb_nest_end(w, mark);
}

static void
a_chunk_takes_any_number_of_patches_in_a_request(void **state)
{
	char dots[201], text[201], want[202];
	const struct tb_stats *st;
	struct pb_writer w;
	struct bed b;
	size_t at, i;

	memset(dots, '.', 200);
	for (i = 0; i < 200; i++)
		text[i] = (char)('a' + i % 26);
	dots[200] = text[200] = '\0';
	snprintf(want, sizeof(want), "%s ", text);
	at = bed_with_unfinished(&b, state, &w, dots);
	put_many_patches(&w, b.p.last_buffer, at, text);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	st = trace_buffer_stats(b.c.s->buffers[0].tb);
	assert_int_equal(st->patches_succeeded, 200);
	assert_int_equal(b.c.s->refused.patches, 0);
	assert_trace(b.c.s, want);
	bed_done(&b);
}

/* 64 of a chunk's patches lie outside: the first of the request, or the last. */
static void
patch_partly_outside(void **state, bool outside_first)
{
	const uint32_t outside = UINT32_MAX - 100;
	const struct tb_stats *st;
	struct pb_writer w;
	struct bed b;
	char dots[65], text[65];
	size_t at, mark;

	memset(dots, '.', 64);
	memset(text, 'x', 64);
	dots[64] = text[64] = '\0';
	at = bed_with_unfinished(&b, state, &w, dots);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 2);
	pb_put_uint(&w, 1, b.p.last_buffer);
	pb_put_uint(&w, 2, 1);
	put_bytes_one_by_one(&w, outside_first ? outside : at, text);
	put_bytes_one_by_one(&w, outside_first ? at : outside, text);
	pb_nest_end(&w, mark);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	st = trace_buffer_stats(b.c.s->buffers[0].tb);
	assert_int_equal(st->patches_succeeded, 64);
	assert_int_equal(st->patches_failed, 64);
	assert_trace(b.c.s, "");
	bed_done(&b);
}

static void
a_chunk_whose_first_patches_fail_is_not_read(void **state)
{
	patch_partly_outside(state, true);
}

static void
a_chunk_whose_last_patches_fail_is_not_read(void **state)
{
	patch_partly_outside(state, false);
}

static void
refused_patches_are_counted_one_by_one(void **state)
{
	struct pb_writer w;
	struct bed b;
	char text[66];

	memset(text, 'x', 65);
	text[65] = '\0';
	bed_init(&b, state, true, ONE_SOURCE);
	pb_writer_init(&w);
	put_many_patches(&w, 60000, 4, text);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_int_equal(b.c.s->refused.patches, 65);
	bed_done(&b);
}

/* Two packets, the second of which is not finished. */
static void
write_two(struct bed *b, uint16_t writer, struct shm_slot *slot)
{
	struct pb_writer packet, fragments;

	pb_writer_init(&packet);
	pb_writer_init(&fragments);
	fake_packet(&packet, 1, "first");
	pb_put_varint(&fragments, packet.len);
	pb_put_raw(&fragments, packet.data, packet.len);
	writers_register(b->p.p, writer, b->p.last_buffer);
	assert_true(shm_acquire(b->p.shm, SHM_DIV1, writer, 0, 0, slot));
	memcpy(slot->payload, fragments.data, fragments.len);
	shm_add_fragment(b->p.shm, slot);
	pb_writer_reset(&packet);
	fake_packet(&packet, 2, "second");
	slot->payload[fragments.len] = (uint8_t)packet.len;
	memcpy(slot->payload + fragments.len + 1, packet.data, packet.len);
	shm_add_fragment(b->p.shm, slot);
	pb_writer_done(&packet);
	pb_writer_done(&fragments);
}

static void
a_scrape_takes_the_finished_part_and_the_commit_the_rest(void **state)
{
	struct bed b;
	struct pb_writer w;
	struct shm_slot slot;

	bed_init(&b, state, false, ONE_SOURCE);
	write_two(&b, 1, &slot);
	assert_true(commit_scrape(b.p.p, NULL, false));
	assert_trace(b.c.s, "first ");
	assert_true(commit_scrape(b.p.p, NULL, false));
	assert_trace(b.c.s, "");
	shm_complete(b.p.shm, &slot);
	pb_writer_init(&w);
	fake_move(&w, slot.page, slot.index, b.p.last_buffer, NULL);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_trace(b.c.s, "second ");
	bed_done(&b);
}

/*
 * As a writer that patches in memory does: the first chunk of a packet stays
 * "being written" until it is committed.
 */
static void
a_scrape_leaves_what_is_behind_a_chunk_still_to_come(void **state)
{
	struct bed b;
	struct pb_writer w;
	struct shm_slot first, second;

	bed_init(&b, state, false, ONE_SOURCE);
	fake_shm_packet(&b.p, 1, UINT32_MAX, 1, "first", false, &first);
	fake_shm_packet(&b.p, 1, 0, 2, "second", true, &second);
	assert_true(commit_scrape(b.p.p, b.c.s, true));
	assert_trace(b.c.s, "");
	shm_complete(b.p.shm, &first);
	pb_writer_init(&w);
	fake_move(&w, first.page, first.index, b.p.last_buffer, NULL);
	fake_move(&w, second.page, second.index, b.p.last_buffer, NULL);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_trace(b.c.s, "first second ");
	bed_done(&b);
}

static void
a_scrape_at_the_end_takes_what_is_behind_a_gap(void **state)
{
	struct bed b;
	struct shm_slot first, second;

	bed_init(&b, state, false, ONE_SOURCE);
	fake_shm_packet(&b.p, 1, 0, 1, "first", false, &first);
	fake_shm_packet(&b.p, 1, 1, 2, "second", true, &second);
	assert_true(commit_scrape(b.p.p, NULL, false));
	assert_trace(b.c.s, "second ");
	bed_done(&b);
}

static void
a_scrape_for_one_session_leaves_the_others_alone(void **state)
{
	struct bed b;
	struct fake_consumer d;
	struct shm_slot slot, other;

	bed_init(&b, state, false, ONE_SOURCE);
	fake_shm_packet(&b.p, 1, 0, 1, "mine", true, &slot);
	assert_non_null(fake_enable(b.f, &d, ONE_SOURCE, -1));
	fake_shm_packet(&b.p, 2, 0, 1, "theirs", true, &other);
	assert_true(commit_scrape(b.p.p, d.s, true));
	assert_trace(b.c.s, "");
	assert_trace(d.s, "theirs ");
	assert_true(commit_scrape(b.p.p, b.c.s, true));
	assert_trace(b.c.s, "mine ");
	session_free(d.s);
	bed_done(&b);
}

static void
a_scrape_places_nothing_of_a_writer_without_a_buffer(void **state)
{
	struct bed b;
	struct shm_slot slot;

	bed_init(&b, state, false, ONE_SOURCE);
	fake_shm_packet(&b.p, 1, 0, 1, "whose?", true, &slot);
	writers_unregister(b.p.p, 1);
	assert_true(commit_scrape(b.p.p, NULL, false));
	assert_trace(b.c.s, "");
	bed_done(&b);
}

static void
a_producer_that_wants_no_scraping_is_not_scraped(void **state)
{
	struct fixture *f = *state;
	struct producer_hello hello = { .name = "p", .scrape = false };
	struct fake_producer p;
	struct fake_consumer c;
	struct shm_slot slot;

	fake_producer_hello(&p, f, &hello);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	fake_shm_packet(&p, 1, 0, 1, "private", true, &slot);
	assert_true(commit_scrape(p.p, NULL, false));
	assert_trace(c.s, "");
	session_free(c.s);
	fake_producer_done(&p);
}

static void
incomplete_chunks_with_data_are_completed_later(void **state)
{
	struct bed b;
	struct pb_writer w, chunk, packet, fragments;
	size_t mark;

	bed_init(&b, state, true, ONE_SOURCE);
	pb_writer_init(&packet);
	pb_writer_init(&fragments);
	fake_packet(&packet, 1, "one");
	pb_put_varint(&fragments, packet.len);
	pb_put_raw(&fragments, packet.data, packet.len);
	pb_writer_reset(&packet);
	fake_packet(&packet, 1, "two");
	pb_put_varint(&fragments, packet.len);
	pb_put_raw(&fragments, packet.data, packet.len);
	pb_writer_init(&chunk);
	fake_raw_chunk(&chunk, 1, 0, 2, 0, fragments.data, fragments.len);
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 1);
	pb_put_uint(&w, 3, b.p.last_buffer);
	pb_put_bytes(&w, 4, chunk.data, chunk.len);
	pb_put_uint(&w, 5, 1);
	pb_nest_end(&w, mark);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_trace(b.c.s, "one ");
	pb_writer_init(&w);
	fake_move(&w, 0, 0, b.p.last_buffer, &chunk);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	assert_trace(b.c.s, "two ");
	pb_writer_done(&chunk);
	pb_writer_done(&packet);
	pb_writer_done(&fragments);
	bed_done(&b);
}

static void
an_empty_request_is_fine(void **state)
{
	struct bed b;

	bed_init(&b, state, true, ONE_SOURCE);
	assert_int_equal(fake_commit_data(b.p.p, NULL, 0), COMMIT_OK);
	assert_int_equal(fake_commit_data(b.p.p, (const uint8_t *)"", 0),
	    COMMIT_OK);
	bed_done(&b);
}

/* ---- lossless files ---- */

struct file_bed {
	struct bed b;
	int reader; /* of the pipe that stands for a slow disk */
	char big[3001];
	uint32_t next;
};

static void
file_bed_init(struct file_bed *fb, void **state, const char *config)
{
	int pipefd[2];

	memset(fb, 0, sizeof(*fb));
	fb->b.f = *state;
	memset(fb->big, 'x', sizeof(fb->big) - 1);
	assert_int_equal(pipe(pipefd), 0);
	assert_int_equal(fcntl(pipefd[0], F_SETFL, O_NONBLOCK), 0);
	fb->reader = pipefd[0];
	fake_producer_init(&fb->b.p, fb->b.f, "prod", true);
	fb->b.p.ack_flushes = true;
	fake_producer_register(&fb->b.p, "src", false, false);
	assert_non_null(fake_enable(fb->b.f, &fb->b.c, config, pipefd[1]));
}

/* Commits to a buffer until it has to wait. */
static void
fill(struct file_bed *fb, uint16_t buffer)
{
	while (fake_commit(&fb->b.p, buffer, 1, fb->next, 1, fb->big) ==
	    COMMIT_OK)
		assert_true(fb->next++ < 1000);
}

static void
turn(struct file_bed *fb)
{
	static uint8_t sink[65536];

	while (read(fb->reader, sink, sizeof(sink)) > 0)
		;
	loop_run_once(fb->b.f->loop);
}

static void
file_bed_done(struct file_bed *fb)
{
	uint64_t end = loop_now_ms() + 10000;

	session_disable(fb->b.c.s, NULL);
	while (!fb->b.c.disabled) {
		assert_true(loop_now_ms() < end);
		turn(fb);
	}
	assert_string_equal(fb->b.c.error, "");
	close(fb->reader);
	bed_done(&fb->b);
}

static void
what_has_to_wait_is_applied_once_when_it_is_shown_again(void **state)
{
	struct file_bed fb;
	struct bed *b = &fb.b;
	struct pb_writer w, chunk;
	struct tb_stats before;
	const struct tb_stats *st;
	uint64_t end;

	file_bed_init(&fb, state, ONE_SOURCE "write_into_file: true");
	fill(&fb, b->p.last_buffer);
	/* A small chunk that fits, a big one that does not, an answer. */
	st = trace_buffer_stats(b->c.s->buffers[0].tb);
	before = *st;
	pb_writer_init(&w);
	pb_writer_init(&chunk);
	fake_chunk(&chunk, 2, 0, 1, "small");
	fake_move(&w, 0, 0, b->p.last_buffer, &chunk);
	pb_writer_reset(&chunk);
	fake_chunk(&chunk, 2, 1, 1, fb.big);
	fake_move(&w, 0, 0, b->p.last_buffer, &chunk);
	pb_writer_done(&chunk);
	assert_int_equal(fake_commit_data(b->p.p, w.data, w.len), COMMIT_AGAIN);
	assert_int_equal(st->chunks_written, before.chunks_written + 1);
	assert_int_equal(fake_commit_data(b->p.p, w.data, w.len), COMMIT_AGAIN);
	assert_int_equal(st->chunks_written, before.chunks_written + 1);
	end = loop_now_ms() + 10000;
	do {
		assert_non_null(b->p.p->at_gate.waits_in);
		b->p.resumed = false;
		while (!b->p.resumed) {
			assert_true(loop_now_ms() < end);
			turn(&fb);
		}
		assert_null(b->p.p->at_gate.waits_in);
	} while (fake_commit_data(b->p.p, w.data, w.len) == COMMIT_AGAIN);
	pb_writer_done(&w);
	assert_int_equal(st->chunks_written, before.chunks_written + 2);
	assert_int_equal(st->chunks_overwritten, 0);
	file_bed_done(&fb);
}

static void
a_request_for_several_buffers_overwrites_none(void **state)
{
	struct file_bed fb;
	struct bed *b = &fb.b;
	struct pb_writer w, chunk;
	const struct tb_stats *one, *two;
	uint32_t i, n = 0;
	int v = COMMIT_OK;

	file_bed_init(&fb, state, RING RING "data_sources { config { name: "
	    "\"src\" target_buffer: 0 } } data_sources { config { name: "
	    "\"src\" target_buffer: 1 } } write_into_file: true");
	one = trace_buffer_stats(b->c.s->buffers[0].tb);
	two = trace_buffer_stats(b->c.s->buffers[1].tb);
	/* 30 KB each at a time, in turns, into buffers of 64 KiB. */
	while (v == COMMIT_OK && n < 100) {
		pb_writer_init(&w);
		for (i = 0; i < 20; i++) {
			pb_writer_init(&chunk);
			fake_chunk(&chunk, 1 + i % 2, n * 10 + i / 2, 1,
			    fb.big);
			fake_move(&w, 0, 0, b->c.s->buffers[i % 2].id,
			    &chunk);
			pb_writer_done(&chunk);
		}
		v = fake_commit_request(&b->p, &w);
		n++;
	}
	assert_int_equal(v, COMMIT_AGAIN);
	assert_int_equal(one->chunks_overwritten, 0);
	assert_int_equal(two->chunks_overwritten, 0);
	file_bed_done(&fb);
}

static void
count_call(void *arg)
{
	++*(int *)arg;
}

/* As a file does, whose disk takes all of it. */
static int
read_on(struct session_buffer *b)
{
	struct tb_packet packet;
	int n = 0;

	while (trace_buffer_read(b->tb, &packet))
		n++;
	return n;
}

static void
what_the_next_pass_can_read_is_not_overwritten(void **state)
{
	struct bed b;
	struct session_buffer *buffer;
	struct file_gate *gate;
	struct pb_writer w;
	size_t at;
	static char big[3001];
	uint32_t next = 1;
	int passes_wanted = 0;

	memset(big, 'x', sizeof(big) - 1);
	at = bed_with_unfinished(&b, state, &w, "....");
	buffer = &b.c.s->buffers[0];
	gate = file_gate_new(b.c.s, true, count_call, &passes_wanted);
	assert_non_null(gate);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	file_gate_begin_pass(gate);
	trace_buffer_begin_read(buffer->tb);
	assert_int_equal(read_on(buffer), 0);

	/* The disk is slow: the patch comes before the pass ends. */
	pb_writer_init(&w);
	put_patch(&w, buffer->id, 0, at, "done", false);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	while (fake_commit(&b.p, buffer->id, 1, next, 1, big) == COMMIT_OK)
		assert_true(next++ < 1000);
	assert_int_equal(read_on(buffer), 0);
	passes_wanted = 0;
	file_gate_end_pass(gate);
	assert_int_equal(passes_wanted, 1);
	assert_int_equal(fake_commit(&b.p, buffer->id, 1, next, 1, big),
	    COMMIT_AGAIN);

	file_gate_begin_pass(gate);
	trace_buffer_begin_read(buffer->tb);
	assert_int_equal(read_on(buffer), next);
	file_gate_end_pass(gate);
	assert_int_equal(fake_commit(&b.p, buffer->id, 1, next, 1, big),
	    COMMIT_OK);
	assert_int_equal(trace_buffer_stats(buffer->tb)->chunks_overwritten,
	    0);
	file_gate_free(gate);
	bed_done(&b);
}

static void
what_came_behind_a_pass_is_not_overwritten_at_its_end(void **state)
{
	struct bed b;
	struct session_buffer *buffer;
	struct file_gate *gate;
	struct pb_writer w;
	static char big[3001];
	uint32_t next = 0;
	int passes_wanted = 0;

	memset(big, 'x', sizeof(big) - 1);
	(void)bed_with_unfinished(&b, state, &w, "....");
	pb_writer_done(&w);
	buffer = &b.c.s->buffers[0];
	gate = file_gate_new(b.c.s, true, count_call, &passes_wanted);
	assert_non_null(gate);
	file_gate_begin_pass(gate);
	trace_buffer_begin_read(buffer->tb);
	assert_int_equal(read_on(buffer), 0);

	/* The disk is slow: the buffer fills up before the pass ends. */
	while (fake_commit(&b.p, buffer->id, 1, next, 1, big) == COMMIT_OK)
		assert_true(next++ < 1000);
	passes_wanted = 0;
	file_gate_end_pass(gate);
	assert_int_equal(passes_wanted, 1);
	assert_int_equal(fake_commit(&b.p, buffer->id, 1, next, 1, big),
	    COMMIT_AGAIN);
	assert_int_equal(trace_buffer_stats(buffer->tb)->chunks_overwritten,
	    0);
	file_gate_free(gate);
	bed_done(&b);
}

static void
all_that_wait_ask_for_one_pass(void **state)
{
	struct bed b;
	struct session_buffer *buffer;
	struct file_gate *gate;
	struct pb_writer w;
	static char big[3001];
	uint32_t next = 0;
	int passes_wanted = 0;

	memset(big, 'x', sizeof(big) - 1);
	(void)bed_with_unfinished(&b, state, &w, "....");
	pb_writer_done(&w);
	buffer = &b.c.s->buffers[0];
	gate = file_gate_new(b.c.s, true, count_call, &passes_wanted);
	assert_non_null(gate);
	assert_false(file_gate_wants_pass(gate));
	while (fake_commit(&b.p, buffer->id, 1, next, 1, big) == COMMIT_OK)
		assert_true(next++ < 1000);
	assert_int_equal(passes_wanted, 1);
	assert_int_equal(fake_commit(&b.p, buffer->id, 1, next, 1, big),
	    COMMIT_AGAIN);
	assert_int_equal(passes_wanted, 1);
	assert_true(file_gate_wants_pass(gate));

	file_gate_begin_pass(gate);
	assert_false(file_gate_wants_pass(gate));
	assert_int_equal(fake_commit(&b.p, buffer->id, 1, next, 1, big),
	    COMMIT_AGAIN);
	assert_int_equal(passes_wanted, 2);
	file_gate_free(gate);
	bed_done(&b);
}

static void
a_scrape_that_waits_lets_no_chunk_overtake(void **state)
{
	struct bed b;
	struct session_buffer *buffer;
	struct file_gate *gate;
	struct shm_slot slot, late, early;
	struct pb_writer w;
	static char big[3001];
	uint32_t next = 0;
	int passes_wanted = 0;

	memset(big, 'x', sizeof(big) - 1);
	bed_init(&b, state, false, ONE_SOURCE);
	buffer = &b.c.s->buffers[0];
	gate = file_gate_new(b.c.s, true, count_call, &passes_wanted);
	assert_non_null(gate);
	while (trace_buffer_room(buffer->tb, 1u << 20) > 7200) {
		fake_shm_packet(&b.p, 2, next++, 1, big, true, &slot);
		pb_writer_init(&w);
		fake_move(&w, slot.page, slot.index, b.p.last_buffer, NULL);
		assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	}
	fake_shm_packet(&b.p, 1, 1, 2, big, true, &late);
	fake_shm_packet(&b.p, 1, 0, 1, big, true, &early);
	assert_false(commit_scrape(b.p.p, b.c.s, true));
	file_gate_begin_pass(gate);
	trace_buffer_begin_read(buffer->tb);
	assert_int_equal(read_on(buffer), next + 1);
	file_gate_end_pass(gate);
	pb_writer_init(&w);
	fake_move(&w, early.page, early.index, b.p.last_buffer, NULL);
	fake_move(&w, late.page, late.index, b.p.last_buffer, NULL);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	trace_buffer_begin_read(buffer->tb);
	assert_int_equal(read_on(buffer), 1);
	assert_int_equal(trace_buffer_stats(buffer->tb)->chunks_discarded, 0);
	file_gate_free(gate);
	bed_done(&b);
}

/* Of a chunk whose patch never comes: else its producer would wait for ever. */
static void
what_no_pass_can_read_is_overwritten(void **state)
{
	struct bed b;
	struct session_buffer *buffer;
	struct file_gate *gate;
	struct pb_writer w;
	static char big[3001];
	uint32_t next = 1;
	int passes_wanted = 0;

	memset(big, 'x', sizeof(big) - 1);
	(void)bed_with_unfinished(&b, state, &w, "....");
	buffer = &b.c.s->buffers[0];
	gate = file_gate_new(b.c.s, true, count_call, &passes_wanted);
	assert_non_null(gate);
	assert_int_equal(fake_commit_request(&b.p, &w), COMMIT_OK);
	while (fake_commit(&b.p, buffer->id, 1, next, 1, big) == COMMIT_OK)
		assert_true(next++ < 1000);
	file_gate_begin_pass(gate);
	trace_buffer_begin_read(buffer->tb);
	assert_int_equal(read_on(buffer), 0);
	passes_wanted = 0;
	file_gate_end_pass(gate);
	assert_int_equal(passes_wanted, 0);
	assert_int_equal(fake_commit(&b.p, buffer->id, 1, next, 1, big),
	    COMMIT_OK);
	assert_true(trace_buffer_stats(buffer->tb)->chunks_overwritten > 0);
	file_gate_free(gate);
	bed_done(&b);
}

static void
a_foreign_buffer_makes_nobody_wait(void **state)
{
	struct file_bed fb;
	struct fake_producer thief;

	file_bed_init(&fb, state, ONE_SOURCE "write_into_file: true");
	fill(&fb, fb.b.p.last_buffer);
	fake_producer_init(&thief, fb.b.f, "thief", true);
	assert_int_equal(fake_commit(&thief, fb.b.p.last_buffer, 1, 0, 1,
	    fb.big), COMMIT_OK);
	assert_int_equal(fb.b.f->service->counters.wrong_buffer, 1);
	fake_producer_done(&thief);
	file_bed_done(&fb);
}

static void
who_waits_longest_is_woken_first(void **state)
{
	struct file_bed fb;
	struct bed *b = &fb.b;
	struct fake_producer two, three;
	struct fair_place *first;
	uint64_t end = loop_now_ms() + 10000;

	file_bed_init(&fb, state, ONE_SOURCE "write_into_file: true");
	fake_producer_init(&two, b->f, "two", true);
	fake_producer_register(&two, "src", false, false);
	fake_producer_init(&three, b->f, "three", true);
	fake_producer_register(&three, "src", false, false);
	two.ack_flushes = three.ack_flushes = true;

	fill(&fb, b->p.last_buffer);
	assert_int_equal(fake_commit(&two, two.last_buffer, 1, 0, 1, fb.big),
	    COMMIT_AGAIN);
	assert_int_equal(fake_commit(&three, three.last_buffer, 1, 0, 1,
	    fb.big), COMMIT_AGAIN);
	assert_ptr_equal(fair_queue_first(b->p.p->at_gate.waits_in),
	    &b->p.p->at_gate);

	/* One of them gets all there is: it comes after the two it beat. */
	while (b->p.p->at_gate.waits_in != NULL) {
		assert_true(loop_now_ms() < end);
		turn(&fb);
	}
	fill(&fb, b->p.last_buffer);
	assert_int_equal(fake_commit(&three, three.last_buffer, 1, 0, 1,
	    fb.big), COMMIT_AGAIN);
	assert_int_equal(fake_commit(&two, two.last_buffer, 1, 0, 1, fb.big),
	    COMMIT_AGAIN);
	first = fair_queue_first(b->p.p->at_gate.waits_in);
	assert_ptr_equal(first, &two.p->at_gate);
	assert_ptr_equal(TAILQ_NEXT(first, link), &three.p->at_gate);
	assert_ptr_equal(TAILQ_LAST(&b->p.p->at_gate.waits_in->places,
	    fair_places), &b->p.p->at_gate);
	fake_producer_done(&three);
	fake_producer_done(&two);
	file_bed_done(&fb);
}

#define T(name)                                                               \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(chunks_with_data_go_into_their_buffer_in_order),
		T(chunks_in_shared_memory_are_copied_and_freed),
		T(a_bad_page_or_chunk_is_discarded_and_the_rest_taken),
		T(a_chunk_still_being_written_is_not_taken),
		T(shared_memory_is_not_offered_to_emulated_producers),
		T(a_producer_with_shared_memory_may_send_data_too),
		T(data_shorter_than_a_header_is_discarded),
		T(writers_and_buffers_out_of_range_are_discarded),
		T(a_writer_bound_to_one_buffer_may_not_write_to_another),
		T(a_writer_s_number_that_is_used_again_is_another_writer_s),
		T(what_is_refused_counts_once_in_each_session_that_runs),
		T(what_is_refused_of_a_commit_is_counted_in_one_go),
		T(data_for_a_buffer_that_is_gone_is_late_and_no_violation),
		T(a_request_that_does_not_parse_has_no_effect_at_all),
		T(patches_are_applied_after_the_moves_of_their_request),
		T(a_chunk_waits_until_its_last_patch_came),
		T(a_patch_without_data_changes_nothing_and_is_a_patch),
		T(patches_for_foreign_buffers_are_discarded_and_counted),
		T(a_chunk_takes_any_number_of_patches_in_a_request),
		T(a_chunk_whose_first_patches_fail_is_not_read),
		T(a_chunk_whose_last_patches_fail_is_not_read),
		T(refused_patches_are_counted_one_by_one),
		T(a_scrape_takes_the_finished_part_and_the_commit_the_rest),
		T(a_scrape_leaves_what_is_behind_a_chunk_still_to_come),
		T(a_scrape_at_the_end_takes_what_is_behind_a_gap),
		T(a_scrape_for_one_session_leaves_the_others_alone),
		T(a_scrape_places_nothing_of_a_writer_without_a_buffer),
		T(a_producer_that_wants_no_scraping_is_not_scraped),
		T(incomplete_chunks_with_data_are_completed_later),
		T(an_empty_request_is_fine),
		T(what_has_to_wait_is_applied_once_when_it_is_shown_again),
		T(a_request_for_several_buffers_overwrites_none),
		T(what_the_next_pass_can_read_is_not_overwritten),
		T(what_came_behind_a_pass_is_not_overwritten_at_its_end),
		T(all_that_wait_ask_for_one_pass),
		T(a_scrape_that_waits_lets_no_chunk_overtake),
		T(what_no_pass_can_read_is_overwritten),
		T(a_foreign_buffer_makes_nobody_wait),
		T(who_waits_longest_is_woken_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
