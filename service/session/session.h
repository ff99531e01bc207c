/*
 * session: one tracing session (struct session of model.h), from EnableTracing
 * to FreeBuffers.
 *
 * Owns its buffers, its instances and its file.  Its consumer (port) and the
 * session point at each other; a detached session has no consumer.  Freed by
 * session_free() only, which first ends whatever runs.
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
	uint64_t boot_time_ns;
	uint64_t delay_ms;
};

/* Calls from a session to its consumer.  None after session_detach(). */
struct consumer_ops {
	/* EnableTracing's reply.  error NULL: ended as planned. */
	void (*disabled)(void *port, const char *error);
	void (*instance_changed)(void *port, const char *producer,
	    const char *data_source, bool started);
	void (*all_started)(void *port);
	void (*clone_trigger_hit)(void *port, uint64_t session,
	    const struct clone_trigger *t);
	/* The session is being freed by another: the pointer is dead. */
	void (*freed)(void *port);
	/*
	 * session_awaits_file() is over, well or not.  May be NULL; called from
	 * within other calls, too.
	 */
	void (*file_known)(void *port);
};

struct session_request {
	struct config *config; /* taken over in any case */
	int fd;                /* of its file, taken over as well; -1: none */
	const struct principal *owner;  /* copied */
	const struct consumer_ops *ops; /* its consumer's; may be NULL */
	void *port;
};
/*
 * EnableTracing.  Returns the session, or NULL with the sentence in err.  Data
 * sources are set up and, unless the start is deferred or waits for a trigger,
 * started.
 */
struct session *session_new(struct service *s,
    const struct session_request *r, char *err, size_t err_size) MUST_CHECK;

/*
 * StartTracing of a session that waits for it, or for a trigger to start it.
 * -1: it does not.
 */
int session_start(struct session *s) MUST_CHECK;

/*
 * Ends it: flush (unless it never started), stop, file complete, then
 * ops->disabled().  error NULL: as planned.  Nothing happens when it ended
 * or is ending already.
 */
void session_disable(struct session *s, const char *error);
/* Ends it with short time-outs, for the end of the daemon. */
void session_end_for_shutdown(struct session *s);
/*
 * Ends it where its data is not wanted: no step takes as long as the config may
 * say, and a slow reader of its file does not get all of it.  Also for one that
 * is ending, and for a snapshot that is being written, which fails then.
 */
void session_end_for_discard(struct session *s);
/* Whether anything of it is still to be stopped or written. */
bool session_is_unfinished(const struct session *s);

/*
 * FreeBuffers, or the consumer is gone: stops without waiting, completes the
 * file, frees.  The pointer is dead; the file may be closed later.
 */
void session_free(struct session *s);

/*
 * Detach/Attach: by its owner, under a key that is the owner's own.  A detached
 * session that wrote its file is freed when it ends; one whose trace is in its
 * buffers, or that failed, waits for somebody who attaches.  An admin
 * gets somebody else's where none of its own has the key; it stays the
 * owner's.  -1 with a sentence, NULL: no such session, or not for this one.
 */
int session_detach(struct session *s, const char *key, char *err,
    size_t err_size) MUST_CHECK;
/*
 * Whether its output_path is still being created, or it failed and its consumer
 * was not told yet: until ops->file_known(), or disabled(), nobody can say that
 * the session goes on, and so it should not be detached.
 */
bool session_awaits_file(const struct session *s);
struct session *session_attach(struct service *s, const char *key,
    const struct principal *who, const struct consumer_ops *ops, void *port)
    MUST_CHECK;
/*
 * Whether this one may know of the session, and clone it: what is its own, what
 * is for bug reports, and admins everything.
 */
bool session_is_visible(const struct session *s, const struct principal *who);

/*
 * ChangeTraceConfig: adds filters, and sets up what they let in.  -1 with a
 * sentence.
 */
int session_change_config(struct session *s, const uint8_t *config, size_t len,
    char *err, size_t err_size) MUST_CHECK;

/*
 * Milliseconds until its planned end, or that of a trigger's time; false: it
 * has none.
 */
bool session_remaining_ms(const struct session *s, uint64_t *ms);

/* How many take part; after its instances went, how many did. */
struct session_crowd session_crowd(const struct session *s);

struct session *session_find(struct service *s, uint64_t id);
struct session *session_find_by_name(struct service *s, const char *name);

/* ---- for flushes and clones ---- */

/*
 * Copies what stands in the shared memory of its producers into its buffers.
 * False: something has to wait for the file.
 */
bool session_scrape(struct session *s);
/*
 * Has it write a file: fd (owned on success), or its output_path when it is -1.
 * -1 with a sentence.
 */
int session_make_file(struct session *s, int fd, char *err, size_t err_size)
    MUST_CHECK;
/* Changes the state; the one place that does. */
void session_set_state(struct session *s, enum session_state state);
/*
 * Whether ReadBuffers gives nothing, because no trigger that START_TRACING or
 * STOP_TRACING needs has been hit, or because it is there to be cloned
 * (CLONE_SNAPSHOT).
 */
bool session_reads_nothing(const struct session *s);
/*
 * Notes the path of the file it writes, for people: what the descriptor shows
 * now, or, when fd is -1, the config's output_path.  Before fd is handed on.
 */
void session_note_file_path(struct session *s, int fd);
/* An empty session in its place in the list; for clones.  NULL: no memory. */
struct session *session_alloc(struct service *s, const struct principal *owner)
    MUST_CHECK;
/* Makes room for n buffers, with their global ids but without a trace_buffer. */
int session_alloc_buffers(struct session *s, size_t n) MUST_CHECK;
/* Whether the limits allow one more session of this owner; sentence in err. */
int session_check_limits(struct service *s, const struct principal *owner,
    char *err, size_t err_size) MUST_CHECK;
/* Whether they allow it so many more bytes of buffers; sentence in err. */
int session_check_memory(struct service *s, const struct principal *owner,
    uint64_t more, char *err, size_t err_size) MUST_CHECK;

#endif /* SERVICE_SESSION_SESSION_H */
