/*
 * Packets of a sequence in chunks, read back as a service reads them.  Time is
 * the test's: clock_gettime() and nanosleep() are replaced.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/tracing/memory/chunk_writer.h"
#include "tests/unit/client/tracing/memory/chunk_reader.h"

#define BUFFER 3

struct fixture {
	struct chunk_memory *memory;
	struct chunk_reader reader;
	struct chunk_writer w;
	size_t told;
};

/* What time does: so many sleeps, after so many of them the service reads. */
static uint64_t fake_ns;
static size_t sleeps, read_after;
static struct fixture *reads;

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_nanosleep(const struct timespec *ts, struct timespec *rest);

int
__wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	ts->tv_sec = (time_t)(fake_ns / 1000000000u);
	ts->tv_nsec = (long)(fake_ns % 1000000000u);
	return 0;
}

int
__wrap_nanosleep(const struct timespec *ts, struct timespec *rest)
{
	fake_ns += (uint64_t)ts->tv_sec * 1000000000u + (uint64_t)ts->tv_nsec;
	if (++sleeps == read_after)
		chunk_reader_run(&reads->reader);
	return 0;
}

static void
wake(void *arg)
{
}

static void
begin(struct fixture *f, size_t size, size_t page,
    enum tributary_full_policy policy)
{
	struct shm *shm = shm_new(size, page);

	assert_non_null(shm);
	f->memory = chunk_memory_new(shm, wake, NULL);
	assert_non_null(f->memory);
	chunk_reader_init(&f->reader, f->memory);
	assert_int_equal(chunk_writer_init(&f->w, f->memory, BUFFER, policy),
	    0);
	f->told = 0;
	fake_ns = 1000000000u;
	sleeps = read_after = 0;
	reads = f;
}

static void
end(struct fixture *f)
{
	chunk_writer_done(&f->w);
	chunk_reader_done(&f->reader);
	chunk_memory_unref(f->memory);
}

/* A packet of `len` bytes that follow from `seed`. */
static uint8_t *
made(size_t len, unsigned seed)
{
	uint8_t *data = malloc(len + 1);
	size_t i;

	assert_non_null(data);
	for (i = 0; i < len; i++)
		data[i] = (uint8_t)(seed + i * 7 + i / 251);
	return data;
}

static bool
put(struct fixture *f, size_t len, unsigned seed)
{
	uint8_t *data = made(len, seed);
	bool ok = chunk_writer_put(&f->w, data, len);

	free(data);
	return ok;
}

static void
assert_packet(struct fixture *f, size_t i, size_t len, unsigned seed)
{
	uint8_t *data = made(len, seed);

	assert_true(i < f->reader.n_packets);
	assert_true(f->reader.packets[i].len >= len);
	assert_memory_equal(f->reader.packets[i].data, data, len);
	assert_int_equal(f->reader.packets[i].writer, f->w.id);
	free(data);
}

static void
assert_tail(struct fixture *f, size_t i, size_t len, const char *tail,
    size_t tail_len)
{
	struct read_packet *p = &f->reader.packets[i];

	assert_true(i < f->reader.n_packets);
	assert_int_equal(p->len, len + tail_len);
	assert_memory_equal(p->data + len, tail, tail_len);
}

static void
hand_over(struct fixture *f)
{
	chunk_writer_flush(&f->w);
	chunk_reader_run(&f->reader);
}

#define FIRST "\xb8\x05\x01"
#define LOSS "\xd0\x02\x81\x02"

static void
the_first_packet_alone_says_that_it_is(void **state)
{
	struct fixture f;

	begin(&f, 65536, 4096, TRIBUTARY_FULL_DROP);
	assert_true(put(&f, 20, 1));
	assert_true(put(&f, 30, 2));
	assert_true(put(&f, 0, 3));
	hand_over(&f);
	assert_int_equal(f.reader.chunks, 1);
	assert_int_equal(f.reader.n_packets, 3);
	assert_packet(&f, 0, 20, 1);
	assert_tail(&f, 0, 20, FIRST, 3);
	assert_packet(&f, 1, 30, 2);
	assert_tail(&f, 1, 30, "", 0);
	assert_tail(&f, 2, 0, "", 0);
	end(&f);
}

