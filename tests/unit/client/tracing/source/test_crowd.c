/*
 * Many threads on little memory: whoever waits for a chunk gets one, though
 * others hold theirs and write nothing more.  The test is the service, and the
 * owner of the memory: it takes what is queued, and relieves writers.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/tracing/memory/own_memory.h"
#include "client/tracing/source/endpoint.h"
#include "client/tracing/source/registry.h"
#include "transport/wire/pb_reader.h"

#define BUFFER  1
#define THREADS 80
#define IDLE    20
#define WRITERS 512

/* ---- The service ---- */

static struct {
	struct shm *shm;
	struct chunk_memory *memory;
	pthread_t thread;
	sem_t woken;
	atomic_bool over;
	/* Of each writer. */
	size_t packets[WRITERS];
	bool open[WRITERS];
	_Atomic size_t whole;
} service;

static void
wake(void *arg)
{
	sem_post(&service.woken);
}

static void
read_chunk(const struct shm_chunk *c)
{
	const uint8_t *at = c->payload, *end = c->payload + c->len;
	bool *open = &service.open[c->writer_id];
	uint64_t size = 0;
	unsigned i;

	assert_in_range(c->writer_id, 1, WRITERS - 1);
	assert_int_equal(*open,
	    (c->flags & SHM_FIRST_CONTINUES_FROM_PREV) != 0);
	for (i = 0; i < c->num_fragments; i++) {
		at = pb_varint(at, end, &size);
		assert_non_null(at);
		assert_true(size <= (size_t)(end - at));
		at += size;
		*open = i + 1 == c->num_fragments &&
		    (c->flags & SHM_LAST_CONTINUES_ON_NEXT) != 0;
		if (!*open) {
			service.packets[c->writer_id]++;
			service.whole++;
		}
	}
}

static void
read_all(void)
{
	struct chunk_queue_item item;
	struct shm_chunk c;

	registry_relieve(service.memory);
	while (chunk_memory_take(service.memory, &item, 1) == 1) {
		if (item.is_note)
			continue;
		assert_int_equal(shm_take(service.shm, item.is.commit.page,
		    item.is.commit.index, &c), SHM_TAKEN);
		read_chunk(&c);
		shm_release(service.shm, c.page, c.index);
	}
}

static void *
serve(void *arg)
{
	while (!service.over) {
		sem_wait(&service.woken);
		read_all();
	}
	return NULL;
}

static void
begin_service(size_t size)
{
	memset(&service, 0, sizeof(service));
	sem_init(&service.woken, 0, 0);
	service.shm = shm_new(size, 4096);
	assert_non_null(service.shm);
	service.memory = chunk_memory_new(service.shm, wake, NULL);
	assert_non_null(service.memory);
	assert_int_equal(pthread_create(&service.thread, NULL, serve, NULL),
	    0);
}

static void
end_service(void)
{
	service.over = true;
	wake(NULL);
	pthread_join(service.thread, NULL);
	read_all();
}

/* ---- The program ---- */

static const struct tributary_source_ops ops = { .size = sizeof(ops) };
static struct tributary_source *source;
static struct endpoint endpoint;

static struct tributary_instance *
begin_instance(enum tributary_full_policy full)
{
	struct tributary_source_options o = { .size = sizeof(o),
	    .name = "crowd" };
	struct instance_setup setup = { .endpoint = &endpoint,
	    .memory = service.memory, .id = 1, .buffer = BUFFER,
	    .full = full };
	struct tributary_instance *i;

	if (source == NULL)
		source = tributary_source_add(&o, &ops);
	assert_non_null(source);
	i = instance_new(source, &setup);
	assert_non_null(i);
	instance_start(i);
	return i;
}

static void
put(struct tributary_packet *p, struct tributary_instance *i, void *context,
    bool first, void *arg)
{
	static const uint8_t zeros[6000];

	tributary_put_bytes(p, 1, zeros, *(size_t *)arg);
}

