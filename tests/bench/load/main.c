/*
 * tributary-load: many devices in one process, and the verifier of what a
 * collector made of them (docs/load.md).
 */
#include <stdio.h>
#include <string.h>

#include "tests/bench/load/bare_sink.h"
#include "tests/bench/load/load_options.h"
#include "tests/bench/load/run.h"
#include "tests/bench/load/verify.h"

int
main(int argc, char **argv)
{
	struct load_options o;
	char err[256];

	if (argc > 1 && strcmp(argv[1], "verify") == 0)
		return verify_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "ledger") == 0)
		return verify_ledger_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "sink") == 0)
		return bare_sink_main(argc - 1, argv + 1);
	switch (load_options_parse(&o, argc, argv, err, sizeof(err))) {
	case LOAD_PARSED:
		return run(&o);
	case LOAD_PARSED_HELP:
		load_options_help(stdout);
		return 0;
	case LOAD_PARSED_BAD:
		break;
	}
	fprintf(stderr, "tributary-load: %s\n", err);
	return 2;
}
