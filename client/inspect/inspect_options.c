#include "client/inspect/inspect_options.h"

#include <getopt.h>
#include <stdio.h>

#include "transport/base/unknown_flag.h"

enum {
	OPT_JSON = 1000, OPT_STRICT, OPT_PACKETS, OPT_FOLLOW, OPT_CONVERT,
	OPT_TYPE, OPT_SEQUENCE, OPT_MACHINE, OPT_FROM, OPT_TO,
	OPT_INTO, OPT_INTO_MACHINE,
};

static const struct option flags[] = {
	{ "convert", required_argument, NULL, OPT_CONVERT },
	{ "follow", no_argument, NULL, OPT_FOLLOW },
	{ "from", required_argument, NULL, OPT_FROM },
	{ "help", no_argument, NULL, 'h' },
	{ "into", required_argument, NULL, OPT_INTO },
	{ "into-machine", required_argument, NULL, OPT_INTO_MACHINE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "machine", required_argument, NULL, OPT_MACHINE },
	{ "packets", no_argument, NULL, OPT_PACKETS },
	{ "sequence", required_argument, NULL, OPT_SEQUENCE },
	{ "strict", no_argument, NULL, OPT_STRICT },
	{ "to", required_argument, NULL, OPT_TO },
	{ "type", required_argument, NULL, OPT_TYPE },
	{ NULL, 0, NULL, 0 },
};

const char inspect_options_help[] =
    "Usage: tributary inspect [--json] [--strict] [--follow] FILE\n"
    "       tributary inspect --packets [FILTER...] [--follow] FILE\n"
    "       tributary inspect --convert CLOCK:NANOSECONDS [--machine NAME]\n"
    "           [--into CLOCK] [--into-machine NAME] FILE\n"
    "\n"
    "Says what a trace holds and whether it can be trusted. FILE may be \"-\": a\n"
    "pipe is read as well. No daemon is asked.\n"
    "\n"
    "      --json        the same for programs, with more of it\n"
    "      --strict      exit status 3 when something was lost, or\n"
    "                    times are wrong\n"
    "      --follow      wait for more as the file grows, until Ctrl-C\n"
    "      --packets     print the packets as protobuf text, each with its time\n"
    "      --convert CLOCK:NANOSECONDS\n"
    "                    say a time in the trace clock, as of MONOTONIC:5000, or\n"
    "                    64@7:5000 for the clock 64 of the sequence 7\n"
    "      --into CLOCK  say it in this clock instead: REALTIME for the date, or\n"
    "                    any other that the trace knows\n"
    "      --into-machine NAME\n"
    "                    the machine whose clock --into means; without it the\n"
    "                    collector's own\n"
    "  -h, --help        print this\n"
    "\n"
    "Of the packets, only those\n"
    "      --type NAME   of this field of TracePacket; may be repeated\n"
    "      --sequence N  of this sequence\n"
    "      --machine NAME\n"
    "                    of this machine: a name, a pattern or an id; with\n"
    "                    --convert: whose clock it is\n"
    "      --from SECONDS, --to SECONDS\n"
    "                    between these times, counted from the trace's first\n"
    "\n"
    "Exit status: 0 when the file is whole; 1 when it cannot be read or is no\n"
    "trace; 2 when it is damaged, cut off or without its end; 3 with --strict, when\n"
    "it is whole and says that something was lost, or that times are wrong.\n";

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

/* A flag of --packets.  1: it is none; -1 with a sentence in err. */
static int
take_filter(struct inspect_options *o, int c, char *err, size_t err_size)
{
	switch (c) {
	case OPT_TYPE:
		return packet_filter_type(&o->filter, optarg, err, err_size);
	case OPT_SEQUENCE:
		return packet_filter_sequence(&o->filter, optarg, err,
		    err_size);
	case OPT_MACHINE:
		o->filter.machine = optarg;
		return 0;
	case OPT_FROM:
		return packet_filter_from(&o->filter, optarg, err, err_size);
	case OPT_TO:
		return packet_filter_to(&o->filter, optarg, err, err_size);
	default:
		return 1;
	}
}

/* Flags that do not go together.  -1 with a sentence in err. */
static int
check_modes(struct inspect_options *o, bool packets, char *err,
    size_t err_size)
{
	struct packet_filter but_machine = o->filter;
	const char *wrong = NULL;

	if (o->convert != NULL)
		o->mode = INSPECT_CONVERT;
	else if (packets)
		o->mode = INSPECT_PACKETS;
	but_machine.machine = NULL;
	if (packets && o->convert != NULL)
		wrong = "--packets or --convert, one of them";
	else if (o->mode == INSPECT_REPORT && packet_filter_is_set(&o->filter))
		wrong = "--type, --sequence, --machine, --from and --to go "
		    "with --packets";
	else if (o->mode == INSPECT_CONVERT &&
	    packet_filter_is_set(&but_machine))
		wrong = "of these, only --machine goes with --convert";
	else if (o->mode != INSPECT_CONVERT && (o->into != NULL ||
	    o->into_machine != NULL))
		wrong = "--into and --into-machine go with --convert";
	else if (o->into == NULL && o->into_machine != NULL)
		wrong = "--into-machine wants --into: which of its clocks?";
	else if (o->mode == INSPECT_CONVERT && o->follow)
		wrong = "--follow does not go with --convert";
	else if (o->mode != INSPECT_REPORT && (o->json || o->strict))
		wrong = "--json and --strict go with the report only";
	if (wrong == NULL)
		return 0;
	snprintf(err, err_size, "%s; %s", wrong, help_is_at);
	return -1;
}

enum inspect_options_result
inspect_options_parse(struct inspect_options *out, int argc, char **argv,
    char *err, size_t err_size)
{
	struct inspect_options o = { .mode = INSPECT_REPORT };
	bool packets = false;
	int c, rc;

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
		case OPT_PACKETS:
			packets = true;
			break;
		case OPT_FOLLOW:
			o.follow = true;
			break;
		case OPT_CONVERT:
			o.convert = optarg;
			break;
		case OPT_INTO:
			o.into = optarg;
			break;
		case OPT_INTO_MACHINE:
			o.into_machine = optarg;
			break;
		case ':':
			snprintf(err, err_size, "%s wants a value",
			    argv[optind - 1]);
			return INSPECT_OPTIONS_ERROR;
		default:
			if ((rc = take_filter(&o, c, err, err_size)) == 0)
				break;
			if (rc < 0)
				return INSPECT_OPTIONS_ERROR;
			unknown_flag(argv[optind - 1], flags, help_is_at, err,
			    err_size);
			return INSPECT_OPTIONS_ERROR;
		}
	}
	if (check_modes(&o, packets, err, err_size) != 0)
		return INSPECT_OPTIONS_ERROR;
	if (take_path(&o, argc, argv, err, err_size) != INSPECT_OPTIONS_OK)
		return INSPECT_OPTIONS_ERROR;
	*out = o;
	return INSPECT_OPTIONS_OK;
}
