#include "client/probes/probes.h"

int
main(int argc, char **argv)
{
	struct probes_options o;

	switch (probes_parse(argc, argv, &o, stdout, stderr)) {
	case PROBES_RUN:
		return probes_run(&o);
	case PROBES_DONE:
		return 0;
	case PROBES_USAGE:
		return 2;
	}
	return 2;
}
