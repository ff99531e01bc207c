#include "client/sessions.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/consumer.h"
#include "client/foreign_sessions.h"
#include "client/session_run.h"
#include "protos/control.pb-c.h"
#include "transport/dial_flags.h"
#include "transport/loop.h"

#define ERROR_BYTES 2048

static const struct option flags[] = {
	SESSION_FLAGS_LONG,
	{ "long", no_argument, NULL, 'l' },
	{ "json", no_argument, NULL, SESSION_FLAG_JSON },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
    "Usage: tributary sessions [--long | --json] [ID|NAME...]\n"
    "\n"
    "Lists the tracing sessions of a collector: your own, and everybody's to an\n"
    "admin. With ids, names or patterns (\"robot-*\"), only those.\n"
    "\n"
    "  -l, --long        everything that is known of each\n"
    "      --json        the same, for programs\n"
    SESSION_FLAGS_HELP
    "\n"
    "AGE is since it was set up, LEFT until its planned end. FILL is how much of\n"
    "its buffers nobody has read yet; LOST what was overwritten or refused there,\n"
    "and packets that never reached a buffer. tributary stats says more of that.\n"
    "\n"
    "Exit status: 0; 1 when the collector cannot be asked or there is no such\n"
    "session.\n";

static void
listed(struct session_run *r, const Tributary__QuerySessionsReply *reply)
{
	const Tributary__SessionState **picked;
	int n = session_run_pick(r, reply, true, &picked);

	if (n < 0) {
		r->status = SESSION_RUN_FAILED;
		return;
	}
	sessions_print(stdout, reply, picked, (size_t)n, r->form);
	free(picked);
	r->status = fflush(stdout) == 0 ? SESSION_RUN_OK :
	    session_run_refuse(r, strerror(errno));
}

static const struct session_program program = {
	.name = "sessions",
	.help = help,
	.flags = flags,
	.short_flags = ":hl",
	.listed = listed,
};

/* ---- a collector that is not ours says less ---- */

static void
state_cb(void *arg, const struct Perfetto__Protos__TracingServiceState *state)
{
	struct session_run *r = arg;
	Tributary__QuerySessionsReply *reply;

	loop_stop(r->loop);
	if (state == NULL) {
		r->status = session_run_refuse(r, "the collector does not say "
		    "which sessions it has");
		return;
	}
	if ((reply = foreign_sessions(state)) == NULL) {
		r->status = session_run_refuse(r, "the collector, which is not "
		    "a tributaryd, is too old to say which sessions it has");
		return;
	}
	fprintf(stderr, "tributary sessions: the collector is not a tributaryd "
	    "that tells of its sessions: this is all that it says\n");
	listed(r, reply);
	tributary__query_sessions_reply__free_unpacked(reply, NULL);
}

static void
connected_cb(void *arg)
{
	struct session_run *r = arg;

	consumer_query_service_state(r->arg, true, state_cb, r);
}

static void
disconnected_cb(void *arg, const char *why)
{
	struct session_run *r = arg;

	r->status = session_run_refuse(r, why);
	loop_stop(r->loop);
}

static const struct consumer_ops consumer_ops = {
	.connected = connected_cb,
	.disconnected = disconnected_cb,
};

static int
ask_foreign(struct session_run *r)
{
	struct loop_timer *late = session_run_hurry(r);
	char err[ERROR_BYTES] = "out of memory";

	r->status = SESSION_RUN_FAILED;
	if (late != NULL)
		r->arg = consumer_new(r->loop, &r->addr, &r->how,
		    &consumer_ops, r, err, sizeof(err));
	if (r->arg == NULL)
		r->status = session_run_refuse(r, err);
	else
		loop_run(r->loop);
	consumer_free(r->arg);
	loop_timer_free(late);
	return r->status;
}

int
sessions_main(int argc, char **argv)
{
	struct session_run r;
	int status = session_run_init(&r, &program, argc, argv);

	if (status >= 0)
		return status;
	status = session_run_list(&r);
	if (r.foreign)
		status = ask_foreign(&r);
	session_run_done(&r);
	return status;
}
