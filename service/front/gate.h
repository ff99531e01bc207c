/*
 * gate: what every connection passes, whichever way it comes: the limits of
 * its peer and of all, what it may be (service/access/trust.h), and the sweep
 * for those that stay quiet.  It owns the counts; listeners and dials lead
 * here.
 */
#ifndef SERVICE_FRONT_GATE_H
#define SERVICE_FRONT_GATE_H

#include <stdbool.h>
#include <stddef.h>

#include "service/settings/settings.h"
#include "transport/base/compiler.h"
#include "transport/rpc/rpc_host.h"

struct budget;
struct gate;
struct heap_rest;
struct io_pool;
struct peer;
struct tls_context;
struct trust;

struct gate_setup {
	struct loop *loop;
	struct io_pool *io; /* carries TCP and TLS; NULL: the loop itself */
	const struct settings *settings;
	const struct trust *trust;
	/* Indexed by enum listen_port. */
	const struct rpc_service *ports[3];
	/* Stands where consumers' does; NULL: nowhere. */
	const struct rpc_service *control;
	const struct rpc_service *link; /* wherever LISTEN_RELAY is */
	struct heap_rest *heap; /* looked at once a second */
};

/* Borrows all of setup for its life. */
struct gate *gate_new(const struct gate_setup *setup) MUST_CHECK;
/* Frees the gate, after the last connection.  NULL is fine. */
void gate_free(struct gate *g);

/* A way in: who comes through it is offered the same.  Embedded by its owner. */
struct entrance {
	struct gate *gate;
	struct rpc_guard guard;
	const struct rpc_service *services[3];
	size_t n_services;
	struct tls_context *tls; /* borrowed; NULL: no handshake */
	bool plain_consumer; /* serves consumers whom nobody vouches for */
	bool forwarded;      /* UNIX: the other end is a tunnel's */
	bool urgent;         /* before the others: stream_set_urgent() */
	bool dialled;        /* need not bind within limits.bind_timeout_ms */
	/*
	 * A connection through it was let into a service; it ended (let in or
	 * not).  May be NULL.
	 */
	void (*bound)(struct entrance *e);
	void (*gone)(struct entrance *e);
};

/*
 * Initialises an entrance; relays: it serves relays too, where it is the
 * producers'.  The rest may be changed before the first connection.  e outlives
 * its connections.
 */
void entrance_init(struct entrance *e, struct gate *g, enum listen_port port,
    bool relays);

/*
 * A connected socket, taken whatever becomes of it: it is served, or told why
 * not.  peer: who is there, instead of what the kernel says; NULL: as the
 * kernel says.  Copied.  False: it was refused.
 */
bool gate_take(struct entrance *e, int fd, const struct peer *peer);

/* Memory of all connections together, for what else is kept for peers. */
struct budget *gate_memory(struct gate *g);

/* Ends all connections, flushing what is queued. */
void gate_close_all(struct gate *g);

/* Ends those whose certificate this context's CRL has revoked. */
void gate_close_revoked(struct gate *g, struct tls_context *tls);

#endif /* SERVICE_FRONT_GATE_H */
