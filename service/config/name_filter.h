/*
 * name_filter: a name filter of a TraceConfig: exact names and regular
 * expressions (PCRE2, whole-string match).  Limits bound the time of a match,
 * and of all tests of a filter together.
 */
#ifndef SERVICE_CONFIG_NAME_FILTER_H
#define SERVICE_CONFIG_NAME_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct name_filter;

#define NAME_FILTER_PATTERN_MAX  1024u /* bytes of one pattern */
#define NAME_FILTER_PATTERNS_MAX 256u  /* patterns of one filter */

struct name_filter *name_filter_new(void) MUST_CHECK;
void name_filter_free(struct name_filter *m);

/* Adds an exact name (copied).  -1: no memory. */
int name_filter_add_name(struct name_filter *m, const char *name) MUST_CHECK;
/*
 * Adds a pattern.  -1 with a sentence in err that names the pattern, the
 * position and what is wrong with it (or that it is too long or complex).
 */
int name_filter_add_regex(struct name_filter *m, const char *pattern, char *err,
    size_t err_size) MUST_CHECK;

bool name_filter_is_empty(const struct name_filter *m);
/*
 * Whether a name matches: the filter is empty, or has that name or a pattern
 * that matches.  A pattern that hits its match limit does not match, and no
 * pattern does any more once slow tests took 2 ms of CPU time for each pattern
 * (logged).  Bytes are compared, not characters.
 */
bool name_filter_test(struct name_filter *m, const char *name);

#endif /* SERVICE_CONFIG_NAME_FILTER_H */