static void
packets_in_place_follow_those_that_are_copied(void **state)
{
	struct fixture f;
	uint8_t *at;
	int i;

	begin(&f, 65536, 4096, TRIBUTARY_FULL_DROP);
	/* Not the first, which needs a mark. */
	assert_null(chunk_writer_room(&f.w, 64));
	assert_true(put(&f, 20, 1));
	for (i = 0; i < 40; i++) {
		at = chunk_writer_room(&f.w, 64);
		assert_non_null(at);
		memset(at, i, (size_t)i);
		chunk_writer_publish(&f.w, (size_t)i);
	}
	assert_true(put(&f, 200, 2));
	hand_over(&f);
	assert_int_equal(f.reader.n_packets, 42);
	for (i = 1; i < 40; i++) {
		assert_int_equal(f.reader.packets[i + 1].len, i);
		assert_int_equal(f.reader.packets[i + 1].data[i - 1], i);
	}
	assert_packet(&f, 41, 200, 2);
	end(&f);
}

static void
no_packet_is_in_place_where_the_chunk_ends(void **state)
{
	struct fixture f;
	size_t n = 1;

	begin(&f, 65536, 4096, TRIBUTARY_FULL_DROP);
	assert_true(put(&f, 1, 1));
	while (chunk_writer_room(&f.w, 64) != NULL) {
		chunk_writer_publish(&f.w, 64);
		n++;
	}
	assert_true((size_t)(f.w.end - f.w.at) < 65);
	hand_over(&f);
	assert_int_equal(f.reader.n_packets, n);
	/* There is no chunk now. */
	assert_null(chunk_writer_room(&f.w, 1));
	end(&f);
}

/* Lengths, each in whatever place of a chunk the one before it left. */
static void
packets_of_all_lengths(size_t page, size_t step, size_t writers)
{
	struct fixture f;
	uint16_t ids[256];
	size_t i, len, n = 0;

	begin(&f, 32 * page, page, TRIBUTARY_FULL_DROP);
	for (i = 1; i < writers; i++)
		ids[i] = chunk_memory_begin_writer(f.memory, BUFFER);
	for (len = 1; len < 3 * page; len += len < page ? step : 37 * step) {
		assert_true(put(&f, len, (unsigned)len));
		chunk_reader_run(&f.reader);
	}
	hand_over(&f);
	assert_int_equal(f.reader.dropped, 0);
	for (len = 1; len < 3 * page; len += len < page ? step : 37 * step)
		assert_packet(&f, n++, len, (unsigned)len);
	assert_int_equal(f.reader.n_packets, n);
	assert_int_equal(f.w.dropped, 0);
	for (i = 1; i < writers; i++)
		chunk_memory_end_writer(f.memory, ids[i]);
	end(&f);
}

static void
packets_of_all_lengths_in_whole_pages(void **state)
{
	packets_of_all_lengths(4096, 1, 1);
	packets_of_all_lengths(32768, 61, 1);
}

static void
packets_of_all_lengths_in_the_smallest_chunks(void **state)
{
	packets_of_all_lengths(4096, 1, 200);
}

static void
a_packet_larger_than_the_memory_goes_through_it(void **state)
{
	struct fixture f;
	struct chunk_reader *r = &f.reader;

	begin(&f, 16384, 4096, TRIBUTARY_FULL_WAIT);
	chunk_memory_set_owner(f.memory, (void (*)(void *))chunk_reader_run,
	    r);
	assert_true(put(&f, 1000000, 1));
	hand_over(&f);
	assert_int_equal(r->n_packets, 1);
	assert_packet(&f, 0, 1000000, 1);
	assert_true(r->chunks > 200);
	end(&f);
}

static void
a_chunk_holds_no_more_packets_than_can_be_counted(void **state)
{
	struct fixture f;
	size_t i;

	begin(&f, 65536, 32768, TRIBUTARY_FULL_DROP);
	for (i = 0; i < 3000; i++) {
		if (chunk_writer_room(&f.w, 1) != NULL && i % 2 == 0)
			chunk_writer_publish(&f.w, 1);
		else
			assert_true(put(&f, 1, (unsigned)i));
		chunk_reader_run(&f.reader);
	}
	hand_over(&f);
	assert_int_equal(f.reader.n_packets, 3000);
	assert_int_equal(f.reader.most_fragments, SHM_FRAGMENTS_MAX - 1);
	end(&f);
}

/* ---- What others see meanwhile ---- */

struct scraped {
	unsigned fragments;
	bool complete, seen;
};

