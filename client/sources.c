#include "client/sources.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "client/consumer.h"
#include "client/consumer_ask.h"
#include "client/record_machines.h"
#include "client/sources_text.h"
#include "transport/dial.h"
#include "transport/dial_flags.h"
#include "transport/unknown_flag.h"

#define COMMAND     "tributary sources"
#define ERROR_BYTES 2048

enum { EXIT_OK = 0, EXIT_FAILED = 1 };
enum { OPT_CONNECT = 1000, OPT_JSON, OPT_MACHINE };

static const struct option flags[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "long", no_argument, NULL, 'l' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "machine", required_argument, NULL, OPT_MACHINE },
	{ "connect", required_argument, NULL, OPT_CONNECT },
	DIAL_FLAGS_LONG,
	{ NULL, 0, NULL, 0 },
};

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
    "      --connect ADDR  the collector's consumer socket; default:\n"
    "                    $PERFETTO_CONSUMER_SOCK_NAME, else\n"
    "                    /run/perfetto/traced-consumer.sock, else\n"
    "                    /tmp/perfetto-consumer; also tls://host:port,\n"
    "                    ssh://host and others, as for tributary record\n"
    "      --tls-dir DIR, --tls-name NAME, --allow-tls-1.2, --ssh-command CMD\n"
    "                    see tributary record --help\n"
    "  -h, --help        print this\n"
    "\n"
    "Exit status: 0; 1 when the collector cannot be asked, or when names or machines\n"
    "were given and nothing fits.\n";

struct run {
	struct consumer_ask *ask;
	const char *machines[RECORD_MACHINES_MAX];
	struct sources_filter filter;
	enum sources_form form;
	const char *connect;
	struct dial_options how;
};

static int
refuse(const char *text)
{
	fprintf(stderr, COMMAND ": %s\n", text);
	return EXIT_FAILED;
}

/* -1: go on; else the exit status. */
static int
parse(struct run *r, int argc, char **argv)
{
	char err[ERROR_BYTES];
	int c;

	opterr = 0;
	optind = 0; /* anew: glibc keeps state between calls */
	while ((c = getopt_long(argc, argv, ":hl", flags, NULL)) != -1) {
		switch (c) {
		case 'h':
			fputs(help, stdout);
			return EXIT_OK;
		case 'l':
			r->form = SOURCES_LONG;
			break;
		case OPT_JSON:
			r->form = SOURCES_JSON;
			break;
		case OPT_MACHINE:
			if (r->filter.n_machines == RECORD_MACHINES_MAX)
				return refuse("too many --machine");
			r->machines[r->filter.n_machines++] = optarg;
			break;
		case OPT_CONNECT:
			r->connect = optarg;
			break;
		case ':':
			snprintf(err, sizeof(err), "%s wants a value",
			    argv[optind - 1]);
			return refuse(err);
		case '?':
			unknown_flag(argv[optind - 1], flags,
			    "see " COMMAND " --help", err, sizeof(err));
			return refuse(err);
		default:
			(void)dial_flags_take(&r->how, c, optarg);
			break;
		}
	}
	r->filter.machines = r->machines;
	r->filter.names = (const char *const *)argv + optind;
	r->filter.n_names = (size_t)(argc - optind);
	return -1;
}

static void
state_cb(void *arg, const struct Perfetto__Protos__TracingServiceState *state)
{
	struct run *r = arg;
	size_t n;

	if (state == NULL) {
		consumer_ask_fail(r->ask, "the collector does not tell what "
		    "it knows");
		return;
	}
	n = sources_print(stdout, state, &r->filter, r->form);
	if (fflush(stdout) != 0)
		consumer_ask_fail(r->ask, strerror(errno));
	else if (n == 0 && (r->filter.n_names > 0 || r->filter.n_machines > 0))
		consumer_ask_fail(r->ask, "nobody offers such a data source; "
		    "without names and --machine all are listed");
	else
		consumer_ask_end(r->ask, EXIT_OK);
}

static void
ask(struct consumer_ask *a, struct consumer *c, void *arg)
{
	struct run *r = arg;

	r->ask = a;
	consumer_query_service_state(c, false, state_cb, r);
}

int
sources_main(int argc, char **argv)
{
	struct run r = { .how.service = "consumer" };
	int status;

	if ((status = parse(&r, argc, argv)) >= 0)
		return status;
	return consumer_ask(COMMAND, r.connect, &r.how, ask, &r);
}
