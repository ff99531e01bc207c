/*
 * trigger_history: when each trigger was hit over the last day, for
 * max_per_24_h, which counts a name over all sessions.
 *
 * Pure: time comes from the caller.  Bounded in names and in hits of a name:
 * the name that was hit longest ago gives way, and so does the oldest hit.
 * trigger.c therefore takes a larger max_per_24_h for TRIGGER_HISTORY_HITS_MAX.
 */
#ifndef SERVICE_SESSION_TRIGGER_HISTORY_H
#define SERVICE_SESSION_TRIGGER_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

#define TRIGGER_HISTORY_NAMES_MAX 256u
#define TRIGGER_HISTORY_HITS_MAX  4096u
#define TRIGGER_HISTORY_DAY_NS    (24ull * 3600 * 1000000000)

struct trigger_history;

struct trigger_history *trigger_history_new(void) MUST_CHECK;
void trigger_history_free(struct trigger_history *h);

/*
 * now: nanoseconds of a clock that does not go back.  A hit that finds no
 * memory is forgotten.
 */
void trigger_history_add(struct trigger_history *h, const char *name,
    uint64_t now);
/* Hits of the name since a day before now, that moment included. */
size_t trigger_history_count(struct trigger_history *h, const char *name,
    uint64_t now);

#endif /* SERVICE_SESSION_TRIGGER_HISTORY_H */
