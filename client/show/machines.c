#include "client/show/machines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/control_ask.h"
#include "client/library/control.h"
#include "client/show/machines_text.h"
#include "protos/control.pb-c.h"
#include "protos/plain_text.h"

static const char help[] =
    "Usage: tributary machines [--long | --json] [NAME...]\n"
    "\n"
    "Lists the machines that a collector has seen: its own (\"host\") and those\n"
    "that relays, certificates or producers named. With names or patterns\n"
    "(\"robot-*\"), only those. `tributary record --machine NAME` records them.\n"
    "\n"
    "  -l, --long        all information about each\n"
    "      --json        the same, for programs\n"
    COMMAND_FLEET_HELP
    COMMAND_CONSUMER_HELP
    "\n"
    "LOST counts packets that were lost on the way; WAITS THERE is data that a relay\n"
    "has not delivered yet; CLOCK is how far the machine's boot clock is ahead of\n"
    "the collector's.\n"
    "\n"
    "Exit status: 0; 1 when the collector cannot be asked or no machine has any of\n"
    "the names.\n";

static const struct flag flags[] = {
	COMMAND_FLEET_FLAGS(offsetof(struct control_ask, line)),
	COMMAND_FLAG_LONG(offsetof(struct control_ask, form)),
	COMMAND_FLAG_JSON(offsetof(struct control_ask, form)),
	{ .name = NULL },
};

static const struct control_program program = {
	.flags = COMMAND("machines", flags, help),
	.foreign_advice = "the collector at this address is not a tributaryd "
	    "that tells of machines (Perfetto's traced, or an older one): a "
	    "trace of all of them (trace_all_machines) names those that wrote "
	    "into it",
};

static void
complain_about_names(const struct command_line *line)
{
	size_t i;

	fprintf(stderr, "tributary machines: the collector knows no machine "
	    "called");
	for (i = 0; i < line->n_words; i++)
		plain_printf(stderr, "%s \"%s\"", i == 0 ? "" : " or",
		    line->words[i]);
	fprintf(stderr, "; without a name all are listed\n");
}

static void
print(struct control_ask *r)
{
	struct machines_list *lists = calloc(r->n_replies, sizeof(*lists));
	size_t i, n = 0;

	for (i = 0; lists != NULL && i < r->collectors.n; i++)
		if (r->peers[i].reply != NULL)
			lists[n++] = (struct machines_list){
				r->peers[i].is->name,
				(Tributary__QueryMachinesReply *)
				    r->peers[i].reply };
	if (lists == NULL) {
		r->status = control_ask_refuse(r, "out of memory");
	} else if (machines_print(stdout, lists, n, &(struct machines_words){
	    r->line.words, r->line.n_words }, r->form) == 0 &&
	    r->line.n_words > 0) {
		complain_about_names(&r->line);
		r->status = COMMAND_FAILED;
	} else if (fflush(stdout) != 0) {
		r->status = control_ask_refuse(r, strerror(errno));
	}
	free(lists);
}

static void
answer_cb(void *arg, const Tributary__QueryMachinesReply *reply,
    const char *why)
{
	control_ask_answer(arg, reply == NULL ? NULL : &reply->base, why);
}

static void
query(struct control_peer *p)
{
	control_query_machines(p->control, answer_cb, p);
}

int
machines_main(int argc, char **argv)
{
	struct control_ask r;
	int status = control_ask_init(&r, &program, argc, argv);

	if (status >= 0)
		return status;
	if (control_ask(&r, query))
		print(&r);
	control_ask_done(&r);
	return r.status;
}
