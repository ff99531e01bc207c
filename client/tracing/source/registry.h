/*
 * registry: the data sources of this program, their instances, and the
 * sequences that threads write for them.
 *
 *	source -> instance* (a slot 0..31 each)  one for each session
 *	thread -> sequence*                      one for each instance it writes for
 *
 * One lock guards the lists; a thread that writes takes it when it writes for
 * an instance for the first time, never afterwards.  A thread and the library
 * share a sequence by two flags: the thread says that it is inside (busy), the
 * library that it took the sequence (taken), and a membarrier() by the library
 * makes sure that one of them sees the other.
 *
 * A sequence is freed when its thread ends, no sooner: it serves the instances
 * that are in its slot one after the other.  A signal handler may come between
 * the instructions with which a thread enters, and finds whatever it left.
 */
#ifndef CLIENT_TRACING_SOURCE_REGISTRY_H
#define CLIENT_TRACING_SOURCE_REGISTRY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <tributary/data_source.h>

#include "client/tracing/memory/chunk_writer.h"
#include "transport/base/compiler.h"

/* In masks of instances: the child of a fork() is to start the library anew. */
#define REGISTRY_RESTART ((uint64_t)1 << 63)

struct endpoint;
struct sequence;

enum instance_state {
	INSTANCE_SET_UP,   /* writes nothing yet */
	INSTANCE_STARTED,  /* its bit is set in source->enabled */
	INSTANCE_STOPPING, /* stop() has returned false; still writes */
	INSTANCE_OVER,     /* no writes any more; in no slot */
};

struct tributary_instance {
	struct tributary_source *source;
	struct endpoint *endpoint; /* which service it belongs to */
	struct chunk_memory *memory; /* a reference */
	uint64_t id;      /* the service's */
	uint64_t session;
	uint32_t buffer;  /* the service's */
	unsigned slot;
	enum tributary_full_policy full;
	enum instance_state state;
	/* Changes when all sequences are to begin their state anew. */
	_Atomic uint32_t generation;
	_Atomic uint64_t dropped; /* by sequences that are over */
	void *context;
	/* The session's, that has taken the slot of this recording, or NULL. */
	struct tributary_instance *heir;
	unsigned refs; /* sequences, and the library's own; under the lock */
	LIST_HEAD(, sequence) sequences;
	LIST_ENTRY(tributary_instance) link; /* of the endpoint, or the dead */
};

struct tributary_source {
	_Atomic uint64_t enabled; /* a bit for each started instance */
	unsigned index; /* in the order of registration */
	char *name;
	const struct tributary_source_ops *ops;
	void *arg;
	enum tributary_full_policy full;
	bool no_flush, no_abort;
	uint8_t *descriptor; /* encoded, or NULL */
	size_t descriptor_len;
	struct tributary_instance *instances[TRIBUTARY_INSTANCES_MAX];
	/* A recording that waits for a session; one of them, or NULL. */
	struct tributary_instance *startup;
	/* Events for the slot's instance that no sequence could count. */
	_Atomic uint32_t missed[TRIBUTARY_INSTANCES_MAX];
};

enum sequence_busy {
	SEQUENCE_OUT = 0,
	SEQUENCE_IN = 1,
	/* The thread is in the source's code, and leaves the chunk alone. */
	SEQUENCE_IN_CALLBACK = 2,
};

enum sequence_taken {
	SEQUENCE_FREE = 0,
	SEQUENCE_TAKEN = 1, /* for a moment: wait for the lock */
	SEQUENCE_OVER = 2,  /* the instance has ended */
};

/* Packets of one thread for the instances of one slot. */
struct sequence {
	/* The thread's, but for `taken`. */
	uint8_t busy;  /* enum sequence_busy */
	uint8_t taken; /* enum sequence_taken; the library's */
	uint16_t missed; /* events of signal handlers while it was busy */
	uint32_t generation; /* of the instance, when the state began */
	struct chunk_writer w;
	struct tributary_instance *instance; /* a reference; NULL: none now */
	/* The source's own, freed by free_state(); NULL: none yet. */
	void *state;
	void (*free_state)(void *state);
	LIST_ENTRY(sequence) link; /* of the instance, until that is over */
	bool in_list;
};

/* ---- Sources ---- */

/* Held by all below that says so; its holder has entered (own_memory.h). */
void registry_lock(void);
void registry_unlock(void);

/* As tributary_source_add(). */
struct tributary_source *registry_add(const struct tributary_source_options *o,
    const struct tributary_source_ops *ops) MUST_CHECK;
/* Under the lock: sources 0..n-1; NULL from n on. */
struct tributary_source *registry_source(unsigned index);
struct tributary_source *registry_find(const char *name, size_t len);

/* ---- Instances: the library's thread ---- */

struct instance_setup {
	struct endpoint *endpoint;
	struct chunk_memory *memory;
	uint64_t id, session;
	uint32_t buffer;
	enum tributary_full_policy full; /* DEFAULT: the source's */
	const uint8_t *config;
	size_t config_len;
};
/* NULL: refused, or no slot or memory is free. */
struct tributary_instance *instance_new(struct tributary_source *s,
    const struct instance_setup *setup) MUST_CHECK;
