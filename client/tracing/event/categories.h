/*
 * categories: those that the program's files define, and which of them a
 * session has enabled.
 *
 * A lock of its own guards the list; functions may be called from any thread.
 */
#ifndef CLIENT_TRACING_EVENT_CATEGORIES_H
#define CLIENT_TRACING_EVENT_CATEGORIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tributary/track_event.h>

#include "transport/base/compiler.h"

/*
 * Whether a session with this encoded TrackEventConfig wants the category: what
 * matches exactly goes before what matches a pattern ("net*"), and among those
 * enabled categories, enabled tags, disabled categories, disabled tags (without
 * any: "slow" and "debug").  What nothing matches is enabled.  Order and
 * defaults are those of Perfetto's library.  Pure.
 */
bool category_is_wanted(const struct tributary_category *c,
    const uint8_t *config, size_t len);

/*
 * The instance in that slot has started; config is borrowed until
 * categories_stop().  Categories added meanwhile are looked at, too.
 */
void categories_start(unsigned slot, const uint8_t *config, size_t len);
void categories_stop(unsigned slot);

/*
 * TrackEventDescriptor as a field of DataSourceDescriptor; malloc()ed.  NULL:
 * no memory.
 */
uint8_t *categories_descriptor(size_t *len) MUST_CHECK;
/* Whether the program has any. */
bool categories_exist(void);

/* All bits of all categories are replaced, and all instances forgotten. */
void categories_after_fork(uint64_t enabled);
/* Clears these bits in all categories. */
void categories_forget(uint64_t bits);

/*
 * changed: categories were added.  removed: some are gone, and so are their
 * names, and those of events.  Called without the lock.
 */
void categories_set_hooks(void (*changed)(void), void (*removed)(void));

#endif /* CLIENT_TRACING_EVENT_CATEGORIES_H */
