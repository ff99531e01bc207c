/*
 * fetch_join: writes recordings into a file, joined and cut to a time.  Says
 * what is missing, and prints nothing else.
 */
#ifndef CLIENT_ARCHIVE_FETCH_FETCH_JOIN_H
#define CLIENT_ARCHIVE_FETCH_FETCH_JOIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct segment_plan;

struct fetch_order {
	const char *output;  /* a path, or "-"; NULL: into fd, saying nothing */
	int fd;              /* a file, borrowed */
	uint64_t max_bytes;  /* more of the trace is a failure; 0: any */
	const atomic_bool *stop; /* ends it, which is a failure; or NULL */
	const char *speaker; /* of notes: "tributary fetch" */
	bool trim;
	uint64_t from_ns, to_ns; /* CLOCK_REALTIME, for trim */
};

struct fetch_result {
	uint64_t bytes, packets;
	size_t files;
	uint32_t gaps, unfinished;
	uint64_t trimmed;  /* packets that went */
	uint64_t timeless; /* events whose time could not be told */
};

/*
 * Recordings that are not of one boot of the collector are refused, as Trace
 * Processor would show hours of them at the same place.  Several recordings
 * become a TAR archive with a trace of each.  -1 with a sentence; then no file
 * was made.
 */
int fetch_join(struct fetch_result *out, const struct fetch_order *order,
    const struct segment_plan *plan, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_FETCH_FETCH_JOIN_H */
