/*
 * refusals: counts what peers were refused, by the setting that did not allow
 * it.  Every sentence of a refusal names its setting, so the sentence is what is
 * counted: it cannot say one thing and the count another.
 */
#ifndef SERVICE_LIMITS_REFUSALS_H
#define SERVICE_LIMITS_REFUSALS_H

#include <stddef.h>
#include <stdint.h>

/* Settings that are told apart, and one more: any other reason. */
#define REFUSALS 32u

/* All zero: none. */
struct refusals {
	uint64_t n[REFUSALS];
	uint64_t last_ms[REFUSALS]; /* loop_now_ms() of the last one; 0: none */
};

/*
 * Counts a refusal.  Where the sentence names several settings the last one
 * counts, as names of peers stand before it.
 */
void refusals_count(struct refusals *r, const char *sentence);
/*
 * The name of the setting at a place of n, "other" for the last one; NULL: the
 * place is not used.
 */
const char *refusals_name(size_t i);

#endif /* SERVICE_LIMITS_REFUSALS_H */