static bool
note_chunk(void *arg, const struct shm_chunk *c, bool complete)
{
	struct scraped *s = arg;

	s->fragments = c->num_fragments;
	s->complete = complete;
	s->seen = true;
	return true;
}

static void
a_chunk_that_is_written_counts_one_more_than_are_whole(void **state)
{
	struct fixture f;
	struct scraped s = { 0 };

	begin(&f, 65536, 4096, TRIBUTARY_FULL_DROP);
	assert_true(put(&f, 20, 1));
	shm_scrape(chunk_memory_shm(f.memory), false, note_chunk, &s);
	assert_true(s.seen && !s.complete);
	assert_int_equal(s.fragments, 2);
	assert_non_null(chunk_writer_room(&f.w, 64));
	chunk_writer_publish(&f.w, 5);
	shm_scrape(chunk_memory_shm(f.memory), false, note_chunk, &s);
	assert_int_equal(s.fragments, 3);
	chunk_writer_flush(&f.w);
	shm_scrape(chunk_memory_shm(f.memory), false, note_chunk, &s);
	assert_true(s.complete);
	assert_int_equal(s.fragments, 2);
	end(&f);
}

/* ---- No chunk is free ---- */

/* Fills the memory with packets of half a chunk. */
static size_t
fill(struct fixture *f)
{
	size_t n = 0;

	while (put(f, 3000, (unsigned)n))
		n++;
	return n;
}

static void
a_packet_without_a_chunk_is_dropped_and_counted(void **state)
{
	struct fixture f;
	size_t n;

	begin(&f, 16384, 4096, TRIBUTARY_FULL_DROP);
	n = fill(&f);
	assert_true(n >= 4);
	assert_int_equal(f.w.dropped, 1);
	assert_false(put(&f, 3000, 0));
	assert_int_equal(f.w.dropped, 2);
	assert_int_equal(sleeps, 0);
	chunk_reader_run(&f.reader);
	/* The next says so, and the one after it does not. */
	assert_true(put(&f, 10, 7));
	assert_true(put(&f, 10, 8));
	hand_over(&f);
	assert_int_equal(f.reader.n_packets, n + 2);
	assert_tail(&f, n, 10, LOSS, 4);
	assert_tail(&f, n + 1, 10, "", 0);
	end(&f);
}

static void
packets_in_place_are_not_written_after_a_loss(void **state)
{
	struct fixture f;

	begin(&f, 65536, 4096, TRIBUTARY_FULL_DROP);
	assert_true(put(&f, 10, 1));
	assert_non_null(chunk_writer_room(&f.w, 64));
	chunk_writer_count_drop(&f.w, 1);
	assert_null(chunk_writer_room(&f.w, 64));
	assert_true(put(&f, 10, 2));
	assert_non_null(chunk_writer_room(&f.w, 64));
	hand_over(&f);
	assert_tail(&f, 1, 10, LOSS, 4);
	end(&f);
}

static void
a_first_packet_that_is_lost_leaves_both_marks_to_the_next(void **state)
{
	struct fixture f;

	begin(&f, 16384, 4096, TRIBUTARY_FULL_DROP);
	assert_false(put(&f, 100000, 1));
	chunk_reader_run(&f.reader);
	assert_true(put(&f, 10, 2));
	hand_over(&f);
	assert_int_equal(f.reader.n_packets, 1);
	assert_tail(&f, 0, 10, FIRST LOSS, 7);
	end(&f);
}

static void
a_packet_that_was_begun_says_that_it_does_not_go_on(void **state)
{
	struct fixture f;

	begin(&f, 16384, 4096, TRIBUTARY_FULL_DROP);
	assert_true(put(&f, 10, 1));
	assert_false(put(&f, 100000, 2));
	assert_int_equal(f.w.dropped, 1);
	chunk_reader_run(&f.reader);
	assert_int_equal(f.reader.n_packets, 1);
	assert_int_equal(f.reader.dropped, 1);
	assert_false(f.reader.has_open);
	/* The memory is free again. */
	assert_true(put(&f, 10, 3));
	hand_over(&f);
	assert_tail(&f, 1, 10, LOSS, 4);
	end(&f);
}

static void
a_packet_longer_than_services_take_is_dropped(void **state)
{
	struct fixture f;
	uint8_t byte = 0;

	begin(&f, 16384, 4096, TRIBUTARY_FULL_WAIT);
	assert_false(chunk_writer_put(&f.w, &byte,
	    CHUNK_WRITER_PACKET_MAX + 1));
	assert_int_equal(f.w.dropped, 1);
	assert_int_equal(sleeps, 0);
	end(&f);
}

