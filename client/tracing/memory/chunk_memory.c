#include "client/tracing/memory/chunk_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/tracing/memory/own_memory.h"

/* Backoff of a writer that waits for a free chunk. */
#define WAIT_FIRST_NS (50 * 1000L)
#define WAIT_LAST_NS  (2 * 1000 * 1000L)
/* Writers that do not wait tell the owner so often that no chunk is free. */
#define STARVE_MS 10u

struct chunk_memory {
	struct shm *shm; /* owned */
	_Atomic unsigned refs;
	atomic_bool closed;
	atomic_bool starving; /* a chunk was asked for in vain */
	_Atomic uint64_t starved_ms; /* the owner was told so */

	pthread_mutex_t lock; /* of all below */
	void (*wake)(void *arg);
	void *wake_arg;
	/* A ring that grows; each chunk is in it once, each writer twice. */
	struct chunk_queue_item *items;
	size_t first, n, room;
	uint8_t writers[SHM_MAX_WRITER_ID / 8 + 1]; /* one bit for each id */
	uint32_t last_writer;

	_Atomic uint32_t n_writers; /* read without the lock */

	/* Members of the owner's thread. */
	pthread_t owner;
	bool has_owner, telling;
	void (*tell)(void *arg);
	void *tell_arg;
};

struct chunk_memory *
chunk_memory_new(struct shm *shm, void (*wake)(void *arg), void *arg)
{
	struct chunk_memory *m;

	if ((m = calloc(1, sizeof(*m))) == NULL)
		return NULL;
	m->shm = shm;
	m->wake = wake;
	m->wake_arg = arg;
	m->refs = 1;
	pthread_mutex_init(&m->lock, NULL);
	m->room = shm_pages(shm);
	m->items = own_alloc(m->room * sizeof(*m->items));
	if (m->items == NULL) {
		pthread_mutex_destroy(&m->lock);
		free(m);
		return NULL;
	}
	return m;
}

static void
lock(struct chunk_memory *m)
{
	own_enter();
	pthread_mutex_lock(&m->lock);
}

static void
unlock(struct chunk_memory *m)
{
	pthread_mutex_unlock(&m->lock);
	own_leave();
}

struct chunk_memory *
chunk_memory_ref(struct chunk_memory *m)
{
	atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
	return m;
}

void
chunk_memory_unref(struct chunk_memory *m)
{
	if (m == NULL || atomic_fetch_sub_explicit(&m->refs, 1,
	    memory_order_acq_rel) > 1)
		return;
	shm_free(m->shm);
	pthread_mutex_destroy(&m->lock);
	own_free(m->items, m->room * sizeof(*m->items));
	free(m);
}

struct shm *
chunk_memory_shm(struct chunk_memory *m)
{
	return m->shm;
}

void
chunk_memory_close(struct chunk_memory *m)
{
	lock(m);
	atomic_store_explicit(&m->closed, true, memory_order_relaxed);
	m->wake = NULL;
	m->n = 0;
	unlock(m);
}

/* Doubles the ring.  Without memory, nothing. */
static void
grow(struct chunk_memory *m)
{
	struct chunk_queue_item *items;
	size_t i, room = m->room * 2;

	if ((items = own_alloc(room * sizeof(*items))) == NULL)
		return;
	for (i = 0; i < m->n; i++)
		items[i] = m->items[(m->first + i) % m->room];
	own_free(m->items, m->room * sizeof(*m->items));
	m->items = items;
	m->first = 0;
	m->room = room;
}

/*
 * Under the lock.  Without memory for the item the chunk stays complete in the
 * memory, where the service's next scrape finds it.
 */
static void
queue(struct chunk_memory *m, const struct chunk_queue_item *item)
{
	if (m->wake == NULL)
		return;
	if (m->n == m->room)
		grow(m);
	if (m->n == m->room)
		return;
	m->items[(m->first + m->n++) % m->room] = *item;
	if (m->n == 1)
		m->wake(m->wake_arg);
}

uint16_t
chunk_memory_begin_writer(struct chunk_memory *m, uint32_t buffer)
{
	struct chunk_queue_item item = { .is_note = true };
	uint32_t tries, id;

	lock(m);
	id = m->last_writer;
	for (tries = 0; tries < SHM_MAX_WRITER_ID; tries++) {
		/* Round robin: an id is used again as late as can be. */
		id = id % SHM_MAX_WRITER_ID + 1;
		if ((m->writers[id / 8] & 1u << id % 8) == 0)
			break;
	}
	if (tries == SHM_MAX_WRITER_ID) {
		unlock(m);
		return 0;
	}
	m->writers[id / 8] |= (uint8_t)(1u << id % 8);
	m->last_writer = id;
	m->n_writers++;
	item.is.note.writer = (uint16_t)id;
	item.is.note.buffer = buffer;
	queue(m, &item);
	unlock(m);
	return (uint16_t)id;
}

