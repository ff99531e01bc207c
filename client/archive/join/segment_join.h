/*
 * segment_join: puts segments of one recording together again: exactly the
 * packets that the recording, had it not been cut, would have in them.
 *
 * Less what the cuts added: Segment, SegmentCut, repeated packets, the loss
 * marks of sequences that were cut without beginning anew, and the segments'
 * TraceStats, in place of which their sum comes last.  The trace's uuid is that
 * of the recording.  A trace that is no segment stays as it is.
 *
 * Segments come in the order of their numbers; files of several machines with
 * one number are merged by the service's packets, which they have in common, so
 * that Trace Processor, which sorts in windows that these packets end, has the
 * order of the recording.  Behind a gap (a number that is missing, a file
 * without its end) the packets that were repeated are kept where they are new,
 * and so are the loss marks, so that no sequence is read with the wrong state.
 *
 * Memory: for each file of one number what segment_reader takes, and some 40
 * bytes for each packet of the service.  Input is hostile.  Writes nothing.
 */
#ifndef CLIENT_ARCHIVE_JOIN_SEGMENT_JOIN_H
#define CLIENT_ARCHIVE_JOIN_SEGMENT_JOIN_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "client/archive/join/segment_plan.h"
#include "transport/base/compiler.h"

struct segment_join_ops {
	/* A packet without its framing, borrowed.  Not 0 ends the joining. */
	int (*packet)(void *arg, const uint8_t *data, size_t len);
	/*
	 * Whole Trace.packet fields, perhaps compressed, borrowed; NULL:
	 * packet() gets them all, expanded.
	 */
	int (*stored)(void *arg, const uint8_t *framed, size_t len);
	/* A sentence for people on what is missing. */
	void (*note)(void *arg, const char *text);
	void *arg; /* borrowed */
	/* Another thread ends the joining by it; NULL: none does. */
	const atomic_bool *stop;
};

struct segment_join_report {
	size_t files;
	uint64_t packets;
	uint64_t bytes;       /* of the files, read so far */
	uint32_t gaps;        /* between numbers */
	uint32_t unfinished;  /* files without their end */
};

/*
 * -1 with a sentence: unreadable, no memory, or one of the ops did not answer 0
 * (err is then as before).  out is set in any case.
 */
int segment_join_run(struct segment_join_report *out,
    const struct segment_recording *recording,
    const struct segment_join_ops *ops, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_JOIN_SEGMENT_JOIN_H */
