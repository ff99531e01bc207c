#include "client/tracing/source/registry.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/tracing/source/endpoint.h"

/* Turns of chunk_memory_wait() for a thread that is inside of its sequence. */
#define HAND_OVER_WAITS 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tributary_source *sources[TRIBUTARY_SOURCES_MAX];
static unsigned n_sources;
static pthread_key_t thread_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_membarrier;

__thread struct thread_state *thread_state
    __attribute__((tls_model("initial-exec")));

void
registry_lock(void)
{
	pthread_mutex_lock(&lock);
}

void
registry_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static long
membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

static void thread_over(void *arg);

static void
init_once(void)
{
	(void)pthread_key_create(&thread_key, thread_over);
	has_membarrier =
	    membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void
registry_init(void)
{
	(void)pthread_once(&once, init_once);
}

/* ---- Sources ---- */

struct tributary_source *
registry_source(unsigned index)
{
	return index < n_sources ? sources[index] : NULL;
}

struct tributary_source *
registry_find(const char *name, size_t len)
{
	unsigned i;

	for (i = 0; i < n_sources; i++)
		if (strlen(sources[i]->name) == len &&
		    memcmp(sources[i]->name, name, len) == 0)
			return sources[i];
	return NULL;
}

static struct tributary_source *
source_new(const struct tributary_source_options *o,
    const struct tributary_source_ops *ops)
{
	struct tributary_source *s;

	if ((s = calloc(1, sizeof(*s))) == NULL ||
	    (s->name = strdup(o->name)) == NULL)
		goto fail;
	if (o->descriptor_len > 0) {
		if ((s->descriptor = malloc(o->descriptor_len)) == NULL)
			goto fail;
		memcpy(s->descriptor, o->descriptor, o->descriptor_len);
		s->descriptor_len = o->descriptor_len;
	}
	s->ops = ops;
	s->arg = o->arg;
	s->full = o->full;
	s->no_flush = o->no_flush;
	return s;

fail:
	if (s != NULL)
		free(s->name);
	free(s);
	return NULL;
}

struct tributary_source *
registry_add(const struct tributary_source_options *o,
    const struct tributary_source_ops *ops)
{
	struct tributary_source *s = NULL;

	registry_init();
	registry_lock();
	if (n_sources < TRIBUTARY_SOURCES_MAX &&
	    registry_find(o->name, strlen(o->name)) == NULL &&
	    (s = source_new(o, ops)) != NULL) {
		s->index = n_sources;
		sources[n_sources++] = s;
	}
	registry_unlock();
	return s;
}

void
registry_describe(struct tributary_source *s, uint8_t *data, size_t len)
{
	registry_lock();
	free(s->descriptor);
	s->descriptor = data;
	s->descriptor_len = len;
	registry_unlock();
	registry_changed();
}

static struct registry_hooks hooks;

void
registry_set_hooks(const struct registry_hooks *of)
{
	hooks = *of;
}

void
registry_changed(void)
{
	if (hooks.sources_changed != NULL)
		hooks.sources_changed();
}

void
registry_restart(void)
{
	if (hooks.restart != NULL)
		hooks.restart();
}

/* ---- Instances ---- */

static void
instance_unref(struct tributary_instance *i)
{
	if (--i->refs > 0)
		return;
	chunk_memory_unref(i->memory);
	free(i);
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
    enum tributary_full_policy of_source)
{
	if (of_session != TRIBUTARY_FULL_DEFAULT)
		return of_session;
	return of_source != TRIBUTARY_FULL_DEFAULT ? of_source :
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
	i->full = choose_policy(setup->full, s->full);
	i->refs = 1;
	i->generation = 1; /* a sequence's is 0 */
	LIST_INIT(&i->sequences);
	registry_lock();
	if ((slot = free_slot(s)) >= 0) {
		i->slot = (unsigned)slot;
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
	registry_unlock();
	return NULL;
}

void
instance_start(struct tributary_instance *i)
{
	struct tributary_source *s = i->source;

	if (i->state != INSTANCE_SET_UP)
		return;
	registry_lock();
	i->state = INSTANCE_STARTED;
	atomic_fetch_or(&s->enabled, (uint64_t)1 << i->slot);
	registry_unlock();
	if (s->ops->start != NULL)
		s->ops->start(i, i->context);
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

/*
 * Every thread that has not seen a flag set before is inside, and its `busy` is
 * seen by the caller.
 */
static void
see_each_other(void)
{
	if (!has_membarrier ||
	    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0)
		atomic_thread_fence(memory_order_seq_cst);
}

static bool
is_busy(const struct sequence *q)
{
	return __atomic_load_n(&q->busy, __ATOMIC_ACQUIRE) != 0;
}

/*
 * Keeps the thread out of the sequence, with `taken`; the sequence's lock is
 * held.  False: it is inside and does not come out soon, as it waits for a
 * chunk, or has no processor.
 */
static bool
take(struct sequence *q, enum sequence_taken taken)
{
	long wait_ns = 0;
	int turns;

	__atomic_store_n(&q->taken, (uint8_t)taken, __ATOMIC_SEQ_CST);
	see_each_other();
	for (turns = 0; is_busy(q) && turns < HAND_OVER_WAITS; turns++)
		chunk_memory_wait(q->w.memory, &wait_ns);
	return !is_busy(q);
}

void
instance_hand_over(struct tributary_instance *i)
{
	struct sequence *q;

	registry_lock();
	LIST_FOREACH(q, &i->sequences, link) {
		pthread_mutex_lock(&q->lock);
		if (take(q, SEQUENCE_TAKEN))
			chunk_writer_flush(&q->w);
		__atomic_store_n(&q->taken, SEQUENCE_FREE, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&q->lock);
	}
	registry_unlock();
}

/*
 * Under the lock.  A thread that is inside still writes its packet, into memory
 * that the sequence holds a reference to; it hands it over itself.
 */
static void
end_sequence(struct sequence *q)
{
	pthread_mutex_lock(&q->lock);
	if (take(q, SEQUENCE_OVER))
		chunk_writer_flush(&q->w);
	pthread_mutex_unlock(&q->lock);
	LIST_REMOVE(q, link);
	q->in_list = false;
}

/* Whether a thread may still be inside of its source's code. */
static bool
has_busy(struct tributary_instance *i)
{
	struct sequence *q;
	bool busy = false;

	registry_lock();
	LIST_FOREACH(q, &i->sequences, link)
		busy = busy || is_busy(q);
	registry_unlock();
	return busy;
}

void
instance_free(struct tributary_instance *i)
{
	struct tributary_source *s = i->source;
	struct sequence *q;
	long wait_ns = 0;

	registry_lock();
	i->state = INSTANCE_OVER;
	s->instances[i->slot] = NULL;
	atomic_fetch_and(&s->enabled, ~((uint64_t)1 << i->slot));
	LIST_FOREACH(q, &i->sequences, link)
		__atomic_store_n(&q->taken, SEQUENCE_OVER, __ATOMIC_SEQ_CST);
	see_each_other();
	registry_unlock();
	/* Its context is in use as long as a thread is inside. */
	while (i->context != NULL && has_busy(i))
		chunk_memory_wait(i->memory, &wait_ns);
	registry_lock();
	while ((q = LIST_FIRST(&i->sequences)) != NULL)
		end_sequence(q);
	registry_unlock();
	if (s->ops->destroy != NULL)
		s->ops->destroy(i, i->context);
	registry_lock();
	instance_unref(i);
	registry_unlock();
}

/* ---- Sequences ---- */

/* Under the lock, by its thread, or by another when that has ended. */
static void
sequence_free(struct sequence *q)
{
	struct tributary_instance *i = q->instance;

	if (q->in_list)
		LIST_REMOVE(q, link);
	chunk_writer_done(&q->w);
	atomic_fetch_add_explicit(&i->dropped, q->w.dropped,
	    memory_order_relaxed);
	if (q->free_state != NULL)
		q->free_state(q->state);
	pthread_mutex_destroy(&q->lock);
	instance_unref(i);
	free(q);
}

/* Under the lock. */
static struct sequence *
sequence_new(struct tributary_instance *i)
{
	struct sequence *q;

	if ((q = calloc(1, sizeof(*q))) == NULL)
		return NULL;
	if (chunk_writer_init(&q->w, i->memory, i->buffer, i->full) != 0) {
		free(q);
		return NULL;
	}
	pthread_mutex_init(&q->lock, NULL);
	q->instance = i;
	i->refs++;
	LIST_INSERT_HEAD(&i->sequences, q, link);
	q->in_list = true;
	return q;
}

static void
thread_over(void *arg)
{
	struct thread_state *t = arg;
	unsigned i, slot;

	thread_state = NULL;
	registry_lock();
	for (i = 0; i < TRIBUTARY_SOURCES_MAX; i++) {
		if (t->sources[i] == NULL)
			continue;
		for (slot = 0; slot < TRIBUTARY_INSTANCES_MAX; slot++)
			if (t->sources[i]->slots[slot] != NULL)
				sequence_free(t->sources[i]->slots[slot]);
		free(t->sources[i]);
	}
	registry_unlock();
	free(t);
}

/* The calling thread's sequences of the source; NULL: no memory. */
static struct thread_sequences *
sequences_of(const struct tributary_source *s)
{
	struct thread_state *t = thread_state;

	if (t == NULL) {
		if ((t = calloc(1, sizeof(*t))) == NULL)
			return NULL;
		if (pthread_setspecific(thread_key, t) != 0) {
			free(t);
			return NULL;
		}
		thread_state = t;
	}
	if (t->sources[s->index] == NULL)
		t->sources[s->index] = calloc(1, sizeof(*t->sources[0]));
	return t->sources[s->index];
}

/* The slot's sequence, of the instance that is in it today. */
static struct sequence *
renew(struct tributary_source *s, struct sequence **at, unsigned slot)
{
	struct tributary_instance *i;
	struct sequence *q;

	registry_lock();
	i = s->instances[slot];
	if ((q = *at) != NULL && (q->instance != i ||
	    __atomic_load_n(&q->taken, __ATOMIC_RELAXED) == SEQUENCE_OVER)) {
		sequence_free(q);
		*at = q = NULL;
	}
	if (q == NULL && i != NULL && i->state != INSTANCE_OVER)
		*at = q = sequence_new(i);
	registry_unlock();
	return q;
}

static struct sequence *
enter(struct tributary_source *s, unsigned slot)
{
	struct thread_sequences *of;
	struct sequence *q;

	if ((of = sequences_of(s)) == NULL)
		return NULL;
	q = of->slots[slot];
	/* In a signal handler, in the middle of an event. */
	if (q != NULL && is_busy(q)) {
		atomic_fetch_add_explicit(&q->instance->dropped, 1,
		    memory_order_relaxed);
		return NULL;
	}
	if ((q = renew(s, &of->slots[slot], slot)) == NULL)
		return NULL;
	for (;;) {
		__atomic_store_n(&q->busy, 1, __ATOMIC_SEQ_CST);
		switch (__atomic_load_n(&q->taken, __ATOMIC_SEQ_CST)) {
		case SEQUENCE_FREE:
			return q;
		case SEQUENCE_OVER:
			__atomic_store_n(&q->busy, 0, __ATOMIC_RELEASE);
			return NULL;
		default:
			__atomic_store_n(&q->busy, 0, __ATOMIC_RELEASE);
			pthread_mutex_lock(&q->lock);
			pthread_mutex_unlock(&q->lock);
		}
	}
}

struct sequence *
sequence_enter_slow(struct tributary_source *s, unsigned slot)
{
	int saved = errno;
	static __thread bool inside;
	struct sequence *q;

	/* A signal handler inside of what follows. */
	if (inside)
		return NULL;
	inside = true;
	q = enter(s, slot);
	inside = false;
	errno = saved;
	return q;
}

void
sequence_begin_anew(struct tributary_source *s)
{
	struct thread_sequences *of;
	unsigned slot;

	of = thread_state != NULL ? thread_state->sources[s->index] : NULL;
	for (slot = 0; of != NULL && slot < TRIBUTARY_INSTANCES_MAX; slot++)
		if (of->slots[slot] != NULL)
			of->slots[slot]->generation--;
}

void
registry_begin_anew(struct tributary_source *s)
{
	unsigned slot;

	registry_lock();
	for (slot = 0; s != NULL && slot < TRIBUTARY_INSTANCES_MAX; slot++)
		if (s->instances[slot] != NULL)
			atomic_fetch_add(&s->instances[slot]->generation, 1);
	registry_unlock();
}

/* ---- fork() ---- */

void
registry_after_fork(bool restart)
{
	struct thread_state *t = thread_state;
	unsigned i;

	pthread_mutex_init(&lock, NULL);
	/* Sequences of the other threads stay allocated; this thread's too. */
	thread_state = NULL;
	if (t != NULL)
		(void)pthread_setspecific(thread_key, NULL);
	for (i = 0; i < n_sources; i++) {
		memset(sources[i]->instances, 0, sizeof(sources[i]->instances));
		atomic_store(&sources[i]->enabled,
		    restart ? REGISTRY_RESTART : 0);
	}
	has_membarrier =
	    membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void
registry_forget_restart(void)
{
	unsigned i;

	registry_lock();
	for (i = 0; i < n_sources; i++)
		atomic_fetch_and(&sources[i]->enabled, ~REGISTRY_RESTART);
	registry_unlock();
}
