/*
 * observer: one consumer's ObserveEvents stream: the kinds of events that it
 * asked for, and events that were not sent yet.  A new request ends the old
 * stream; a request for no events only ends it (behaviour.md, "Consumer port").
 */
#ifndef SERVICE_PORT_OBSERVER_H
#define SERVICE_PORT_OBSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/wire/pb_writer.h"

struct clone_trigger;

/*
 * Events wait in pending until they are sent; a few share a reply.  A consumer
 * that reads too slowly lets pending grow up to max_pending; then all of it is
 * sent, and the connection is closed like any that does not take its output
 * (rpc_host.h).
 */
struct observer {
	struct loop *loop;
	struct rpc_conn *conn;
	size_t max_pending;       /* bytes */
	struct rpc_call call;     /* conn NULL: no stream */
	uint32_t mask;            /* enum observable */
	struct pb_writer pending; /* struct pending_event and its fields */
	size_t sent;              /* bytes of pending that were sent */
	bool scheduled;
	struct loop_call send_call;
};

void observer_init(struct observer *o, struct loop *l, struct rpc_conn *conn,
    size_t max_pending);
/* Frees pending; the stream ends without a reply. */
void observer_done(struct observer *o);

/* The mask of an ObserveEventsRequest; false when it does not parse. */
bool observer_parse(const uint8_t *args, size_t len, uint32_t *mask) MUST_CHECK;
/*
 * Answers an ObserveEvents call: ends the old stream, and begins a new one with
 * this mask.  Pending events go to the new stream, as far as it asks for them.
 */
void observer_set(struct observer *o, struct rpc_call call, uint32_t mask);
/* Sends on: the connection's output has room again. */
void observer_drained(struct observer *o);

/* Queue an event, if the stream asks for its kind; strings are copied. */
void observer_instance(struct observer *o, const char *producer,
    const char *data_source, bool started);
void observer_all_started(struct observer *o);
void observer_clone_trigger(struct observer *o, uint64_t session,
    const struct clone_trigger *t);

#endif /* SERVICE_PORT_OBSERVER_H */
