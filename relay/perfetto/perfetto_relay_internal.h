/*
 * perfetto_relay_internal: the state that perfetto_relay.c (its life and the
 * RelayPort) and perfetto_relay_conn.c (connections of producers) share.
 */
#ifndef RELAY_PERFETTO_PERFETTO_RELAY_INTERNAL_H
#define RELAY_PERFETTO_PERFETTO_RELAY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protos/link.pb-c.h"
#include "relay/perfetto/perfetto_relay.h"
#include "transport/base/hash_map.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

struct loop_timer;
struct sync_clock;
struct rpc_client;

/* Cause of losses with a connection that broke. */
#define PERFETTO_RELAY_LOSS \
	TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_COLLECTOR_RESTARTED

/* A producer's connection. */
enum perfetto_relay_state {
	PERFETTO_RELAY_CONNECTING, /* client is not ready yet */
	PERFETTO_RELAY_READY,      /* client is ready; no LINK_UP_OPEN came */
	PERFETTO_RELAY_OPEN,       /* the producer was introduced as well */
	PERFETTO_RELAY_WAITING,    /* retry is armed; client is NULL */
};

struct perfetto_relay_conn {
	struct hash_link by_channel;
	struct perfetto_relay *classic; /* back-pointer */
	uint32_t channel;
	enum perfetto_relay_state state;
	struct rpc_client *client;
	struct loop_timer *retry;
	unsigned failures; /* in a row */
	bool put_off; /* the producer got UPSTREAM_LATER: resume it */
	bool data_reserved; /* the message reserved is a chunk */
	/*
	 * Queued since the queue was last empty: an upper bound of the loss if
	 * the connection breaks now.
	 */
	uint64_t chunks_queued;
	uint64_t bytes_queued;
	int32_t pid;  /* of the producer, as the next */
	int32_t uid;
	struct loop_call refused_call;
};

struct perfetto_relay {
	struct perfetto_relay_setup setup;
	struct hash_map conns; /* by channel */

	struct rpc_client *relay;  /* owned; RelayPort; NULL: retry is armed */
	struct sync_clock *clocks; /* owned; while relay is ready */
	struct loop_timer *retry;
	bool no_relay_port; /* at the last attempt */
	bool no_relay_port_said;

	uint8_t *scratch; /* owned; LINK_MESSAGE_MAX, for up_reserve() */
	struct log_limit log_limit;
	struct loop_call announce_call;
};

/* ---- perfetto_relay_conn.c ---- */

struct perfetto_relay_conn *perfetto_relay_conn_find(struct perfetto_relay *c,
    uint32_t channel);
/*
 * Begins a connection (LINK_UP_OPEN), or introduces the producer on one that is
 * up; producer: LinkProducer.
 */
void perfetto_relay_conn_open(struct perfetto_relay *c, uint32_t channel,
    const uint8_t *producer, size_t len);
/* Counts queued chunks as lost. */
void perfetto_relay_conn_count(struct perfetto_relay_conn *conn);
/* Frees the connection; its queue is still sent. */
void perfetto_relay_conn_free(struct perfetto_relay_conn *conn);
/*
 * Calls the method for a message other than OPEN, CLOSE and COMMIT.  The
 * connection is OPEN.
 */
void perfetto_relay_call(struct perfetto_relay_conn *conn, enum link_up kind,
    const void *data, size_t len, uint64_t value);

#endif /* RELAY_PERFETTO_PERFETTO_RELAY_INTERNAL_H */
