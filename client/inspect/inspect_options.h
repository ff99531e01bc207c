/*
 * inspect_options: the command line of `tributary inspect`.  Pure.
 */
#ifndef CLIENT_INSPECT_INSPECT_OPTIONS_H
#define CLIENT_INSPECT_INSPECT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "client/inspect/packet_filter.h"
#include "transport/base/compiler.h"

enum inspect_mode {
	INSPECT_REPORT,
	INSPECT_PACKETS, /* as text */
	INSPECT_CONVERT, /* a time of one clock into another */
};

struct inspect_options {
	const char *path; /* "-": standard input */
	enum inspect_mode mode;
	bool json;
	bool strict; /* losses count for the exit status */
	bool follow; /* wait for more of it */
	const char *convert; /* CONVERT: "CLOCK:TIME" */
	const char *into;    /* CONVERT: "CLOCK"; NULL: the trace clock */
	const char *into_machine; /* CONVERT: NULL: the collector's own */
	struct packet_filter filter; /* PACKETS */
};

enum inspect_options_result {
	INSPECT_OPTIONS_OK,
	INSPECT_OPTIONS_HELP,  /* inspect_options_help is wanted */
	INSPECT_OPTIONS_ERROR, /* a sentence is in err */
};

extern const char inspect_options_help[];

/* Borrows from argv. */
enum inspect_options_result inspect_options_parse(struct inspect_options *out,
    int argc, char **argv, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_INSPECT_INSPECT_OPTIONS_H */