static void
a_stall_goes_on_as_soon_as_a_chunk_is_free(void **state)
{
	struct fixture f;
	size_t i, n;

	begin(&f, 16384, 4096, TRIBUTARY_FULL_STALL);
	for (i = 0; i < 4; i++)
		assert_true(put(&f, 4000, (unsigned)i));
	read_after = 3;
	assert_true(put(&f, 4000, 4));
	assert_int_equal(sleeps, 3);
	hand_over(&f);
	n = f.reader.n_packets;
	assert_int_equal(n, 5);
	assert_packet(&f, 4, 4000, 4);
	assert_int_equal(f.w.dropped, 0);
	end(&f);
}

static void
a_stall_ends_after_its_time_and_is_not_repeated(void **state)
{
	struct fixture f;
	uint64_t began;
	size_t waited;

	begin(&f, 16384, 4096, TRIBUTARY_FULL_STALL);
	began = fake_ns;
	(void)fill(&f);
	assert_int_equal(f.w.dropped, 1);
	assert_in_range(fake_ns - began, 1000000000u, 1010000000u);
	waited = sleeps;
	assert_false(put(&f, 3000, 0));
	assert_int_equal(sleeps, waited);
	/* After a chunk was had, it waits again. */
	chunk_reader_run(&f.reader);
	(void)fill(&f);
	assert_true(sleeps > waited);
	assert_int_equal(f.w.dropped, 3);
	end(&f);
}

static void
one_that_waits_does_so_for_hours(void **state)
{
	struct fixture f;
	size_t i;

	begin(&f, 16384, 4096, TRIBUTARY_FULL_WAIT);
	for (i = 0; i < 4; i++)
		assert_true(put(&f, 4000, (unsigned)i));
	read_after = 3600 * 500;
	assert_true(put(&f, 4000, 4));
	assert_true(fake_ns > 3500 * (uint64_t)1000000000u);
	assert_int_equal(f.w.dropped, 0);
	end(&f);
}

static void
abort_ends_the_program_after_a_stall(void **state)
{
	struct fixture f;
	pid_t child;
	int status;

	begin(&f, 16384, 4096, TRIBUTARY_FULL_ABORT);
	if ((child = fork()) == 0) {
		(void)signal(SIGABRT, SIG_DFL);
		(void)fill(&f);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	end(&f);
}

static void
nobody_waits_for_a_service_that_is_gone(void **state)
{
	static const enum tributary_full_policy policies[] = {
		TRIBUTARY_FULL_DROP, TRIBUTARY_FULL_STALL,
		TRIBUTARY_FULL_WAIT, TRIBUTARY_FULL_ABORT,
	};
	struct fixture f;
	size_t i;

	for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		begin(&f, 16384, 4096, policies[i]);
		chunk_memory_close(f.memory);
		assert_false(put(&f, 10, 1));
		assert_int_equal(f.w.dropped, 1);
		assert_int_equal(sleeps, 0);
		end(&f);
	}
}

static void
the_owner_of_the_memory_tells_the_service_while_it_waits(void **state)
{
	struct fixture f;
	size_t i;

	begin(&f, 16384, 4096, TRIBUTARY_FULL_STALL);
	chunk_memory_set_owner(f.memory, (void (*)(void *))chunk_reader_run,
	    &f.reader);
	for (i = 0; i < 100; i++)
		assert_true(put(&f, 4000, (unsigned)i));
	hand_over(&f);
	assert_int_equal(f.reader.n_packets, 100);
	end(&f);
}

/* ---- Handing over ---- */

static void
nothing_is_handed_over_where_nothing_was_written(void **state)
{
	struct fixture f;

	begin(&f, 16384, 4096, TRIBUTARY_FULL_DROP);
	hand_over(&f);
	hand_over(&f);
	assert_int_equal(f.reader.chunks, 0);
	assert_true(put(&f, 10, 1));
	hand_over(&f);
	hand_over(&f);
	assert_int_equal(f.reader.chunks, 1);
	assert_true(put(&f, 10, 2));
	chunk_writer_done(&f.w);
	chunk_reader_run(&f.reader);
	assert_int_equal(f.reader.n_packets, 2);
	/* It began, and it ended. */
	assert_int_equal(f.reader.notes, 2);
	chunk_reader_done(&f.reader);
	chunk_memory_unref(f.memory);
}

