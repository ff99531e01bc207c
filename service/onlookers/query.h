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
 * A walk over the service's state: its producers, the data sources of all of
 * them by name, as Perfetto's service lists them, and the sessions that who
 * (copied) may know of, though the numbers count all.  It may rest between two
 * parts for any time: what goes meanwhile is left out, and what comes may be.
 * NULL: no memory.
 */
struct query *query_new(struct service *s, const struct principal *who,
    bool sessions_only) MUST_CHECK;
/*
 * TracingServiceState in parts: each part is a QueryServiceStateResponse that
 * is valid by itself, and all of them concatenated are the whole
 * (behaviour.md).  The part stays below max, but for an entry that is larger by
 * itself: that one comes alone, unless no frame could carry it.  Valid until the
 * next call.  *last is set on the final one.  NULL: no memory.
 */
const struct pb_writer *query_next(struct query *q, size_t max, bool *last)
    MUST_CHECK;
/* NULL is fine. */
void query_free(struct query *q);

void query_capabilities(struct pb_writer *w);

extern const struct session_observer query_observer;

#endif /* SERVICE_ONLOOKERS_QUERY_H */
