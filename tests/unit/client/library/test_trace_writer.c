/* Packets through trace_writer and commit_batch to the service's side. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/library/commit_batch.h"
#include "client/library/trace_writer.h"
#include "tests/unit/client/library/fake_memory.h"
#include "transport/shm/shm.h"

static const uint8_t first[] = { 0xb8, 0x05, 1 };
static const uint8_t lost[] = { 0xd0, 0x02, 0x81, 0x02 };

struct fixture {
	struct shm *shm;
	struct shm *service;
	struct commit_batch *batch;
	struct fake_memory m;
	bool deaf;       /* the service does not handle requests */
	bool blocked;    /* may_send() is false */
	unsigned wakes;
	unsigned pushes;
	unsigned opens_after; /* pushes: then may_send() is true */
	/* requests kept while deaf */
	uint8_t *kept[256];
	size_t input_rest_len[256];
	size_t n_kept;
};

static void
on_send(void *arg, const uint8_t *msg, size_t len)
{
	struct fixture *f = arg;

	assert_true(len <= COMMIT_REQUEST_MAX);
	if (f->deaf) {
		assert_true(f->n_kept < 256);
		f->kept[f->n_kept] = malloc(len + 1);
		memcpy(f->kept[f->n_kept], msg, len);
		f->input_rest_len[f->n_kept++] = len;
		return;
	}
	fake_memory_commit(&f->m, msg, len);
}

static bool
on_may_send(void *arg)
{
	struct fixture *f = arg;

	return !f->blocked;
}

static void
on_push(void *arg)
{
	struct fixture *f = arg;

	if (++f->pushes >= f->opens_after && f->opens_after > 0)
		f->blocked = false;
}

static void
on_wake(void *arg)
{
	struct fixture *f = arg;

	f->wakes++;
}

static const struct commit_ops ops = {
	.send = on_send,
	.push = on_push,
	.may_send = on_may_send,
	.wake = on_wake,
};

static void
hear(struct fixture *f)
{
	size_t i;

	f->deaf = false;
	for (i = 0; i < f->n_kept; i++) {
		fake_memory_commit(&f->m, f->kept[i], f->input_rest_len[i]);
		free(f->kept[i]);
	}
	f->n_kept = 0;
}

static struct fixture *
begin(size_t size, size_t page, bool emulated)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char err[200];

	assert_non_null(f);
	f->shm = shm_new(size, page);
	assert_non_null(f->shm);
	if (!emulated) {
		f->service = shm_adopt(dup(shm_fd(f->shm)), page, err,
		    sizeof(err));
		assert_non_null(f->service);
	}
	f->batch = commit_batch_new(f->shm, emulated, &ops, f);
	assert_non_null(f->batch);
	fake_memory_init(&f->m, f->service);
	return f;
}

static void
end(struct fixture *f)
{
	size_t i;

	for (i = 0; i < f->n_kept; i++)
		free(f->kept[i]);
	fake_memory_done(&f->m);
	commit_batch_free(f->batch);
	shm_free(f->service);
	shm_free(f->shm);
	free(f);
}

static struct trace_writer *
writer(struct fixture *f, uint16_t id, enum trace_writer_policy policy)
{
	struct trace_writer *w = trace_writer_new(f->batch, id, 5, policy);

	assert_non_null(w);
	return w;
}

/* A packet of n bytes that tells its number from any other. */
static uint8_t *
packet(size_t n, unsigned number)
{
	uint8_t *p = malloc(n + 1);
	size_t i;

	assert_non_null(p);
	for (i = 0; i < n; i++)
		p[i] = (uint8_t)(number * 31 + i * 7 + (i >> 8));
	return p;
}

static void
assert_packet(const struct fake_packet *got, size_t n, unsigned number,
    const uint8_t *extra, size_t extra_len)
{
	uint8_t *want = packet(n, number);

	assert_int_equal(got->len, n + extra_len);
	assert_memory_equal(got->data, want, n);
	assert_memory_equal(got->data + n, extra, extra_len);
	assert_int_equal(got->buffer, 5);
	free(want);
}

