/*
 * segment_options: flags of `tributary record` about segments, and what they add
 * to a trace config (TraceConfig.tributary_segments).  Pure.
 */
#ifndef CLIENT_RECORD_SEGMENT_OPTIONS_H
#define CLIENT_RECORD_SEGMENT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct Perfetto__Protos__TraceConfig;
struct pb_writer;

struct segment_options {
	uint64_t every_ms;  /* 0: not given, as below */
	uint64_t max_bytes;
	bool by_machine;
	const char *pattern; /* borrowed, as below; NULL: not given */
	const char *command;
	uint64_t keep_bytes;
	uint64_t keep_ms;
};

enum segment_flag {
	SEGMENT_EVERY,
	SEGMENT_SIZE,
	SEGMENT_SPLIT,
	SEGMENT_KEEP,
	SEGMENT_KEEP_FOR,
	SEGMENT_PATTERN,
	SEGMENT_COMMAND,
};

/* Takes a flag's value; -1 with a sentence in err. */
int segment_options_take(struct segment_options *o, enum segment_flag flag,
    const char *value, char *err, size_t err_size) MUST_CHECK;

/* Whether a flag says that there are segments. */
bool segment_options_cut(const struct segment_options *o);
/* Whether a flag is about what becomes of segments. */
bool segment_options_care(const struct segment_options *o);

/*
 * Appends to an encoded config what the flags say, and a unique_session_name
 * where cuts by size want one: m is that config decoded, random any number.
 */
void segment_options_put(const struct segment_options *o,
    const struct Perfetto__Protos__TraceConfig *m, uint64_t random,
    struct pb_writer *out);

#endif /* CLIENT_RECORD_SEGMENT_OPTIONS_H */
