/* populator and ring_ahead: what gets memory is asked of the kernel. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "service/ingest/commit.h"
#include "service/ring_memory/populator.h"
#include "service/ring_memory/ring_ahead.h"
#include "tests/unit/service/session/fixture.h"
#include "transport/buffer/trace_buffer.h"

#define MIB ((size_t)1 << 20)
#define HUGE_PAGE (2 * MIB)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static size_t
page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Bytes that have memory. */
static size_t
resident(const uint8_t *at, size_t len)
{
	size_t pages = len / page_size(), i, n = 0;
	unsigned char *v = malloc(pages);

	assert_non_null(v);
	assert_int_equal(mincore((void *)(uintptr_t)at, len, v), 0);
	for (i = 0; i < pages; i++)
		n += v[i] & 1;
	free(v);
	return n * page_size();
}

/* The test's time-out is its end when that never comes. */
static void
wait_resident(const uint8_t *at, size_t len)
{
	while (resident(at, len) < len)
		sched_yield();
}

static uint8_t *
map(size_t len)
{
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	/* Page by page, to be seen exactly. */
	(void)madvise(p, len, MADV_NOHUGEPAGE);
	return p;
}

/* Jobs take turns: behind this one, each had a step. */
static void
wait_a_round(struct populator *p)
{
	struct populate_job j = { 0 };
	uint8_t *mem = map(page_size());

	populator_ask(p, &j, mem, mem + page_size());
	wait_resident(mem, page_size());
	populator_drop(p, &j);
	munmap(mem, page_size());
}

static void
what_is_asked_for_gets_memory_and_keeps_its_contents(void **state)
{
	struct populator *p = populator_new();
	struct populate_job j = { 0 };
	uint8_t *mem = map(16 * MIB);

	mem[5 * MIB] = 77;
	populator_ask(p, &j, mem + MIB, mem + 9 * MIB);
	wait_resident(mem + MIB, 8 * MIB);
	assert_int_equal(mem[5 * MIB], 77);
	assert_int_equal(resident(mem, 16 * MIB), 8 * MIB);
	populator_drop(p, &j);
	populator_free(p);
	munmap(mem, 16 * MIB);
}

static void
a_job_that_moves_on_leaves_out_what_it_passed(void **state)
{
	struct populator *p = populator_new();
	struct populate_job j = { 0 };
	uint8_t *mem = map(1024 * MIB);

	/* It is not through with the first when the second comes. */
	populator_ask(p, &j, mem, mem + 512 * MIB);
	populator_ask(p, &j, mem + 768 * MIB, mem + 770 * MIB);
	wait_resident(mem + 768 * MIB, 2 * MIB);
	assert_in_range(resident(mem, 768 * MIB), 0, 510 * MIB);
	assert_int_equal(resident(mem + 770 * MIB, 254 * MIB), 0);
	populator_drop(p, &j);
	populator_free(p);
	munmap(mem, 1024 * MIB);
}

static void
a_dropped_job_touches_nothing_any_more(void **state)
{
	struct populator *p = populator_new();
	struct populate_job j = { 0 };
	uint8_t *mem = map(1024 * MIB);

	populator_ask(p, &j, mem, mem + 1024 * MIB);
	populator_drop(p, &j);
	/* Seen only in what is touched of it afterwards. */
	assert_int_equal(madvise(mem, 1024 * MIB, MADV_DONTNEED), 0);
	wait_a_round(p);
	wait_a_round(p);
	assert_int_equal(resident(mem, 1024 * MIB), 0);
	munmap(mem, 1024 * MIB);
	populator_free(p);
}

/* ---- rings ---- */

struct bed {
	struct populator *p;
	struct trace_buffer *tb;
	struct ring_ahead ahead;
	uint32_t chunk;
};

static void
bed_init(struct bed *b, size_t ring)
{
	memset(b, 0, sizeof(*b));
	b->p = populator_new();
	b->tb = trace_buffer_new(ring, TB_RING);
	assert_non_null(b->p);
	assert_non_null(b->tb);
}

static void
bed_done(struct bed *b)
{
	ring_ahead_stop(&b->ahead, b->p);
	trace_buffer_free(b->tb);
	populator_free(b->p);
}

/* Chunks until so much of the ring was reached. */
static struct tb_memory
write_until(struct bed *b, uint64_t reached, uint64_t now_ms)
{
	static uint8_t payload[32 * 1024];
	struct tb_origin origin = { .producer = 1, .writer = 1 };
	struct tb_chunk c = { .num_fragments = 1, .complete = true,
	    .payload = payload, .len = sizeof(payload) };

	/* One packet: its size takes three bytes. */
	payload[0] = (uint8_t)((sizeof(payload) - 3) | 0x80);
	payload[1] = (uint8_t)((sizeof(payload) - 3) >> 7 | 0x80);
	payload[2] = (uint8_t)((sizeof(payload) - 3) >> 14);
	do {
		c.id = b->chunk++;
		assert_true(trace_buffer_write(b->tb, &origin, &c));
	} while (trace_buffer_memory(b->tb).reached < reached);
	ring_ahead_follow(&b->ahead, b->p, b->tb, now_ms);
	return trace_buffer_memory(b->tb);
}

