/*
 * segment_contents: gathers what the catalogue wants of a trace beyond what an
 * inspection counts: when, by which machines, at which triggers, and which
 * processes.
 *
 * Packets that are repeated from the segment before count for processes alone.
 * Bounded; untrusted input.  Pure.
 */
#ifndef CLIENT_ARCHIVE_INDEX_SEGMENT_CONTENTS_H
#define CLIENT_ARCHIVE_INDEX_SEGMENT_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/archive/index/process_names.h"
#include "client/archive/segment_entry.h"
#include "client/inspect/report/inspection.h"
#include "transport/base/hash_map.h"

/* Most machines and triggers of a segment; further ones are left out. */
#define SEGMENT_MACHINES_MAX 16384u
#define SEGMENT_TRIGGERS_MAX 1024u

/* Public only so that it can be embedded; the fields are private. */
struct segment_contents {
	struct segment_entry *entry; /* borrowed */
	struct inspection *inspection; /* borrowed */
	struct process_names processes;
	struct hash_map machines; /* owned items */
	/* In the trace clock. */
	struct segment_span span;
	uint64_t begin_ns; /* wall clock, as the segment says; 0: it does not */
	uint64_t repeated;
	bool no_memory;
};

/* Watches an inspection that was not run yet.  Both are borrowed. */
void segment_contents_init(struct segment_contents *c,
    struct segment_entry *entry, struct inspection *inspection);
void segment_contents_done(struct segment_contents *c);
/* Fills the entry in, after the inspection.  -1: no memory. */
int segment_contents_finish(struct segment_contents *c) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_INDEX_SEGMENT_CONTENTS_H */
