#include <stdio.h>
#include <string.h>

#include "client/archiver/retention/retention.h"
#include "transport/base/human_numbers.h"

#define DAY_MS 86400000u

/* Escaped by the log; a name of any length leaves room for the numbers. */
#define NAME_MAX_SHOWN 120

/* "14.0 days" beyond two of them. */
static char *
age_text(char out[HUMAN_TEXT_MAX], uint64_t ms)
{
	if (ms < 2 * (uint64_t)DAY_MS)
		return human_ms(out, ms);
	snprintf(out, HUMAN_TEXT_MAX, "%.1f days", (double)ms / DAY_MS);
	return out;
}

static const char *
kind_of(enum retention_scope scope)
{
	switch (scope) {
	case RETENTION_RECORDING:
		return "recording ";
	case RETENTION_MACHINE:
		return "machine ";
	case RETENTION_ALL:
		return "the archive";
	case RETENTION_DISK:
		return "the disk";
	}
	return "";
}

char *
retention_reason_text(char out[RETENTION_TEXT_MAX],
    const struct retention_reason *why)
{
	char limit[HUMAN_TEXT_MAX], value[HUMAN_TEXT_MAX];
	char who[NAME_MAX_SHOWN + 16];

	snprintf(who, sizeof(who), "%s%.*s", kind_of(why->scope),
	    NAME_MAX_SHOWN, why->name);
	if (why->by_age)
		snprintf(out, RETENTION_TEXT_MAX, "it is %s old, and %s keeps "
		    "%s", age_text(value, why->value), who,
		    age_text(limit, why->limit));
	else if (why->scope == RETENTION_DISK)
		snprintf(out, RETENTION_TEXT_MAX, "%s has %s free, and is to "
		    "have %s", who, human_bytes(value, why->value),
		    human_bytes(limit, why->limit));
	else
		snprintf(out, RETENTION_TEXT_MAX, "%s has %s of segments, and "
		    "keeps %s", who, human_bytes(value, why->value),
		    human_bytes(limit, why->limit));
	return out;
}

static void
add_held(char *out, uint64_t n, uint64_t bytes, const char *what)
{
	char size[HUMAN_TEXT_MAX], count[HUMAN_TEXT_MAX];
	size_t len = strlen(out);

	if (n == 0)
		return;
	snprintf(out + len, RETENTION_TEXT_MAX - len, "; %s %s segment%s (%s) "
	    "%s in the way", human_count(count, n), what, human_s(n),
	    human_bytes(size, bytes), n == 1 ? "is" : "are");
}

char *
retention_excess_text(char out[RETENTION_TEXT_MAX],
    const struct retention_excess *e)
{
	char limit[HUMAN_TEXT_MAX], value[HUMAN_TEXT_MAX];

	if (e->over.by_age)
		snprintf(out, RETENTION_TEXT_MAX, "%s%.*s keeps %s, but the "
		    "oldest segment is %s old", kind_of(e->over.scope),
		    NAME_MAX_SHOWN, e->over.name,
		    age_text(limit, e->over.limit),
		    age_text(value, e->over.value));
	else
		retention_reason_text(out, &e->over);
	add_held(out, e->n_pinned, e->pinned_bytes, "pinned");
	add_held(out, e->n_waiting, e->waiting_bytes, "not yet uploaded");
	return out;
}
