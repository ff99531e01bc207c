#include "client/show/sessions.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/command/ask_once.h"
#include "client/command/control_ask.h"
#include "client/show/perfetto_sessions.h"
#include "client/show/sessions_text.h"
#include "client/tracing/consumer/consumer.h"
#include "protos/control.pb-c.h"
#include "protos/service_state.pb-c.h"

static const struct flag flags[] = {
	COMMAND_FLEET_FLAGS(offsetof(struct control_ask, line)),
	COMMAND_FLAG_LONG(offsetof(struct control_ask, form)),
	COMMAND_FLAG_JSON(offsetof(struct control_ask, form)),
	{ .name = NULL },
};

static const char help[] =
    "Usage: tributary sessions [--long | --json] [ID|NAME...]\n"
    "\n"
    "Lists the tracing sessions of a collector: your own, and to an admin\n"
    "those of all owners. With ids, names or patterns (\"robot-*\"), only those;\n"
    "of several collectors, c1/7 is session 7 of c1.\n"
    "\n"
    "  -l, --long        all information about each\n"
    "      --json        the same, for programs\n"
    COMMAND_FLEET_HELP
    COMMAND_CONSUMER_HELP
    "\n"
    "AGE is since it was set up, LEFT until its planned end. FILL is the unread part\n"
    "of its buffers; LOST counts data that was overwritten or refused there, and\n"
    "packets that never reached a buffer. tributary stats says more of that.\n"
    "\n"
    "Exit status: 0; 1 when the collector cannot be asked or there is no such\n"
    "session.\n";

static void
print(struct control_ask *r)
{
	struct control_sessions_list *lists = control_ask_pick(r, true);

	if (lists == NULL) {
		r->status = COMMAND_FAILED;
		return;
	}
	sessions_print(stdout, lists, r->n_replies, r->form);
	control_ask_lists_free(r, lists);
	if (fflush(stdout) != 0)
		r->status = control_ask_refuse(r, strerror(errno));
}

static const struct control_program program = {
	.flags = COMMAND("sessions", flags, help),
};

/* ---- Perfetto's service, which tells less ---- */

struct foreign {
	struct control_ask *run;
	struct ask_once *ask;
};

static void
state_cb(void *arg, const uint8_t *data, size_t len)
{
	Perfetto__Protos__TracingServiceState *state = NULL;
	struct foreign *f = arg;
	Tributary__QuerySessionsReply *reply;

	if (data != NULL)
		state = perfetto__protos__tracing_service_state__unpack(NULL,
		    len, data);
	if (state == NULL) {
		ask_once_fail(f->ask, "the collector does not say which "
		    "sessions it has");
		return;
	}
	reply = perfetto_sessions(state);
	perfetto__protos__tracing_service_state__free_unpacked(state, NULL);
	if (reply == NULL) {
		ask_once_fail(f->ask, "the collector, which is not a "
		    "tributaryd, is too old to say which sessions it has");
		return;
	}
	fprintf(stderr, "tributary sessions: the collector is not a tributaryd "
	    "that tells of its sessions: this is all that it says\n");
	f->run->peers[0].reply = &reply->base; /* freed by control_ask_done() */
	f->run->n_replies = 1;
	f->run->status = COMMAND_OK;
	print(f->run);
	ask_once_end(f->ask, f->run->status);
}

static void
ask_cb(struct ask_once *a, struct consumer *c, void *arg)
{
	struct foreign *f = arg;

	f->ask = a;
	consumer_query_service_state(c, true, state_cb, f);
}

static int
ask_foreign(struct control_ask *r)
{
	struct foreign f = { .run = r };

	return ask_once("tributary sessions", r->line.connect,
	    &r->line.how, ask_cb, &f);
}

int
sessions_main(int argc, char **argv)
{
	struct control_ask r;
	int status = control_ask_init(&r, &program, argc, argv);

	if (status >= 0)
		return status;
	if (control_ask_sessions(&r))
		print(&r);
	else if (r.peers[0].foreign && r.peers[0].is->name == NULL)
		r.status = ask_foreign(&r);
	control_ask_done(&r);
	return r.status;
}
