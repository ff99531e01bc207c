/*
 * observer: one consumer's ObserveEvents stream: what it asked for, and the
 * events that go to it.  A new question ends the old stream; asking for
 * nothing ends it (behaviour.md, "Consumer port").
 */
#ifndef SERVICE_PORT_OBSERVER_H
#define SERVICE_PORT_OBSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/compiler.h"
#include "transport/rpc_host.h"

struct clone_trigger;

/* Zero-initialised: nothing is observed. */
struct observer {
	struct rpc_call call; /* conn NULL: no stream */
	uint32_t mask;        /* enum observable */
};

/* The mask of an ObserveEventsRequest; false when it does not parse. */
bool observer_parse(const uint8_t *args, size_t len, uint32_t *mask) MUST_CHECK;
void observer_set(struct observer *o, struct rpc_call call, uint32_t mask);

void observer_instance(struct observer *o, const char *producer,
    const char *data_source, bool started);
void observer_all_started(struct observer *o);
void observer_clone_trigger(struct observer *o, uint64_t session,
    const struct clone_trigger *t);

#endif /* SERVICE_PORT_OBSERVER_H */
