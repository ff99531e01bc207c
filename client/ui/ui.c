#include "client/ui/ui.h"

#include <stdio.h>

#include "client/ui/web_program.h"

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

int
ui_main(int argc, char **argv)
{
	if (web_program_helps(argc, argv)) {
		fputs(help, stdout);
		return 0;
	}
	fprintf(stderr, "Open https://ui.perfetto.dev/#!/record and choose the "
	    "target WebSocket; Ctrl-C ends this.\n");
	return web_program_run("tributary ui", "--traced", argc, argv);
}
