/*
 * options: the command line of `tributary inspect`.  Pure.
 */
#ifndef CLIENT_INSPECT_OPTIONS_H
#define CLIENT_INSPECT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "client/inspect/packet_filter.h"
#include "transport/base/compiler.h"
#include "transport/base/flags.h"

enum inspect_mode {
	INSPECT_REPORT,
	INSPECT_PACKETS, /* print packets as text */
	INSPECT_CONVERT, /* convert a time of one clock into another */
};

struct inspect_options {
	const char *path; /* "-": standard input */
	enum inspect_mode mode;
	bool json;
	bool packets; /* mode is INSPECT_PACKETS */
	bool strict; /* losses count for the exit status */
	bool follow; /* wait at the end of the file for more */
	const char *convert; /* CONVERT: "CLOCK:TIME" */
	const char *into;    /* CONVERT: "CLOCK"; NULL: the trace clock */
	const char *into_machine; /* CONVERT: NULL: the collector's own */
	struct packet_filter filter; /* PACKETS */
};

extern const struct flags inspect_options_flags;

/* out borrows from argv; it is set with FLAGS_RUN only. */
enum flags_verdict inspect_options_parse(struct inspect_options *out,
    int argc, char **argv, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_INSPECT_OPTIONS_H */
