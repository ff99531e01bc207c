/*
 * probes: the program tributary-probes, all but its main().
 */
#ifndef CLIENT_PROBES_PROBES_H
#define CLIENT_PROBES_PROBES_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/base/flags.h"
#include "transport/base/log.h"
#include "transport/connect/dial.h"
#include "transport/socket/addr.h"

struct probes_options {
	struct addr address;
	const char *socket;       /* the address as given, or NULL */
	struct dial_options how;
	const char *machine_name; /* as the user gave it, or NULL */
	enum log_level level;
	bool background;
	bool reset_ftrace;        /* before the data source is offered */
	bool clean_up;            /* puts ftrace back, and nothing else */
};

extern const struct flags probes_flags;

/* Reads the command line.  Pure but for the environment. */
enum flags_verdict probes_parse(struct probes_options *o, int argc,
    char **argv, char *err, size_t err_size) MUST_CHECK;

/* Runs until SIGTERM or SIGINT.  Returns the exit status. */
int probes_run(const struct probes_options *o);

#endif /* CLIENT_PROBES_PROBES_H */
