/*
 * segment_writer: writes the stream of a recording as segments, each a file.
 *
 * Takes whole packets as the service gives them, with the marks of cuts
 * (segment_splitter.h), and names files by a pattern (segment_path.h).  Errors
 * are as in segment_files.h: the first one is sticky, and packets that come
 * later are lost as well.  Calls block; a writer belongs to one thread.
 */
#ifndef TRANSPORT_SEGMENT_SEGMENT_WRITER_H
#define TRANSPORT_SEGMENT_SEGMENT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/sink/packet_compressor.h"

struct segment_folder;
struct segment_writer;

/* A segment that is on the disk; borrowed for the call. */
struct segment_written {
	const char *path; /* below the folder */
	uint64_t bytes;
	uint64_t packets; /* as Segment.End.packets */
	uint32_t number;
	uint32_t machine;         /* 0: the collector, or not split */
	const char *machine_name; /* "": not split, or not known */
	bool last;                /* of the recording */
};

struct segment_writer_options {
	const char *pattern;   /* checked by segment_path_check() */
	const char *recording; /* its name */
	bool by_machine;
	int32_t uid; /* trusted_uid of packets that the writer makes */
	uint64_t begin_realtime_ns;
	/* As segment_options has it; borrowed until segment_writer_new() ends. */
	const uint8_t *begun_by;
	size_t begun_by_len;
	struct packet_compression compression;
	/* As sink_writer's; NULL: never. */
	bool (*give_up)(void *arg);
	/* A segment is whole; NULL: not wanted.  Must not call the writer. */
	void (*written)(void *arg, const struct segment_written *of);
	void *arg;
};

/* Copies the options, and takes the folder on success.  NULL: no memory. */
struct segment_writer *segment_writer_new(struct segment_folder *folder,
    const struct segment_writer_options *o) MUST_CHECK;
/* Segments that are not whole end with their last whole packet. */
void segment_writer_free(struct segment_writer *w);

/*
 * Takes whole packets.  -1: see segment_writer_error().  All packets that were
 * taken are in the files, will be, or are told by segment_writer_lost().  -2: as
 * -1, but which of these packets were taken is not known, as memory ran out.
 */
int segment_writer_put(struct segment_writer *w, const uint8_t *packets,
    size_t len) MUST_CHECK;
/* Writes all that was collected; as above. */
int segment_writer_flush(struct segment_writer *w) MUST_CHECK;
/* Flushes, and has all of it on the disk. */
int segment_writer_sync(struct segment_writer *w) MUST_CHECK;
/*
 * Ends all segments: the recording is complete.  As above; only the calls below
 * may follow, and segment_writer_free().
 */
int segment_writer_finish(struct segment_writer *w) MUST_CHECK;
/*
 * Closes all files as segment_writer_free() does, after an error.  What is
 * known of the writer stays.
 */
void segment_writer_leave(struct segment_writer *w);

/* A sentence; NULL: no error. */
const char *segment_writer_error(const struct segment_writer *w);
/* Passes on whole packets that were taken and are in no file. */
void segment_writer_lost(const struct segment_writer *w,
    void (*lost)(void *arg, const uint8_t *packets, size_t len), void *arg);
/* Bytes in all files. */
uint64_t segment_writer_total(const struct segment_writer *w);
/* The number of the newest segment. */
uint32_t segment_writer_number(const struct segment_writer *w);
/*
 * Bytes of the newest segment's largest file, but not more than twice of what
 * is new in it: a segment that is large by repetitions would be so again if it
 * were cut.
 */
uint64_t segment_writer_largest(const struct segment_writer *w);

#endif /* TRANSPORT_SEGMENT_SEGMENT_WRITER_H */
