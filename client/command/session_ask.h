/*
 * session_ask: the common part of `tributary sessions`, stop, flush, start and
 * stats: command line, connection to the collector, and the choice out of its
 * list of sessions.
 */
#ifndef CLIENT_COMMAND_SESSION_ASK_H
#define CLIENT_COMMAND_SESSION_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/command/command_line.h"
#include "transport/base/compiler.h"
#include "transport/socket/addr.h"

struct Tributary__QuerySessionsReply;
struct Tributary__SessionState;
struct control;
struct loop;
struct session_ask;

/* One of the commands; static. */
struct session_program {
	struct flags flags; /* options: the session_ask */
	/*
	 * Error, a sentence, where the collector does not know
	 * TributaryControl (Perfetto's traced).  NULL: only r->foreign is set,
	 * and the command goes on.
	 */
	const char *foreign_advice;
	bool with_stats;
	/*
	 * Called with the collector's sessions; reply is borrowed for the call.
	 * session_ask_list() returns r->status afterwards.
	 */
	void (*listed)(struct session_ask *r,
	    const struct Tributary__QuerySessionsReply *reply);
};

enum sessions_form {
	SESSIONS_TABLE, /* a line each */
	SESSIONS_LONG,  /* everything, a block each */
	SESSIONS_JSON,
};

/* Lines of a table of flags that choose the form. */
#define SESSION_FLAG_LONG                                                     \
	{ "long", FLAG_CHOICE, .letter = 'l', .id = SESSIONS_LONG,            \
	    .at = offsetof(struct session_ask, form) }
#define SESSION_FLAG_JSON                                                     \
	{ "json", FLAG_CHOICE, .id = SESSIONS_JSON,                           \
	    .at = offsetof(struct session_ask, form) }

struct session_ask {
	const struct session_program *program;
	struct loop *loop;
	struct control *control; /* owned; NULL before session_ask_list() */
	struct addr addr;
	struct command_line line; /* its words: session ids and names */
	enum sessions_form form;
	bool all;
	bool yes;
	bool discard;
	uint32_t timeout_ms;
	bool foreign; /* the collector does not know TributaryControl */
	int status;
	void *arg;    /* the command's own */
};

/* Parses the command line.  -1: go on, r->loop is set; else the exit status. */
int session_ask_init(struct session_ask *r,
    const struct session_program *program, int argc, char **argv) MUST_CHECK;
void session_ask_done(struct session_ask *r);

/* Takes the value of --timeout. */
int session_ask_timeout(void *options, const struct flag *flag,
    const char *value, char *err, size_t err_size);

/* "tributary stop: text"; returns COMMAND_FAILED. */
int session_ask_refuse(const struct session_ask *r, const char *text);

/* Connects, asks, and calls program->listed.  Returns r->status. */
int session_ask_list(struct session_ask *r) MUST_CHECK;

/*
 * Stores the sessions that the words of the command line choose in *out, an
 * array that the caller frees; they borrow from reply.  Returns their number;
 * -1: *out is NULL, and an error was printed.
 */
int session_ask_pick(const struct session_ask *r,
    const struct Tributary__QuerySessionsReply *reply, bool patterns,
    const struct Tributary__SessionState ***out) MUST_CHECK;

#endif /* CLIENT_COMMAND_SESSION_ASK_H */
