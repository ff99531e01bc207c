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

#include "transport/base/compiler.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/wire/pb_writer.h"

struct clone_trigger;

/*
 * Events that were told and not sent yet wait in pending; a few share a reply.
 * One that reads too slowly keeps it back, up to a limit, and is then closed
 * like any peer that does not take its output (rpc_host.h).
 */
struct observer {
	struct loop *loop;
	struct rpc_conn *conn;
	size_t max_pending;       /* bytes */
	struct rpc_call call;     /* conn NULL: no stream */
	uint32_t mask;            /* enum observable */
	struct pb_writer pending; /* struct pending_event and its fields */
	size_t sent;              /* bytes of it that are done with */
	bool scheduled;
	struct loop_call send_call;
};

void observer_init(struct observer *o, struct loop *l, struct rpc_conn *conn,
    size_t max_pending);
/* Sends nothing any more. */
void observer_done(struct observer *o);

/* The mask of an ObserveEventsRequest; false when it does not parse. */
bool observer_parse(const uint8_t *args, size_t len, uint32_t *mask) MUST_CHECK;
/* Events that wait go to the new stream, as far as it asks for them. */
void observer_set(struct observer *o, struct rpc_call call, uint32_t mask);
/* Output of the connection has room again. */
void observer_drained(struct observer *o);

void observer_instance(struct observer *o, const char *producer,
    const char *data_source, bool started);
void observer_all_started(struct observer *o);
void observer_clone_trigger(struct observer *o, uint64_t session,
    const struct clone_trigger *t);

#endif /* SERVICE_PORT_OBSERVER_H */
