/*
 * trace_follow: reads a trace file, as it grows if need be, into a summary.
 */
#ifndef CLIENT_TRACE_TRACE_FOLLOW_H
#define CLIENT_TRACE_TRACE_FOLLOW_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct trace_follow;
struct trace_summary;

/*
 * Begins at the first byte of fd, a regular file opened for reading, which is
 * borrowed like the summary.  The file's own offset is left alone.
 */
struct trace_follow *trace_follow_new(int fd, struct trace_summary *summary)
    MUST_CHECK;
void trace_follow_free(struct trace_follow *f);

/*
 * Takes in up to max more bytes.  1: there may be more; 0: that is all for
 * now; -1 for good, with a sentence in err: unreadable, or no trace.
 */
int trace_follow_read(struct trace_follow *f, uint64_t max, char *err,
    size_t err_size) MUST_CHECK;

#endif /* CLIENT_TRACE_TRACE_FOLLOW_H */
