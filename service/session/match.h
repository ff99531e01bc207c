/*
 * match: name filters of a TraceConfig: exact names and regular expressions
 * (PCRE2, whole-string match, with limits so that no pattern can take long, nor
 * all tests of a filter together).
 */
#ifndef SERVICE_SESSION_MATCH_H
#define SERVICE_SESSION_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/compiler.h"

struct match;

#define MATCH_PATTERN_MAX  1024u /* bytes of one pattern */
#define MATCH_PATTERNS_MAX 256u  /* patterns of one filter */

struct match *match_new(void) MUST_CHECK;
void match_free(struct match *m);

/* Adds an exact name (copied). */
int match_add_name(struct match *m, const char *name) MUST_CHECK;
/*
 * Adds a pattern.  -1 with a sentence in err that names the pattern, the
 * position and what is wrong with it (or that it is too long or complex).
 */
int match_add_regex(struct match *m, const char *pattern, char *err,
    size_t err_size) MUST_CHECK;

bool match_is_empty(const struct match *m);
/*
 * True when empty, or any name or pattern fits.  A pattern that hits its match
 * limit does not fit, and none does any more once slow tests took 2 ms for each
 * pattern (logged).  Bytes are compared, not characters.
 */
bool match_test(struct match *m, const char *name);

#endif /* SERVICE_SESSION_MATCH_H */
