#include "client/show/session_stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/control_ask.h"
#include "client/show/session_stats_text.h"
#include "protos/control.pb-c.h"
#include "protos/json_out.h"

static const struct flag flags[] = {
	COMMAND_FLAGS(offsetof(struct control_ask, line)),
	COMMAND_FLAG_JSON(offsetof(struct control_ask, form)),
	{ .name = NULL },
};

static const char help[] =
    "Usage: tributary stats [--json] ID|NAME...\n"
    "\n"
    "Says how the buffers of tracing sessions fare: how full they are, the losses\n"
    "and their causes, the size that would have kept the data, and the producers\n"
    "that write most. (Of a trace that\n"
    "was recorded, tributary inspect says the same.)\n"
    "\n"
    "      --json        every counter and what it means, for programs\n"
    COMMAND_CONSUMER_HELP
    "\n"
    "Exit status: 0; 1 when the collector cannot be asked or there is no such\n"
    "session.\n";

static void
print(struct control_ask *r)
{
	struct json_out j = { .out = stdout, .row = "\n" };
	struct control_sessions_list *l = control_ask_pick(r, false);
	size_t i;

	if (l == NULL) {
		r->status = COMMAND_FAILED;
		return;
	}
	if (r->form == LIST_JSON)
		json_array(&j, NULL);
	for (i = 0; i < l->n; i++) {
		if (r->form == LIST_JSON) {
			session_stats_json(&j, l->sessions[i],
			    l->reply->now_ns);
		} else {
			printf(i == 0 ? "" : "\n");
			session_stats_print(stdout, l->sessions[i],
			    l->reply->now_ns);
		}
	}
	if (r->form == LIST_JSON) {
		json_array_end(&j);
		putchar('\n');
	}
	control_ask_lists_free(r, l);
	if (fflush(stdout) != 0)
		r->status = control_ask_refuse(r, strerror(errno));
}

static const struct control_program program = {
	.flags = COMMAND("stats", flags, help),
	.foreign_advice = "the collector at this address is not a tributaryd "
	    "that tells of sessions (Perfetto's traced, or an older one): it "
	    "writes the statistics into each trace, where tributary inspect "
	    "reads them",
	.with_stats = true,
};

int
stats_main(int argc, char **argv)
{
	struct control_ask r;
	int status = control_ask_init(&r, &program, argc, argv);

	if (status >= 0)
		return status;
	if (r.line.n_words == 0)
		r.status = control_ask_refuse(&r, "which session? Say an id "
		    "or a name, as tributary sessions lists them");
	else if (control_ask_sessions(&r))
		print(&r);
	control_ask_done(&r);
	return r.status;
}
