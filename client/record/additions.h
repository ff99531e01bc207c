/*
 * additions: fields that flags add to a trace config: attributes of the trace,
 * and the ids that statsd passes for the traces that it starts.  Pure.
 */
#ifndef CLIENT_RECORD_ADDITIONS_H
#define CLIENT_RECORD_ADDITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct pb_writer;

/* Attributes on one command line. */
#define RECORD_ATTRIBUTES_MAX 256u

enum record_statsd {
	STATSD_ALERT_ID,
	STATSD_CONFIG_ID,
	STATSD_CONFIG_UID,
	STATSD_SUBSCRIPTION_ID,
	N_STATSD,
};

struct record_additions {
	/* KEY=VALUE, or KEY for an empty value.  Borrowed. */
	const char *attributes[RECORD_ATTRIBUTES_MAX];
	size_t n_attributes;
	int64_t statsd[N_STATSD];
	bool has_statsd[N_STATSD];
};

/*
 * Adds an attribute; text is borrowed.  -1 with a sentence in err: no key, not
 * UTF-8, or more than RECORD_ATTRIBUTES_MAX.
 */
int record_additions_attribute(struct record_additions *a, const char *text,
    char *err, size_t err_size) MUST_CHECK;
/*
 * Sets a statsd number from a flag's value; flag is named in the error.  -1
 * with a sentence in err: text is no number that fits.
 */
int record_additions_statsd(struct record_additions *a,
    enum record_statsd which, const char *flag, const char *text, char *err,
    size_t err_size) MUST_CHECK;

/* Whether there is anything to add. */
bool record_additions_any(const struct record_additions *a);

/*
 * Appends the encoded config to out, with the additions.  A value in the
 * canonical form of a 64-bit integer becomes an integer; any other a string.
 * An attribute replaces the config's attribute of the same key; statsd numbers
 * replace all of the config's.  -1: no memory, or the config is malformed.
 */
int record_additions_put(const struct record_additions *a,
    const uint8_t *config, size_t len, struct pb_writer *out) MUST_CHECK;

#endif /* CLIENT_RECORD_ADDITIONS_H */
