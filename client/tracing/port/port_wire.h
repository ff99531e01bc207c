/*
 * port_wire: calls of a ProducerPort over one socket, without waiting: what is
 * to be sent is queued, what came is cut into frames.
 *
 * Belongs to the library's thread, which watches the socket.  Knows no data
 * sources and no memory.
 */
#ifndef CLIENT_TRACING_PORT_PORT_WIRE_H
#define CLIENT_TRACING_PORT_PORT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/wire/pb_writer.h"

/* Methods of the port; their names are in port_wire.c, in this order. */
enum port_method {
	PORT_INITIALIZE,
	PORT_REGISTER_SOURCE,
	PORT_UPDATE_SOURCE,
	PORT_COMMIT,
	PORT_REGISTER_WRITER,
	PORT_UNREGISTER_WRITER,
	PORT_STARTED,
	PORT_STOPPED,
	PORT_TRIGGER,
	PORT_COMMANDS,
	PORT_SYNC,
	PORT_INIT_MACHINE, /* ours: where the service offers it */
	PORT_SYNC_CLOCK,   /* ours */
	PORT_METHODS,
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
	enum port_method method;
	bool ok;
	bool more; /* further replies to the same call follow */
	const uint8_t *data; /* until the next call */
	size_t len;
	const char *why;
};

struct port_wire {
	int fd; /* owned; -1: none */
	struct pb_writer out;
	size_t sent; /* bytes of out that are gone */
	uint8_t *in;
	size_t in_len, in_cap, in_used;
	int in_fd; /* a descriptor that came, not taken yet; -1: none */
	uint64_t last_request;
	uint32_t service;
	uint32_t methods[PORT_METHODS]; /* 0: not offered */
	/* Calls whose replies are to come, by request id. */
	struct port_call {
		uint64_t request;
		enum port_method method;
	} *calls;
	size_t n_calls, room_calls;
};

/* Takes fd, non-blocking. */
void port_wire_init(struct port_wire *w, int fd);
void port_wire_done(struct port_wire *w);

/* Asks for the service; own: SetPeerIdentity, encoded, or NULL. */
void port_wire_bind(struct port_wire *w, const struct pb_writer *own);

static inline bool
port_wire_offers(const struct port_wire *w, enum port_method m)
{
	return w->methods[m] != 0;
}
/* Calls a method with encoded arguments; wants_reply: PORT_REPLY follows. */
void port_wire_call(struct port_wire *w, enum port_method m,
    const void *args, size_t len, bool wants_reply);
/*
 * Calls a method at once, with a descriptor; nothing may be queued.  false: the
 * connection is gone.
 */
bool port_wire_call_with_fd(struct port_wire *w, enum port_method m,
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
