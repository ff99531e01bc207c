/* Threads that write: their sequences, from the first packet to their ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/tracing/memory/own_memory.h"
#include "client/tracing/source/registry_internal.h"

/* Entries of the arrays of a thread; they double. */
#define ENTRIES_FIRST 2u

static pthread_key_t thread_key;

__thread struct thread_state *thread_state
    __attribute__((tls_model("initial-exec")));

/* ---- For an instance, and back: under the lock ---- */

/* The sequence serves no instance any more. */
static void
end_sequence(struct sequence *q)
{
	struct tributary_instance *i = q->instance;

	if (i == NULL)
		return;
	chunk_writer_done(&q->w);
	if (q->in_list) {
		atomic_fetch_add_explicit(&i->dropped,
		    chunk_writer_dropped(&q->w), memory_order_relaxed);
		LIST_REMOVE(q, link);
		q->in_list = false;
	}
	q->instance = NULL;
	instance_unref(i);
}

/* false: no writer's id is free. */
static bool
begin_sequence(struct sequence *q, struct tributary_instance *i)
{
	if (chunk_writer_init(&q->w, i->memory, i->buffer, i->full) != 0)
		return false;
	q->instance = i;
	q->generation = i->generation - 1;
	i->refs++;
	LIST_INSERT_HEAD(&i->sequences, q, link);
	q->in_list = true;
	__atomic_store_n(&q->taken, SEQUENCE_FREE, __ATOMIC_RELEASE);
	return true;
}

/* The sequence of the instance that is in the slot today.  NULL: none. */
static struct sequence *
renew(struct tributary_source *s, struct sequence **at, unsigned slot)
{
	struct tributary_instance *i;
	struct sequence *q = *at;
	bool lossy;

	registry_lock();
	i = s->instances[slot];
	if (q == NULL && i != NULL && (q = own_alloc(sizeof(*q))) != NULL) {
		q->taken = SEQUENCE_OVER;
		*at = q;
	}
	if (q != NULL && q->instance != i) {
		/* An heir tells of a loss that no packet could tell of. */
		lossy = q->instance != NULL && i != NULL &&
		    q->instance->heir == i && q->w.lossy;
		end_sequence(q);
		if (i != NULL && !begin_sequence(q, i))
			q = NULL;
		else if (i != NULL)
			q->w.lossy = lossy;
	}
	registry_unlock();
	return i != NULL ? q : NULL;
}

/* ---- Arrays of a thread ---- */

static unsigned
entries_for(unsigned index)
{
	unsigned n = ENTRIES_FIRST;

	while (n <= index)
		n *= 2;
	return n;
}

/*
 * A signal handler may be what grows an array, under the thread's own look at
 * it: the one before stays until the thread ends.
 */
static struct thread_state *
state_with(unsigned index)
{
	struct thread_state *t, *old = thread_state;
	unsigned n = entries_for(index);

	if (old != NULL && index < old->n)
		return old;
	if ((t = own_alloc(sizeof(*t) + n * sizeof(t->sources[0]))) == NULL)
		return NULL;
	if (pthread_setspecific(thread_key, t) != 0) {
		own_free(t, sizeof(*t) + n * sizeof(t->sources[0]));
		return NULL;
	}
	t->n = n;
	t->before = old;
	if (old != NULL)
		memcpy(t->sources, old->sources,
		    old->n * sizeof(t->sources[0]));
	atomic_signal_fence(memory_order_seq_cst);
	thread_state = t;
	return t;
}

/* The calling thread's sequences of the source; NULL: no memory. */
static struct thread_sequences *
sequences_with(const struct tributary_source *s, unsigned slot)
{
	struct thread_state *t = state_with(s->index);
	struct thread_sequences *of, *old;
	unsigned n = entries_for(slot);

	if (t == NULL)
		return NULL;
	old = t->sources[s->index];
	if (old != NULL && slot < old->n)
		return old;
	if ((of = own_alloc(sizeof(*of) + n * sizeof(of->slots[0]))) == NULL)
		return NULL;
	of->n = n;
	of->before = old;
	if (old != NULL)
		memcpy(of->slots, old->slots, old->n * sizeof(of->slots[0]));
	atomic_signal_fence(memory_order_seq_cst);
	t->sources[s->index] = of;
	return of;
}

/* ---- In and out ---- */

static struct sequence *
find(const struct tributary_source *s, unsigned slot)
{
	struct thread_state *t = thread_state;
	struct thread_sequences *of = t != NULL && s->index < t->n ?
	    t->sources[s->index] : NULL;

	return of != NULL && slot < of->n ? of->slots[slot] : NULL;
}

