#include "client/record/record.h"

#include <stdio.h>

#include "client/record/ask.h"
#include "client/record/options.h"
#include "client/record/run.h"
#include "protos/plain_text.h"

#define ERROR_BYTES 2048

/* It may quote an argument. */
static void
say(const char *sentence)
{
	fputs("tributary: ", stderr);
	plain_text_put(stderr, sentence);
	fputc('\n', stderr);
}

int
record_main(int argc, char **argv)
{
	struct record_options o;
	char err[ERROR_BYTES];

	switch (record_options_parse(&o, argc, argv, err, sizeof(err))) {
	case RECORD_OPTIONS_HELP:
		fputs(record_options_help(), stdout);
		return 0;
	case RECORD_OPTIONS_VERSION:
		printf("tributary %s\n", TRIBUTARY_VERSION);
		return 0;
	case RECORD_OPTIONS_NOTHING:
		say(err);
		return 0;
	case RECORD_OPTIONS_BAD:
		say(err);
		return 1;
	case RECORD_OPTIONS_RUN:
		break;
	}
	switch (o.mode) {
	case RECORD_MODE_QUERY:
		return record_ask_state(&o);
	case RECORD_MODE_IS_DETACHED:
		return record_ask_is_detached(&o);
	case RECORD_MODE_RECORD:
	case RECORD_MODE_DETACH:
	case RECORD_MODE_ATTACH:
	case RECORD_MODE_CLONE:
		break;
	}
	return record_run(&o);
}
