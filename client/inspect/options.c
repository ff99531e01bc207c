#include "client/inspect/options.h"

#include <stdio.h>

#include "transport/base/failure.h"

/* Flags of --packets. */
enum filter_flag { BY_TYPE, BY_SEQUENCE, BY_FROM, BY_TO };

static const char help[] =
    "Usage: tributary inspect [--json] [--strict] [--follow] FILE\n"
    "       tributary inspect --packets [FILTER...] [--follow] FILE\n"
    "       tributary inspect --convert CLOCK:NANOSECONDS [--machine NAME]\n"
    "           [--into CLOCK] [--into-machine NAME] FILE\n"
    "\n"
    "Shows a trace's contents and whether it can be trusted. FILE may be \"-\": a\n"
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
    "                    the machine of the clock of --into; without it the\n"
    "                    collector's own\n"
    "  -h, --help        print this\n"
    "\n"
    "Of the packets, only those\n"
    "      --type NAME   of this field of TracePacket; may be repeated\n"
    "      --sequence N  of this sequence\n"
    "      --machine NAME\n"
    "                    of this machine: a name, a pattern or an id; with\n"
    "                    --convert: the one of the clock\n"
    "      --from SECONDS, --to SECONDS\n"
    "                    between these times, counted from the trace's first\n"
    "\n"
    "Exit status: 0 when the file is whole; 1 when it cannot be read or is no\n"
    "trace; 2 when it is damaged, cut off or without its end; 3 with --strict, when\n"
    "it is whole and says that something was lost, or that times are wrong.\n";

static int
take_filter(void *options, const struct flag *flag, const char *value,
    char *err, size_t err_size)
{
	struct packet_filter *f = &((struct inspect_options *)options)->filter;

	switch ((enum filter_flag)flag->id) {
	case BY_TYPE:
		return packet_filter_type(f, value, err, err_size);
	case BY_SEQUENCE:
		return packet_filter_sequence(f, value, err, err_size);
	case BY_FROM:
		return packet_filter_from(f, value, err, err_size);
	case BY_TO:
		return packet_filter_to(f, value, err, err_size);
	}
	return 0;
}

#define AT(member)   .at = offsetof(struct inspect_options, member)
#define FILTER(what) FLAG_VALUE, .take = take_filter, .id = what

static const struct flag table[] = {
	{ "convert", FLAG_TEXT, AT(convert) },
	{ "follow", FLAG_BOOL, AT(follow) },
	{ "from", FILTER(BY_FROM) },
	{ "help", FLAG_HELP, .letter = 'h' },
	{ "into", FLAG_TEXT, AT(into) },
	{ "into-machine", FLAG_TEXT, AT(into_machine) },
	{ "json", FLAG_BOOL, AT(json) },
	{ "machine", FLAG_TEXT, AT(filter.machine) },
	{ "packets", FLAG_BOOL, AT(packets) },
	{ "sequence", FILTER(BY_SEQUENCE) },
	{ "strict", FLAG_BOOL, AT(strict) },
	{ "to", FILTER(BY_TO) },
	{ "type", FILTER(BY_TYPE) },
	{ .name = NULL },
};

static const char help_is_at[] = "see tributary inspect --help";

const struct flags inspect_options_flags = {
	.table = table,
	.speaker = "tributary inspect",
	.help_is_at = help_is_at,
	.help = help,
	.bad_status = 1,
};

/* Refuses flags that do not go together. */
static int
check_modes(struct inspect_options *o, char *err, size_t err_size)
{
	struct packet_filter but_machine = o->filter;
	const char *wrong = NULL;

	if (o->convert != NULL)
		o->mode = INSPECT_CONVERT;
	else if (o->packets)
		o->mode = INSPECT_PACKETS;
	but_machine.machine = NULL;
	if (o->packets && o->convert != NULL)
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
	return FAILURE(err, err_size, "%s; %s", wrong, help_is_at);
}

static int
take_path(struct inspect_options *o, const struct flags_words *words, char *err,
    size_t err_size)
{
	if (words->argc == 1) {
		o->path = words->argv[0];
		return 0;
	}
	if (words->argc == 0)
		snprintf(err, err_size, "which file? %s", help_is_at);
	else
		snprintf(err, err_size, "one file at a time");
	return -1;
}

enum flags_verdict
inspect_options_parse(struct inspect_options *out, int argc, char **argv,
    char *err, size_t err_size)
{
	struct inspect_options o = { .mode = INSPECT_REPORT };
	struct flags_words words = { .argc = argc, .argv = argv };
	enum flags_verdict verdict;

	verdict = flags_parse(&inspect_options_flags, &o, &words, err,
	    err_size);
	if (verdict != FLAGS_RUN)
		return verdict;
	if (check_modes(&o, err, err_size) != 0 ||
	    take_path(&o, &words, err, err_size) != 0)
		return FLAGS_BAD;
	*out = o;
	return FLAGS_RUN;
}
