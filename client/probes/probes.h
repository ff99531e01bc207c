/*
 * probes: the program tributary-probes, all but its main().
 */
#ifndef CLIENT_PROBES_PROBES_H
#define CLIENT_PROBES_PROBES_H

#include <stdio.h>

#include "transport/base/compiler.h"
#include "transport/base/log.h"
#include "transport/connect/dial.h"
#include "transport/socket/addr.h"

struct probes_options {
	struct addr address;
	struct dial_options how;
	const char *machine_name; /* as the user gave it, or NULL */
	enum log_level level;
	bool background;
};

enum probes_verdict {
	PROBES_RUN,
	PROBES_DONE,  /* --help, --version: the text is printed */
	PROBES_USAGE, /* a sentence was printed to err */
};

/* Reads the command line.  Pure but for the environment and the two files. */
enum probes_verdict probes_parse(int argc, char **argv,
    struct probes_options *o, FILE *out, FILE *err) MUST_CHECK;

/* Runs until SIGTERM or SIGINT.  Returns the exit status. */
int probes_run(const struct probes_options *o);

#endif /* CLIENT_PROBES_PROBES_H */
