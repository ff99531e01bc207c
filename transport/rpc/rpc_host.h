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

/* A call in progress.  Copy it to reply later; it holds no memory. */
struct rpc_call {
	struct rpc_conn *conn;
	uint64_t request_id;
	bool wants_reply; /* false: drop_reply; replies are then no-ops */
};

enum rpc_verdict {
	RPC_OK,       /* taken; it replied or will reply */
	RPC_REJECT,   /* rpc_host sends InvokeMethodReply{success:false} */
	RPC_BAD_ARGS, /* the same, and counts it as unparsable */
	/*
	 * Not taken: the frame is shown again after rpc_conn_resume().  The
	 * connection is paused; the method must have had no effect.
	 */
	RPC_AGAIN,
};

/*
 * args is borrowed for the duration of the call.  ctx is what bind returned.
 * After the method closed the connection its verdict is ignored.
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
	/* The connection ended, in whatever way; ctx is the owner's to free. */
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
	char machine_name[256]; /* cut there */
	char clocks[96]; /* this_machine_clocks() of a producer itself */
};

/*
 * Counters shared by all connections of a daemon; plain adds.  Zero-initialise
 * it; it outlives its connections.
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
	uint64_t closed_budget;    /* its memory, or everybody's, is used up */
	uint64_t closed_handshake; /* not done in time */
	uint64_t closed_unbound;
	uint64_t closed_idle;
	uint64_t closed_stalled;
	uint64_t failed_handshake;
	uint64_t refused_admit;
	uint64_t refused_bind;

	/* rpc_host's own: the live connections, and what they may log. */
	struct rpc_conn *conns;
	size_t n_conns; /* for reading */
	struct log_limit log_limit;
};

/*
 * Decides what a peer may do.  Refusals are sentences in why (RPC_WHY_MAX
 * bytes): the peer is told with a RequestError (of request 0, which today's
 * clients ignore), and the log.
 */
#define RPC_WHY_MAX 320
struct rpc_guard {
	/*
	 * The peer is known now: at once, over TLS after the handshake.  False:
	 * the peer is told, and the connection ends (rpc_conn_new() still
	 * returns it; gone() comes on a later turn).
	 */
	bool (*admit)(struct rpc_conn *c, const struct peer *p, void *arg,
	    char *why);
	/* The peer wants to bind this service. */
	bool (*may_bind)(struct rpc_conn *c, const struct rpc_service *s,
	    void *arg, char *why);
	/*
	 * The connection ended, in whatever way, admitted or not; the last
	 * call about c, behind its service's gone().  May be NULL, as may all.
	 */
	void (*gone)(struct rpc_conn *c, void *arg);
	void *arg;
};

struct rpc_conn_setup {
	/*
	 * n pointers, borrowed for the life of the connection: what the door
	 * that it came through offers.
	 */
	const struct rpc_service *const *services;
	size_t n_services;
	struct rpc_stats *stats;
	const struct rpc_guard *guard;     /* borrowed; NULL: may all */
	const struct stream_setup *stream; /* NULL: plain */
};

/*
 * Takes ownership of fd, and of what the stream's setup hands over, on success.
 * Memory of the connection goes away by itself after gone().
 */
struct rpc_conn *rpc_conn_new(struct loop *l, int fd,
    const struct rpc_conn_setup *setup) MUST_CHECK;

/* Free for the guard's use; NULL at first. */
void rpc_conn_set_mark(struct rpc_conn *c, void *mark);
void *rpc_conn_mark(const struct rpc_conn *c);
struct stream *rpc_conn_stream(struct rpc_conn *c);

/*
 * Tells a peer that was accepted why it is not served, as far as its socket
 * takes it at once (not over TLS, where nothing was said yet), and closes fd.
 */
void rpc_refuse(int fd, const char *why);

/* Closes those that stay quiet; 0: never. */
struct rpc_timeouts {
	uint64_t handshake_ms; /* over TLS, until it is known who they are */
	uint64_t bind_ms;      /* until they bind a service */
	uint64_t idle_ms;      /* without a byte from them */
	uint64_t stalled_ms;   /* with output that they do not take */
};
/* To be called about once a second. */
void rpc_conns_sweep(struct rpc_stats *stats, const struct rpc_timeouts *t,
    uint64_t now_ms);

/* Closes those that fn says yes to, for this reason. */
void rpc_conns_close_those(struct rpc_stats *stats,
    bool (*fn)(struct rpc_conn *c, void *arg), void *arg, const char *reason);

/*
 * Ends it (calls gone() on a later turn).  reason is why the peer is thrown out
 * and goes to the log; what is queued for it is dropped.  NULL is an orderly
 * end: queued replies are still sent, for at most a second.
 */
void rpc_conn_close(struct rpc_conn *c, const char *reason);

/*
 * As an orderly end, but the peer is told why (a RequestError of request 0), and
 * so is the log.
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
 * The last reply of a call, as it was written; where memory was missing for
 * that, rpc_reject(): half a message might mean something else.
 */
void rpc_reply_written(struct rpc_call call, const struct pb_writer *w);
/* InvokeMethodReply{success:false}. */
void rpc_reject(struct rpc_call call);

/*
 * The descriptor that came with the call, or -1.  The caller owns it.  Inside
 * the method only: what it does not take is closed (but kept on RPC_AGAIN).
 */
int rpc_take_fd(struct rpc_call call);

/* Stop taking frames / go on.  RPC_AGAIN pauses by itself. */
void rpc_conn_pause(struct rpc_conn *c);
void rpc_conn_resume(struct rpc_conn *c);

size_t rpc_conn_queued(const struct rpc_conn *c);
void rpc_conn_set_limits(struct rpc_conn *c, size_t hard, size_t low);

/* Live connections, for shutdown: closes all made with this stats block. */
void rpc_conns_close_all(struct rpc_stats *stats);

#endif /* TRANSPORT_RPC_RPC_HOST_H */
