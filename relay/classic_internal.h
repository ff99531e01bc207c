/*
 * The classic way, which is in several files: its life and the RelayPort
 * (classic.c), a producer's connection (classic_conn.c), and which method a
 * message is (classic_call.c).  Nobody else includes it.
 */
#ifndef RELAY_CLASSIC_INTERNAL_H
#define RELAY_CLASSIC_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "protos/link.pb-c.h"
#include "relay/classic.h"
#include "transport/log.h"
#include "transport/loop.h"

struct loop_timer;
struct sync_clock;
struct rpc_client;

#define CLASSIC_BUCKETS 64u

/* Why what was agreed over a connection that broke is void. */
#define CLASSIC_LOSS \
	TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_COLLECTOR_RESTARTED

/* A producer's connection. */
enum classic_state {
	CLASSIC_CONNECTING, /* client is there, not ready */
	CLASSIC_UP,         /* client is ready */
	CLASSIC_WAITING,    /* retry is armed; client is NULL */
};

struct classic_conn {
	LIST_ENTRY(classic_conn) link;
	struct classic *classic; /* back-pointer */
	uint32_t channel;
	enum classic_state state;
	struct rpc_client *client;
	struct loop_timer *retry;
	unsigned failures; /* in a row */
	bool opened;  /* UP: its LINK_UP_OPEN came, and was told */
	bool put_off; /* somebody heard UPWARD_LATER */
	bool data_reserved; /* what is to be committed is a chunk */
	/* Since all had gone out: what is lost at most when it breaks now. */
	uint64_t chunks_queued;
	uint64_t bytes_queued;
	int32_t pid;  /* of the producer, as the next */
	int32_t uid;
	struct loop_call refused_call;
};
LIST_HEAD(classic_conns, classic_conn);

struct classic {
	struct classic_setup setup;
	struct classic_conns conns[CLASSIC_BUCKETS]; /* by channel */
	size_t n_conns;

	struct rpc_client *relay;    /* RelayPort; NULL: retry is armed */
	struct sync_clock *clocks; /* while relay is ready */
	struct loop_timer *retry;
	bool no_relay_port; /* at the last attempt */
	bool no_relay_port_said;

	uint8_t *scratch; /* LINK_MESSAGE_MAX, between reserve and commit */
	struct log_limit log_limit;
	struct loop_call announce_call;
};

/* ---- classic_conn.c ---- */

struct classic_conn *classic_conn_find(struct classic *c, uint32_t channel);
/* LINK_UP_OPEN: begins one, or tells one that is up; producer: LinkProducer. */
void classic_conn_open(struct classic *c, uint32_t channel,
    const uint8_t *producer, size_t len);
/* The service takes no such producer now; later: it is tried again. */
void classic_conn_refused(struct classic_conn *conn);
/* It broke: what had not gone out is lost. */
void classic_conn_count(struct classic_conn *conn);
/* What it sends still goes out. */
void classic_conn_free(struct classic_conn *conn);

/* ---- classic_call.c ---- */

/* The beginning of a connection that is up. */
void classic_call_begin(struct classic_conn *conn, const uint8_t *producer,
    size_t len);
/* Any other message of a connection that was opened. */
void classic_call(struct classic_conn *conn, enum link_up kind,
    const void *data, size_t len, uint64_t value);

#endif /* RELAY_CLASSIC_INTERNAL_H */
