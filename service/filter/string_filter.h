/*
 * string_filter: the string rules of a TraceFilter: what they find in a string
 * is written over, its length stays.
 *
 * Rules are asked in turn; the first that fits decides.  A rule to redact
 * writes P60REDACTED, cut or filled with '-', over each group of its pattern; a
 * rule to break leaves the string as it is.  Rules for atrace look at strings
 * of the form B|123|payload only.  A string without a rule that fits stays.
 *
 * Patterns come from a consumer and strings from producers: what a match may
 * cost is bounded, and a string for which that is not enough is written over as
 * a whole.  Pure, but for the thread's CPU clock that bounds a packet's strings.
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
 * Adds a rule behind the others, or in the place of the one with its name.  -1
 * with a sentence.
 */
int string_filter_add(struct string_filter *f,
    const struct Perfetto__Protos__TraceConfig__TraceFilter__StringFilterRule
	*rule, char *err, size_t err_size) MUST_CHECK;

/* A packet of so many bytes begins: what its strings may cost counts anew. */
void string_filter_begin(struct string_filter *f, size_t packet);
/*
 * Applies the rules for fields of this semantic type (0: none was given); where
 * the type is none that rules can name, all of them.
 */
void string_filter_apply(struct string_filter *f, uint8_t *string, size_t len,
    uint32_t type);

#endif /* SERVICE_FILTER_STRING_FILTER_H */
