/*
 * session_wire: a consumer's wire that blocks: calls wait in poll() until what
 * they ask for is there, or a time-out.
 */
#ifndef CLIENT_TRACING_SESSION_SESSION_WIRE_H
#define CLIENT_TRACING_SESSION_SESSION_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/tracing/consumer/consumer.h"
#include "client/tracing/port/port_wire.h"
#include "transport/base/compiler.h"

/* Calls without an answer; further ones fail. */
#define SESSION_WIRE_CALLS_MAX 16

struct session_wire {
	struct consumer *consumer; /* owned */
	struct port_service service;
	struct port_wire port;
	bool up;     /* the service has answered */
	bool failed; /* consumer_wire_failed() is due */
	char down[300]; /* why there is no connection; "": there is one */
	struct {
		uint64_t request;
		struct consumer_call *call;
	} calls[SESSION_WIRE_CALLS_MAX];
	size_t n_calls;
};

/*
 * Connects; w stays where it is.  false with a sentence in down; done follows in
 * any case.
 */
bool session_wire_connect(struct session_wire *w, const char *address,
    unsigned timeout_ms, const struct consumer_ops *ops, void *arg) MUST_CHECK;
void session_wire_done(struct session_wire *w);

/*
 * Sends, and waits until something came, which the consumer is told of; until_ms
 * is a time of session_wire_now().  false: nothing came by then, or the
 * connection is lost (w->down).
 */
bool session_wire_turn(struct session_wire *w, uint64_t until_ms) MUST_CHECK;
/* Ends the connection; why: a sentence. */
void session_wire_leave(struct session_wire *w, const char *why);
/* CLOCK_MONOTONIC, in milliseconds. */
uint64_t session_wire_now(void);

#endif /* CLIENT_TRACING_SESSION_SESSION_WIRE_H */
