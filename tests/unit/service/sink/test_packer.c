#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/sink/file_sink.h"
#include "service/sink/packer.h"
#include "transport/loop/loop.h"
#include "transport/sink/packet_boundary.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static const struct packet_compression zstd = { PACKET_ZSTD, 0 };
static const struct packet_compression slow = {
	PACKET_ZSTD, PACKET_ZSTD_LEVEL_MAX
};

struct fixture {
	struct loop *l;
	struct packer *p;
	int packed;
	bool free_it;
};

static void
packed_cb(void *arg)
{
	struct fixture *f = arg;

	f->packed++;
	if (f->free_it) {
		packer_free(f->p);
		f->p = NULL;
	}
	loop_stop(f->l);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	return f == NULL || (f->l = loop_new()) == NULL;
}

static unsigned
count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static unsigned threads_at_first;

/* Every test leaves as many threads as it found. */
static int
teardown(void **state)
{
	struct fixture *f = *state;

	packer_free(f->p);
	while (count_threads() > threads_at_first)
		sched_yield();
	loop_free(f->l);
	free(f);
	return 0;
}

static void *
wait_for_lock(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

/*
 * Sanitizers start threads of their own with the first one: counted while that
 * lives, which does not count.
 */
static int
count_at_first(void **state)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_t thread;

	pthread_mutex_lock(&lock);
	if (pthread_create(&thread, NULL, wait_for_lock, &lock) != 0)
		return -1;
	threads_at_first = count_threads() - 1;
	pthread_mutex_unlock(&lock);
	return pthread_join(thread, NULL);
}

/* About n bytes of packets, without a pattern where noise. */
static void
fill(struct sink_batch *b, size_t n, bool noise)
{
	uint32_t x = 1;
	size_t i;

	assert_true(file_sink_reserve(b, n + 102));
	while (b->len < n) {
		b->data[b->len] = 0x0a;
		b->data[b->len + 1] = 100;
		for (i = 2; i < 102; i++) {
			x = x * 1664525u + 1013904223u;
			b->data[b->len + i] = noise ? (uint8_t)(x >> 24) :
			    (uint8_t)i;
		}
		b->len += 102;
	}
}

static void
submit_and_wait(struct fixture *f)
{
	packer_submit(f->p);
	assert_true(packer_is_busy(f->p));
	loop_run(f->l);
	assert_false(packer_is_busy(f->p));
}

static void
a_batch_comes_back_compressed(void **state)
{
	struct fixture *f = *state;
	const uint8_t *data;
	size_t len;
	int i;

	assert_non_null(f->p = packer_new(f->l, &zstd, packed_cb, f));
	for (i = 1; i <= 5; i++) {
		fill(packer_batch(f->p), PACKET_BATCH_BYTES, false);
		submit_and_wait(f);
		assert_int_equal(f->packed, i);
		data = packer_result(f->p, &len);
		assert_true(len < PACKET_BATCH_BYTES / 10);
		assert_int_equal(packet_boundary(data, len), len);
	}
}

static void
what_does_not_become_smaller_comes_back_as_it_was(void **state)
{
	struct fixture *f = *state;
	struct sink_batch *b;
	const uint8_t *data;
	size_t len;

	assert_non_null(f->p = packer_new(f->l, &zstd, packed_cb, f));
	b = packer_batch(f->p);
	fill(b, 1000, true);
	submit_and_wait(f);
	data = packer_result(f->p, &len);
	assert_ptr_equal(data, b->data);
	assert_int_equal(len, b->len);
	/* and one with a packet out of the ordinary leaves no memory behind */
	b = packer_batch(f->p);
	assert_int_equal(b->len, 0);
	fill(b, 4 * PACKET_BATCH_BYTES, false);
	submit_and_wait(f);
	(void)packer_result(f->p, &len);
	assert_true(len < PACKET_BATCH_BYTES);
	assert_true(packer_batch(f->p)->cap < 2 * PACKET_BATCH_BYTES);
}

static void
it_may_be_freed_at_any_time(void **state)
{
	struct fixture *f = *state;
	int i;

	/* never used; filled; just submitted; perhaps half done; done */
	for (i = 0; i < 30; i++) {
		assert_non_null(f->p = packer_new(f->l, &slow, packed_cb, f));
		if (i % 5 > 0)
			fill(packer_batch(f->p), 20000, false);
		if (i % 5 > 1)
			packer_submit(f->p);
		if (i % 5 > 2)
			loop_run_once(f->l);
		if (i % 5 > 3)
			while (packer_is_busy(f->p))
				loop_run(f->l);
		packer_free(f->p);
		f->packed = 0;
		loop_run_once(f->l);
		assert_int_equal(f->packed, 0);
	}
	f->free_it = true;
	assert_non_null(f->p = packer_new(f->l, &zstd, packed_cb, f));
	fill(packer_batch(f->p), 20000, false);
	packer_submit(f->p);
	loop_run(f->l);
	assert_null(f->p);
}

static void
too_many_threads_leave_batches_as_they_are(void **state)
{
	struct fixture *f = *state;
	struct fixture many[PACKER_THREADS_MAX];
	const uint8_t *data;
	size_t i, len;

	for (i = 0; i < PACKER_THREADS_MAX; i++) {
		many[i] = (struct fixture){ .l = f->l };
		many[i].p = packer_new(f->l, &zstd, packed_cb, &many[i]);
		assert_non_null(many[i].p);
		fill(packer_batch(many[i].p), 5000, false);
		packer_submit(many[i].p);
	}
	assert_non_null(f->p = packer_new(f->l, &zstd, packed_cb, f));
	fill(packer_batch(f->p), 5000, false);
	packer_submit(f->p);
	while (packer_is_busy(f->p))
		loop_run(f->l);
	(void)packer_result(f->p, &len);
	assert_true(len >= 5000);
	for (i = 0; i < PACKER_THREADS_MAX; i++) {
		while (packer_is_busy(many[i].p))
			loop_run(f->l);
		data = packer_result(many[i].p, &len);
		assert_true(len < 5000);
		assert_int_equal(data[0], 0x0a);
		packer_free(many[i].p);
	}
	/* They have to end first, as each counts until then. */
	do {
		fill(packer_batch(f->p), 5000, false);
		packer_submit(f->p);
		while (packer_is_busy(f->p))
			loop_run(f->l);
		(void)packer_result(f->p, &len);
	} while (len >= 5000);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_batch_comes_back_compressed),
		T(what_does_not_become_smaller_comes_back_as_it_was),
		T(it_may_be_freed_at_any_time),
		T(too_many_threads_leave_batches_as_they_are),
	};

	return cmocka_run_group_tests(tests, count_at_first, NULL);
}
