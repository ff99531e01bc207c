/*
 * trace_zip: several files in one ZIP archive, as they are (stored): Trace
 * Processor and Perfetto's UI open it as one trace.  Members of 4 GiB and more
 * are Zip64, which Trace Processor does not read.
 */
#ifndef CLIENT_ARCHIVE_FETCH_TRACE_ZIP_H
#define CLIENT_ARCHIVE_FETCH_TRACE_ZIP_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct trace_out;
struct trace_zip;

/* The largest member that is not Zip64. */
#define TRACE_ZIP_PLAIN_MAX (UINT64_C(0xffffffff) - 1)

/*
 * o is borrowed; it may be a pipe.  plain_max: TRACE_ZIP_PLAIN_MAX, or less to
 * try Zip64 with.  NULL: no memory.
 */
struct trace_zip *trace_zip_new(struct trace_out *o, uint64_t plain_max)
    MUST_CHECK;
void trace_zip_free(struct trace_zip *z);

/*
 * Adds the first size bytes of a file, which is read twice; name is ASCII.  -1
 * with a sentence: then the archive is none.
 */
int trace_zip_file(struct trace_zip *z, const char *name, int fd, uint64_t size,
    char *err, size_t err_size) MUST_CHECK;
int trace_zip_text(struct trace_zip *z, const char *name, const void *text,
    size_t size, char *err, size_t err_size) MUST_CHECK;
/* Adds the directory.  As above; trace_out_finish() comes next. */
int trace_zip_finish(struct trace_zip *z, char *err, size_t err_size)
    MUST_CHECK;

#endif /* CLIENT_ARCHIVE_FETCH_TRACE_ZIP_H */
