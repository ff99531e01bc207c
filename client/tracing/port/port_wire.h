/*
 * port_wire: calls of one service's methods (ProducerPort, ConsumerPort) over
 * one socket, without waiting: what is to be sent is queued, what came is cut
 * into frames.
 *
 * Belongs to one thread, which watches the socket.  Knows no method by itself:
 * its owner brings a table of them.
 */
#ifndef CLIENT_TRACING_PORT_PORT_WIRE_H
#define CLIENT_TRACING_PORT_PORT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/wire/pb_writer.h"

/* Methods of a service. */
#define PORT_WIRE_METHODS_MAX 16
struct port_service {
	const char *name;
	const char *refusal; /* sentence: the service is not offered there */
	const char *methods[PORT_WIRE_METHODS_MAX]; /* NULL: none */
};

/* Answers of the service. */
enum port_event_kind {
	PORT_NOTHING,  /* no whole frame is there */
	PORT_BOUND,    /* the service has answered; methods are known */
	PORT_REPLY,    /* to a call */
	PORT_BROKEN,   /* what came cannot be read: why is a sentence */
};
struct port_event {
	enum port_event_kind kind;
	unsigned method; /* index into the table */
	bool ok;
	bool more; /* further replies to the same call follow */
	uint64_t request; /* as port_wire_call() returned */
	const uint8_t *data; /* until the next call */
	size_t len;
	const char *why; /* until port_wire_done() */
};

struct port_wire {
	const struct port_service *offer; /* borrowed */
	int fd; /* owned; -1: none */
	struct pb_writer out;
	size_t sent; /* bytes of out that are gone */
	uint8_t *in;
	size_t in_len, in_cap, in_used;
	int in_fd; /* a descriptor that came, not taken yet; -1: none */
	uint64_t last_request;
	uint32_t service;
	uint32_t methods[PORT_WIRE_METHODS_MAX]; /* 0: not offered */
	/* Calls whose replies are to come, by request id. */
	struct port_call {
		uint64_t request;
		unsigned method;
	} *calls;
	size_t n_calls, room_calls;
	char said[256]; /* of the service, in a RequestError */
};

/* Takes fd, non-blocking.  offer outlives w. */
void port_wire_init(struct port_wire *w, int fd,
    const struct port_service *offer);
void port_wire_done(struct port_wire *w);

/* Asks for the service; own: SetPeerIdentity, encoded, or NULL. */
void port_wire_bind(struct port_wire *w, const struct pb_writer *own);

static inline bool
port_wire_offers(const struct port_wire *w, unsigned m)
{
	return w->methods[m] != 0;
}
/*
 * Calls a method that the service offers, with encoded arguments; wants_reply:
 * PORT_REPLY follows.  Returns the id of the call's replies; 0: not offered, or
 * longer than a frame.
 */
uint64_t port_wire_call(struct port_wire *w, unsigned m, const void *args,
    size_t len, bool wants_reply);
/*
 * Calls a method at once, with a descriptor; nothing may be queued.  false: the
 * connection is gone.
 */
bool port_wire_call_with_fd(struct port_wire *w, unsigned m,
    const void *args, size_t len, int fd) MUST_CHECK;

/* Bytes that wait to be sent. */
static inline size_t
port_wire_queued(const struct port_wire *w)
{
	return w->out.len - w->sent;
}
/* Sends what the socket takes.  false: the connection is gone. */
bool port_wire_send(struct port_wire *w) MUST_CHECK;
/* Reads once.  false: the connection is gone. */
bool port_wire_receive(struct port_wire *w) MUST_CHECK;
/* The next of what came. */
void port_wire_next(struct port_wire *w, struct port_event *e);
/* The descriptor that came last; the caller owns it.  -1: none. */
int port_wire_take_fd(struct port_wire *w);

#endif /* CLIENT_TRACING_PORT_PORT_WIRE_H */
