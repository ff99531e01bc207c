/*
 * trace_tar: several traces in one file, a TAR archive: Trace Processor opens
 * it, and shows them on one time line.
 */
#ifndef CLIENT_ARCHIVE_FETCH_TRACE_TAR_H
#define CLIENT_ARCHIVE_FETCH_TRACE_TAR_H

#include <stdint.h>

struct trace_out;

/* The largest member: its size has 11 octal digits. */
#define TRACE_TAR_MAX ((UINT64_C(1) << 33) - 1)

/* name: at most 99 bytes.  Returns where the member begins. */
uint64_t trace_tar_begin(struct trace_out *o, const char *name);
/* Says the size of the member that began there.  -1: too large, or no write. */
int trace_tar_end(struct trace_out *o, const char *name, uint64_t begin);
/* Ends the archive. */
void trace_tar_finish(struct trace_out *o);

#endif /* CLIENT_ARCHIVE_FETCH_TRACE_TAR_H */