static bool
write_numbered(struct trace_writer *w, size_t n, unsigned number)
{
	uint8_t *p = packet(n, number);
	bool ok = trace_writer_write(w, p, n);

	free(p);
	return ok;
}

static void
packets_arrive_whole_and_the_first_says_so(void **state)
{
	struct fixture *f = begin(64 * 1024, 4096, false);
	struct trace_writer *w = writer(f, 1, TRACE_WRITER_DROP);
	unsigned i;

	for (i = 0; i < 5; i++)
		assert_true(write_numbered(w, 10 + i, i));
	assert_int_equal(f->m.n, 0); /* the chunk is not full */
	assert_int_equal(f->wakes, 0);
	trace_writer_flush(w);
	assert_int_equal(f->wakes, 1);
	assert_true(commit_batch_send(f->batch));
	assert_int_equal(f->m.n, 5);
	assert_packet(&f->m.packets[0], 10, 0, first, sizeof(first));
	for (i = 1; i < 5; i++)
		assert_packet(&f->m.packets[i], 10 + i, i, NULL, 0);
	trace_writer_free(w);
	end(f);
}

static void
empty_packets_count_too(void **state)
{
	struct fixture *f = begin(64 * 1024, 4096, false);
	struct trace_writer *w = writer(f, 1, TRACE_WRITER_DROP);

	assert_true(trace_writer_write(w, NULL, 0));
	assert_true(trace_writer_write(w, NULL, 0));
	trace_writer_free(w);
	commit_batch_send(f->batch);
	assert_int_equal(f->m.n, 2);
	assert_packet(&f->m.packets[0], 0, 0, first, sizeof(first));
	assert_packet(&f->m.packets[1], 0, 0, NULL, 0);
	end(f);
}

/* Every size around the ends of chunks, in and out of shared memory. */
static void
sizes_around_chunk_ends(size_t page, bool emulated)
{
	struct fixture *f = begin(16 * page, page, emulated);
	struct trace_writer *w = writer(f, 3, TRACE_WRITER_DROP);
	size_t sizes[400], n = 0, chunk = page - 16, d;
	unsigned i;

	for (d = 0; d < 40; d++) {
		sizes[n++] = chunk - 20 + d;
		sizes[n++] = 2 * chunk - 20 + d;
		sizes[n++] = d;
		sizes[n++] = chunk / 2 - 20 + d;
		sizes[n++] = 100 + d;
	}
	for (i = 0; i < n; i++) {
		assert_true(write_numbered(w, sizes[i], i));
		assert_true(commit_batch_send(f->batch));
	}
	trace_writer_free(w);
	commit_batch_send_all(f->batch, 0);
	assert_int_equal(f->m.n, n);
	assert_packet(&f->m.packets[0], sizes[0], 0, first, sizeof(first));
	for (i = 1; i < n; i++)
		assert_packet(&f->m.packets[i], sizes[i], i, NULL, 0);
	assert_int_equal(f->m.given_up, 0);
	end(f);
}

static void
packets_of_every_size_survive_fragmentation(void **state)
{
	sizes_around_chunk_ends(4096, false);
	sizes_around_chunk_ends(32768, false);
	sizes_around_chunk_ends(4096, true);
	sizes_around_chunk_ends(32768, true);
}

static void
a_packet_larger_than_all_memory_goes_through_in_pieces(void **state)
{
	struct fixture *f = begin(16 * 4096, 4096, false);
	struct trace_writer *w = writer(f, 1, TRACE_WRITER_DROP);

	assert_true(write_numbered(w, 1000 * 1000, 9));
	trace_writer_free(w);
	commit_batch_send_all(f->batch, 0);
	assert_int_equal(f->m.n, 1);
	assert_packet(&f->m.packets[0], 1000 * 1000, 9, first, sizeof(first));
	end(f);
}

static void
a_chunk_never_holds_more_fragments_than_can_be_counted(void **state)
{
	struct fixture *f = begin(64 * 1024, 32768, false);
	struct trace_writer *w = writer(f, 1, TRACE_WRITER_DROP);
	unsigned i;

	for (i = 0; i < 2500; i++)
		assert_true(trace_writer_write(w, "x", 1));
	trace_writer_free(w);
	commit_batch_send_all(f->batch, 0);
	assert_int_equal(f->m.n, 2500);
	assert_int_equal(f->m.chunks, 3);
	end(f);
}

