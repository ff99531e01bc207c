#include "client/probes/probes.h"

#define ERROR_BYTES 2048

int
main(int argc, char **argv)
{
	struct probes_options o;
	char err[ERROR_BYTES];
	int status;

	status = flags_answer(&probes_flags, probes_parse(&o, argc, argv, err,
	    sizeof(err)), err);
	return status >= 0 ? status : probes_run(&o);
}
