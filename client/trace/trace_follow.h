/*
 * trace_follow: reads a trace file, which may still grow, into a summary.
 */
#ifndef CLIENT_TRACE_TRACE_FOLLOW_H
#define CLIENT_TRACE_TRACE_FOLLOW_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct trace_follow;
struct trace_summary;

/*
 * Begins at the first byte of fd, a regular file opened for reading; fd and
 * summary are borrowed.  Reads by pread(): the file's offset does not change.
 * NULL: no memory.
 */
struct trace_follow *trace_follow_new(int fd, struct trace_summary *summary)
    MUST_CHECK;
void trace_follow_free(struct trace_follow *f);

/*
 * Reads about max more bytes, in pieces of 256 KiB.  1: there may be more; 0:
 * the end of the file as it is now; -1 for good, with a sentence in err:
 * unreadable, no trace, or no memory.
 */
int trace_follow_read(struct trace_follow *f, uint64_t max, char *err,
    size_t err_size) MUST_CHECK;

#endif /* CLIENT_TRACE_TRACE_FOLLOW_H */
