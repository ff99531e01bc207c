/* trace_open: opens what the user named: a file, or "-", standard input. */
#ifndef CLIENT_INSPECT_SCAN_TRACE_OPEN_H
#define CLIENT_INSPECT_SCAN_TRACE_OPEN_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/*
 * Returns a descriptor, for the caller to close unless it is standard input; -1
 * with a sentence in err.  *size: in bytes; 0: not known, or a failure.
 */
int trace_open(const char *path, uint64_t *size, char *err, size_t err_size)
    MUST_CHECK;

#endif /* CLIENT_INSPECT_SCAN_TRACE_OPEN_H */
