#include "client/ui/ui.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "tributary-web"

static const char help[] =
    "Usage: tributary ui [--connect ADDR] [FLAG...]\n"
    "\n"
    "Lets Perfetto's UI record through a collector, here or elsewhere (tls://,\n"
    "ssh://), until it is ended by Ctrl-C: \"Record new trace\", target WebSocket.\n"
    "The UI looks for it at ws://127.0.0.1:8037/traced. Whoever can connect to\n"
    "that port of this machine may record as you may.\n"
    "\n"
    "      --connect ADDR  the collector: /path, tls://host:port, ssh://host/path\n"
    "      --listen HOST:PORT  where something else has port 8037; the UI then has\n"
    "                    to be told the address\n"
    "      --origin ORIGIN  let pages of an own copy of the UI record\n"
    "  -h, --help\n"
    "\n"
    "It is " PROGRAM " --traced, and takes its other flags, too; see " PROGRAM "\n"
    "--help.\n";

static int
run(int argc, char **argv)
{
	char **words = calloc((size_t)argc + 2, sizeof(*words));
	int i;

	if (words == NULL) {
		fprintf(stderr, "tributary ui: no memory\n");
		return 1;
	}
	words[0] = (char *)PROGRAM;
	words[1] = (char *)"--traced";
	for (i = 1; i < argc; i++)
		words[i + 1] = argv[i];
	fprintf(stderr, "Open https://ui.perfetto.dev/#!/record and choose the "
	    "target WebSocket; Ctrl-C ends this.\n");
	(void)execvp(PROGRAM, words);
	if (errno == ENOENT)
		fprintf(stderr, "tributary ui: there is no " PROGRAM " in PATH, "
		    "which is what speaks with browsers\n");
	else
		fprintf(stderr, "tributary ui: cannot start " PROGRAM ": %s\n",
		    strerror(errno));
	free(words);
	return 1;
}

int
ui_main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") != 0 &&
		    strcmp(argv[i], "-h") != 0)
			continue;
		fputs(help, stdout);
		return 0;
	}
	return run(argc, argv);
}