static void
write_packet(size_t size)
{
	tributary_source_write(source, put, &size);
}

struct crowd {
	pthread_barrier_t wrote, over;
	size_t packets;
};

/* One packet, and then nothing for ever. */
static void *
write_once(void *arg)
{
	struct crowd *c = arg;

	write_packet(10);
	pthread_barrier_wait(&c->wrote);
	pthread_barrier_wait(&c->over);
	return NULL;
}

/* Many, and some are longer than chunks. */
static void *
write_many(void *arg)
{
	struct crowd *c = arg;
	size_t i;

	for (i = 0; i < c->packets; i++)
		write_packet(i % 7 == 3 ? 1500 + i : i % 50);
	return NULL;
}

static void
run_crowd(struct crowd *c, unsigned idle, unsigned threads)
{
	pthread_t t[THREADS + IDLE];
	unsigned i;

	pthread_barrier_init(&c->wrote, NULL, idle + 1);
	pthread_barrier_init(&c->over, NULL, idle + 1);
	for (i = 0; i < idle; i++)
		assert_int_equal(pthread_create(&t[i], NULL, write_once, c),
		    0);
	if (idle > 0)
		pthread_barrier_wait(&c->wrote);
	for (; i < idle + threads; i++)
		assert_int_equal(pthread_create(&t[i], NULL, write_many, c),
		    0);
	for (i = idle; i < idle + threads; i++)
		pthread_join(t[i], NULL);
	if (idle > 0)
		pthread_barrier_wait(&c->over);
	for (i = 0; i < idle; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&c->wrote);
	pthread_barrier_destroy(&c->over);
}

static void
nobody_loses_or_waits_for_ever(enum tributary_full_policy full, size_t size,
    unsigned idle)
{
	struct crowd c = { .packets = 60 };
	struct tributary_instance *i;
	size_t w, torn = 0;

	begin_service(size);
	i = begin_instance(full);
	run_crowd(&c, idle, THREADS);
	assert_int_equal(tributary_instance_dropped(i), 0);
	instance_free(i);
	end_service();
	for (w = 0; w < WRITERS; w++)
		torn += service.open[w];
	assert_int_equal(torn, 0);
	assert_int_equal(service.whole, THREADS * c.packets + idle);
	chunk_memory_unref(service.memory);
}

static void
more_threads_than_chunks_lose_nothing(void **state)
{
	nobody_loses_or_waits_for_ever(TRIBUTARY_FULL_WAIT, 4096, 0);
}

static void
threads_that_sleep_for_ever_do_not_keep_their_chunks(void **state)
{
	nobody_loses_or_waits_for_ever(TRIBUTARY_FULL_WAIT, 4096, IDLE);
}

static void
larger_memory_is_shared_as_well(void **state)
{
	nobody_loses_or_waits_for_ever(TRIBUTARY_FULL_WAIT, 16384, IDLE);
}

/* ---- A thread in its source's code ---- */

static struct {
	pthread_barrier_t inside, go_on;
} held;

static void
hold(struct tributary_packet *p, struct tributary_instance *i, void *context,
    bool first, void *arg)
{
	pthread_barrier_wait(&held.inside);
	pthread_barrier_wait(&held.go_on);
	tributary_put_uint(p, 1, 1);
}

static void *
write_held(void *arg)
{
	write_packet(10);
	tributary_source_write(source, hold, NULL);
	return NULL;
}

