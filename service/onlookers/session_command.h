/*
 * session_command: what somebody who is not the session's consumer tells it to
 * do: start, flush, stop (StartSession, FlushSession, StopSession of
 * protos/control.proto).
 *
 * Answered when it is done, not when it has begun; until then it waits with the
 * session.  A session that is freed meanwhile answers everybody who waits.
 */
#ifndef SERVICE_ONLOOKERS_SESSION_COMMAND_H
#define SERVICE_ONLOOKERS_SESSION_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct principal;
struct service;
struct session_observer;

/* Commands that may wait for one session. */
#define SESSION_COMMANDS_MAX 256u
/* Bytes of a sentence. */
#define SESSION_COMMAND_TEXT 640u

enum session_verb {
	SESSION_DO_START,
	SESSION_DO_FLUSH,
	SESSION_DO_STOP,
};

struct session_order {
	enum session_verb verb;
	uint64_t id;                 /* 0: by name */
	const char *name;            /* unique_session_name; NULL: by id */
	uint32_t timeout_ms;         /* FLUSH; 0: the config's */
	bool discard;                /* STOP: free it, too */
	const struct principal *who; /* commands */
};

/* error: NULL when it is done, else a sentence, borrowed.  id 0: none. */
typedef void (*session_command_fn)(void *arg, uint64_t id, const char *error);

/*
 * done is called once, perhaps from inside.  What is not who's gets the answer
 * for what does not exist.
 */
void session_command(struct service *sv, const struct session_order *o,
    session_command_fn done, void *arg);
/* The asker is gone: done is not called any more. */
void session_command_forget(struct service *sv, void *arg);

extern const struct session_observer session_command_observer;

#endif /* SERVICE_ONLOOKERS_SESSION_COMMAND_H */
