/*
 * rpc_client_internal: rpc_client's connection, which two files implement: how
 * it comes to be, up to BindService (rpc_client_connect.c), and its calls and
 * its end (rpc_client.c).  Private to the room.
 */
#ifndef TRANSPORT_RPC_RPC_CLIENT_INTERNAL_H
#define TRANSPORT_RPC_RPC_CLIENT_INTERNAL_H

#include <sys/queue.h>

#include "transport/base/compiler.h"
#include "transport/clock/this_machine.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/socket/addr.h"
#include "transport/stream/stream.h"

#define CLIENT_TEXT_MAX    1400 /* an address and a sentence */
#define CLIENT_REFUSAL_MAX 512

/* Only forward. */
enum client_state {
	CL_CONNECTING, /* dial is under way, or start_fd_cb deferred */
	CL_BINDING,    /* stream up, BindService sent; over TLS, or waiting */
	CL_READY,
	CL_DOWN,       /* down() is deferred or was called */
	CL_FREED,      /* the memory is freed on a later turn */
};

struct pending {
	TAILQ_ENTRY(pending) link;
	uint64_t request_id;
	rpc_reply_fn fn;
	void *arg;
};

TAILQ_HEAD(pending_list, pending);

struct client_method {
	uint32_t id;
	char *name;
};

/* The fields of SetPeerIdentity; empty strings: not given. */
struct client_identity {
	bool set;
	int32_t pid;
	int32_t uid;
	char machine_id_hint[THIS_MACHINE_CLOCKS_MAX];
	char machine_name[256];
	char clocks[THIS_MACHINE_CLOCKS_MAX];
};

struct rpc_client {
	struct loop *loop;
	const struct rpc_client_ops *ops;
	void *arg;
	enum client_state state;
	char service[64];
	struct addr addr; /* its text alone, over a connected socket */

	/* CL_CONNECTING: one of the two */
	struct dial *dial;
	int fd;

	struct client_identity identity;

	struct stream *stream; /* NULL: not up, or ended */
	struct loop_timer *handshake; /* armed while TLS is; else NULL */
	uint32_t service_id;
	struct client_method *methods;
	size_t n_methods;
	uint64_t last_request;

	struct pending_list pending; /* oldest first */
	struct pending_list failed;  /* calls that fail on the next turn */
	struct loop_call start_call, failed_call, down_call, destroy_call;
	bool paused;
	bool limits_set;
	size_t hard, low;

	bool service_unknown;
	char refusal[CLIENT_REFUSAL_MAX]; /* the service's, escaped */
	char down_text[CLIENT_TEXT_MAX];
};

/* ---- rpc_client.c ---- */

void rpc_client_set_state(struct rpc_client *c, enum client_state to);

/* Callbacks of the stream of the connection; arg is the client. */
size_t rpc_client_data(struct stream *s, const uint8_t *buf, size_t len,
    void *arg);
void rpc_client_drained(struct stream *s, void *arg);
void rpc_client_closed(struct stream *s, enum stream_end why, void *arg);

/*
 * Ends the connection, for a reason in words; its calls fail, and the owner
 * hears of it, on the next turn.
 */
void rpc_client_down(struct rpc_client *c, const char *fmt, ...)
    PRINTF_LIKE(2, 3);
/* rpc_client_down(): "the daemon at ADDRESS what". */
void rpc_client_down_because(struct rpc_client *c, const char *what);
/* Frees what rpc_client_free() leaves to a later turn. */
void rpc_client_destroy(void *client);

/* ---- rpc_client_connect.c ---- */

/* Gives up what is under way; nothing where the connection is up. */
void rpc_client_stop_connecting(struct rpc_client *c);

#endif /* TRANSPORT_RPC_RPC_CLIENT_INTERNAL_H */
