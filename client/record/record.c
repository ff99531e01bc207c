#include "client/record/record.h"

#include "client/record/ask.h"
#include "client/record/options.h"
#include "client/record/run.h"

#define ERROR_BYTES 2048

int
record_main(int argc, char **argv)
{
	struct record_options o;
	char err[ERROR_BYTES];
	int status;

	status = flags_answer(&record_options_flags,
	    record_options_parse(&o, argc, argv, err, sizeof(err)), err);
	if (status >= 0)
		return status;
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
