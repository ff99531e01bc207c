/*
 * rpc_host: the service side of IPCFrame (reference wire-format.md, "IPC ports
 * and frames"; behaviour.md, "Sockets and frames").
 *
 * One rpc_conn per accepted stream.  It binds names to the services it was
 * given, dispatches methods by id with their arguments in place, and sends
 * replies, at once or later, one or many.  It answers unknown services,
 * methods, ids and frames itself.  It knows nothing of what the methods do.
 */
#ifndef TRANSPORT_RPC_RPC_HOST_H
#define TRANSPORT_RPC_RPC_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/base/log.h"
#include "transport/stream/stream.h"

struct loop;
struct pb_writer;
struct rpc_conn;

/*
 * A call in progress.  Copy it to reply later, any time until the service's
 * gone(); it holds no memory.
 */
struct rpc_call {
	struct rpc_conn *conn;
	uint64_t request_id;
	bool wants_reply; /* false: drop_reply; replies are then no-ops */
};

enum rpc_verdict {
	RPC_OK,       /* the method replied, or will reply */
	RPC_REJECT,   /* rpc_host sends InvokeMethodReply{success:false} */
	RPC_BAD_ARGS, /* the same, and counts it as unparsable */
	/*
	 * Not now (back-pressure): the connection is paused, and the method is
	 * called again after rpc_conn_resume().  It must have had no effect.
	 */
	RPC_AGAIN,
};

/*
 * args is borrowed for the duration of the call.  ctx was returned by bind().
 * When the method closes the connection its verdict is ignored.
 */
typedef enum rpc_verdict (*rpc_method_fn)(void *ctx, struct rpc_call call,
    const uint8_t *args, size_t len);

struct rpc_method {
	const char *name;
	rpc_method_fn fn;
};

struct rpc_service {
	const char *name;       /* "ProducerPort" */
	const char *alias;      /* "producer_port" or NULL */
	const struct rpc_method *methods; /* ids are index + 1 */
	size_t n_methods;
	/*
	 * A client bound this service (once a connection: binding a second
	 * service on a connection is refused).  Returns the ctx for its
	 * methods, NULL to refuse.
	 */
	void *(*bind)(struct rpc_conn *c, void *arg);
	/*
	 * The connection ended, in whatever way; the callee frees ctx, and uses
	 * the rpc_conn no more once this returns.
	 */
	void (*gone)(void *ctx);
	/* Output fell to the low-water mark.  May be NULL. */
	void (*drained)(void *ctx);
	void *arg;
};

/* Claims of SetPeerIdentity; labels only.  Empty strings: not given. */
struct rpc_claimed_identity {
	bool present;
	int32_t pid;
	int32_t uid;
	char machine_id_hint[96];
	char machine_name[256]; /* a longer one is cut */
	char clocks[96]; /* this_machine_clocks() of a producer itself */
};

/*
 * Counters shared by all connections of a daemon, used on one thread.
 * Zero-initialised is ready to use; outlives the connections.
 */
struct rpc_stats {
	uint64_t connections;
	uint64_t frames_in;
	uint64_t frames_too_big;
	uint64_t frames_malformed;   /* answered with RequestError */
	uint64_t unknown_service;
	uint64_t unknown_method;
	uint64_t bad_args;
	uint64_t closed_slow;
	uint64_t closed_budget;    /* memory of its peer, or of all, used up */
	uint64_t closed_handshake; /* not done in time */
	uint64_t closed_unbound;
	uint64_t closed_idle;
	uint64_t closed_stalled;
	uint64_t failed_handshake;
	uint64_t refused_admit;
	uint64_t refused_bind;

	/* rpc_host's own: the live connections, and the limit of their log. */
	struct rpc_conn *conns;
	size_t n_conns; /* for reading */
	struct log_limit log_limit;
};

/*
 * Decides what a peer may do.  To refuse, a callback writes a sentence to why
 * (RPC_WHY_MAX bytes), which goes to the log and, in a RequestError of request
 * 0 (which Perfetto's clients ignore), to the peer.
 */
#define RPC_WHY_MAX 320
struct rpc_guard {
	/*
	 * The peer is known now: inside rpc_conn_new(), or over TLS after the
	 * handshake.  False: the connection is refused and ends (rpc_conn_new()
	 * still returns it; gone() comes on a later turn).
	 */
	bool (*admit)(struct rpc_conn *c, const struct peer *p, void *arg,
	    char *why);
	/* The peer wants to bind this service. */
	bool (*may_bind)(struct rpc_conn *c, const struct rpc_service *s,
	    void *arg, char *why);
	/*
	 * The connection ended, in whatever way, admitted or not; the last
	 * call about c, after its service's gone().  NULL is fine, here and in
	 * the other members.
	 */
	void (*gone)(struct rpc_conn *c, void *arg);
	void *arg;
};

