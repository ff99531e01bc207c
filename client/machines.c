#include "client/machines.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "client/control.h"
#include "transport/dial_flags.h"
#include "client/machines_text.h"
#include "transport/unknown_flag.h"
#include "protos/control.pb-c.h"
#include "transport/addr.h"
#include "transport/dial.h"
#include "transport/loop.h"

#define ERROR_BYTES 2048
/* A collector that does not answer for so long does not answer. */
#define ANSWER_MS 30000u

enum { EXIT_OK = 0, EXIT_FAILED = 1 };
enum { OPT_CONNECT = 1000, OPT_JSON };

static const struct option flags[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "long", no_argument, NULL, 'l' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "connect", required_argument, NULL, OPT_CONNECT },
	DIAL_FLAGS_LONG,
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
    "Usage: tributary machines [--long | --json] [NAME...]\n"
    "\n"
    "Lists the machines that a collector has seen: its own (\"host\") and those\n"
    "that relays, certificates or producers named. With names or patterns\n"
    "(\"robot-*\"), only those. `tributary record --machine NAME` records them.\n"
    "\n"
    "  -l, --long        everything that is known of each\n"
    "      --json        the same, for programs\n"
    "      --connect ADDR  the collector's consumer socket; default:\n"
    "                    $PERFETTO_CONSUMER_SOCK_NAME, else\n"
    "                    /run/perfetto/traced-consumer.sock, else\n"
    "                    /tmp/perfetto-consumer; also tls://host:port,\n"
    "                    ssh://host and others, as for tributary record\n"
    "      --tls-dir DIR, --tls-name NAME, --allow-tls-1.2, --ssh-command CMD\n"
    "                    see tributary record --help\n"
    "  -h, --help        print this\n"
    "\n"
    "LOST counts packets that were lost on the way; WAITS THERE is what a relay\n"
    "has not delivered yet; CLOCK is how far the machine's boot clock is ahead of\n"
    "the collector's.\n"
    "\n"
    "Exit status: 0; 1 when the collector cannot be asked or no machine has any of\n"
    "the names.\n";

struct run {
	struct loop *loop;
	const char *const *names;
	size_t n_names;
	enum machines_form form;
	const char *connect;
	struct dial_options how;
	struct addr addr;
	int status;
};

static int
refuse(const char *text)
{
	fprintf(stderr, "tributary machines: %s\n", text);
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
			r->form = MACHINES_LONG;
			break;
		case OPT_JSON:
			r->form = MACHINES_JSON;
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
			    "see tributary machines --help", err, sizeof(err));
			return refuse(err);
		default:
			(void)dial_flags_take(&r->how, c, optarg);
			break;
		}
	}
	r->names = (const char *const *)argv + optind;
	r->n_names = (size_t)(argc - optind);
	return -1;
}

static void
complain_about_names(const struct run *r)
{
	size_t i;

	fprintf(stderr, "tributary machines: the collector knows no machine "
	    "called");
	for (i = 0; i < r->n_names; i++)
		fprintf(stderr, "%s \"%s\"", i == 0 ? "" : " or",
		    r->names[i]);
	fprintf(stderr, "; without a name all are listed\n");
}

static void
answer_cb(void *arg, const Tributary__QueryMachinesReply *reply,
    const char *why)
{
	struct run *r = arg;

	loop_stop(r->loop);
	if (reply == NULL) {
		r->status = refuse(why);
		return;
	}
	if (machines_print(stdout, reply, r->names, r->n_names, r->form) == 0 &&
	    r->n_names > 0) {
		complain_about_names(r);
		return;
	}
	if (fflush(stdout) != 0)
		r->status = refuse(strerror(errno));
	else
		r->status = EXIT_OK;
}

static void
late_cb(void *arg)
{
	struct run *r = arg;

	r->status = refuse("the collector does not answer");
	loop_stop(r->loop);
}

static int
ask(struct run *r)
{
	struct loop_timer *late = NULL;
	struct control *c = NULL;
	char err[ERROR_BYTES];

	r->status = EXIT_FAILED;
	snprintf(err, sizeof(err), "out of memory");
	if ((r->loop = loop_new()) == NULL)
		return refuse(err);
	if ((late = loop_timer_new(r->loop, late_cb, r)) == NULL) {
		refuse(err);
		goto out;
	}
	c = control_new(r->loop, &r->addr, &r->how, err, sizeof(err));
	if (c == NULL) {
		refuse(err);
		goto out;
	}
	control_query_machines(c, answer_cb, r);
	loop_timer_set(late, ANSWER_MS, 0);
	loop_run(r->loop);

out:
	control_free(c);
	loop_timer_free(late);
	loop_free(r->loop);
	return r->status;
}

int
machines_main(int argc, char **argv)
{
	struct run r = { .how.service = "consumer" };
	char err[ERROR_BYTES];
	int status;

	if ((status = parse(&r, argc, argv)) >= 0)
		return status;
	if (addr_parse(&r.addr, r.connect != NULL ? r.connect :
	    addr_default_consumer(), err, sizeof(err)) < 0 ||
	    dial_flags_check(&r.how, &r.addr, err, sizeof(err)) < 0)
		return refuse(err);
	return ask(&r);
}
