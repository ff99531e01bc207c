/*
 * segment_path: names of segment files, from a file_pattern
 * (protos/segment.proto).  Pure.
 *
 *	%recording %machine %n %Y %m %d %H %M %S %%
 *
 * Names of recordings and machines come from others, so an expanded path is
 * safe whatever they are: relative, without `..`, and no part of it begins with
 * a dot or is longer than a file system takes.
 */
#ifndef TRANSPORT_SEGMENT_SEGMENT_PATH_H
#define TRANSPORT_SEGMENT_SEGMENT_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* Every pattern ends in this: an archive knows segments by it. */
#define SEGMENT_SUFFIX ".pftrace"
/* Behind the suffix of a file that is not whole. */
#define SEGMENT_PART ".part"

/* Enough for any expanded path, with "-99999" and ".part". */
#define SEGMENT_PATH_MAX 1100

struct segment_name {
	const char *recording; /* NULL or "": "recording" */
	const char *machine;   /* NULL or "": by its id */
	uint32_t machine_id;   /* 0: the collector */
	uint32_t number;
	uint64_t realtime_ns;  /* since 1970 */
};

/* The pattern where a config has none. */
const char *segment_path_default(bool by_machine);

/* 0, or -1 with a sentence in err that begins with the pattern. */
int segment_path_check(const char *pattern, bool by_machine, char *err,
    size_t err_size) MUST_CHECK;

/* pattern: one that segment_path_check() finds right. */
void segment_path_expand(char out[SEGMENT_PATH_MAX], const char *pattern,
    const struct segment_name *of);

/* Puts "-n" before the suffix, for a name that is taken: n up to 99999. */
void segment_path_alternative(char out[SEGMENT_PATH_MAX], const char *path,
    unsigned n);

#endif /* TRANSPORT_SEGMENT_SEGMENT_PATH_H */