/* As many threads as there are chunks wait for what the others write. */
static void
threads_in_the_source_s_code_do_not_keep_their_chunks(void **state)
{
	pthread_t t[SHM_CHUNKS_PER_PAGE_MAX];
	struct crowd c = { .packets = 20 };
	struct tributary_instance *i;
	unsigned n;

	begin_service(4096);
	i = begin_instance(TRIBUTARY_FULL_WAIT);
	pthread_barrier_init(&held.inside, NULL, SHM_CHUNKS_PER_PAGE_MAX + 1);
	pthread_barrier_init(&held.go_on, NULL, SHM_CHUNKS_PER_PAGE_MAX + 1);
	for (n = 0; n < SHM_CHUNKS_PER_PAGE_MAX; n++)
		assert_int_equal(pthread_create(&t[n], NULL, write_held, NULL),
		    0);
	pthread_barrier_wait(&held.inside);
	run_crowd(&c, 0, 4);
	pthread_barrier_wait(&held.go_on);
	for (n = 0; n < SHM_CHUNKS_PER_PAGE_MAX; n++)
		pthread_join(t[n], NULL);
	assert_int_equal(tributary_instance_dropped(i), 0);
	instance_free(i);
	end_service();
	assert_int_equal(service.whole, 4 * c.packets +
	    2 * SHM_CHUNKS_PER_PAGE_MAX);
	chunk_memory_unref(service.memory);
}

/* ---- Who does not wait ---- */

/* Of a page of 14 chunks all are held; an event of a further thread is lost. */
static void
idle_threads_do_not_make_others_drop_for_ever(void **state)
{
	struct crowd c = { .packets = 1 };
	struct tributary_instance *i;
	pthread_t t[IDLE];
	uint64_t dropped;
	unsigned n;

	begin_service(4096);
	i = begin_instance(TRIBUTARY_FULL_DROP);
	pthread_barrier_init(&c.wrote, NULL, IDLE + 1);
	pthread_barrier_init(&c.over, NULL, IDLE + 1);
	for (n = 0; n < IDLE; n++)
		assert_int_equal(pthread_create(&t[n], NULL, write_once, &c),
		    0);
	pthread_barrier_wait(&c.wrote);
	do {
		dropped = tributary_instance_dropped(i);
		write_packet(10);
	} while (tributary_instance_dropped(i) != dropped);
	pthread_barrier_wait(&c.over);
	for (n = 0; n < IDLE; n++)
		pthread_join(t[n], NULL);
	instance_free(i);
	end_service();
	chunk_memory_unref(service.memory);
}

/* ---- Memory ---- */

struct holding {
	pthread_barrier_t wrote, over;
};

static void *
write_and_hold(void *arg)
{
	struct holding *h = arg;

	write_packet(10);
	pthread_barrier_wait(&h->wrote);
	pthread_barrier_wait(&h->over);
	return NULL;
}

static void
what_threads_have_is_free_when_they_end(void **state)
{
	struct tributary_instance *i;
	struct holding h;
	size_t before, with;
	pthread_t t[8];
	unsigned n;

	begin_service(65536);
	i = begin_instance(TRIBUTARY_FULL_DROP);
	before = own_used();
	pthread_barrier_init(&h.wrote, NULL, 9);
	pthread_barrier_init(&h.over, NULL, 9);
	for (n = 0; n < 8; n++)
		assert_int_equal(pthread_create(&t[n], NULL, write_and_hold,
		    &h), 0);
	pthread_barrier_wait(&h.wrote);
	with = own_used();
	pthread_barrier_wait(&h.over);
	for (n = 0; n < 8; n++)
		pthread_join(t[n], NULL);
	assert_true(with > before);
	assert_in_range((with - before) / 8, 1, 300);
	assert_int_equal(own_used(), before);
	instance_free(i);
	end_service();
	chunk_memory_unref(service.memory);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_threads_than_chunks_lose_nothing),
		cmocka_unit_test(
		    threads_that_sleep_for_ever_do_not_keep_their_chunks),
		cmocka_unit_test(larger_memory_is_shared_as_well),
		cmocka_unit_test(
		    threads_in_the_source_s_code_do_not_keep_their_chunks),
		cmocka_unit_test(idle_threads_do_not_make_others_drop_for_ever),
		cmocka_unit_test(what_threads_have_is_free_when_they_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
