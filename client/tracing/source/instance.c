/*
 * Instances of data sources: their lives, and the chunks of their sequences,
 * which the library takes from threads that write.
 */
#include <stdlib.h>
#include <string.h>

#include "client/tracing/memory/own_memory.h"
#include "client/tracing/source/endpoint.h"
#include "client/tracing/source/registry_internal.h"

/* Turns of chunk_memory_pause() for a thread that is inside of its sequence. */
#define HAND_OVER_WAITS 8

/* Without references; under the registry's lock. */
static LIST_HEAD(, tributary_instance) dead = LIST_HEAD_INITIALIZER(dead);

void
instance_unref(struct tributary_instance *i)
{
	if (--i->refs == 0)
		LIST_INSERT_HEAD(&dead, i, link);
}

void
instance_free_dead(void)
{
	struct tributary_instance *i;

	while ((i = LIST_FIRST(&dead)) != NULL) {
		LIST_REMOVE(i, link);
		chunk_memory_unref(i->memory);
		free(i);
	}
}

void
instance_after_fork(void)
{
	/* Their memory is the parent's. */
	LIST_INIT(&dead);
}

static int
free_slot(const struct tributary_source *s)
{
	int i;

	for (i = 0; i < TRIBUTARY_INSTANCES_MAX; i++)
		if (s->instances[i] == NULL)
			return i;
	return -1;
}

static enum tributary_full_policy
choose_policy(enum tributary_full_policy of_session,
    const struct tributary_source *s)
{
	if (of_session == TRIBUTARY_FULL_ABORT && s->no_abort)
		return TRIBUTARY_FULL_STALL;
	if (of_session != TRIBUTARY_FULL_DEFAULT)
		return of_session;
	return s->full != TRIBUTARY_FULL_DEFAULT ? s->full :
	    TRIBUTARY_FULL_DROP;
}

struct tributary_instance *
instance_new(struct tributary_source *s, const struct instance_setup *setup)
{
	struct tributary_instance *i;
	int slot;

	if ((i = calloc(1, sizeof(*i))) == NULL)
		return NULL;
	i->source = s;
	i->endpoint = setup->endpoint;
	i->memory = chunk_memory_ref(setup->memory);
	i->id = setup->id;
	i->session = setup->session;
	i->buffer = setup->buffer;
	i->full = choose_policy(setup->full, s);
	i->refs = 1;
	i->generation = 1; /* a sequence's is 0 */
	LIST_INIT(&i->sequences);
	registry_lock();
	instance_free_dead();
	if ((slot = free_slot(s)) >= 0) {
		i->slot = (unsigned)slot;
		atomic_store(&s->missed[slot], 0);
		s->instances[slot] = i;
	}
	registry_unlock();
	if (slot >= 0 && (s->ops->setup == NULL || s->ops->setup(i,
	    setup->config, setup->config_len, s->arg, &i->context)))
		return i;
	registry_lock();
	if (slot >= 0)
		s->instances[slot] = NULL;
	instance_unref(i);
	instance_free_dead();
	registry_unlock();
	return NULL;
}

/*
 * Under the lock.  i and the recording that waits for a session change their
 * slots: threads go on in theirs without a gap.  Returns the recording, or NULL.
 */
static struct tributary_instance *
adopt(struct tributary_instance *i)
{
	struct tributary_source *s = i->source;
	struct tributary_instance *old = s->startup;
	unsigned slot = i->slot;

	if (old == NULL || !i->endpoint->adopts)
		return NULL;
	s->startup = NULL;
	i->slot = old->slot;
	old->slot = slot;
	s->instances[i->slot] = i;
	s->instances[slot] = old;
	old->heir = i;
	return old;
}

void
instance_start(struct tributary_instance *i)
{
	struct tributary_source *s = i->source;
	struct tributary_instance *old;

	if (i->state != INSTANCE_SET_UP)
		return;
	registry_lock();
	old = adopt(i);
	i->state = INSTANCE_STARTED;
	atomic_fetch_or(&s->enabled, (uint64_t)1 << i->slot);
	registry_unlock();
	/* From now on threads write for i: start() itself may want to. */
	if (old != NULL) {
		(void)!instance_stop(old);
		instance_end_writing(old);
	}
	if (s->ops->start != NULL)
		s->ops->start(i, i->context);
	if (old != NULL)
		old->endpoint->adopted(old->endpoint, i);
}

bool
instance_stop(struct tributary_instance *i)
{
	bool done = true;

	if (i->state == INSTANCE_STARTED && i->source->ops->stop != NULL) {
		i->state = INSTANCE_STOPPING;
		done = i->source->ops->stop(i, i->context);
	}
	return done;
}

bool
instance_flush(struct tributary_instance *i, uint64_t flush_id)
{
	bool done = true;

	if (i->state == INSTANCE_STARTED && i->source->ops->flush != NULL)
		done = i->source->ops->flush(i, i->context, flush_id);
	instance_hand_over(i);
	return done;
}

