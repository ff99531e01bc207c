/*
 * ftrace_internal: state shared by the parts of the room: ftrace.c (the whole),
 * ring.c (a buffer's life), ring_events.c (what the kernel writes into it),
 * ring_losses.c (what it lost there), ring_read.c (reading it), session.c (a session's life), session_pages.c
 * (pages into packets) and session_stats.c (the kernel's counts).
 */
#ifndef CLIENT_FTRACE_SESSION_FTRACE_INTERNAL_H
#define CLIENT_FTRACE_SESSION_FTRACE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "client/ftrace/config/ftrace_config.h"
#include "client/ftrace/events/ftrace_bundle.h"
#include "client/ftrace/events/pid_notes.h"
#include "client/ftrace/events/symbol_index.h"
#include "client/ftrace/events/syscall_filter.h"
#include "client/ftrace/format/page_layout.h"
#include "client/ftrace/session/ftrace.h"
#include "client/ftrace/tracefs/changes.h"
#include "client/ftrace/tracefs/cpu_stats.h"
#include "client/ftrace/tracefs/tracefs.h"
#include "transport/base/tailq.h"
#include "transport/loop/loop.h"

struct event;
struct event_plan;
struct kernel_symbols;
struct printk_strings;

/* Pages that are read of a processor before they are made into packets. */
#define BATCH_PAGES 32u
/* Pages of all processors in one turn of the loop. */
#define TURN_PAGES 128u
/* Period of readings while the kernel tells when buffers are full enough. */
#define POLL_BACKING_MS 1000u

/* The clock that a buffer's times are of. */
enum ring_clock {
	RING_BOOT,
	RING_MONO_RAW,
	RING_GLOBAL,
	RING_LOCAL,
	RING_UNKNOWN, /* found as it is, with preserve_ftrace_buffer */
};

/* Why a processor is done in a sweep. */
struct ring_cpu {
	int fd; /* trace_pipe_raw; -1: cannot be opened */
	struct event *full; /* watches fd while drain_percent is set; or NULL */
	bool done;          /* of this sweep */
	uint32_t n_pages;   /* of this sweep */
	uint64_t lost;      /* the kernel's count, at the last look */
};

/* Progress through all processors. */
enum ring_sweep {
	SWEEP_NONE,    /* the tick timer is armed while a session records */
	SWEEP_RUNNING, /* the next turn is queued, or is running */
};

struct ring {
	TAILQ_ENTRY(ring) next;
	struct ftrace *ftrace; /* borrowed */
	char prefix[TRACEFS_PATH_MAX]; /* "" or "instances/NAME/" */
	TAILQ_HEAD(, ftrace_session) sessions;
	enum ring_clock clock;
	uint32_t buffer_kb;
	struct ring_cpu *cpus; /* owned */
	unsigned n_cpus;

	struct loop_timer *tick;
	struct loop_call turn;
	enum ring_sweep sweep;
	bool sweep_all;        /* of a flush: up to sweep_begin exactly */
	uint64_t sweep_begin;  /* in the ring's clock; 0: unknown */
	uint64_t sweep_no;     /* of the running sweep, or the last one */
	unsigned cursor;       /* the processor that is read next */
	/* A clock other than boot beside boot, for the bundles of a sweep. */
	uint64_t clock_time;
	uint64_t boot_time;
	uint64_t looked_ms; /* for losses; CLOCK_MONOTONIC */
};

struct ftrace {
	struct loop *loop; /* borrowed */
	struct tracefs *tracefs;
	struct changes *changes;
	char notes[TRACEFS_PATH_MAX]; /* "": none */
	const char *kallsyms;
	struct page_layout layout;
	TAILQ_HEAD(, ring) rings;
	uint8_t *pages; /* owned; BATCH_PAGES of layout.page_size */
	struct printk_strings *strings;
	struct kernel_symbols *symbols; /* read when first asked for; or NULL */
	size_t n_symbols;
	unsigned n_symbol_users;
	unsigned n_sessions; /* that have the lock */
	/* Events that the kernel lost while sessions recorded, by processor. */
	uint64_t *lost; /* owned */
	size_t n_lost;
	ftrace_lost_fn on_lost; /* or NULL */
	void *lost_arg;
};

/* An event that a session asked for. */
struct session_event {
	struct event_plan *plan; /* owned; NULL: not asked for */
	/*
	 * Offset in a record of the pid, an int32_t, of a thread that is new or
	 * gets another name by the event; 0: there is none.
	 */
	uint16_t changed_at;
};

enum session_state {
	SESSION_FAILED,  /* no ring: it only tells why */
	SESSION_SET_UP,  /* the kernel is prepared */
	SESSION_STARTED, /* gets pages */
	SESSION_STOPPED, /* its last counts are written */
};

