/*
 * follow: `tributary inspect --follow`: an inspection of a trace that is
 * still being written.
 */
#ifndef CLIENT_INSPECT_FOLLOW_H
#define CLIENT_INSPECT_FOLLOW_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct inspection;

/*
 * Reads until SIGINT or SIGTERM, or until the file is replaced or truncated,
 * with a progress line on standard error every few seconds in which the file
 * grew.  fd and path are borrowed; path: NULL for standard input.  -1 with a
 * sentence in err where the file is unreadable.
 */
int inspect_follow_read(struct inspection *i, int fd, const char *path,
    char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_INSPECT_FOLLOW_H */
