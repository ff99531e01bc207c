#include "client/show/machines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/command/command_line.h"
#include "client/library/control.h"
#include "client/show/machines_text.h"
#include "protos/control.pb-c.h"
#include "protos/plain_text.h"
#include "transport/loop/loop.h"

#define ERROR_BYTES 2048
/* Time-out for the collector's answer. */
#define ANSWER_MS 30000u

static const char help[] =
    "Usage: tributary machines [--long | --json] [NAME...]\n"
    "\n"
    "Lists the machines that a collector has seen: its own (\"host\") and those\n"
    "that relays, certificates or producers named. With names or patterns\n"
    "(\"robot-*\"), only those. `tributary record --machine NAME` records them.\n"
    "\n"
    "  -l, --long        everything that is known of each\n"
    "      --json        the same, for programs\n"
    COMMAND_CONSUMER_HELP
    "\n"
    "LOST counts packets that were lost on the way; WAITS THERE is what a relay\n"
    "has not delivered yet; CLOCK is how far the machine's boot clock is ahead of\n"
    "the collector's.\n"
    "\n"
    "Exit status: 0; 1 when the collector cannot be asked or no machine has any of\n"
    "the names.\n";

static const char foreign_advice[] =
    "the collector at this address is not a tributaryd that tells of machines "
    "(Perfetto's traced, or an older one): a trace of all of them "
    "(trace_all_machines) names those that wrote into it";

struct run {
	struct loop *loop;
	struct control *control;
	struct command_line line; /* its words are the machines' names */
	enum machines_form form;
	struct addr addr;
	int status;
};

#define AT(member) .at = offsetof(struct run, member)

static const struct flag flags[] = {
	COMMAND_FLAGS(offsetof(struct run, line)),
	{ "long", FLAG_CHOICE, .letter = 'l', AT(form), .id = MACHINES_LONG },
	{ "json", FLAG_CHOICE, AT(form), .id = MACHINES_JSON },
	{ .name = NULL },
};

static const struct flags command = {
	.table = flags,
	.speaker = "tributary machines",
	.help_is_at = "see tributary machines --help",
	.help = help,
	.bad_status = COMMAND_FAILED,
};

static void
complain_about_names(const struct run *r)
{
	size_t i;

	fprintf(stderr, "tributary machines: the collector knows no machine "
	    "called");
	for (i = 0; i < r->line.n_words; i++)
		plain_printf(stderr, "%s \"%s\"", i == 0 ? "" : " or",
		    r->line.words[i]);
	fprintf(stderr, "; without a name all are listed\n");
}

static void
answer_cb(void *arg, const Tributary__QueryMachinesReply *reply,
    const char *why)
{
	struct run *r = arg;

	loop_stop(r->loop);
	if (reply == NULL) {
		r->status = flags_refuse(&command,
		    control_is_foreign(r->control) ? foreign_advice : why);
		return;
	}
	if (machines_print(stdout, reply, r->line.words, r->line.n_words,
	    r->form) == 0 && r->line.n_words > 0) {
		complain_about_names(r);
		return;
	}
	if (fflush(stdout) != 0)
		r->status = flags_refuse(&command, strerror(errno));
	else
		r->status = COMMAND_OK;
}

static void
late_cb(void *arg)
{
	struct run *r = arg;

	r->status = flags_refuse(&command, "the collector does not answer");
	loop_stop(r->loop);
}

static int
ask(struct run *r)
{
	struct loop_timer *late = NULL;
	char err[ERROR_BYTES];

	r->status = COMMAND_FAILED;
	snprintf(err, sizeof(err), "out of memory");
	if ((r->loop = loop_new()) == NULL)
		return flags_refuse(&command, err);
	if ((late = loop_timer_new(r->loop, late_cb, r)) == NULL) {
		flags_refuse(&command, err);
		goto out;
	}
	r->control = control_new(r->loop, &r->addr, &r->line.how, err,
	    sizeof(err));
	if (r->control == NULL) {
		flags_refuse(&command, err);
		goto out;
	}
	control_query_machines(r->control, answer_cb, r);
	loop_timer_set(late, ANSWER_MS, 0);
	loop_run(r->loop);

out:
	control_free(r->control);
	loop_timer_free(late);
	loop_free(r->loop);
	return r->status;
}

int
machines_main(int argc, char **argv)
{
	struct run r = { .line.how.service = "consumer" };
	char err[ERROR_BYTES];
	int status;

	status = command_line_parse(&r.line, &command, &r, argc, argv);
	if (status >= 0)
		return status;
	if (command_line_consumer(&r.line, &r.addr, err, sizeof(err)) < 0)
		return flags_refuse(&command, err);
	return ask(&r);
}
