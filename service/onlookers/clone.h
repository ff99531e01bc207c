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

/*
 * session_id of old clients for the session with the highest bugreport_score.
 */
#define CLONE_BUGREPORT_ID UINT64_MAX

struct clone_request {
	uint64_t session_id;     /* 0: by name, or for a bug report */
	const char *name;        /* unique_session_name; NULL: by id */
	/*
	 * Producers are told what it is for.  Without id and name it chooses
	 * the session with the highest bugreport_score.
	 */
	bool for_bugreport;
	/* Only the owner and an admin get what the trace_filter takes away. */
	bool skip_trace_filter;
	const struct clone_trigger *trigger; /* NULL: none; copied */
	const struct principal *who; /* asks; copied */
	int fd;                  /* -1: none.  Taken over in any case. */
};

/*
 * clone is the new session, without a consumer yet, or NULL with a sentence in
 * error.  was_file: the source writes into a file and the clone is already in
 * the descriptor.
 */
typedef void (*clone_fn)(void *arg, struct session *clone, bool was_file,
    const char *error);

/*
 * Flushes the source first, and copies it then in turns of the loop.  done is
 * called once, perhaps from inside.
 */
void clone_start(struct service *s, const struct clone_request *r,
    clone_fn done, void *arg);
/* The asker is gone: done is not called any more. */
void clone_forget(struct service *s, void *arg);

extern const struct session_observer clone_observer;

#endif /* SERVICE_ONLOOKERS_CLONE_H */