struct ftrace_session {
	TAILQ_ENTRY(ftrace_session) next; /* of its ring's */
	struct ftrace *ftrace;            /* borrowed */
	struct ring *ring;                /* borrowed; NULL: SESSION_FAILED */
	struct ftrace_config *config;     /* owned */
	struct ftrace_output out;
	enum session_state state;

	struct session_event *events; /* owned, by id */
	size_t n_events;
	uint64_t begin; /* in the ring's clock: earlier events are others' */
	uint64_t *ends; /* owned; of each processor's last bundle */
	struct ftrace_bundle bundle;
	struct syscall_filter syscalls; /* where the config names some */
	struct pid_notes threads;
	int32_t *changed; /* owned; threads as of changed_at, not yet told */
	size_t n_changed;
	size_t changed_room;
	struct symbol_index addresses;
	bool uses_symbols;

	struct cpu_stats *stats_begin; /* owned; of each processor */
	uint32_t faults; /* bit for each FtraceParseStatus that was met */
	char **unknown;  /* owned: names of events */
	size_t n_unknown;
	char **failed;
	size_t n_failed;
	char *problems; /* owned: sentences, a line each; or NULL */

	uint64_t flush_sweep; /* the sweep that a flush waits for; 0: none */
	void (*flush_done)(void *arg);
	void *flush_arg;
};

/* ---- ring.c ---- */

/*
 * The ring of that instance (NULL: tracefs itself), made if need be.  NULL: why
 * is a sentence.
 */
struct ring *ring_get(struct ftrace *f, const struct ftrace_config *c,
    char why[FTRACE_WHY_MAX]) MUST_CHECK;
/*
 * When the session is in no ring any more: frees a ring without sessions, and
 * puts back what was changed for it.
 */
void ring_leave(struct ring *r);
/* The kernel begins to write, if it does not yet; periods follow sessions. */
void ring_sessions_changed(struct ring *r);
/* Now, in the ring's clock; 0: it cannot be read. */
uint64_t ring_now(const struct ring *r);
/* The path of a file of the ring's. */
void ring_path(const struct ring *r, char path[TRACEFS_PATH_MAX],
    const char *name);
/* As changes_set(). */
int ring_set(struct ring *r, const char *name, const char *value);

/* ---- ring_events.c ---- */

/* Makes the session's plans, and has the kernel write its events. */
void ring_add_events(struct ring *r, struct ftrace_session *s);
/* The kernel stops to write events that no other session asks for. */
void ring_drop_events(struct ring *r, struct ftrace_session *s);
/* Filters that apply to all sessions: threads, system calls. */
void ring_set_filters(struct ring *r);

/* ---- ring_losses.c ---- */

/* A processor's counts, into *out; as it is where they cannot be read. */
void ring_counts(const struct ring *r, unsigned cpu, struct cpu_stats *out);
/* Losses from now on are those of the ring's sessions, */
void ring_losses_begin(struct ring *r);
/* of which on_lost() is told about once a second, */
void ring_losses_look(struct ring *r);
/* and at the end. */
void ring_losses_end(struct ring *r);

/* ---- ring_read.c ---- */

void ring_read_init(struct ring *r);
/*
 * Reads all processors, in turns of the loop; all: up to this moment, not only
 * until little is left.  The number of the sweep that does so.
 */
uint64_t ring_sweep(struct ring *r, bool all);
/* Reads all processors, up to this moment, before it returns. */
void ring_sweep_now(struct ring *r);
void ring_tick_cb(void *arg);
void ring_full_cb(int fd, short what, void *arg);

/* ---- session_pages.c ---- */

/* n pages of a processor, one behind the other. */
void session_take_pages(struct ftrace_session *s, unsigned cpu,
    const uint8_t *pages, size_t n);
/* A page could not be read; status: a FtraceParseStatus. */
void session_take_fault(struct ftrace_session *s, unsigned status);
/* Tells the threads that were noted. */
void session_tell_threads(struct ftrace_session *s);

/* ---- session.c ---- */

/* The sweep has ended. */
void session_swept(struct ftrace_session *s, uint64_t sweep_no);
/* Logs a sentence, and keeps it for the trace. */
void session_problem(struct ftrace_session *s, const char *fmt, ...)
    PRINTF_LIKE(2, 3);
/* Adds a name to a list; without memory it is missing there. */
void session_list_add(char ***list, size_t *n, const char *group,
    const char *name);

/* ---- session_stats.c ---- */

/* Remembers the counts that a session begins with, and writes them. */
void session_stats_begin(struct ftrace_session *s);
/* Writes the counts of the beginning, and those of now. */
void session_stats_write(struct ftrace_session *s);

#endif /* CLIENT_FTRACE_SESSION_FTRACE_INTERNAL_H */