static void
writers_keep_their_packets_apart(void **state)
{
	struct fixture *f = begin(256 * 1024, 4096, false);
	struct trace_writer *w[20];
	size_t next[20] = { 0 }, i, k;

	for (i = 0; i < 20; i++)
		w[i] = writer(f, (uint16_t)(i + 1), TRACE_WRITER_DROP);
	for (k = 0; k < 100; k++)
		for (i = 0; i < 20; i++) {
			assert_true(write_numbered(w[i], 50 + i * 20,
			    (unsigned)(i * 1000 + k)));
			commit_batch_send(f->batch);
		}
	for (i = 0; i < 20; i++)
		trace_writer_free(w[i]);
	commit_batch_send_all(f->batch, 0);
	assert_int_equal(f->m.n, 2000);
	for (k = 0; k < f->m.n; k++) {
		i = f->m.packets[k].writer - 1u;
		assert_packet(&f->m.packets[k], 50 + i * 20,
		    (unsigned)(i * 1000 + next[i]), first,
		    next[i] == 0 ? sizeof(first) : 0);
		next[i]++;
	}
	end(f);
}

static void
what_does_not_fit_is_dropped_and_the_next_packet_says_so(void **state)
{
	struct fixture *f = begin(4 * 4096, 4096, false);
	struct trace_writer *w = writer(f, 1, TRACE_WRITER_DROP);
	unsigned written = 0, dropped = 0, i;

	f->deaf = true;
	for (i = 0; i < 40; i++) {
		if (write_numbered(w, 1000, i)) {
			assert_int_equal(dropped, 0);
			written++;
		} else {
			dropped++;
		}
	}
	assert_true(written >= 12 && written < 17);
	assert_int_equal(trace_writer_dropped(w), dropped);
	hear(f);
	assert_true(write_numbered(w, 1000, 100));
	assert_true(write_numbered(w, 1000, 101));
	trace_writer_free(w);
	commit_batch_send_all(f->batch, 0);
	assert_int_equal(f->m.n, written + 2);
	for (i = 1; i < written; i++)
		assert_packet(&f->m.packets[i], 1000, i, NULL, 0);
	assert_packet(&f->m.packets[written], 1000, 100, lost, sizeof(lost));
	assert_packet(&f->m.packets[written + 1], 1000, 101, NULL, 0);
	end(f);
}

static void
a_packet_cut_off_by_lack_of_memory_is_marked_as_given_up(void **state)
{
	struct fixture *f = begin(4 * 4096, 4096, false);
	struct trace_writer *w = writer(f, 1, TRACE_WRITER_DROP);

	f->deaf = true;
	assert_true(write_numbered(w, 500, 0));
	assert_false(write_numbered(w, 100 * 1000, 1));
	assert_false(write_numbered(w, 10, 2));
	hear(f);
	assert_true(write_numbered(w, 100 * 1000, 3));
	trace_writer_free(w);
	commit_batch_send_all(f->batch, 0);
	assert_int_equal(f->m.given_up, 1);
	assert_int_equal(f->m.n, 2);
	assert_packet(&f->m.packets[0], 500, 0, first, sizeof(first));
	assert_packet(&f->m.packets[1], 100 * 1000, 3, lost, sizeof(lost));
	end(f);
}

static void
a_first_packet_that_was_dropped_leaves_the_mark_to_the_next(void **state)
{
	struct fixture *f = begin(4 * 4096, 4096, false);
	struct trace_writer *w = writer(f, 1, TRACE_WRITER_DROP);
	uint8_t both[sizeof(first) + sizeof(lost)];

	memcpy(both, first, sizeof(first));
	memcpy(both + sizeof(first), lost, sizeof(lost));
	f->deaf = true;
	assert_false(write_numbered(w, 100 * 1000, 0));
	hear(f);
	assert_true(write_numbered(w, 10, 1));
	trace_writer_free(w);
	commit_batch_send_all(f->batch, 0);
	assert_int_equal(f->m.n, 1);
	assert_packet(&f->m.packets[0], 10, 1, both, sizeof(both));
	end(f);
}

