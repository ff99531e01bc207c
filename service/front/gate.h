/*
 * gate: admits every connection, accepted or dialled: applies the limits of its
 * peer and of all connections, the peer's roles (service/access/trust.h), and
 * the sweep that ends silent connections.  Owns the counts.
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
struct pb_writer;
struct peer;
struct refusals;
struct tls_context;
struct trust;

struct gate_setup {
	struct loop *loop;
	struct io_pool *io; /* carries TCP and TLS; NULL: the loop itself */
	const struct settings *settings;
	const struct trust *trust;
	/* Indexed by enum listen_port. */
	const struct rpc_service *ports[3];
	/* Offered wherever the consumers' is; NULL: nowhere. */
	const struct rpc_service *control;
	const struct rpc_service *link; /* offered wherever LISTEN_RELAY is */
	struct heap_rest *heap; /* decides once a second on a heap_trim() */
	struct refusals *refusals; /* counts connections that are refused */
};

/* Borrows all of setup for its life. */
struct gate *gate_new(const struct gate_setup *setup) MUST_CHECK;
/* Frees the gate, after the last connection.  NULL is fine. */
void gate_free(struct gate *g);

/*
 * A door or dial: all connections through it are offered the same services.
 * Embedded by its owner.
 */
struct entrance {
	struct gate *gate;
	enum listen_port port;
	struct rpc_guard guard;
	const struct rpc_service *services[3];
	size_t n_services;
	struct tls_context *tls; /* borrowed; NULL: no handshake */
	bool plain_consumer; /* serves unauthenticated consumers */
	bool forwarded;      /* UNIX: the peer is a tunnel (peer.h) */
	bool urgent;         /* before the others: stream_set_urgent() */
	bool dialled;        /* need not bind within limits.bind_timeout_ms */
	/*
	 * bound: a connection was let into a service.  gone: one ended, let in
	 * or not.  May be NULL.
	 */
	void (*bound)(struct entrance *e);
	void (*gone)(struct entrance *e);
};

/*
 * Initialises an entrance; relays: one for producers serves relays, too.
 * Members behind n_services may be changed before the first connection.  e
 * outlives its connections.
 */
void entrance_init(struct entrance *e, struct gate *g, enum listen_port port,
    bool relays);

/*
 * Takes over a connected socket in any case: it is served, or told why not and
 * closed.  peer: the peer at its other end (copied); NULL: as the kernel says.
 * False: it was refused.
 */
bool gate_take(struct entrance *e, int fd, const struct peer *peer);

/*
 * The memory budget of all connections, to charge other memory for peers to;
 * borrowed, lives as long as g.
 */
struct budget *gate_memory(struct gate *g);

/* Appends fields of QueryMetricsReply about connections. */
void gate_report(const struct gate *g, struct pb_writer *w);

/* Ends all connections after sending their queued output. */
void gate_close_all(struct gate *g);

/* Ends connections whose certificate this context's CRL has revoked. */
void gate_close_revoked(struct gate *g, struct tls_context *tls);

#endif /* SERVICE_FRONT_GATE_H */
