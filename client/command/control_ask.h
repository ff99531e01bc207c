/*
 * control_ask: the common part of commands that ask the control ports of one
 * collector, or of all of a fleet at once: command line, connections, one
 * question, and for most of them the choice out of the collectors' lists of
 * sessions.
 */
#ifndef CLIENT_COMMAND_CONTROL_ASK_H
#define CLIENT_COMMAND_CONTROL_ASK_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/command/collectors.h"
#include "client/command/command_line.h"
#include "transport/base/compiler.h"

struct Tributary__QuerySessionsReply;
struct Tributary__SessionState;
struct control;
struct loop;
struct loop_timer;
struct control_ask;

/* One of the commands; static. */
struct control_program {
	struct flags flags; /* options: the control_ask */
	/*
	 * Error, a sentence, where the collector does not know
	 * TributaryControl (Perfetto's traced).  NULL: for a single collector
	 * only its `foreign` is set, and the command goes on.
	 */
	const char *foreign_advice;
	bool with_stats;
};

/* One of the collectors. */
struct control_peer {
	struct control_ask *ask;
	const struct collector *is; /* is->name NULL: the only one */
	struct control *control;    /* owned; NULL before control_ask() */
	struct loop_timer *late;    /* owned */
	ProtobufCMessage *reply;    /* owned; NULL: it gave none, as was said */
	bool answered;
	bool foreign; /* does not know TributaryControl */
	bool skip;    /* set before control_ask(): is not asked */
};

struct control_ask {
	const struct control_program *program;
	struct loop *loop;
	struct collectors collectors;
	struct control_peer *peers; /* collectors.n */
	size_t n_left;              /* have not answered yet */
	size_t n_replies;
	struct command_line line; /* its words: ids and names */
	enum list_form form;
	bool all;
	bool yes;
	bool discard;
	uint32_t timeout_ms;
	int status;
	/* When a timer `late` that the command itself has set is over. */
	void (*overdue)(struct control_peer *p);
	void *arg; /* the command's own */
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
 * Names the collector in front of the text, where there are several, and sets
 * r->status, except for a fleet that may miss some (--allow-missing).
 */
void control_ask_missed(struct control_peer *p, const char *text);

/*
 * Connects to each, calls query(), which asks over p->control, and runs the
 * loop until control_ask_answer() was called for each, or its time was over.
 * Sets r->status: COMMAND_FAILED when a collector gave no reply that had to, or
 * none at all did.  Returns whether any did.
 */
bool control_ask(struct control_ask *r, void (*query)(struct control_peer *p))
    MUST_CHECK;
/*
 * The answer to query(): copies the reply; NULL: there is none, for why, and an
 * error is printed, unless the command goes on (foreign_advice).
 */
void control_ask_answer(struct control_peer *p, const ProtobufCMessage *reply,
    const char *why);

/* control_ask() for the sessions of each. */
bool control_ask_sessions(struct control_ask *r) MUST_CHECK;

/* Sessions of one collector; they borrow from its reply. */
struct control_sessions_list {
	const char *collector; /* NULL: the only one */
	const struct Tributary__QuerySessionsReply *reply;
	const struct Tributary__SessionState **sessions; /* n, maybe 0 */
	size_t n;
	struct control_peer *peer; /* NULL for callers without connections */
};
/*
 * The sessions that the words of the command line choose, of each collector
 * that replied: an array that control_ask_lists_free() frees, r->n_replies
 * long.  With several collectors, "c1/7" is session 7 of c1, a name is for all,
 * and an id alone is refused.  NULL: an error was printed.
 */
struct control_sessions_list *control_ask_pick(const struct control_ask *r,
    bool patterns) MUST_CHECK;
void control_ask_lists_free(const struct control_ask *r,
    struct control_sessions_list *lists);

#endif /* CLIENT_COMMAND_CONTROL_ASK_H */
