/*
 * local_internal: state of a session inside of this program.
 *
 * The library's thread (local_turn.c) starts and ends instances and moves
 * finished chunks into the buffers; the program's threads (local_session.c) ask
 * for that and read the buffers out (local_output.c).  Buffers and counters are
 * under the session's lock, which is never held in a callback.
 */
#ifndef CLIENT_TRACING_LOCAL_LOCAL_INTERNAL_H
#define CLIENT_TRACING_LOCAL_LOCAL_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <tributary/session.h>

#include "client/tracing/local/local_config.h"
#include "client/tracing/memory/chunk_memory.h"
#include "client/tracing/source/endpoint.h"
#include "client/tracing/source/registry.h"
#include "transport/base/compiler.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/clock/clock_snapshot.h"

/* Snapshots that no reader has had; then every second one goes. */
#define LOCAL_SNAPSHOTS_MAX 64u

/* The one producer of a local session. */
#define LOCAL_PRODUCER 1u

enum local_phase {
	LOCAL_READY,
	LOCAL_STARTED,
	LOCAL_STOPPING, /* waits for data sources, until stop_due_ms */
	LOCAL_STOPPED,
	LOCAL_GONE, /* in a child of fork(): the parent's */
};

/* A data source of the config; i: NULL while it is not there, or ended. */
struct local_source {
	struct tributary_instance *i;
	bool over; /* refused, or ended: not to be tried again */
};

/* tributary_stop_done() and _flush_done(), on their way to the thread. */
struct local_note {
	STAILQ_ENTRY(local_note) link;
	struct tributary_instance *instance;
	uint64_t flush_id; /* 0: stopped */
};

struct local_counts {
	uint64_t written, read, discarded, invalid;
};

struct tributary_local {
	struct endpoint endpoint; /* first: instances know it by this */
	LIST_ENTRY(tributary_local) link; /* of the thread's sessions */
	struct local_config *config; /* owned */
	uint64_t id, uuid_msb, uuid_lsb;
	struct chunk_memory *memory; /* NULL: of a clone */

	/* ---- The library's thread's ---- */
	struct local_source sources[LOCAL_SOURCES_MAX];
	bool memory_owned; /* the thread is its owner */
	uint64_t duration_due_ms, flush_due_ms, clear_due_ms, snapshot_due_ms;
	uint64_t stop_due_ms;
	uint64_t flush_begun, flush_limit_ms; /* flush_limit_ms 0: none */
	size_t flush_waits_for;
	bool final_flush_begun;
	/* Bytes written to each buffer when its sequences began anew. */
	uint64_t begun_anew[LOCAL_BUFFERS_MAX];

	pthread_mutex_t notes_lock;
	STAILQ_HEAD(, local_note) notes;

	/* ---- Under the lock ---- */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum local_phase phase;
	bool start_asked, stop_asked, detach_asked, detached;
	bool refused; /* a data source was, at the start */
	bool reading;
	uint64_t flush_asked, flush_done;
	uint64_t flushes, flushes_failed;
	struct trace_buffer *buffers[LOCAL_BUFFERS_MAX];
	uint64_t dropped[LOCAL_SOURCES_MAX]; /* by threads, as of a flush */
	struct local_counts counts;
	struct clock_snapshot snapshots[LOCAL_SNAPSHOTS_MAX];
	size_t n_snapshots;
	uint64_t started_ns, all_started_ns, flushed_ns, disabled_ns; /* 0: not */
	bool said_config, said_started, said_flushed, said_disabled;
	bool is_clone;
	char why[160];
};

/* ---- local_turn.c ---- */

/* core_guest: all sessions. */
int local_turn(void);
void local_before_fork(void);
void local_after_fork(bool in_child);
void local_init_locks(struct tributary_local *l);
/* From now on the thread looks after it. */
void local_attach(struct tributary_local *l);
/* Under the lock: one more reading of the clocks. */
void local_snapshot_clocks(struct tributary_local *l);
uint64_t local_now_ns(void); /* CLOCK_BOOTTIME */

/* ---- local_output.c ---- */

/*
 * Reads what there is, as pieces of a trace file of whole packets; not under
 * the lock.  False: put() did, or no memory.
 */
bool local_output(struct tributary_local *l,
    bool (*put)(void *arg, const uint8_t *data, size_t len), void *arg);

#endif /* CLIENT_TRACING_LOCAL_LOCAL_INTERNAL_H */
