/*
 * rpc_conn_internal: rpc_host's connection, which several files implement: its
 * life and replies (rpc_host.c), its frames (rpc_frames.c), and the list of all
 * connections (rpc_conn_list.c).  Private to the room.
 */
#ifndef TRANSPORT_RPC_RPC_CONN_INTERNAL_H
#define TRANSPORT_RPC_RPC_CONN_INTERNAL_H

#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/wire/ipc_frame.h"

struct rpc_conn {
	struct loop *loop;
	struct stream *stream;
	const struct rpc_service *const *services; /* borrowed */
	size_t n_services;
	struct rpc_stats *stats;
	const struct rpc_guard *guard; /* borrowed, or NULL */
	void *mark;                    /* the guard's */
	struct rpc_conn *prev, *next;  /* in stats->conns until it closes */
	uint64_t since_ms; /* accepted; over TLS then the handshake's end */

	const struct rpc_service *service; /* bound, or NULL */
	uint32_t service_id;               /* its index + 1 */
	void *ctx;                         /* returned by its bind() */
	bool paused;
	bool closing; /* rpc_conn_close(): gone_cb is deferred */
	struct loop_call gone_call;

	/* Inside a method: the frame of the call, header included. */
	const uint8_t *frame;
	size_t frame_len;

	struct rpc_claimed_identity *identity; /* NULL: none claimed */
};

/* ---- rpc_host.c ---- */

/* Logs a warning, rate-limited, as peers can cause these lines at will. */
void rpc_conn_warn(struct rpc_conn *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Sends a RequestError. */
void rpc_conn_tell(struct rpc_conn *c, uint64_t request_id, const char *text);
void rpc_conn_send(struct rpc_conn *c, const struct pb_writer *w);

/* ---- rpc_frames.c ---- */

/* The stream's data(). */
size_t rpc_conn_data(struct stream *s, const uint8_t *buf, size_t len,
    void *conn);

/* ---- rpc_conn_list.c ---- */

void rpc_conns_add(struct rpc_conn *c);
void rpc_conns_remove(struct rpc_conn *c);

#endif /* TRANSPORT_RPC_RPC_CONN_INTERNAL_H */