/* The service reads once, while the packet waits for its second chunk. */
static void
a_packet_that_waits_for_its_rest_holds_no_chunk(void **state)
{
	struct fixture f;

	/* One page of two chunks, as there is one writer. */
	begin(&f, 4096, 4096, TRIBUTARY_FULL_STALL);
	assert_true(put(&f, 1000, 1));
	read_after = 1;
	assert_true(put(&f, 5000, 2));
	assert_true(sleeps > 0);
	hand_over(&f);
	assert_int_equal(f.reader.n_packets, 2);
	assert_packet(&f, 1, 5000, 2);
	end(&f);
}

static void
a_packet_whose_rest_finds_no_chunk_is_given_up_in_the_next(void **state)
{
	struct fixture f;

	begin(&f, 4096, 4096, TRIBUTARY_FULL_STALL);
	assert_true(put(&f, 1000, 1));
	assert_false(put(&f, 9000, 2));
	/* Its beginning was handed over; the stall was in vain. */
	chunk_reader_run(&f.reader);
	assert_int_equal(f.reader.n_packets, 1);
	assert_true(f.reader.has_open);
	assert_true(put(&f, 300, 3));
	hand_over(&f);
	assert_int_equal(f.reader.dropped, 1);
	assert_false(f.reader.has_open);
	assert_int_equal(f.reader.n_packets, 2);
	assert_packet(&f, 1, 300, 3);
	assert_tail(&f, 1, 300, LOSS, 4);
	assert_int_equal(f.w.dropped, 1);
	end(&f);
}

static void
a_chunk_is_filled_to_its_last_byte_but_one(void **state)
{
	struct fixture f;
	size_t left;

	begin(&f, 65536, 4096, TRIBUTARY_FULL_DROP);
	assert_true(put(&f, 20, 1));
	while (f.w.end - f.w.at > 200)
		assert_true(put(&f, 100, 2));
	left = (size_t)(f.w.end - f.w.at);
	/* The fragment's size is of one byte, or of two. */
	assert_true(put(&f, left - (left > 128 ? 2 : 1), 3));
	assert_ptr_equal(f.w.at, f.w.end);
	hand_over(&f);
	assert_int_equal(f.reader.chunks, 1);
	end(&f);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_packet_alone_says_that_it_is),
		cmocka_unit_test(packets_in_place_follow_those_that_are_copied),
		cmocka_unit_test(no_packet_is_in_place_where_the_chunk_ends),
		cmocka_unit_test(packets_of_all_lengths_in_whole_pages),
		cmocka_unit_test(packets_of_all_lengths_in_the_smallest_chunks),
		cmocka_unit_test(
		    a_packet_larger_than_the_memory_goes_through_it),
		cmocka_unit_test(
		    a_chunk_holds_no_more_packets_than_can_be_counted),
		cmocka_unit_test(
		    a_chunk_that_is_written_counts_one_more_than_are_whole),
		cmocka_unit_test(
		    a_packet_without_a_chunk_is_dropped_and_counted),
		cmocka_unit_test(
		    packets_in_place_are_not_written_after_a_loss),
		cmocka_unit_test(
		    a_first_packet_that_is_lost_leaves_both_marks_to_the_next),
		cmocka_unit_test(
		    a_packet_that_was_begun_says_that_it_does_not_go_on),
		cmocka_unit_test(a_packet_longer_than_services_take_is_dropped),
		cmocka_unit_test(a_stall_goes_on_as_soon_as_a_chunk_is_free),
		cmocka_unit_test(
		    a_stall_ends_after_its_time_and_is_not_repeated),
		cmocka_unit_test(one_that_waits_does_so_for_hours),
		cmocka_unit_test(a_packet_that_waits_for_its_rest_holds_no_chunk),
		cmocka_unit_test(
		    a_packet_whose_rest_finds_no_chunk_is_given_up_in_the_next),
		cmocka_unit_test(a_chunk_is_filled_to_its_last_byte_but_one),
		cmocka_unit_test(abort_ends_the_program_after_a_stall),
		cmocka_unit_test(nobody_waits_for_a_service_that_is_gone),
		cmocka_unit_test(
		    the_owner_of_the_memory_tells_the_service_while_it_waits),
		cmocka_unit_test(
		    nothing_is_handed_over_where_nothing_was_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
