/*
 * string_filter: the string rules of a TraceFilter: redact strings in place,
 * keeping their length.
 *
 * Rules are tried in turn; the first that matches decides.  A rule to redact
 * writes P60REDACTED, cut or filled with '-', over each group of its pattern; a
 * rule to break leaves the string as it is.  Rules for atrace look at strings
 * of the form B|123|payload only.  A string that no rule matches stays.
 *
 * Patterns come from a consumer and strings from producers: the cost of a match
 * and of a packet is bounded, and a string that would exceed the bounds is
 * redacted as a whole.  Pure, but for the thread's CPU clock, the bound for a
 * packet.
 */
#ifndef SERVICE_FILTER_STRING_FILTER_H
#define SERVICE_FILTER_STRING_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

#define STRING_RULES_MAX   256u
#define STRING_PATTERN_MAX 4096u /* bytes of one pattern */

struct Perfetto__Protos__TraceConfig__TraceFilter__StringFilterRule;
struct string_filter;

struct string_filter *string_filter_new(void) MUST_CHECK;
void string_filter_free(struct string_filter *f);

/*
 * Adds a rule behind the others, or in the place of the one with its name;
 * copies it.  -1 with a sentence in err.
 */
int string_filter_add(struct string_filter *f,
    const struct Perfetto__Protos__TraceConfig__TraceFilter__StringFilterRule
	*rule, char *err, size_t err_size) MUST_CHECK;

/* Begins a packet of so many bytes, with a new bound for all its strings. */
void string_filter_begin(struct string_filter *f, size_t packet);
/*
 * Redacts a string by the rules for fields of this semantic type (0: none was
 * given), or, from BYTECODE_TYPES on, by all rules: no rule can name that type.
 */
void string_filter_apply(struct string_filter *f, uint8_t *string, size_t len,
    uint32_t type);

#endif /* SERVICE_FILTER_STRING_FILTER_H */
