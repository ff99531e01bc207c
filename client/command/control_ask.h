/*
 * control_ask: the common part of commands that ask a collector's control port:
 * command line, connection, one question, and for most of them the choice out
 * of the collector's list of sessions.
 */
#ifndef CLIENT_COMMAND_CONTROL_ASK_H
#define CLIENT_COMMAND_CONTROL_ASK_H

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
struct control_ask;

/* One of the commands; static. */
struct control_program {
	struct flags flags; /* options: the control_ask */
	/*
	 * Error, a sentence, where the collector does not know
	 * TributaryControl (Perfetto's traced).  NULL: only r->foreign is set,
	 * and the command goes on.
	 */
	const char *foreign_advice;
	bool with_stats;
	/*
	 * Takes the collector's sessions; reply is borrowed for the call.
	 * control_ask_sessions() returns r->status afterwards.
	 */
	void (*listed)(struct control_ask *r,
	    const struct Tributary__QuerySessionsReply *reply);
};

struct control_ask {
	const struct control_program *program;
	struct loop *loop;
	struct control *control; /* owned; NULL before control_ask() */
	struct addr addr;
	struct command_line line; /* its words: ids and names */
	enum list_form form;
	bool all;
	bool yes;
	bool discard;
	uint32_t timeout_ms;
	bool foreign; /* the collector does not know TributaryControl */
	int status;
	void *arg;    /* the command's own */
};

/* Parses the command line.  -1: go on, r->loop is set; else the exit status. */
int control_ask_init(struct control_ask *r,
    const struct control_program *program, int argc, char **argv) MUST_CHECK;
void control_ask_done(struct control_ask *r);

/* Takes the value of --timeout. */
int control_ask_timeout(void *options, const struct flag *flag,
    const char *value, char *err, size_t err_size);

/* "tributary stop: text"; returns COMMAND_FAILED. */
int control_ask_refuse(const struct control_ask *r, const char *text);

/*
 * Connects, calls query(), which asks over r->control, and runs the loop until
 * control_ask_answered().  Returns r->status, COMMAND_FAILED until it is set.
 */
int control_ask(struct control_ask *r, void (*query)(struct control_ask *r))
    MUST_CHECK;
/*
 * Ends the loop with the answer to query().  False: there is none, for why, and
 * an error was printed unless the command goes on (foreign_advice).
 */
bool control_ask_answered(struct control_ask *r, bool there, const char *why)
    MUST_CHECK;

/* Asks for the sessions and calls program->listed.  Returns r->status. */
int control_ask_sessions(struct control_ask *r) MUST_CHECK;

/*
 * Stores the sessions that the words of the command line choose in *out, an
 * array that the caller frees; they borrow from reply.  Returns their number;
 * -1: *out is NULL, and an error was printed.
 */
int control_ask_pick(const struct control_ask *r,
    const struct Tributary__QuerySessionsReply *reply, bool patterns,
    const struct Tributary__SessionState ***out) MUST_CHECK;

#endif /* CLIENT_COMMAND_CONTROL_ASK_H */
