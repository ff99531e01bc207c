/*
 * trace_out: the file that a trace is written to: PATH.part, which becomes PATH
 * once it is whole; or standard output, a device or a FIFO, as they are.
 *
 * Failures are sticky: trace_out_finish() tells.  Blocks.
 */
#ifndef CLIENT_ARCHIVE_FETCH_TRACE_OUT_H
#define CLIENT_ARCHIVE_FETCH_TRACE_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct trace_out;

/* path "-": standard output.  NULL with a sentence. */
struct trace_out *trace_out_open(const char *path, char *err, size_t err_size)
    MUST_CHECK;
/* Into a file that is open, borrowed for the call, from its begin. */
struct trace_out *trace_out_into(int fd, char *err, size_t err_size)
    MUST_CHECK;
/* Removes the .part unless the trace was finished. */
void trace_out_close(struct trace_out *o);

/* Each answers -1 once something has failed. */
int trace_out_packet(struct trace_out *o, const uint8_t *data, size_t len);
int trace_out_put(struct trace_out *o, const void *data, size_t len);
/* The errno of the first failure; 0: none. */
int trace_out_error(const struct trace_out *o);
uint64_t trace_out_bytes(const struct trace_out *o);
/* Writes over bytes that were written before; not into a pipe. */
int trace_out_patch(struct trace_out *o, uint64_t at, const void *data,
    size_t len);

/* Writes all, and gives the file its name.  -1 with a sentence. */
int trace_out_finish(struct trace_out *o, char *err, size_t err_size)
    MUST_CHECK;

#endif /* CLIENT_ARCHIVE_FETCH_TRACE_OUT_H */
