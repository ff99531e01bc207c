/*
 * inspect_follow: `tributary inspect --follow`: an inspection of a trace that is
 * still being written.
 */
#ifndef CLIENT_INSPECT_INSPECT_FOLLOW_H
#define CLIENT_INSPECT_INSPECT_FOLLOW_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct inspection;

/*
 * Reads until a signal says that it is enough, with a line on standard error
 * every few seconds in which the file grew, and one where it was truncated or
 * replaced.  path: NULL for standard input.  -1 with a sentence in err where it
 * is unreadable.
 */
int inspect_follow_read(struct inspection *i, int fd, const char *path,
    char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_INSPECT_INSPECT_FOLLOW_H */
