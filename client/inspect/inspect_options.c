#include "client/inspect/inspect_options.h"

#include <getopt.h>
#include <stdio.h>

#include "transport/unknown_flag.h"

enum { OPT_JSON = 1000, OPT_STRICT };

static const struct option flags[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "strict", no_argument, NULL, OPT_STRICT },
	{ NULL, 0, NULL, 0 },
};

const char inspect_options_help[] =
    "Usage: tributary inspect [--json] [--strict] FILE\n"
    "\n"
    "Says what a trace holds and whether it can be trusted. FILE may be \"-\": a\n"
    "pipe is read as well. No daemon is asked.\n"
    "\n"
    "      --json        the same for programs, with more of it\n"
    "      --strict      exit status 3 when something was lost\n"
    "  -h, --help        print this\n"
    "\n"
    "Exit status: 0 when the file is whole; 1 when it cannot be read or is no\n"
    "trace; 2 when it is damaged, cut off or without its end; 3 with --strict, when\n"
    "it is whole and says that something was lost.\n";

static const char help_is_at[] = "see tributary inspect --help";

static enum inspect_options_result
take_path(struct inspect_options *out, int argc, char **argv, char *err,
    size_t err_size)
{
	if (optind == argc) {
		snprintf(err, err_size, "which file? %s", help_is_at);
		return INSPECT_OPTIONS_ERROR;
	}
	if (optind + 1 < argc) {
		snprintf(err, err_size, "one file at a time");
		return INSPECT_OPTIONS_ERROR;
	}
	out->path = argv[optind];
	return INSPECT_OPTIONS_OK;
}

enum inspect_options_result
inspect_options_parse(struct inspect_options *out, int argc, char **argv,
    char *err, size_t err_size)
{
	struct inspect_options o = { .mode = INSPECT_REPORT };
	int c;

	opterr = 0;
	optind = 0; /* anew: glibc keeps state between calls */
	while ((c = getopt_long(argc, argv, ":h", flags, NULL)) != -1) {
		switch (c) {
		case 'h':
			return INSPECT_OPTIONS_HELP;
		case OPT_JSON:
			o.json = true;
			break;
		case OPT_STRICT:
			o.strict = true;
			break;
		case ':':
			snprintf(err, err_size, "%s wants a value",
			    argv[optind - 1]);
			return INSPECT_OPTIONS_ERROR;
		default:
			unknown_flag(argv[optind - 1], flags, help_is_at, err,
			    err_size);
			return INSPECT_OPTIONS_ERROR;
		}
	}
	if (take_path(&o, argc, argv, err, err_size) != INSPECT_OPTIONS_OK)
		return INSPECT_OPTIONS_ERROR;
	*out = o;
	return INSPECT_OPTIONS_OK;
}
