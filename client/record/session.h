/*
 * session: one recording, from connecting to a trace that is whole on disk: of
 * a session that it starts, of a detached session, or of a clone.
 *
 * A state machine over consumer, on one loop.  Decides how the trace travels:
 * written by the service into the file; read from the buffers at the end; or
 * read from them periodically, where the config wants write_into_file and the
 * file's descriptor cannot be passed.  Knows no flags and prints nothing but
 * through record_live.
 */
#ifndef CLIENT_RECORD_SESSION_H
#define CLIENT_RECORD_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct addr;
struct dial_options;
struct loop;
struct record_config;
struct record_file;
struct record_live;
struct record_notify;
struct record_numbers;
struct record_session;
struct record_snapshots;
struct size_cuts;
struct consumer_clone;
struct trace_summary;

enum record_kind {
	RECORD_START,  /* start a session, record it to its end */
	RECORD_DETACH, /* start a session and detach it, under a key */
	RECORD_ATTACH, /* attach to the session under a key, to its end */
	RECORD_CLONE,  /* save a clone of a session, which goes on */
};

/* Everything is borrowed for the life of the session. */
struct record_session_setup {
	struct loop *loop;
	const struct addr *addr;
	const struct dial_options *how; /* NULL: defaults */
	enum record_kind kind;
	const char *key;             /* RECORD_DETACH, RECORD_ATTACH */
	bool stop_attached;          /* RECORD_ATTACH: end it at once */
	/* RECORD_CLONE: the session to clone; its fd is ignored. */
	const struct consumer_clone *clone;
	struct record_config *config; /* RECORD_START, RECORD_DETACH */
	/* NULL: RECORD_ATTACH, or the config has an output_path. */
	struct record_file *file;
	struct record_live *live;
	bool no_line;                 /* the caller shows a progress line */
	struct record_notify *notify; /* NULL: only for RECORD_CLONE */
	struct trace_summary *summary; /* filled while packets come */
	/*
	 * Saves the snapshots that CLONE_SNAPSHOT triggers cause; NULL: none
	 * are saved.
	 */
	struct record_snapshots *snapshots;
	struct size_cuts *size_cuts; /* NULL: segments have no limit of size */
	uint64_t delay_ms; /* before connecting */
	/*
	 * Called once, when the collector has the session: with deferred_start
	 * it then waits for record_session_start().  NULL: it starts at once.
	 */
	void (*armed)(void *arg);
	/*
	 * Time after its expected end at which a session that still runs is
	 * ended; 0: RECORD_END_GRACE_MS.
	 */
	uint64_t end_grace_ms;
};

struct record_result {
	bool whole;        /* the trace is complete where it should be */
	bool began;        /* a session or clone was asked for, or attached */
	bool not_detached; /* RECORD_ATTACH: there is no session of that key */
	uint64_t wall_ms;  /* from connected to the session's end */
	char failure[768]; /* a sentence when not whole */
};

/* done is called once, from the loop; it may free the session. */
typedef void (*record_session_fn)(void *arg, const struct record_result *r);

/*
 * Starts connecting.  NULL, with a sentence in err, for lack of memory or a
 * name that does not resolve.
 */
struct record_session *record_session_new(
    const struct record_session_setup *setup, record_session_fn done, void *arg,
    char *err, size_t err_size) MUST_CHECK;
void record_session_free(struct record_session *s);

/* Starts a session of deferred_start, after armed(). */
void record_session_start(struct record_session *s);

/* Brings the progress up to now, for who shows it; valid until the next call. */
const struct record_numbers *record_session_numbers(struct record_session *s);

/*
 * Ends the recording: flushes, stops the session and saves the trace.  A second
 * call, or one before the recording began, fails it at once; a file then still
 * ends on a whole packet.  done may be called inside.
 */
void record_session_stop(struct record_session *s);

#endif /* CLIENT_RECORD_SESSION_H */