void
chunk_memory_end_writer(struct chunk_memory *m, uint16_t writer)
{
	struct chunk_queue_item item = { .is_note = true };

	item.is.note.writer = writer;
	lock(m);
	m->writers[writer / 8] &= (uint8_t)~(1u << writer % 8);
	m->n_writers--;
	queue(m, &item);
	unlock(m);
}

/*
 * Every writer is to find a chunk while others hold theirs: pages are divided
 * the more, the more writers there are.
 */
static enum shm_layout
layout(const struct chunk_memory *m)
{
	size_t pages = shm_pages(m->shm), n = m->n_writers;

	if (n * 2 <= pages)
		return SHM_DIV1;
	if (n <= pages)
		return SHM_DIV2;
	if (n <= pages * 2)
		return SHM_DIV4;
	return n <= pages * 4 ? SHM_DIV7 : SHM_DIV14;
}

static void
tell_starving(struct chunk_memory *m)
{
	if (atomic_exchange(&m->starving, true))
		return;
	lock(m);
	if (m->wake != NULL)
		m->wake(m->wake_arg);
	unlock(m);
}

/* A writer that drops what finds no chunk: the next may find one. */
static void
note_starving(struct chunk_memory *m)
{
	struct timespec ts;
	uint64_t ms;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	ms = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	if (ms - atomic_load_explicit(&m->starved_ms, memory_order_relaxed) <
	    STARVE_MS)
		return;
	atomic_store_explicit(&m->starved_ms, ms, memory_order_relaxed);
	tell_starving(m);
}

bool
chunk_memory_starves(struct chunk_memory *m)
{
	return atomic_load_explicit(&m->starving, memory_order_relaxed) &&
	    atomic_exchange(&m->starving, false) &&
	    !shm_has_complete(m->shm);
}

enum chunk_acquire
chunk_memory_acquire(struct chunk_memory *m, uint16_t writer,
    uint32_t chunk_id, uint8_t flags, struct shm_slot *out)
{
	if (atomic_load_explicit(&m->closed, memory_order_relaxed))
		return CHUNK_CLOSED;
	if (shm_acquire(m->shm, layout(m), writer, chunk_id, flags, out))
		return CHUNK_ACQUIRED;
	note_starving(m);
	return CHUNK_NONE_FREE;
}

void
chunk_memory_complete(struct chunk_memory *m, const struct shm_slot *slot)
{
	shm_complete(m->shm, slot);
}

void
chunk_memory_commit(struct chunk_memory *m, const struct shm_slot *slot,
    size_t used, uint32_t buffer)
{
	struct chunk_queue_item item = { .is_note = false };

	item.is.commit.page = slot->page;
	item.is.commit.index = slot->index;
	item.is.commit.buffer = buffer;
	item.is.commit.used = (uint32_t)used;
	lock(m);
	queue(m, &item);
	unlock(m);
}

void
chunk_memory_set_owner(struct chunk_memory *m, void (*tell)(void *arg),
    void *arg)
{
	m->owner = pthread_self();
	m->tell = tell;
	m->tell_arg = arg;
	m->has_owner = true;
}

void
chunk_memory_pause(long *wait_ns)
{
	struct timespec ts = { 0, *wait_ns > 0 ? *wait_ns : WAIT_FIRST_NS };

	nanosleep(&ts, NULL);
	*wait_ns = ts.tv_nsec < WAIT_LAST_NS ? ts.tv_nsec * 2 : ts.tv_nsec;
}

void
chunk_memory_wait(struct chunk_memory *m, long *wait_ns)
{
	tell_starving(m);
	if (m->has_owner && pthread_equal(m->owner, pthread_self()) &&
	    !m->telling) {
		m->telling = true;
		m->tell(m->tell_arg);
		m->telling = false;
	}
	chunk_memory_pause(wait_ns);
}

size_t
chunk_memory_take(struct chunk_memory *m, struct chunk_queue_item *out,
    size_t most)
{
	size_t n;

	lock(m);
	for (n = 0; n < most && m->n > 0; n++, m->n--) {
		out[n] = m->items[m->first];
		m->first = (m->first + 1) % m->room;
	}
	unlock(m);
	return n;
}
