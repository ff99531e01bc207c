/*
 * session: one tracing session (struct session of model.h), from EnableTracing
 * to FreeBuffers.
 *
 * Owns its buffers, its instances and its file.  Its consumer (port) and the
 * session point at each other; a detached session has no consumer.  Freed by
 * session_free(), or by itself: a detached session whose file is complete.
 */
#ifndef SERVICE_SESSION_SESSION_H
#define SERVICE_SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/access/principal.h"
#include "service/config/config.h"
#include "service/model/model.h"
#include "service/packet/event_log.h"
#include "transport/base/compiler.h"


enum observable {
	OBSERVE_INSTANCES = 1,
	OBSERVE_ALL_STARTED = 2,
	OBSERVE_CLONE_TRIGGER = 4,
};

struct clone_trigger {
	const char *name;
	const char *producer_name;
	int32_t producer_uid;
	uint32_t machine; /* of the producer; 0: the collector's own */
	uint64_t boot_time_ns;
	uint64_t delay_ms;
};

/*
 * Calls from a session to its consumer; strings are borrowed for the call.
 * None after session_detach() or session_free().
 */
struct consumer_ops {
	/* EnableTracing's reply.  error NULL: ended as planned. */
	void (*disabled)(void *port, const char *error);
	void (*instance_changed)(void *port, const char *producer,
	    const char *data_source, bool started);
	void (*all_started)(void *port);
	void (*clone_trigger_hit)(void *port, uint64_t session,
	    const struct clone_trigger *t);
	/* Another peer's command frees the session: the pointer is dead. */
	void (*freed)(void *port);
	/*
	 * The session's file is open, or failed: see session_awaits_file().
	 * May be NULL; called from within other calls, too.
	 */
	void (*file_known)(void *port);
};

struct session_request {
	struct config *config; /* taken over in any case */
	int fd; /* of its file, taken over in any case; -1: none */
	const struct principal *owner;  /* copied */
	const struct consumer_ops *ops; /* its consumer's; may be NULL */
	void *port;
	/* Holds output_path, copied; NULL: the daemon's trace_dir. */
	const struct trace_folder *folder;
	bool standing; /* of a recording: trigger_timeout_ms does not end it */
};
/*
 * EnableTracing.  Returns the session, or NULL with a sentence in err.  Data
 * sources are set up and, unless the start is deferred or waits for a trigger,
 * started, over several turns of the loop where there are many.
 */
struct session *session_new(struct service *s,
    const struct session_request *r, char *err, size_t err_size) MUST_CHECK;

/*
 * StartTracing of a session that waits for it, or for a trigger to start it.
 * -1: the session is in another state.
 */
int session_start(struct session *s) MUST_CHECK;

/*
 * Ends the session: flush (unless it never started), stop, file complete, then
 * ops->disabled(), which may come from inside this call.  error is copied;
 * NULL: as planned.  Does nothing when the session has ended or is ending.
 */
void session_disable(struct session *s, const char *error);
/* Ends the session with short time-outs, for the end of the daemon. */
void session_end_for_shutdown(struct session *s);
/*
 * Ends a session whose data is not wanted: each step's time-out is at most a
 * few seconds whatever the config says, and a slow reader of its file does not
 * get all of it.  Shortens an end that is under way, too; a snapshot that is
 * being written fails.
 */
void session_end_for_discard(struct session *s);
/* Whether the session has not ended yet, or its file is not complete. */
bool session_is_unfinished(const struct session *s);

/*
 * FreeBuffers, or the consumer is gone.  Without a file: tells producers to
 * stop, waits for none, and frees.  With one: ends the session with bounded
 * time-outs, and frees it when the file is closed.  For the caller the pointer
 * is dead at once, and ops are not called any more.
 */
void session_free(struct session *s);

/*
 * Detach and attach: a session keeps its owner, and a key names it among that
 * owner's sessions.  A detached session that wrote its file is freed when it
 * ends; one whose trace is in its buffers, or that failed, waits until a
 * consumer attaches.  An admin who has no session of that key gets another
 * owner's.  Detach: -1 with a sentence in err.  Attach: NULL: no such session,
 * or none that this principal may have.
 */
int session_detach(struct session *s, const char *key, char *err,
    size_t err_size) MUST_CHECK;
/*
 * Whether its output_path is still being created, or the session failed and its
 * consumer was not told yet.  Until ops->file_known() or ops->disabled() is
 * called it is not known that the session goes on: do not detach it.
 */
bool session_awaits_file(const struct session *s);
struct session *session_attach(struct service *s, const char *key,
    const struct principal *who, const struct consumer_ops *ops, void *port)
    MUST_CHECK;
/*
 * Whether a principal may see and clone the session: its owner and admins may,
 * and all consumers where the config has a bugreport_score.
 */
bool session_is_visible(const struct session *s, const struct principal *who);

/*
 * ChangeTraceConfig: adds producer filters, and sets up the data sources that
 * they let in; those that are set up already stay.  Legal until the final flush
 * is over, as with Perfetto.  -1 with a sentence in err.
 */
int session_change_config(struct session *s, const uint8_t *config, size_t len,
    char *err, size_t err_size) MUST_CHECK;

/*
 * Milliseconds until the session's planned end, or that of a trigger's time;
 * false: it has none.
 */
bool session_remaining_ms(const struct session *s, uint64_t *ms);

/* Producers and data sources that take part, or did until instances went. */
struct session_crowd session_crowd(const struct session *s);

/* By id or unique_session_name; a name finds no clone.  NULL: none. */
struct session *session_find(struct service *s, uint64_t id);
struct session *session_find_by_name(struct service *s, const char *name);

/* ---- for flushes and clones ---- */

/*
 * Copies uncommitted chunks of its producers' shared memory into its buffers.
 * False: some have to wait until the file has room; call it again then.
 */
bool session_scrape(struct session *s);
/*
 * Makes the session write a file: fd (owned on success), or its output_path
 * when fd is -1.  -1 with a sentence in err.
 */
int session_make_file(struct session *s, int fd, char *err, size_t err_size)
    MUST_CHECK;
/* Sets the state, and tells observers of a new phase. */
void session_set_state(struct session *s, enum session_state state);
/*
 * Whether ReadBuffers gives nothing, because no trigger that START_TRACING or
 * STOP_TRACING needs has been hit, or because it is there to be cloned
 * (CLONE_SNAPSHOT).
 */
bool session_reads_nothing(const struct session *s);
/*
 * Notes the path of the session's file, for people: where the kernel says that
 * fd is, or, when fd is -1, the config's output_path.  Called before fd is
 * handed on.
 */
void session_note_file_path(struct session *s, int fd);
/* An empty session with an id, in the service's list.  NULL: no memory. */
struct session *session_alloc(struct service *s, const struct principal *owner)
    MUST_CHECK;
/*
 * Makes n buffers with global ids but without a trace_buffer.  -1: no memory or
 * no free id; session_release_buffers() cleans up.
 */
int session_alloc_buffers(struct session *s, size_t n) MUST_CHECK;
/* Whether the limits allow one more session of this owner; sentence in err. */
int session_check_limits(struct service *s, const struct principal *owner,
    char *err, size_t err_size) MUST_CHECK;
/* Whether they allow this owner more bytes of buffers; sentence in err. */
int session_check_memory(struct service *s, const struct principal *owner,
    uint64_t more, char *err, size_t err_size) MUST_CHECK;

#endif /* SERVICE_SESSION_SESSION_H */
