/*
 * options: the command line of `tributary record`.
 *
 * Flags have the meaning of Perfetto's own command.  Reads no file and
 * prints nothing.
 */
#ifndef CLIENT_RECORD_OPTIONS_H
#define CLIENT_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/command/command_line.h"
#include "client/command/machine_filter.h"
#include "client/record/additions.h"
#include "client/record/segment_options.h"
#include "transport/base/compiler.h"
#include "transport/base/flags.h"

enum record_mode {
	RECORD_MODE_RECORD,
	RECORD_MODE_DETACH,      /* start a session, detach it under key */
	RECORD_MODE_ATTACH,      /* follow the session detached under key */
	RECORD_MODE_IS_DETACHED, /* ask whether there is such a session */
	RECORD_MODE_CLONE,       /* save a clone of a running session */
	RECORD_MODE_QUERY,       /* print the state of the service */
};

/* Everything borrows from argv. */
struct record_options {
	enum record_mode mode;
	const char *key;        /* DETACH, ATTACH, IS_DETACHED */
	bool stop;              /* ATTACH: end the session at once */
	uint64_t clone_id;      /* CLONE, where clone_name is NULL */
	const char *clone_name;
	bool clone_for_bugreport;
	bool query_long;        /* QUERY */
	bool query_raw;
	const char *config; /* a file, "-" for standard input, NULL: names */
	const char *out;    /* a file, "-" for standard output, or NULL */
	struct command_line line; /* its words: names, below */
	const char *const *names;
	size_t n_names;
	uint32_t duration_ms;
	uint64_t buffer_bytes;
	uint64_t max_file_bytes;
	int notify_fd; /* -1: none */
	struct machine_filter machines;
	struct record_additions additions;
	bool background;
	bool background_wait; /* implies background */
	bool no_clobber;
	bool quiet;
	struct segment_options segments;
	bool light; /* -t, -b or -s was given */
	bool has_duration; /* -t was */
};

extern const struct flags record_options_flags;
extern const char record_options_help[];

/* Whether several collectors are meant. */
bool record_options_fleet(const struct record_options *o);

/*
 * argv[0] is "record".  Reorders argv (names last).  o is set with FLAGS_RUN
 * only.
 */
enum flags_verdict record_options_parse(struct record_options *o, int argc,
    char **argv, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_RECORD_OPTIONS_H */
