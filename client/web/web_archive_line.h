/*
 * web_archive_line: time lines: for each machine of the segments that were
 * found, where there is data, where something was lost, and where triggers are.
 */
#ifndef CLIENT_WEB_WEB_ARCHIVE_LINE_H
#define CLIENT_WEB_WEB_ARCHIVE_LINE_H

#include <stdio.h>

#include "client/web/web_request.h"
#include "transport/base/compiler.h"

struct catalog;
struct selection;
struct selection_found;

/* Lines at most: other machines are counted no further. */
#define WEB_LINE_MACHINES 40u

/*
 * found: the newest first.  Prints nothing where no segment has a time.  -1
 * with a sentence.
 */
int web_archive_line_print(FILE *out, struct catalog *c,
    const struct selection *s, const struct selection_found *found,
    const struct web_search *q, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_WEB_WEB_ARCHIVE_LINE_H */