static void
half_of_the_memory_is_committed_without_being_asked(void **state)
{
	struct fixture *f = begin(16 * 4096, 4096, false);
	struct trace_writer *w = writer(f, 1, TRACE_WRITER_DROP);
	unsigned i;

	for (i = 0; i < 500; i++)
		assert_true(write_numbered(w, 2000, i));
	assert_true(f->m.requests > 0);
	assert_int_equal(trace_writer_dropped(w), 0);
	trace_writer_free(w);
	end(f);
}

static void
emulated_requests_fit_into_frames_and_wait_while_the_socket_is_full(
    void **state)
{
	struct fixture *f = begin(1024 * 1024, 32768, true);
	struct trace_writer *w = writer(f, 1, TRACE_WRITER_DROP);
	unsigned i, written = 0;

	f->blocked = true;
	for (i = 0; i < 100; i++)
		if (write_numbered(w, 16000, i))
			written++;
	assert_int_equal(f->m.requests, 0);
	assert_true(written >= 60 && written < 70); /* what the memory holds */
	assert_true(commit_batch_waiting(f->batch) > 30);
	f->blocked = false;
	assert_true(commit_batch_send(f->batch));
	assert_int_equal(commit_batch_waiting(f->batch), 0);
	assert_true(f->m.requests > 5);
	assert_true(f->m.longest_request > 64 * 1024);
	assert_int_equal(f->m.n, written);
	/* and the memory is free again */
	for (i = 0; i < 50; i++)
		assert_true(write_numbered(w, 16000, i));
	trace_writer_free(w);
	commit_batch_send_all(f->batch, 0);
	assert_int_equal(f->m.n, written + 50);
	end(f);
}

static void
a_flush_is_told_with_the_last_request_even_when_the_socket_is_full(void **state)
{
	struct fixture *f = begin(1024 * 1024, 32768, true);
	struct trace_writer *w = writer(f, 1, TRACE_WRITER_DROP);
	unsigned i;

	f->blocked = true;
	for (i = 0; i < 50; i++)
		assert_true(write_numbered(w, 16000, i));
	trace_writer_flush(w);
	commit_batch_send_all(f->batch, 77);
	assert_int_equal(f->m.flush_id, 77);
	assert_int_equal(f->m.n, 50);
	assert_int_equal(f->m.chunks_at_flush, f->m.chunks);
	trace_writer_free(w);
	end(f);
}

static void
a_flush_with_nothing_to_send_is_told_and_nothing_else_is(void **state)
{
	struct fixture *f = begin(64 * 1024, 4096, false);

	commit_batch_send_all(f->batch, 0);
	assert_true(commit_batch_send(f->batch));
	assert_int_equal(f->m.requests, 0);
	commit_batch_send_all(f->batch, 3);
	assert_int_equal(f->m.requests, 1);
	assert_int_equal(f->m.flush_id, 3);
	end(f);
}

static void
a_detached_writer_drops(void **state)
{
	struct fixture *f = begin(64 * 1024, 4096, false);
	struct trace_writer *w = writer(f, 1, TRACE_WRITER_STALL);

	assert_true(write_numbered(w, 10, 0));
	trace_writer_detach(w);
	assert_false(write_numbered(w, 10, 1));
	trace_writer_flush(w);
	assert_int_equal(trace_writer_dropped(w), 1);
	trace_writer_free(w);
	assert_int_equal(commit_batch_waiting(f->batch), 0);
	end(f);
}

/* The service as a thread that takes whatever is complete. */
struct taker {
	struct shm *shm;
	atomic_bool stop;
	unsigned taken;
};

static void *
take_all(void *arg)
{
	struct taker *t = arg;
	struct shm_chunk c;
	uint32_t page;

	while (!atomic_load(&t->stop))
		for (page = 0; page < shm_pages(t->shm); page++)
			if (shm_take(t->shm, page, 0, &c) == SHM_TAKEN) {
				shm_release(t->shm, page, 0);
				t->taken++;
			}
	return NULL;
}

