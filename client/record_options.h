/*
 * record_options: the command line of `tributary record`.
 *
 * Flags mean what they mean to Perfetto's own command.  Reads no file and
 * prints nothing.
 */
#ifndef CLIENT_RECORD_OPTIONS_H
#define CLIENT_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/record_machines.h"
#include "transport/compiler.h"
#include "transport/dial.h"

/* Everything borrows from argv. */
struct record_options {
	const char *config; /* a file, "-" for standard input, NULL: names */
	const char *out;    /* a file, "-" for standard output, or NULL */
	const char *connect; /* address, or NULL for the default */
	struct dial_options how;
	const char *const *names;
	size_t n_names;
	uint32_t duration_ms;
	uint64_t buffer_bytes;
	uint64_t max_file_bytes;
	int notify_fd; /* -1: none */
	struct record_machines machines;
	bool background;
	bool background_wait; /* implies background */
	bool no_clobber;
	bool quiet;
};

enum record_options_verdict {
	RECORD_OPTIONS_RUN,
	RECORD_OPTIONS_HELP, /* asked for help; *o is not set */
	RECORD_OPTIONS_BAD,  /* err holds a sentence */
};

/* argv[0] is "record".  Reorders argv (names last). */
enum record_options_verdict record_options_parse(struct record_options *o,
    int argc, char **argv, char *err, size_t err_size) MUST_CHECK;

/* The text of --help. */
const char *record_options_help(void);

#endif /* CLIENT_RECORD_OPTIONS_H */
