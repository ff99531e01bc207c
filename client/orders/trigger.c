#include "client/orders/trigger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/collectors.h"
#include "client/command/command_line.h"
#include "client/library/trigger_call.h"
#include "protos/plain_text.h"
#include "transport/base/human_numbers.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

#define ERROR_BYTES 2048

static const char help[] =
    "Usage: tributary trigger [FLAG...] NAME...\n"
    "\n"
    "Activates triggers of tracing sessions by their names: sessions whose\n"
    "trigger_config has one of them start, stop or save a snapshot. Every peer that\n"
    "may send data to the collector may do this.\n"
    "With --fleet, at the producer sockets of all (`producers` in FILE).\n"
    "\n"
    "  -q, --quiet       print errors only\n"
    COMMAND_FLEET_HELP
    "      --connect ADDR  the collector's producer socket, or a relay's; default:\n"
    "                    $PERFETTO_PRODUCER_SOCK_NAME, else\n"
    "                    /run/perfetto/traced-producer.sock, else\n"
    "                    /tmp/perfetto-producer; also tls://host:port,\n"
    "                    ssh://host and others, as for tributary record\n"
    COMMAND_DIAL_HELP
    "\n"
    "Exit status: 0 when the collector took the triggers, whether or not a session\n"
    "waits for them, which it does not say; 1 when it did not take them.\n";

struct trigger_args {
	struct command_line line; /* its words: the triggers */
	bool quiet;
};

/* The triggers on their way to all collectors. */
struct activation {
	const struct command_line *line;
	struct loop *loop;
	size_t n_left; /* have not answered yet */
	size_t n_took;
	int status;
};

/* To one of them. */
struct way {
	struct activation *all;
	const struct collector *to;
	struct trigger_call *call;
};

static const struct flag flags[] = {
	COMMAND_FLEET_FLAGS(offsetof(struct trigger_args, line)),
	{ "quiet", FLAG_BOOL, .letter = 'q',
	    .at = offsetof(struct trigger_args, quiet) },
	{ .name = NULL },
};

static const struct flags command = COMMAND("trigger", flags, help);

static void
outcome_cb(void *arg, const char *why)
{
	struct way *w = arg;
	struct activation *a = w->all;

	if (why == NULL) {
		a->n_took++;
	} else if (w->to->name == NULL) {
		a->status = flags_refuse(&command, why);
	} else {
		plain_printf(stderr, "tributary trigger: %s: %s\n",
		    w->to->name, why);
		if (!a->line->allow_missing)
			a->status = COMMAND_FAILED;
	}
	if (--a->n_left == 0)
		loop_stop(a->loop);
}

static void
say_taken(const char *const *names, size_t n, bool fleet, size_t n_took)
{
	char text[256];
	size_t i;

	if (!fleet)
		fprintf(stderr, "tributary trigger: the collector took");
	else
		fprintf(stderr, "tributary trigger: %zu collector%s took",
		    n_took, human_s(n_took));
	for (i = 0; i < n; i++)
		fprintf(stderr, "%s \"%s\"", i == 0 ? "" : i + 1 < n ? "," :
		    " and", log_escape(text, sizeof(text), names[i],
		    strlen(names[i])));
	fprintf(stderr, "\n");
}

static void
activate(struct activation *a, const struct collectors *c, struct way *ways)
{
	char err[ERROR_BYTES];
	size_t i;

	a->n_left = c->n;
	for (i = 0; i < c->n; i++) {
		ways[i].all = a;
		ways[i].to = &c->list[i];
		ways[i].call = trigger_call_new(a->loop,
		    &(struct trigger_call_setup){
			.addr = &c->list[i].producer.addr,
			.how = &c->list[i].producer.how,
			.names = a->line->words,
			.n = a->line->n_words,
			.producer = c->list[i].name == NULL ? NULL :
			    TRIGGER_CALL_FLEET TRIGGER_CALL_PRODUCER,
			.timeout_ms = c->list[i].name == NULL ? 0 :
			    c->list[i].timeout_ms,
			.fn = outcome_cb, .arg = &ways[i] }, err, sizeof(err));
		if (ways[i].call == NULL)
			outcome_cb(&ways[i], err);
	}
	if (a->n_left > 0)
		loop_run(a->loop);
	for (i = 0; i < c->n; i++)
		trigger_call_free(ways[i].call);
	if (a->n_took == 0)
		a->status = COMMAND_FAILED;
}

static int
run(const struct command_line *line, const struct collectors *c, bool quiet)
{
	struct activation a = { .line = line, .loop = loop_new() };
	struct way *ways = calloc(c->n, sizeof(*ways));

	if (a.loop == NULL || ways == NULL)
		a.status = flags_refuse(&command, "out of memory");
	else
		activate(&a, c, ways);
	free(ways);
	if (a.loop != NULL)
		loop_free(a.loop);
	if (a.n_took > 0 && !quiet)
		say_taken(line->words, line->n_words,
		    c->list[0].name != NULL, a.n_took);
	return a.status;
}

static int
activate_line(const struct command_line *line, bool quiet)
{
	struct collectors c;
	char err[ERROR_BYTES];
	int status;

	if (collectors_of_line(&c, line, err, sizeof(err)) != 0 ||
	    collectors_want_producers(&c, err, sizeof(err)) != 0)
		status = flags_refuse(&command, err);
	else
		status = run(line, &c, quiet);
	collectors_done(&c);
	return status;
}

int
trigger_activate(const char *connect, const struct dial_options *how,
    const char *const *names, size_t n, bool quiet)
{
	struct command_line line = { .connect = connect, .how = *how,
		.words = names, .n_words = n };

	line.how.service = "producer";
	return activate_line(&line, quiet);
}

int
trigger_main(int argc, char **argv)
{
	struct trigger_args a = { .line.how.service = "producer" };
	int status;
	size_t i;

	status = command_line_parse(&a.line, &command, &a, argc, argv);
	if (status >= 0)
		return status;
	if (a.line.n_words == 0)
		return flags_refuse(&command, "name a trigger");
	for (i = 0; i < a.line.n_words; i++)
		if (a.line.words[i][0] == '\0')
			return flags_refuse(&command, "the name of a trigger "
			    "is empty");
	return activate_line(&a.line, a.quiet);
}
