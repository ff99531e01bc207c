/*
 * recording_plan: a recording as it is to run: the trace config of its session,
 * made of the config file and of what the settings say.
 *
 * Reads the config file, and knows no session.
 */
#ifndef SERVICE_RECORDINGS_RECORDING_PLAN_H
#define SERVICE_RECORDINGS_RECORDING_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct recording_setting;
struct settings;

struct recording_plan {
	char *name;      /* owned, as the next */
	uint8_t *config; /* encoded TraceConfig */
	size_t config_len;
	bool is_flight;
	bool by_machine;
	uint64_t every_ms; /* 0: no cuts by time; so for the next three */
	uint64_t max_bytes;
	uint64_t keep_bytes;
	uint64_t keep_ms;
};

/*
 * Reads the config file of r, one of these settings, and checks it.  NULL with
 * the message for people in err (of a text: file, line, column; caret line).
 */
struct recording_plan *recording_plan_new(const struct recording_setting *r,
    const struct settings *of, char *err, size_t err_size) MUST_CHECK;
/* As above, for a config in memory, encoded.  NULL with a sentence. */
struct recording_plan *recording_plan_of(const struct recording_setting *r,
    const struct settings *of, const uint8_t *config, size_t len, char *err,
    size_t err_size) MUST_CHECK;
void recording_plan_free(struct recording_plan *p);

/* Whether a session of one plan does all that the other's would do. */
bool recording_plan_equal(const struct recording_plan *a,
    const struct recording_plan *b);

#endif /* SERVICE_RECORDINGS_RECORDING_PLAN_H */
