/*
 * sink_segments: the files of a sink whose path is a folder (segment_writer.h),
 * for its writer thread.
 *
 * A batch that came is in the files when sink_segments_put() returns; split by
 * machine, where a batch has a little for each of very many files, only once a
 * batch is not full, as at the end of each pass over the buffers.  All calls
 * may block, but for those that make, free and ask.
 */
#ifndef SERVICE_SINK_SINK_SEGMENTS_H
#define SERVICE_SINK_SINK_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct file_sink_options;
struct file_sink_place;
struct sink_segments;

/* Copies o->segments.  NULL: no memory. */
struct sink_segments *sink_segments_new(const struct file_sink_options *o)
    MUST_CHECK;
/* After sink_segments_close(), or where nothing was opened. */
void sink_segments_free(struct sink_segments *g);

/*
 * Opens the folder at the place and makes it where it is missing.  -1 with a
 * sentence in err.
 */
int sink_segments_open(struct sink_segments *g,
    const struct file_sink_place *place, bool (*give_up)(void *arg), void *arg,
    char *err, size_t err_size) MUST_CHECK;

/*
 * Takes a batch; full: more comes at once.  -1 with a sentence in err; the
 * batch is among what is lost, or in the files.  -2: it may be in part, or not.
 */
int sink_segments_put(struct sink_segments *g, const uint8_t *data, size_t len,
    bool full, char *err, size_t err_size) MUST_CHECK;
int sink_segments_sync(struct sink_segments *g, char *err, size_t err_size)
    MUST_CHECK;
/* Ends the recording, or leaves it where an error ended it. */
int sink_segments_close(struct sink_segments *g, bool broken, char *err,
    size_t err_size) MUST_CHECK;

/* Passes on packets that were taken and are in no file. */
void sink_segments_lost(const struct sink_segments *g,
    void (*lost)(void *arg, const uint8_t *data, size_t len), void *arg);
/* Bytes in all files; and as segment_writer_largest(), segment_writer_number(). */
uint64_t sink_segments_total(const struct sink_segments *g);
uint64_t sink_segments_largest(const struct sink_segments *g);
uint32_t sink_segments_number(const struct sink_segments *g);
/* Segments that an earlier crash had left, and that were closed. */
unsigned sink_segments_recovered(const struct sink_segments *g);

#endif /* SERVICE_SINK_SINK_SEGMENTS_H */
