#include "client/orders/trigger.h"

#include <stdio.h>
#include <string.h>

#include "client/command/command_line.h"
#include "client/library/trigger_call.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

#define ERROR_BYTES 2048
#define ADDRESS_BYTES 1024

static const char help[] =
    "Usage: tributary trigger [FLAG...] NAME...\n"
    "\n"
    "Activates triggers of tracing sessions by their names: sessions whose\n"
    "trigger_config has one of them start, stop or save a snapshot. Every peer that\n"
    "may send data to the collector may do this.\n"
    "\n"
    "  -q, --quiet       print errors only\n"
    "      --connect ADDR  the collector's producer socket, or a relay's; default:\n"
    "                    $PERFETTO_PRODUCER_SOCK_NAME, else\n"
    "                    /run/perfetto/traced-producer.sock, else\n"
    "                    /tmp/perfetto-producer; also tls://host:port,\n"
    "                    ssh://host and others, as for tributary record\n"
    COMMAND_DIAL_HELP
    "\n"
    "Exit status: 0 when the collector took the triggers, whether or not a session\n"
    "waits for them, which it does not say; 1 when it did not take them.\n";

struct outcome {
	struct loop *loop;
	int status;
};

struct trigger_args {
	struct command_line line; /* its words: the triggers */
	bool quiet;
};

static const struct flag flags[] = {
	COMMAND_FLAGS(offsetof(struct trigger_args, line)),
	{ "quiet", FLAG_BOOL, .letter = 'q',
	    .at = offsetof(struct trigger_args, quiet) },
	{ .name = NULL },
};

static const struct flags command = COMMAND("trigger", flags, help);

static void
outcome_cb(void *arg, const char *why)
{
	struct outcome *o = arg;

	o->status = why == NULL ? COMMAND_OK : flags_refuse(&command, why);
	loop_stop(o->loop);
}

static void
say_taken(const char *const *names, size_t n)
{
	char text[256];
	size_t i;

	fprintf(stderr, "tributary trigger: the collector took");
	for (i = 0; i < n; i++)
		fprintf(stderr, "%s \"%s\"", i == 0 ? "" : i + 1 < n ? "," :
		    " and", log_escape(text, sizeof(text), names[i],
		    strlen(names[i])));
	fprintf(stderr, "\n");
}

/* The variable holds the list that a collector listens on. */
static const char *
first_of(char out[ADDRESS_BYTES], const char *list)
{
	snprintf(out, ADDRESS_BYTES, "%.*s", (int)strcspn(list, ","), list);
	return out;
}

int
trigger_activate(const char *connect, const struct dial_options *how,
    const char *const *names, size_t n, bool quiet)
{
	struct outcome o = { .status = COMMAND_FAILED };
	struct trigger_call *call;
	char err[ERROR_BYTES], first[ADDRESS_BYTES];
	struct addr addr;

	if (connect == NULL)
		connect = first_of(first, addr_default_producer());
	if (addr_parse(&addr, connect, err, sizeof(err)) < 0 ||
	    dial_flags_check(how, &addr, err, sizeof(err)) < 0)
		return flags_refuse(&command, err);
	if ((o.loop = loop_new()) == NULL)
		return flags_refuse(&command, "out of memory");
	call = trigger_call_new(o.loop, &(struct trigger_call_setup){
	    .addr = &addr, .how = how, .names = names, .n = n,
	    .fn = outcome_cb, .arg = &o }, err, sizeof(err));
	if (call == NULL)
		flags_refuse(&command, err);
	else
		loop_run(o.loop);
	trigger_call_free(call);
	loop_free(o.loop);
	if (o.status == COMMAND_OK && !quiet)
		say_taken(names, n);
	return o.status;
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
	return trigger_activate(a.line.connect, &a.line.how, a.line.words,
	    a.line.n_words, a.quiet);
}