struct rpc_conn_setup {
	/*
	 * The services that the door offers: n_services pointers, borrowed for
	 * the life of the connection.
	 */
	const struct rpc_service *const *services;
	size_t n_services;
	struct rpc_stats *stats;
	const struct rpc_guard *guard;     /* borrowed; NULL: all is allowed */
	const struct stream_setup *stream; /* NULL: plain */
};

/*
 * Takes ownership of fd, and of the tls and child in the stream's setup, on
 * success.  The connection is freed by itself after gone().  NULL: no memory or
 * no descriptor.
 */
struct rpc_conn *rpc_conn_new(struct loop *l, int fd,
    const struct rpc_conn_setup *setup) MUST_CHECK;

/* A pointer for the guard's own use; NULL at first. */
void rpc_conn_set_mark(struct rpc_conn *c, void *mark);
void *rpc_conn_mark(const struct rpc_conn *c);
struct stream *rpc_conn_stream(struct rpc_conn *c);

/*
 * Tells a peer that was accepted why it is not served, as far as its socket
 * takes it at once (not over TLS, where nothing was said yet), and closes fd.
 */
void rpc_refuse(int fd, const char *why);

/* Limits after which a connection is closed; 0: never. */
struct rpc_timeouts {
	uint64_t handshake_ms; /* over TLS, for the handshake */
	uint64_t bind_ms;      /* until the peer binds a service */
	uint64_t idle_ms;      /* without a byte from the peer, unless paused */
	uint64_t stalled_ms;   /* with output of which the peer takes none */
};
/* To be called about once a second. */
void rpc_conns_sweep(struct rpc_stats *stats, const struct rpc_timeouts *t,
    uint64_t now_ms);

/* Calls rpc_conn_close() for each connection that fn() is true for. */
void rpc_conns_close_those(struct rpc_stats *stats,
    bool (*fn)(struct rpc_conn *c, void *arg), void *arg, const char *reason);

/*
 * Ends the connection (calls gone() on a later turn).  reason, for the log: the
 * peer is disconnected, and output queued for it is dropped.  NULL: an orderly
 * end; queued replies are still sent, for at most a second.
 */
void rpc_conn_close(struct rpc_conn *c, const char *reason);

/*
 * As rpc_conn_close() with NULL, but first sends why to the peer (in a
 * RequestError of request 0) and logs it.
 */
void rpc_conn_refuse(struct rpc_conn *c, const char *why);

const struct peer *rpc_conn_peer(const struct rpc_conn *c);
const struct rpc_claimed_identity *rpc_conn_identity(const struct rpc_conn *c);

/*
 * A reply.  msg is the encoded reply message (copied).  more: further replies
 * follow with the same call.  fd >= 0 travels with it (UNIX only; ignored
 * elsewhere) and stays the caller's.  A frame over FRAME_MAX_BYTES is a bug of
 * the caller: the connection is closed and an error logged.
 */
void rpc_reply(struct rpc_call call, const void *msg, size_t len, bool more,
    int fd);
/*
 * The last reply of a call, with the message in w; if w ran out of memory,
 * rpc_reject(), as half a message might mean something else.
 */
void rpc_reply_written(struct rpc_call call, const struct pb_writer *w);
/* InvokeMethodReply{success:false}. */
void rpc_reject(struct rpc_call call);

/*
 * The descriptor that came with the call, or -1.  The caller owns it.  Inside
 * the method only: a descriptor that the method does not take is closed (but
 * kept on RPC_AGAIN).
 */
int rpc_take_fd(struct rpc_call call);

/* Stop taking frames / go on.  RPC_AGAIN pauses by itself. */
void rpc_conn_pause(struct rpc_conn *c);
void rpc_conn_resume(struct rpc_conn *c);

size_t rpc_conn_queued(const struct rpc_conn *c);
void rpc_conn_set_limits(struct rpc_conn *c, size_t hard, size_t low);

/* For shutdown: an orderly end of all live connections of these stats. */
void rpc_conns_close_all(struct rpc_stats *stats);

#endif /* TRANSPORT_RPC_RPC_HOST_H */