/*
 * Where a recording waits for a session (endpoint->adopts), i has its slot from
 * now on, and the recording's endpoint hears of it.
 */
void instance_start(struct tributary_instance *i);
/* True: it has stopped; false: tributary_stop_done() will say so. */
bool instance_stop(struct tributary_instance *i) MUST_CHECK;
/* True: all is handed over; false: tributary_flush_done() will say so. */
bool instance_flush(struct tributary_instance *i, uint64_t flush_id) MUST_CHECK;
void instance_clear_state(struct tributary_instance *i);
/* Takes the instance from all threads, and hands over what they wrote. */
void instance_end_writing(struct tributary_instance *i);
/* As instance_end_writing(), and frees it.  It is in no list of its endpoint. */
void instance_free(struct tributary_instance *i);

/* Hands over the chunks of all its sequences, of other threads as well. */
void instance_hand_over(struct tributary_instance *i);
/*
 * Hands over, without waiting, the chunks that are held by threads which are
 * not writing just now, if writers found none in this memory and no other is on
 * its way.  The memory's owner.
 */
void registry_relieve(struct chunk_memory *m);

/* All sequences of all the source's instances begin their state anew. */
void registry_begin_anew(struct tributary_source *s);

/* ---- Threads that write ---- */

/* The calling thread's sequences of the source begin their state anew. */
void sequence_begin_anew(struct tributary_source *s);

/*
 * The calling thread's sequence for the source's instance in that slot, entered:
 * the caller may write, and calls sequence_leave().  NULL: there is no such
 * instance, no memory, or the thread is inside already (a signal handler).
 */
struct sequence *sequence_enter_slow(struct tributary_source *s, unsigned slot);

/* Both grow with their indices, by arrays that replace them. */
struct thread_sequences {
	unsigned n;
	struct thread_sequences *before; /* replaced, until the thread ends */
	struct sequence *slots[];
};
/* By the source's index; made when needed. */
struct thread_state {
	unsigned n;
	struct thread_state *before;
	struct thread_sequences *sources[];
};
extern __thread struct thread_state *thread_state
    __attribute__((tls_model("initial-exec")));

static inline struct sequence *
sequence_enter(struct tributary_source *s, unsigned slot)
{
	struct thread_state *t = thread_state;
	struct thread_sequences *of;
	struct sequence *q;

	if (UNLIKELY(t == NULL || s->index >= t->n ||
	    (of = t->sources[s->index]) == NULL || slot >= of->n ||
	    (q = of->slots[slot]) == NULL ||
	    __atomic_load_n(&q->busy, __ATOMIC_RELAXED) != SEQUENCE_OUT))
		return sequence_enter_slow(s, slot);
	__atomic_store_n(&q->busy, SEQUENCE_IN, __ATOMIC_RELAXED);
	/* The processor's order is seen to by the library's membarrier(). */
	atomic_signal_fence(memory_order_seq_cst);
	if (UNLIKELY(__atomic_load_n(&q->taken, __ATOMIC_ACQUIRE) !=
	    SEQUENCE_FREE)) {
		__atomic_store_n(&q->busy, SEQUENCE_OUT, __ATOMIC_RELEASE);
		return sequence_enter_slow(s, slot);
	}
	return q;
}

/* Counts events of signal handlers that came while the sequence was busy. */
void sequence_count_missed(struct sequence *q);

static inline void
sequence_leave(struct sequence *q)
{
	__atomic_store_n(&q->busy, SEQUENCE_OUT, __ATOMIC_RELEASE);
	atomic_signal_fence(memory_order_seq_cst);
	if (UNLIKELY(__atomic_load_n(&q->missed, __ATOMIC_RELAXED) != 0))
		sequence_count_missed(q);
}

/*
 * Around the source's code, of a thread that has entered: its chunk may be
 * handed over meanwhile.  After sequence_resume() the instance may be over.
 */
static inline void
sequence_pause(struct sequence *q)
{
	__atomic_store_n(&q->busy, SEQUENCE_IN_CALLBACK, __ATOMIC_RELEASE);
}
void sequence_resume(struct sequence *q);

/* Whether the sequence is to begin its state anew; then it counts as begun. */
static inline bool
sequence_is_stale(struct sequence *q)
{
	uint32_t g = atomic_load_explicit(&q->instance->generation,
	    memory_order_relaxed);

	if (LIKELY(q->generation == g))
		return false;
	q->generation = g;
	return true;
}

/* Prepares for threads that end; called by registry_add() as well. */
void registry_init(void);

/* ---- The library's own ---- */

/* Calls that the sources' code makes of it. */
struct registry_hooks {
	void (*sources_changed)(void); /* added, or described anew */
	void (*restart)(void); /* in the child of a fork(): a thread writes */
};
void registry_set_hooks(const struct registry_hooks *hooks);
void registry_changed(void);
void registry_restart(void);
/* Replaces the descriptor's further fields; takes data, which is malloc()ed. */
void registry_describe(struct tributary_source *s, uint8_t *data, size_t len);
/*
 * In the child of a fork(): forgets all instances and sequences without
 * touching the memory that is the parent's.
 */
void registry_after_fork(bool restart);
/* The restart is under way: no thread is to ask for it again. */
void registry_forget_restart(void);

#endif /* CLIENT_TRACING_SOURCE_REGISTRY_H */
