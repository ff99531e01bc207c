/*
 * ftrace: the data source linux.ftrace: sessions that record events of the
 * kernel, from its per-CPU buffers into packets.
 *
 * Sessions share tracefs, or an instance of it: the kernel writes what any of
 * them asked for, and each gets what it asked for itself.  All that was changed
 * in tracefs is put back when the last session ends.  Knows no connection.  All
 * calls and callbacks belong to the loop's thread.
 *
 *	ftrace -> tracefs, changes
 *	       -> ring*             a buffer: tracefs itself or an instance
 *	              -> session*   borrowed
 */
#ifndef CLIENT_FTRACE_SESSION_FTRACE_H
#define CLIENT_FTRACE_SESSION_FTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct ftrace;
struct ftrace_config;
struct ftrace_session;
struct loop;
struct tributary_packet;

/* Paths of this machine; NULL: the usual ones.  Borrowed. */
struct ftrace_places {
	const char *tracefs;
	const char *notes; /* what to put back after a crash (changes.h) */
	const char *kallsyms;
};

#define FTRACE_WHY_MAX 512u

/*
 * l is borrowed.  NULL: tracefs cannot be used here; why is a sentence, and
 * errno is ENOENT where there is none.  What a process that was killed left
 * changed is put back, and logged, unless another process records now.
 */
struct ftrace *ftrace_new(struct loop *l, const struct ftrace_places *places,
    char why[FTRACE_WHY_MAX]) MUST_CHECK;
/* After its sessions.  NULL is fine. */
void ftrace_free(struct ftrace *f);

/*
 * Sets tracefs as it is after a boot, also where others changed it: no events, no
 * filters, the smallest buffers.  False: another process records, or a file
 * cannot be written; why is a sentence.
 */
bool ftrace_reset(struct ftrace *f, char why[FTRACE_WHY_MAX]) MUST_CHECK;

/*
 * events: those that the kernel lost while sessions recorded, since
 * ftrace_new(), by processor; borrowed for the call.
 */
typedef void (*ftrace_lost_fn)(void *arg, const uint64_t *events,
    size_t n_cpus);
/* Calls lost() while they grow, about once a second. */
void ftrace_watch_losses(struct ftrace *f, ftrace_lost_fn lost, void *arg);

/* Writes the packet that fill makes; one that it leaves empty is not written. */
typedef void (*ftrace_fill_fn)(struct tributary_packet *packet, void *fill_arg);
struct ftrace_output {
	/* All packets of a session are of one sequence. */
	void (*write)(void *arg, ftrace_fill_fn fill, void *fill_arg);
	/*
	 * Threads that events mention, each perhaps more than once; at least
	 * once since the session's incremental state began.  changed: they are
	 * new, or have other names since they were told.  May be NULL.
	 */
	void (*threads)(void *arg, const int32_t *tids, size_t n,
	    bool changed);
	void *arg;
};

/*
 * Prepares the kernel for a session; config is the session's from now on, also
 * on failure.  NULL: no memory.  A session that cannot record, as another
 * process has tracefs, is one that writes why.
 */
struct ftrace_session *ftrace_session_new(struct ftrace *f,
    struct ftrace_config *config, const struct ftrace_output *out) MUST_CHECK;
/*
 * A session whose config was refused, for this sentence: it writes why, and
 * records nothing.  NULL: no memory.
 */
struct ftrace_session *ftrace_session_refused(struct ftrace *f, const char *why,
    const struct ftrace_output *out) MUST_CHECK;
/* Events from now on are recorded. */
void ftrace_session_start(struct ftrace_session *s);
/*
 * Reads the events so far out of the kernel, then calls done(arg) once, on this
 * or a later turn of the loop; not if the session is freed before.  One flush
 * at a time is under way: a further one ends together with it, and the done of
 * the last is called.
 */
void ftrace_session_flush(struct ftrace_session *s, void (*done)(void *arg),
    void *arg);
/* Tells threads and symbols anew. */
void ftrace_session_clear_incremental_state(struct ftrace_session *s);
/*
 * Tells symbols alone anew, as their names are in the session's packets: one of
 * these was dropped.  Legal in write(), before fill.
 */
void ftrace_session_packet_lost(struct ftrace_session *s);
/* Reads the events so far, and writes the kernel's counts. */
void ftrace_session_stop(struct ftrace_session *s);
/* NULL is fine. */
void ftrace_session_free(struct ftrace_session *s);

#endif /* CLIENT_FTRACE_SESSION_FTRACE_H */
