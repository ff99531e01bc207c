/*
 * query: the answers of QueryServiceState and QueryCapabilities.
 */
#ifndef SERVICE_ONLOOKERS_QUERY_H
#define SERVICE_ONLOOKERS_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct pb_writer;
struct principal;
struct query;
struct service;
struct session_observer;

/*
 * A walk over the service's state: its producers, the data sources of all
 * producers by name, as Perfetto's service lists them, and the sessions that
 * who (copied) may see, though the totals count all sessions.  Any time may
 * pass between two parts: entries that go meanwhile are left out, and new ones
 * may be.  sessions_only: neither producers nor data sources.  NULL: no memory.
 */
struct query *query_new(struct service *s, const struct principal *who,
    bool sessions_only) MUST_CHECK;
/*
 * TracingServiceState in parts: each part is a QueryServiceStateResponse that
 * is valid by itself, and all of them concatenated are the whole
 * (behaviour.md).  A part stays below max bytes, but for an entry that is
 * larger by itself: that one comes alone, or is left out where no frame could
 * carry it.  Borrowed until the next call with q.  *last is set on the final
 * part.  NULL: no memory.
 */
const struct pb_writer *query_next(struct query *q, size_t max, bool *last)
    MUST_CHECK;
/* NULL is fine. */
void query_free(struct query *q);

/* Appends the fields of a QueryCapabilitiesResponse. */
void query_capabilities(struct pb_writer *w);

extern const struct session_observer query_observer;

#endif /* SERVICE_ONLOOKERS_QUERY_H */