/* Waits while the library has taken the sequence; it may be over then. */
static enum sequence_taken
enter(struct sequence *q)
{
	enum sequence_taken taken;

	for (;;) {
		__atomic_store_n(&q->busy, SEQUENCE_IN, __ATOMIC_SEQ_CST);
		taken = __atomic_load_n(&q->taken, __ATOMIC_SEQ_CST);
		if (taken != SEQUENCE_TAKEN)
			return taken;
		__atomic_store_n(&q->busy, SEQUENCE_IN_CALLBACK,
		    __ATOMIC_RELEASE);
		registry_lock();
		registry_unlock();
	}
}

static struct sequence *
enter_slow(struct tributary_source *s, unsigned slot)
{
	struct thread_sequences *of;
	struct sequence *q;

	if ((of = sequences_with(s, slot)) == NULL ||
	    (q = renew(s, &of->slots[slot], slot)) == NULL)
		return NULL;
	if (enter(q) == SEQUENCE_FREE)
		return q;
	__atomic_store_n(&q->busy, SEQUENCE_OUT, __ATOMIC_RELEASE);
	return NULL;
}

static void
count_missed(struct tributary_source *s, unsigned slot)
{
	atomic_fetch_add_explicit(&s->missed[slot], 1, memory_order_relaxed);
}

struct sequence *
sequence_enter_slow(struct tributary_source *s, unsigned slot)
{
	struct sequence *q = find(s, slot);
	int cancel, saved = errno;

	/* In a signal handler, in the middle of an event. */
	if (q != NULL && __atomic_load_n(&q->busy, __ATOMIC_RELAXED) !=
	    SEQUENCE_OUT) {
		if (q->missed < UINT16_MAX)
			__atomic_store_n(&q->missed, (uint16_t)(q->missed + 1),
			    __ATOMIC_RELAXED);
		return NULL;
	}
	/* In one, in the middle of something else of the library's. */
	if (!own_try_enter()) {
		count_missed(s, slot);
		return NULL;
	}
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	q = enter_slow(s, slot);
	(void)pthread_setcancelstate(cancel, &cancel);
	own_leave();
	errno = saved;
	return q;
}

void
sequence_resume(struct sequence *q)
{
	own_enter();
	(void)enter(q);
	own_leave();
}

void
sequence_count_missed(struct sequence *q)
{
	uint16_t n;

	while (__atomic_load_n(&q->missed, __ATOMIC_RELAXED) != 0) {
		__atomic_store_n(&q->busy, SEQUENCE_IN, __ATOMIC_SEQ_CST);
		n = __atomic_exchange_n(&q->missed, 0, __ATOMIC_RELAXED);
		if (__atomic_load_n(&q->taken, __ATOMIC_SEQ_CST) ==
		    SEQUENCE_FREE) {
			chunk_writer_count_drop(&q->w, n);
			q->generation--; /* a reader skips to a new beginning */
		} else if (q->instance != NULL) {
			atomic_fetch_add_explicit(&q->instance->dropped, n,
			    memory_order_relaxed);
		}
		__atomic_store_n(&q->busy, SEQUENCE_OUT, __ATOMIC_RELEASE);
	}
}

void
sequence_begin_anew(struct tributary_source *s)
{
	struct sequence *q;
	unsigned slot;

	for (slot = 0; slot < TRIBUTARY_INSTANCES_MAX; slot++)
		if ((q = find(s, slot)) != NULL)
			q->generation--;
}

/* ---- Threads that end ---- */

static void
free_sequences(struct thread_sequences *of)
{
	struct thread_sequences *before;
	struct sequence *q;
	unsigned slot;

	for (slot = 0; of != NULL && slot < of->n; slot++) {
		if ((q = of->slots[slot]) == NULL)
			continue;
		end_sequence(q);
		if (q->free_state != NULL)
			q->free_state(q->state);
		own_free(q, sizeof(*q));
	}
	for (; of != NULL; of = before) {
		before = of->before;
		own_free(of, sizeof(*of) + of->n * sizeof(of->slots[0]));
	}
}

static void
thread_over(void *arg)
{
	struct thread_state *t = arg, *before;
	unsigned i;

	thread_state = NULL;
	registry_lock();
	for (i = 0; i < t->n; i++)
		free_sequences(t->sources[i]);
	for (; t != NULL; t = before) {
		before = t->before;
		own_free(t, sizeof(*t) + t->n * sizeof(t->sources[0]));
	}
	instance_free_dead();
	registry_unlock();
}

void
sequence_init_threads(void)
{
	(void)pthread_key_create(&thread_key, thread_over);
}

void
sequence_after_fork(void)
{
	/* Sequences of the other threads stay allocated; this thread's too. */
	if (thread_state != NULL)
		(void)pthread_setspecific(thread_key, NULL);
	thread_state = NULL;
}
