/*
 * session_command: commands to a session over TributaryControl instead of its
 * consumer's ConsumerPort: start, flush, stop, cut (StartSession,
 * FlushSession, StopSession, CutSession of protos/control.proto).
 *
 * A command is answered when it is done, not when it has begun; until then the
 * session keeps it.  When the session is freed, all of its commands are
 * answered.
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
/* Bytes of an answer's sentence. */
#define SESSION_COMMAND_TEXT 640u

enum session_verb {
	SESSION_DO_START,
	SESSION_DO_FLUSH,
	SESSION_DO_STOP,
	SESSION_DO_CUT, /* done when it is planned: cut.h */
};

struct session_order {
	enum session_verb verb;
	uint64_t id;                 /* 0: by name */
	const char *name;            /* unique_session_name; NULL: by id */
	uint32_t timeout_ms;         /* FLUSH; 0: the config's */
	bool discard;                /* STOP: free the session, too */
	uint32_t *segment;           /* CUT: set before done, unless it fails */
	const struct principal *who; /* the commanding peer's; borrowed */
};

/*
 * error: NULL when the command was done, else a sentence, borrowed for the
 * call.  id: the session's; 0: none was found.
 */
typedef void (*session_command_fn)(void *arg, uint64_t id, const char *error);

/*
 * done is called once, perhaps from inside this call.  A session that who may
 * not command is answered like one that does not exist.
 */
void session_command(struct service *sv, const struct session_order *o,
    session_command_fn done, void *arg);
/* Clears done of the commands with this arg; those that have begun go on. */
void session_command_forget(struct service *sv, void *arg);

extern const struct session_observer session_command_observer;

#endif /* SERVICE_ONLOOKERS_SESSION_COMMAND_H */
