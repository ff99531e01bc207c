#include "client/show/sources.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/command/ask_once.h"
#include "client/command/command_line.h"
#include "client/command/machine_filter.h"
#include "client/show/sources_text.h"
#include "client/tracing/consumer/consumer.h"
#include "protos/service_state.pb-c.h"
#include "transport/base/failure.h"

static const char help[] =
    "Usage: tributary sources [--long | --json] [--machine NAME] [NAME...]\n"
    "\n"
    "Lists the data sources that producers offer to a collector, by machine and\n"
    "producer: what `tributary record` and trace configs can name. With names or\n"
    "patterns (\"linux.*\"), only those.\n"
    "\n"
    "  -l, --long        all that producers say of themselves, with categories\n"
    "      --json        the same, for programs\n"
    "      --machine NAME  only of this machine; may be repeated, and be a pattern;\n"
    "                    \"host\" is the collector's own\n"
    COMMAND_CONSUMER_HELP
    "\n"
    "Exit status: 0; 1 when the collector cannot be asked, or when names or machines\n"
    "were given and nothing fits.\n";

struct run {
	struct command_line line;
	struct ask_once *ask;
	const char *machines[MACHINE_FILTER_MAX];
	struct sources_filter filter;
	enum list_form form;
};

static int
add_machine(void *options, const struct flag *flag, const char *value,
    char *err, size_t err_size)
{
	struct run *r = options;

	if (r->filter.n_machines == MACHINE_FILTER_MAX)
		return FAILURE(err, err_size, "too many --machine");
	r->machines[r->filter.n_machines++] = value;
	return 0;
}

static const struct flag flags[] = {
	COMMAND_FLAGS(offsetof(struct run, line)),
	COMMAND_FLAG_LONG(offsetof(struct run, form)),
	COMMAND_FLAG_JSON(offsetof(struct run, form)),
	{ "machine", FLAG_VALUE, .take = add_machine },
	{ .name = NULL },
};

static const struct flags command = COMMAND("sources", flags, help);

static void
state_cb(void *arg, const uint8_t *data, size_t len)
{
	Perfetto__Protos__TracingServiceState *state = NULL;
	struct run *r = arg;
	size_t n;

	if (data != NULL)
		state = perfetto__protos__tracing_service_state__unpack(NULL,
		    len, data);
	if (state == NULL) {
		ask_once_fail(r->ask, "the collector does not list its "
		    "data sources");
		return;
	}
	n = sources_print(stdout, state, &r->filter, r->form);
	perfetto__protos__tracing_service_state__free_unpacked(state, NULL);
	if (fflush(stdout) != 0)
		ask_once_fail(r->ask, strerror(errno));
	else if (n == 0 && (r->filter.n_names > 0 || r->filter.n_machines > 0))
		ask_once_fail(r->ask, "no producer offers such a data source; "
		    "without names and --machine all are listed");
	else
		ask_once_end(r->ask, COMMAND_OK);
}

static void
ask(struct ask_once *a, struct consumer *c, void *arg)
{
	struct run *r = arg;

	r->ask = a;
	consumer_query_service_state(c, false, state_cb, r);
}

int
sources_main(int argc, char **argv)
{
	struct run r = { .line.how.service = "consumer" };
	int status;

	status = command_line_parse(&r.line, &command, &r, argc, argv);
	if (status >= 0)
		return status;
	r.filter.machines = r.machines;
	r.filter.names = r.line.words;
	r.filter.n_names = r.line.n_words;
	return ask_once("tributary sources", r.line.connect, &r.line.how, ask,
	    &r);
}
