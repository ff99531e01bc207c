/* tributary: the user's command.  A table of subcommands and no more. */
#include <stdio.h>
#include <string.h>

#include "client/archive/command/archive.h"
#include "client/archive/fetch/fetch.h"
#include "client/archive/find/find.h"
#include "client/cert/cert.h"
#include "client/fleet/fleet.h"
#include "client/inspect/inspect.h"
#include "client/orders/recordings.h"
#include "client/orders/stop_flush_start.h"
#include "client/orders/trigger.h"
#include "client/record/record.h"
#include "client/record/snapshot.h"
#include "client/show/machines.h"
#include "client/show/session_stats.h"
#include "client/show/sessions.h"
#include "client/show/sources.h"
#include "client/show/top.h"
#include "client/tunnel/connect.h"
#include "client/tunnel/forward.h"
#include "client/ui/open.h"
#include "client/ui/ui.h"
#include "protos/nearest.h"
#include "protos/plain_text.h"
#include "transport/base/log.h"

struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *what;
};

static const struct command commands[] = {
	{ "record", record_main, "record a trace into a file" },
	{ "inspect", inspect_main,
	    "show the contents of a trace, and whether it can be trusted" },
	{ "find", find_main,
	    "list the segments of an archive that have a moment" },
	{ "fetch", fetch_main, "join segments of an archive into a trace" },
	{ "open", open_main, "show a trace in Perfetto's UI" },
	{ "snapshot", snapshot_main,
	    "save the buffers of a running session, which goes on" },
	{ "trigger", trigger_main, "activate triggers of sessions" },
	{ "sources", sources_main, "list the data sources that are offered" },
	{ "sessions", sessions_main, "list the sessions that record" },
	{ "stats", stats_main, "say how a session's buffers fare" },
	{ "stop", stop_main, "stop sessions" },
	{ "flush", flush_main, "have producers commit the data that they "
	    "hold" },
	{ "rotate", rotate_main, "cut sessions into segments" },
	{ "start", start_main, "start sessions that wait for it" },
	{ "recordings", recordings_main,
	    "list the recordings of the settings; start, stop, cut them" },
	{ "machines", machines_main, "list the machines that are connected" },
	{ "top", top_main, "watch sessions, machines and producers" },
	{ "ui", ui_main, "let Perfetto's UI in a browser record" },
	{ "archive", archive_main,
	    "keep an archive of segments: reindex, verify, du, pin, rm, "
	    "export" },
	{ "cert", cert_main, "make, show and revoke certificates (tls://)" },
	{ "fleet", fleet_main,
	    "put HAProxy before several collectors, pass their triggers on" },
	{ "forward", forward_main,
	    "open a local socket that leads to a collector elsewhere" },
	{ "connect", connect_main, "carry an ssh stream to a socket (ssh://)" },
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void
usage(FILE *out)
{
	size_t i;

	fprintf(out, "Usage: tributary COMMAND [ARGUMENT...]\n\nCommands:\n");
	for (i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name,
		    commands[i].what);
	fprintf(out,
	    "\n  tributary COMMAND --help   the flags of a command\n  "
	    "tributary --version        the version\n");
}

static int
unknown(const char *word)
{
	const char *meant;
	struct nearest n;
	size_t i;

	nearest_init(&n, word, strlen(word));
	for (i = 0; i < N_COMMANDS; i++)
		nearest_offer(&n, commands[i].name);
	meant = nearest_best(&n);
	plain_printf(stderr, "tributary: there is no %s %s",
	    word[0] == '-' ? "flag" : "command", word);
	if (meant != NULL)
		plain_printf(stderr, "; did you mean %s?\n", meant);
	else
		fprintf(stderr, "; see tributary --help\n");
	return 1;
}

int
main(int argc, char **argv)
{
	const char *word = argc < 2 ? NULL : argv[1];
	size_t i;

	log_init("tributary", LOG_LEVEL_WARN);
	if (word == NULL) {
		usage(stderr);
		return 1;
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
	    strcmp(word, "help") == 0) {
		usage(stdout);
		return 0;
	}
	if (strcmp(word, "--version") == 0) {
		printf("tributary %s\n", TRIBUTARY_VERSION);
		return 0;
	}
	for (i = 0; i < N_COMMANDS; i++) {
		if (strcmp(word, commands[i].name) == 0)
			return commands[i].main(argc - 1, argv + 1);
	}
	return unknown(word);
}
