/*
 * segments: splits the stream of a recording into segments, each a file in a
 * folder, and looks after them (segment_command.h, segment_keep.h).
 *
 * The collector cuts by time and at triggers, as the config tells it; full()
 * says when it has to be asked for a cut by size.  All calls belong to the
 * loop's thread.
 */
#ifndef CLIENT_RECORD_SEGMENTS_H
#define CLIENT_RECORD_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/loop/loop.h"
#include "transport/sink/packet_compressor.h"

struct record_live;
struct record_segments;

/* Everything is borrowed. */
struct record_segments_setup {
	const char *folder;
	const char *pattern; /* checked */
	const char *recording;
	bool by_machine;
	struct packet_compression compression;
	uint64_t max_bytes;  /* 0: full() is never called */
	const char *command; /* NULL: none */
	uint64_t keep_bytes; /* 0: no limit, as below */
	uint64_t keep_ms;
};

/* Opens the folder, or makes it.  NULL with a sentence in err. */
struct record_segments *record_segments_open(
    const struct record_segments_setup *setup, char *err, size_t err_size)
    MUST_CHECK;
/* Segments that are not whole end with their last whole packet. */
void record_segments_free(struct record_segments *s);

/* Calls from the segments; each with the arg of begin(). */
struct record_segments_ops {
	/* No command runs or waits any more. */
	loop_fn idle;
	/* The segment of this number has max_bytes; called again and again. */
	void (*full)(void *arg, uint32_t number);
};

/*
 * Begins the first segment, after it has closed those that a crash left in the
 * folder, which live is told.  -1 with the error set.
 */
int record_segments_begin(struct record_segments *s, struct loop *l,
    struct record_live *live, const struct record_segments_ops *ops, void *arg)
    MUST_CHECK;
/* Takes whole Trace.packet fields.  -1 with the error set. */
int record_segments_put(struct record_segments *s, const uint8_t *packets,
    size_t len) MUST_CHECK;
/* All that was taken is in the files. */
int record_segments_flush(struct record_segments *s) MUST_CHECK;
/*
 * Ends all segments.  1: done; 0: commands run, call again from idle(); -1: the
 * error is set.
 */
int record_segments_finish(struct record_segments *s) MUST_CHECK;
/* Segments whose command runs or waits. */
unsigned record_segments_commands(const struct record_segments *s);
/* Ends the command that runs; those that wait are not run. */
void record_segments_give_up(struct record_segments *s);

const char *record_segments_folder(const struct record_segments *s);
/* "" when there was none. */
const char *record_segments_error(const struct record_segments *s);
/* Segments that are whole. */
uint64_t record_segments_count(const struct record_segments *s);

#endif /* CLIENT_RECORD_SEGMENTS_H */
