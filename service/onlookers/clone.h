/*
 * clone: a read-only copy of a session's trace while it goes on (CloneSession;
 * behaviour.md, "Consumer port").
 */
#ifndef SERVICE_ONLOOKERS_CLONE_H
#define SERVICE_ONLOOKERS_CLONE_H

#include <stdbool.h>
#include <stdint.h>

struct clone_op;
struct clone_trigger;
struct principal;
struct service;
struct session;
struct session_observer;
struct trace_folder;

/*
 * session_id of old clients for the session with the highest bugreport_score.
 */
#define CLONE_BUGREPORT_ID UINT64_MAX

struct clone_request {
	uint64_t session_id;     /* 0: by name, or for a bug report */
	const char *name;        /* unique_session_name; NULL: by id */
	/*
	 * Producers see it in the flush's flags.  Without id and name, selects
	 * the session with the highest bugreport_score.
	 */
	bool for_bugreport;
	/* Without the trace_filter: heeded for the owner and admins only. */
	bool skip_trace_filter;
	const struct clone_trigger *trigger; /* NULL: none; copied */
	const struct principal *who; /* the asking peer's; copied */
	int fd;                  /* -1: none.  Taken over in any case. */
	/*
	 * Writes the clone as a segment below this folder, borrowed, as the
	 * source's tributary_segments says; NULL: not.  Without fd.
	 */
	const struct trace_folder *archive;
};

/*
 * clone is the new session, which now belongs to the callee (session_free())
 * and has no consumer yet; or NULL with a sentence in error, borrowed for the
 * call.  was_file: the source writes into a file, and the clone was written to
 * the descriptor of the request.
 */
typedef void (*clone_fn)(void *arg, struct session *clone, bool was_file,
    const char *error);

/*
 * Flushes the source first, then copies it in turns of the loop.  done is
 * called once, perhaps from inside this call.
 */
void clone_start(struct service *s, const struct clone_request *r,
    clone_fn done, void *arg);
/*
 * Clears done of the clones with this arg, which are freed when they are over.
 */
void clone_forget(struct service *s, void *arg);

extern const struct session_observer clone_observer;

#endif /* SERVICE_ONLOOKERS_CLONE_H */
