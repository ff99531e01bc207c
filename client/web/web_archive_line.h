/*
 * web_archive_line: time lines: for each machine of the segments that were
 * found, where there is data, where something was lost, and where triggers are.
 */
#ifndef CLIENT_WEB_WEB_ARCHIVE_LINE_H
#define CLIENT_WEB_WEB_ARCHIVE_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/web/web_request.h"
#include "transport/base/compiler.h"

struct catalog;
struct catalog_row;
struct selection;
struct selection_found;

/* Lines at most: other machines are counted no further. */
#define WEB_LINE_MACHINES 40u

/* The time of what was found: 0, then web_line_span_add() of each row. */
struct web_line_span {
	int64_t low, high; /* CLOCK_REALTIME, nanoseconds */
	bool any;
};
void web_line_span_add(struct web_line_span *span,
    const struct catalog_row *row);

/*
 * found: the newest first; span: theirs.  Prints nothing where no segment has a
 * time.  -1 with a sentence.
 */
int web_archive_line_print(FILE *out, struct catalog *c,
    const struct selection *s, const struct selection_found *found,
    const struct web_line_span *span, const struct web_search *q, char *err,
    size_t err_size) MUST_CHECK;

#endif /* CLIENT_WEB_WEB_ARCHIVE_LINE_H */