void
instance_clear_state(struct tributary_instance *i)
{
	atomic_fetch_add_explicit(&i->generation, 1, memory_order_relaxed);
	if (i->state == INSTANCE_STARTED &&
	    i->source->ops->clear_incremental_state != NULL)
		i->source->ops->clear_incremental_state(i, i->context);
}

/* ---- Chunks of threads ---- */

/* The library may touch the chunk: the thread does not, as it sees `taken`. */
static bool
is_still(const struct sequence *q)
{
	return __atomic_load_n(&q->busy, __ATOMIC_ACQUIRE) != SEQUENCE_IN;
}

static void
set_taken(struct sequence *q, enum sequence_taken taken)
{
	__atomic_store_n(&q->taken, (uint8_t)taken, __ATOMIC_SEQ_CST);
}

/*
 * Under the lock.  Hands over the chunks of threads that are not writing; the
 * sequences of the others stay taken if keep_busy says so.
 */
static void
hand_over_still(struct tributary_instance *i, bool keep_busy)
{
	struct sequence *q;
	bool still;

	LIST_FOREACH(q, &i->sequences, link)
		set_taken(q, SEQUENCE_TAKEN);
	registry_see_each_other();
	LIST_FOREACH(q, &i->sequences, link) {
		if ((still = is_still(q)))
			chunk_writer_flush(&q->w);
		if (still || !keep_busy)
			set_taken(q, SEQUENCE_FREE);
	}
}

/*
 * Under the lock.  Of a thread that is inside and does not come out soon, as it
 * has no processor, nothing is handed over; who waits for a chunk has none.
 */
static void
hand_over_busy(struct sequence *q)
{
	long wait_ns = 0;
	int turns;

	for (turns = 0; !is_still(q) && !chunk_writer_waits(&q->w) &&
	    turns < HAND_OVER_WAITS; turns++)
		chunk_memory_pause(&wait_ns);
	if (is_still(q))
		chunk_writer_flush(&q->w);
	set_taken(q, SEQUENCE_FREE);
}

void
instance_hand_over(struct tributary_instance *i)
{
	struct sequence *q;

	registry_lock();
	hand_over_still(i, true);
	LIST_FOREACH(q, &i->sequences, link)
		if (__atomic_load_n(&q->taken, __ATOMIC_RELAXED) ==
		    SEQUENCE_TAKEN)
			hand_over_busy(q);
	registry_unlock();
}

void
registry_relieve(struct chunk_memory *m)
{
	struct tributary_source *s;
	unsigned index, slot;

	if (!chunk_memory_starves(m))
		return;
	registry_lock();
	for (index = 0; (s = registry_source(index)) != NULL; index++)
		for (slot = 0; slot < TRIBUTARY_INSTANCES_MAX; slot++)
			if (s->instances[slot] != NULL &&
			    s->instances[slot]->memory == m)
				hand_over_still(s->instances[slot], false);
	registry_unlock();
}

/* ---- The end ---- */

/*
 * Under the lock; no thread enters any more.  Sequences stay whose thread is
 * inside: it still writes its packet.
 */
static void
end_sequences(struct tributary_instance *i)
{
	struct sequence *q, *next;

	for (q = LIST_FIRST(&i->sequences); q != NULL; q = next) {
		next = LIST_NEXT(q, link);
		if (sequence_is_busy(q))
			continue;
		chunk_writer_flush(&q->w);
		atomic_fetch_add_explicit(&i->dropped,
		    chunk_writer_dropped(&q->w), memory_order_relaxed);
		LIST_REMOVE(q, link);
		q->in_list = false;
	}
}

void
instance_end_writing(struct tributary_instance *i)
{
	struct tributary_source *s = i->source;
	struct sequence *q;
	long wait_ns = 0;

	registry_lock();
	i->state = INSTANCE_OVER;
	s->instances[i->slot] = NULL;
	atomic_fetch_and(&s->enabled, ~((uint64_t)1 << i->slot));
	LIST_FOREACH(q, &i->sequences, link)
		set_taken(q, SEQUENCE_OVER);
	registry_see_each_other();
	end_sequences(i);
	/* Threads that are inside use its context, and count for it. */
	while (!LIST_EMPTY(&i->sequences)) {
		registry_unlock();
		chunk_memory_wait(i->memory, &wait_ns);
		registry_lock();
		end_sequences(i);
	}
	registry_unlock();
}

void
instance_free(struct tributary_instance *i)
{
	struct tributary_source *s = i->source;

	if (i->state != INSTANCE_OVER)
		instance_end_writing(i);
	if (s->ops->destroy != NULL)
		s->ops->destroy(i, i->context);
	registry_lock();
	instance_unref(i);
	instance_free_dead();
	registry_unlock();
}
