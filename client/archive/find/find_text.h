/* find_text: segments of an archive as a table, and as JSON. */
#ifndef CLIENT_ARCHIVE_FIND_FIND_TEXT_H
#define CLIENT_ARCHIVE_FIND_FIND_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "transport/base/compiler.h"

struct catalog;
struct selection_found;

/* more: some were left out.  -1 with a sentence. */
int find_text_table(FILE *out, struct catalog *c,
    const struct selection_found *found, char *err, size_t err_size)
    MUST_CHECK;
int find_text_json(FILE *out, struct catalog *c, const char *folder,
    const struct selection_found *found, bool more, char *err,
    size_t err_size) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_FIND_FIND_TEXT_H */
