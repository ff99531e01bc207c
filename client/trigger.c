#include "client/trigger.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "client/trigger_call.h"
#include "transport/addr.h"
#include "transport/dial.h"
#include "transport/dial_flags.h"
#include "transport/log.h"
#include "transport/loop.h"
#include "transport/unknown_flag.h"

#define ERROR_BYTES 2048
#define ADDRESS_BYTES 1024

enum { EXIT_OK = 0, EXIT_FAILED = 1 };
enum { OPT_CONNECT = 1000 };

static const struct option flags[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "connect", required_argument, NULL, OPT_CONNECT },
	DIAL_FLAGS_LONG,
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
    "Usage: tributary trigger [FLAG...] NAME...\n"
    "\n"
    "Activates triggers of tracing sessions by their names: sessions whose\n"
    "trigger_config has one of them start, stop or save a snapshot. Whoever may\n"
    "send data to the collector may do this.\n"
    "\n"
    "  -q, --quiet       print errors only\n"
    "      --connect ADDR  the collector's producer socket, or a relay's; default:\n"
    "                    $PERFETTO_PRODUCER_SOCK_NAME, else\n"
    "                    /run/perfetto/traced-producer.sock, else\n"
    "                    /tmp/perfetto-producer; also tls://host:port,\n"
    "                    ssh://host and others, as for tributary record\n"
    "      --tls-dir DIR, --tls-name NAME, --allow-tls-1.2, --ssh-command CMD\n"
    "                    see tributary record --help\n"
    "  -h, --help        print this\n"
    "\n"
    "Exit status: 0 when the collector took the triggers, whether or not a session\n"
    "waits for them, which it does not say; 1 when it did not take them.\n";

struct outcome {
	struct loop *loop;
	int status;
};

static int
refuse(const char *text)
{
	fprintf(stderr, "tributary trigger: %s\n", text);
	return EXIT_FAILED;
}

static void
outcome_cb(void *arg, const char *why)
{
	struct outcome *o = arg;

	o->status = why == NULL ? EXIT_OK : refuse(why);
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
	struct outcome o = { .status = EXIT_FAILED };
	struct trigger_call *call;
	char err[ERROR_BYTES], first[ADDRESS_BYTES];
	struct addr addr;

	if (connect == NULL)
		connect = first_of(first, addr_default_producer());
	if (addr_parse(&addr, connect, err, sizeof(err)) < 0 ||
	    dial_flags_check(how, &addr, err, sizeof(err)) < 0)
		return refuse(err);
	if ((o.loop = loop_new()) == NULL)
		return refuse("out of memory");
	call = trigger_call_new(o.loop, &addr, how, names, n, outcome_cb, &o,
	    err, sizeof(err));
	if (call == NULL)
		refuse(err);
	else
		loop_run(o.loop);
	trigger_call_free(call);
	loop_free(o.loop);
	if (o.status == EXIT_OK && !quiet)
		say_taken(names, n);
	return o.status;
}

int
trigger_main(int argc, char **argv)
{
	struct dial_options how = { .service = "producer" };
	const char *connect = NULL;
	char err[ERROR_BYTES];
	bool quiet = false;
	int c;

	opterr = 0;
	optind = 0; /* anew: glibc keeps state between calls */
	while ((c = getopt_long(argc, argv, ":hq", flags, NULL)) != -1) {
		switch (c) {
		case 'h':
			fputs(help, stdout);
			return EXIT_OK;
		case 'q':
			quiet = true;
			break;
		case OPT_CONNECT:
			connect = optarg;
			break;
		case ':':
			snprintf(err, sizeof(err), "%s wants a value",
			    argv[optind - 1]);
			return refuse(err);
		case '?':
			unknown_flag(argv[optind - 1], flags,
			    "see tributary trigger --help", err, sizeof(err));
			return refuse(err);
		default:
			(void)dial_flags_take(&how, c, optarg);
			break;
		}
	}
	if (optind == argc)
		return refuse("name a trigger");
	for (c = optind; c < argc; c++)
		if (argv[c][0] == '\0')
			return refuse("the name of a trigger is empty");
	return trigger_activate(connect, &how,
	    (const char *const *)argv + optind, (size_t)(argc - optind),
	    quiet);
}
