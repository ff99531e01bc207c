/*
 * query: the answers of QueryServiceState and QueryCapabilities.
 */
#ifndef SERVICE_SESSION_QUERY_H
#define SERVICE_SESSION_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_writer;
struct principal;
struct service;

/*
 * TracingServiceState in parts: each part is a QueryServiceStateResponse that
 * is valid by itself, and all of them concatenated are the whole
 * (behaviour.md).  fn is called with each, in order; part.len stays below max
 * unless one single entry is larger, which is then left out.  last is set on
 * the final one.  Of sessions it holds those that who may know of, but the
 * numbers count all.
 */
typedef void (*query_part_fn)(void *arg, const struct pb_writer *part,
    bool last);
void query_service_state(struct service *s, const struct principal *who,
    bool sessions_only, size_t max, query_part_fn fn, void *arg);

void query_capabilities(struct pb_writer *w);

#endif /* SERVICE_SESSION_QUERY_H */
