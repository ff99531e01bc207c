/*
 * producer_lookup: the producers of a service's state, by their ids.
 */
#ifndef CLIENT_LIBRARY_PRODUCER_LOOKUP_H
#define CLIENT_LIBRARY_PRODUCER_LOOKUP_H

#include <stddef.h>
#include <stdint.h>

struct Perfetto__Protos__TracingServiceState;
struct Perfetto__Protos__TracingServiceState__Producer;

/*
 * The producer with an id, borrowed from s, or NULL.  *at, 0 at first, is the
 * position of the last hit: collectors list data sources in the order of their
 * producers, so all lookups together cost no more than one walk.
 */
const struct Perfetto__Protos__TracingServiceState__Producer *
producer_lookup(const struct Perfetto__Protos__TracingServiceState *s,
    int32_t id, size_t *at);

#endif /* CLIENT_LIBRARY_PRODUCER_LOOKUP_H */
