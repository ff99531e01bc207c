#include "client/orders/recordings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/command/control_ask.h"
#include "client/library/control.h"
#include "client/show/recordings_text.h"
#include "client/text/text_cell.h"
#include "protos/control.pb-c.h"
#include "protos/plain_text.h"
#include "transport/loop/loop.h"

static const char help[] =
    "Usage: tributary recordings [--long | --json]\n"
    "       tributary recordings start|stop|rotate NAME...\n"
    "\n"
    "Lists the standing recordings of a collector's settings, or commands them.\n"
    "They are sessions of the daemon's own user: that user, root and admins may\n"
    "see and command them.\n"
    "\n"
    "  start NAME...     begin at once what was stopped, or waits to begin again\n"
    "  stop NAME...      end it and complete its files; it stays stopped until it\n"
    "                    is started, or the daemon is\n"
    "  rotate NAME...    end its segment and begin the next\n"
    "\n"
    "  -l, --long        all information about each\n"
    "      --json        the same, for programs\n"
    COMMAND_CONSUMER_HELP
    "\n"
    "AGE, RATE and SIZE are of the session that runs; SEGMENT is the one that it\n"
    "writes; NEXT the time until the next cut or, while it waits, until it begins\n"
    "again; KEPT what the settings say of old segments.\n"
    "\n"
    "Exit status: 0; 1 when the collector cannot be asked, or an order was not\n"
    "carried out.\n";

static const struct flag flags[] = {
	COMMAND_FLAGS(offsetof(struct control_ask, line)),
	COMMAND_FLAG_LONG(offsetof(struct control_ask, form)),
	COMMAND_FLAG_JSON(offsetof(struct control_ask, form)),
	{ .name = NULL },
};

static const struct control_program program = {
	.flags = COMMAND("recordings", flags, help),
	.foreign_advice = "the collector at this address is not a tributaryd "
	    "that has recordings (Perfetto's traced, or an older one)",
};

static const struct verb {
	const char *word;
	enum control_recording_verb verb;
	const char *done;
} verbs[] = {
	{ "start", CONTROL_RECORDING_START, "started" },
	{ "stop", CONTROL_RECORDING_STOP, "stopped" },
	{ "rotate", CONTROL_RECORDING_ROTATE, "cut" },
};

static void
answer_cb(void *arg, const Tributary__QueryRecordingsReply *reply,
    const char *why)
{
	control_ask_answer(arg, reply == NULL ? NULL : &reply->base, why);
}

static void
query(struct control_peer *p)
{
	control_query_recordings(p->control, answer_cb, p);
}

/* ---- orders ---- */

/* An order that is not answered yet: they are given one after the other. */
struct order {
	struct control_ask *ask;
	const char *name;
	const struct verb *verb;
};

static void
done_cb(void *arg, const char *error)
{
	struct order *o = arg;
	char name[TEXT_CELL_MAX], text[TEXT_CELL_MAX];

	loop_stop(o->ask->loop);
	text_cell_plain(o->name, name);
	if (error == NULL) {
		printf("%s %s\n", o->verb->done, name);
		fflush(stdout);
		return;
	}
	plain_printf(stderr, "tributary recordings: %s: %s\n", name,
	    text_cell_plain(error, text));
	o->ask->status = COMMAND_FAILED;
}

static const struct verb *
verb_of(const char *word)
{
	size_t i;

	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i].word, word) == 0)
			return &verbs[i];
	return NULL;
}

static int
give_orders(struct control_ask *r, const struct verb *v)
{
	struct order o = { .ask = r, .verb = v };
	size_t i;

	for (i = 1; i < r->line.n_words; i++) {
		o.name = r->line.words[i];
		control_recording(r->peers[0].control, v->verb, o.name, done_cb, &o);
		loop_run(r->loop);
	}
	return r->status;
}

static int
run(struct control_ask *r)
{
	const struct verb *v = NULL;

	if (r->line.n_words > 0 && (v = verb_of(r->line.words[0])) == NULL)
		return control_ask_refuse(r, "the order is start, stop or "
		    "rotate, and the names of recordings behind it");
	if (r->line.n_words == 1)
		return control_ask_refuse(r, "which recording? Say a name, as "
		    "tributary recordings lists them");
	/* Asked with an order, too: to see that it is understood. */
	if (!control_ask(r, query))
		return r->status;
	if (v != NULL)
		return give_orders(r, v);
	recordings_print(stdout, (Tributary__QueryRecordingsReply *)
	    r->peers[0].reply, r->form);
	return fflush(stdout) == 0 ? COMMAND_OK :
	    control_ask_refuse(r, strerror(errno));
}

int
recordings_main(int argc, char **argv)
{
	struct control_ask r;
	int status = control_ask_init(&r, &program, argc, argv);

	if (status >= 0)
		return status;
	status = run(&r);
	control_ask_done(&r);
	return status;
}
