#include "client/ui/open.h"

#include <stdio.h>

#include "client/ui/web_program.h"

static const char help[] =
    "Usage: tributary open FILE [--no-browser] [--ui ORIGIN]\n"
    "\n"
    "Shows a trace in Perfetto's UI: opens a browser, from which the UI fetches the\n"
    "file at http://127.0.0.1:9001/, once; then it ends. Nothing is uploaded.\n"
    "\n"
    "      --no-browser  print the address alone\n"
    "      --ui ORIGIN   a copy of the UI; default: https://ui.perfetto.dev\n"
    "  -h, --help        print this\n"
    "\n"
    "A file on another machine, for a browser on this one:\n"
    "\n"
    "  ssh -t -L 9001:127.0.0.1:9001 HOST tributary open --no-browser FILE\n"
    "\n"
    "Exit status: 0 when the file was fetched; 1 when it cannot be shown. It is done\n"
    "by tributary-web, whose --listen and --log-level it takes, too.\n";

int
open_main(int argc, char **argv)
{
	if (web_program_helps(argc, argv)) {
		fputs(help, stdout);
		return 0;
	}
	if (argc < 2) {
		fputs("tributary open: which file? see tributary open --help\n",
		    stderr);
		return 1;
	}
	return web_program_run("tributary open", "--open", argc, argv);
}
