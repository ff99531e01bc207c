/*
 * session_run: what `tributary sessions`, stop, flush, start and stats have in
 * common: the command line, the way to the collector, and the list of its
 * sessions, out of which they choose.
 */
#ifndef CLIENT_SESSION_RUN_H
#define CLIENT_SESSION_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/command_line.h"
#include "client/sessions_text.h"
#include "transport/addr.h"
#include "transport/compiler.h"

struct Tributary__QuerySessionsReply;
struct Tributary__SessionState;
struct control;
struct loop;
struct session_run;

/* What getopt_long() returns for the flags of these commands. */
enum session_flag {
	SESSION_FLAG_JSON = COMMAND_FLAG_OWN,
	SESSION_FLAG_ALL,
	SESSION_FLAG_YES,
	SESSION_FLAG_DISCARD,
	SESSION_FLAG_TIMEOUT,
};

/* One of the commands; static. */
struct session_program {
	struct command command; /* take: session_run_take() */
	/*
	 * What to do instead where the collector is Perfetto's own, a sentence.
	 * NULL: run->foreign is set, and the caller goes on.
	 */
	const char *foreign_advice;
	bool with_stats;
	/*
	 * The sessions are there, borrowed.  What it wants later it copies:
	 * session_run_list() returns run->status after it.
	 */
	void (*listed)(struct session_run *r,
	    const struct Tributary__QuerySessionsReply *reply);
};

struct session_run {
	const struct session_program *program;
	struct loop *loop;
	struct control *control; /* NULL: no connection of that kind */
	struct addr addr;
	struct command_line line; /* its words: ID, NAME ... */
	enum sessions_form form;
	bool all;
	bool yes;
	bool discard;
	uint32_t timeout_ms;
	bool foreign; /* a collector that knows no TributaryControl */
	int status;
	void *arg;    /* the command's own */
};

/* -1: go on (the loop is there); else the exit status. */
int session_run_init(struct session_run *r,
    const struct session_program *program, int argc, char **argv) MUST_CHECK;
void session_run_done(struct session_run *r);

/* A command's take(); arg: the session_run. */
int session_run_take(void *arg, int flag, const char *value, char *err,
    size_t err_size);

/* "tributary stop: text"; returns COMMAND_FAILED. */
int session_run_refuse(const struct session_run *r, const char *text);

/* Connects, asks, and calls program->listed.  Returns run->status. */
int session_run_list(struct session_run *r) MUST_CHECK;

/*
 * The sessions that the command line means, into out (owned by the caller; NULL
 * for none); -1: it was said why not.
 */
int session_run_pick(const struct session_run *r,
    const struct Tributary__QuerySessionsReply *reply, bool patterns,
    const struct Tributary__SessionState ***out) MUST_CHECK;

#endif /* CLIENT_SESSION_RUN_H */