/*
 * Where what is asked for ends.  What has memory grows up to there: looked at too
 * early, it is too little to tell of a request that goes too far.
 */
static uint64_t
asked_until(const struct bed *b, const struct tb_memory *m)
{
	return b->ahead.job.end - (uintptr_t)m->ring;
}

static void
a_ring_that_stays_empty_gets_none(void **state)
{
	struct tb_memory m;
	struct bed b;

	bed_init(&b, 64 * MIB);
	ring_ahead_follow(&b.ahead, b.p, b.tb, 1000);
	wait_a_round(b.p);
	m = trace_buffer_memory(b.tb);
	assert_int_equal(m.size, 64 * MIB);
	assert_int_equal(resident(m.ring, m.size), 0);
	bed_done(&b);
}

static void
a_ring_that_begins_gets_a_little(void **state)
{
	struct tb_memory m;
	struct bed b;

	bed_init(&b, 64 * MIB);
	m = write_until(&b, 1, 1000);
	wait_resident(m.ring, RING_AHEAD_LEAST);
	/* Where pages are huge, all of the last one. */
	assert_in_range(resident(m.ring, m.size), RING_AHEAD_LEAST,
	    RING_AHEAD_LEAST + HUGE_PAGE);
	bed_done(&b);
}

static void
a_fast_one_gets_what_it_will_reach_soon(void **state)
{
	struct tb_memory m;
	struct bed b;

	bed_init(&b, 256 * MIB);
	write_until(&b, 1, 1000);
	/* 3 MiB in 15 ms: 40 in RING_AHEAD_MS. */
	m = write_until(&b, 3 * MIB, 1015);
	wait_resident(m.ring, 42 * MIB);
	assert_in_range(resident(m.ring, m.size), 42 * MIB, 48 * MIB);
	assert_in_range(asked_until(&b, &m), 42 * MIB, 44 * MIB);
	/* However fast it is. */
	m = write_until(&b, 100 * MIB, 1016);
	assert_in_range(asked_until(&b, &m), 164 * MIB,
	    m.reached + RING_AHEAD_MOST);
	wait_resident(m.ring, 100 * MIB + RING_AHEAD_MOST);
	assert_in_range(resident(m.ring, m.size), 164 * MIB, 168 * MIB);
	bed_done(&b);
}

static void
a_ring_of_which_all_was_reached_asks_no_more(void **state)
{
	struct bed b;

	bed_init(&b, 16 * MIB);
	write_until(&b, 16 * MIB - 40 * 1024, 1000);
	write_until(&b, 16 * MIB, 2000);
	assert_true(b.ahead.due > 16 * MIB);
	bed_done(&b);
}

static void
a_small_ring_is_left_alone(void **state)
{
	struct tb_memory m;
	struct bed b;

	bed_init(&b, 8 * MIB);
	m = write_until(&b, 1, 1000);
	wait_a_round(b.p);
	assert_in_range(resident(m.ring, m.size), 32 * 1024, 64 * 1024);
	bed_done(&b);
}

/* ---- a service ---- */

static void
a_session_has_memory_for_those_of_its_buffers_that_get_data(void **state)
{
	struct fixture *f = *state;
	struct fake_producer fp;
	struct fake_consumer c = { 0 };
	struct tb_memory used, empty;

	fake_producer_init(&fp, f, "prod", true);
	fake_producer_register(&fp, "src", false, false);
	assert_non_null(fake_enable(f, &c, "buffers { size_kb: 65536 } "
	    "buffers { size_kb: 65536 } "
	    "data_sources { config { name: \"src\" target_buffer: 1 } } ", -1));
	assert_int_equal(fake_commit(&fp, fp.last_buffer, 1, 0, 1, "a"),
	    COMMIT_OK);
	empty = trace_buffer_memory(c.s->buffers[0].tb);
	used = trace_buffer_memory(c.s->buffers[1].tb);
	wait_resident(used.ring, RING_AHEAD_LEAST);
	assert_int_equal(resident(empty.ring, empty.size), 0);
	session_free(c.s);
	fake_producer_done(&fp);
}

/* Kernels before 5.14 do nothing of it. */
static bool
kernel_can(void)
{
	uint8_t *mem = map(page_size());
	bool can = madvise(mem, page_size(), MADV_POPULATE_WRITE) == 0 ||
	    errno != EINVAL;

	munmap(mem, page_size());
	return can;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    what_is_asked_for_gets_memory_and_keeps_its_contents),
		cmocka_unit_test(a_job_that_moves_on_leaves_out_what_it_passed),
		cmocka_unit_test(a_dropped_job_touches_nothing_any_more),
		cmocka_unit_test(a_ring_that_stays_empty_gets_none),
		cmocka_unit_test(a_ring_that_begins_gets_a_little),
		cmocka_unit_test(a_fast_one_gets_what_it_will_reach_soon),
		cmocka_unit_test(a_ring_of_which_all_was_reached_asks_no_more),
		cmocka_unit_test(a_small_ring_is_left_alone),
		cmocka_unit_test_setup_teardown(
		    a_session_has_memory_for_those_of_its_buffers_that_get_data,
		    fixture_setup, fixture_teardown),
	};

	if (!kernel_can())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
