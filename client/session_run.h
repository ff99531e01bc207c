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

#include "client/sessions_text.h"
#include "transport/addr.h"
#include "transport/compiler.h"
#include "transport/dial.h"

struct Tributary__QuerySessionsReply;
struct Tributary__SessionState;
struct control;
struct loop;
struct option;
struct session_run;

enum { SESSION_RUN_OK = 0, SESSION_RUN_FAILED = 1 };

/* What getopt_long() returns for the flags of these commands. */
enum session_flag {
	SESSION_FLAG_CONNECT = 1000,
	SESSION_FLAG_JSON,
	SESSION_FLAG_ALL,
	SESSION_FLAG_YES,
	SESSION_FLAG_DISCARD,
	SESSION_FLAG_TIMEOUT,
};

/* Lines of a table of long options that all have. */
#define SESSION_FLAGS_LONG                                                    \
	{ "help", no_argument, NULL, 'h' },                                   \
	{ "connect", required_argument, NULL, SESSION_FLAG_CONNECT },         \
	DIAL_FLAGS_LONG

/* The same lines of their help. */
#define SESSION_FLAGS_HELP                                                    \
    "      --connect ADDR  the collector's consumer socket; default:\n"      \
    "                    $PERFETTO_CONSUMER_SOCK_NAME, else\n"               \
    "                    /run/perfetto/traced-consumer.sock, else\n"         \
    "                    /tmp/perfetto-consumer; also tls://host:port,\n"    \
    "                    ssh://host and others, as for tributary record\n"   \
    "      --tls-dir DIR, --tls-name NAME, --allow-tls-1.2, --ssh-command CMD\n" \
    "                    see tributary record --help\n"                      \
    "  -h, --help        print this\n"

/* One of the commands; static. */
struct session_program {
	const char *name;           /* "stop" */
	const char *help;
	const struct option *flags;
	const char *short_flags;    /* for getopt: ":hl" */
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
	struct dial_options how;
	const char *const *words; /* ID, NAME ... */
	size_t n_words;
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

/* "tributary stop: text"; returns SESSION_RUN_FAILED. */
int session_run_refuse(const struct session_run *r, const char *text);

/* Connects, asks, and calls program->listed.  Returns run->status. */
int session_run_list(struct session_run *r) MUST_CHECK;
/* A question that the collector should have answered by now ends the loop. */
struct loop_timer *session_run_hurry(struct session_run *r) MUST_CHECK;

/*
 * The sessions that the command line means, into out (owned by the caller; NULL
 * for none); -1: it was said why not.
 */
int session_run_pick(const struct session_run *r,
    const struct Tributary__QuerySessionsReply *reply, bool patterns,
    const struct Tributary__SessionState ***out) MUST_CHECK;

#endif /* CLIENT_SESSION_RUN_H */
