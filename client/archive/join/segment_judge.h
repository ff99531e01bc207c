/*
 * segment_judge: decides packet by packet what a recording has of a segment:
 * the packet as it is, changed, or not at all.  Knows no files.  Pure.
 */
#ifndef CLIENT_ARCHIVE_JOIN_SEGMENT_JUDGE_H
#define CLIENT_ARCHIVE_JOIN_SEGMENT_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/base/hash_map.h"
#include "transport/wire/pb_writer.h"

struct segment_packet;

enum segment_verdict {
	SEGMENT_KEEP,
	SEGMENT_CHANGE, /* to judge->changed */
	SEGMENT_DROP,
	SEGMENT_STATS,  /* TraceStats of the segment's span: to be added up */
	SEGMENT_LAST,   /* Segment.end: the segment is whole */
	SEGMENT_NO_MEMORY,
};

/* For all files of a recording; zero-initialised, but for uuid. */
struct segment_judge {
	uint8_t uuid[16];         /* of the recording */
	bool uuid_written;
	struct hash_map seen;     /* kept packets of the service; owned */
	struct pb_writer changed;
};

/* A file's place among the others. */
struct segment_place {
	bool is_segment;
	/* The segment before it, of the same machine, was read to its end. */
	bool contiguous;
	/* A file with all that is common to all machines is read beside it. */
	bool covered;
	bool lead; /* it is that file itself */
};

void segment_judge_done(struct segment_judge *j);

enum segment_verdict segment_judge_packet(struct segment_judge *j,
    const struct segment_place *place, const struct segment_packet *p)
    MUST_CHECK;

#endif /* CLIENT_ARCHIVE_JOIN_SEGMENT_JUDGE_H */
