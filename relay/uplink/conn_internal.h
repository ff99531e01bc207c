/*
 * conn_internal: the state of a connection, for its life (conn.c), its output
 * (send.c) and its input (receive.c).
 */
#ifndef RELAY_UPLINK_CONN_INTERNAL_H
#define RELAY_UPLINK_CONN_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/outbox/outbox.h"
#include "relay/uplink/conn.h"
#include "relay/uplink/liveness.h"
#include "transport/base/log.h"
#include "transport/link/link_in.h"
#include "transport/loop/loop.h"

struct link_compressor;
struct link_decompressor;
struct loop_timer;
struct rpc_client;

enum uplink_conn_state {
	UL_CONNECTING, /* timer: how long it may take */
	UL_OPENING,    /* the same; Open was sent */
	UL_OPEN,       /* timer: the next look at watch, when it owes us */
	UL_OVER,       /* no client, no timer; ended() is deferred */
};

struct uplink_conn {
	struct uplink_conn_setup setup;
	struct rpc_client *client;
	enum uplink_conn_state state;
	struct loop_timer *timer;
	struct outbox_state opened_with; /* what Open said */

	/* Down. */
	struct link_in in;
	struct link_decompressor *unzip; /* NULL: plain, as zip */

	/* Up. */
	struct link_compressor *zip;
	uint64_t sent;      /* the last block's number on this connection */
	uint64_t sent_ever; /* and on those before */
	uint64_t acked;
	struct uplink_liveness watch;
	bool watching;      /* timer is armed for it */
	struct loop_timer *status_timer;
	bool status_due;    /* it is armed */
	uint8_t status[LINK_STATUS_MAX]; /* the last that was sent */
	size_t status_len;

	struct log_limit log_limit; /* what the collector can cause */
	bool useful;
	enum uplink_end why;
	char text[512]; /* of the end */
	struct loop_call ended_call, rejected_call, turn_call;
};

/* ---- conn.c ---- */

/*
 * Ends the connection: the other end broke the protocol, or memory is short.
 * The text is escaped already.
 */
void uplink_conn_fail(struct uplink_conn *l, const char *fmt, ...)
    PRINTF_LIKE(2, 3);

/* ---- send.c ---- */

/* Begins UL_OPEN; -1: no memory. */
int uplink_send_start(struct uplink_conn *l) MUST_CHECK;
/* Ends sending. */
void uplink_send_stop(struct uplink_conn *l);
/* The timer's, in UL_OPEN: looks after the other end's liveness. */
void uplink_send_watch(struct uplink_conn *l);
/* Notes an acknowledgement, up to number. */
void uplink_send_acked(struct uplink_conn *l, uint64_t number);
/*
 * The id of our own PINGs: not one of relay/clocks/link_clocks.h, which count
 * from 1.
 */
#define UPLINK_PROBE_ID UINT32_MAX

/* ---- receive.c ---- */

/* Takes a LinkFrame. */
void uplink_receive_frame(struct uplink_conn *l, const uint8_t *data,
    size_t len);
#endif /* RELAY_UPLINK_CONN_INTERNAL_H */