static void
a_stalling_writer_waits_for_memory_instead_of_dropping(void **state)
{
	struct fixture *f = begin(4 * 4096, 4096, false);
	struct trace_writer *w = writer(f, 1, TRACE_WRITER_STALL);
	struct taker t = { .shm = f->service };
	pthread_t thread;
	unsigned i;

	f->deaf = true;
	assert_int_equal(pthread_create(&thread, NULL, take_all, &t), 0);
	for (i = 0; i < 200; i++)
		assert_true(write_numbered(w, 3000, i));
	atomic_store(&t.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(trace_writer_dropped(w), 0);
	assert_true(t.taken > 50);
	trace_writer_free(w);
	end(f);
}

static void
a_stalling_writer_pushes_what_it_waits_for(void **state)
{
	struct fixture *f = begin(4 * 4096, 4096, true);
	struct trace_writer *w = writer(f, 1, TRACE_WRITER_STALL);
	unsigned i;

	f->blocked = true;
	f->opens_after = 3;
	for (i = 0; i < 50; i++)
		assert_true(write_numbered(w, 3000, i));
	trace_writer_flush(w);
	commit_batch_send_all(f->batch, 0);
	assert_int_equal(trace_writer_dropped(w), 0);
	assert_int_equal(f->m.n, 50);
	trace_writer_free(w);
	end(f);
}

static void
a_stalling_writer_gives_up_once(void **state)
{
	struct fixture *f = begin(2 * 4096, 4096, false);
	struct trace_writer *w = writer(f, 1, TRACE_WRITER_STALL);
	unsigned pushes, i;

	f->deaf = true;
	assert_false(write_numbered(w, 100 * 1000, 0));
	assert_int_equal(trace_writer_dropped(w), 1);
	/* Nobody took a chunk: the next ones do not wait for it again. */
	pushes = f->pushes;
	assert_true(pushes > 0);
	for (i = 1; i <= 20; i++)
		assert_false(write_numbered(w, 100 * 1000, i));
	assert_int_equal(f->pushes, pushes);
	assert_int_equal(trace_writer_dropped(w), 21);
	/* Memory was free again: so they do. */
	hear(f);
	assert_true(write_numbered(w, 1000, 21));
	f->deaf = true;
	assert_false(write_numbered(w, 100 * 1000, 22));
	assert_true(f->pushes > pushes);
	trace_writer_free(w);
	end(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_arrive_whole_and_the_first_says_so),
		cmocka_unit_test(empty_packets_count_too),
		cmocka_unit_test(packets_of_every_size_survive_fragmentation),
		cmocka_unit_test(
		    a_packet_larger_than_all_memory_goes_through_in_pieces),
		cmocka_unit_test(
		    a_chunk_never_holds_more_fragments_than_can_be_counted),
		cmocka_unit_test(writers_keep_their_packets_apart),
		cmocka_unit_test(
		    what_does_not_fit_is_dropped_and_the_next_packet_says_so),
		cmocka_unit_test(
		    a_packet_cut_off_by_lack_of_memory_is_marked_as_given_up),
		cmocka_unit_test(
		    a_first_packet_that_was_dropped_leaves_the_mark_to_the_next),
		cmocka_unit_test(
		    half_of_the_memory_is_committed_without_being_asked),
		cmocka_unit_test(
		    emulated_requests_fit_into_frames_and_wait_while_the_socket_is_full),
		cmocka_unit_test(
		    a_flush_is_told_with_the_last_request_even_when_the_socket_is_full),
		cmocka_unit_test(
		    a_flush_with_nothing_to_send_is_told_and_nothing_else_is),
		cmocka_unit_test(a_detached_writer_drops),
		cmocka_unit_test(
		    a_stalling_writer_waits_for_memory_instead_of_dropping),
		cmocka_unit_test(a_stalling_writer_pushes_what_it_waits_for),
		cmocka_unit_test(a_stalling_writer_gives_up_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
