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
#include "relay/uplink/open_call.h"
#include "transport/base/log.h"
#include "transport/link/link_in.h"
#include "transport/loop/loop.h"

struct link_compressor;
struct link_decompressor;
struct loop_timer;
struct rpc_client;

enum uplink_conn_state {
	UL_CONNECTING, /* timer: LINK_OPEN_MS from the begin */
	UL_OPENING,    /* timer: as before; Open was sent */
	UL_OPEN,       /* timer: the next look at watch, when watching */
	UL_OVER,       /* no client, no timer; ended() is deferred */
};

struct uplink_conn {
	struct uplink_conn_setup setup;
	struct rpc_client *client;
	enum uplink_conn_state state;
	struct loop_timer *timer;
	struct outbox_state opened_with; /* the state that Open named */
	struct uplink_moving moving;     /* as Open says it */
	size_t move_cost; /* of LinkMoves: LINK_MOVES_MAX at most */
	bool move_failed; /* not all could be told to the collector */

	/* Down. */
	struct link_in in;
	struct link_decompressor *unzip; /* NULL: not compressed, as zip */

	/* Up. */
	struct link_compressor *zip;
	uint64_t sent;      /* number of the last block on this connection */
	uint64_t sent_ever; /* highest number on any connection of the link */
	uint64_t acked;     /* number of the last block acknowledged */
	struct uplink_liveness watch;
	bool watching;      /* timer is armed for it */
	struct loop_timer *status_timer;
	bool status_due;    /* status_timer is armed */
	uint8_t status[LINK_STATUS_MAX]; /* the LinkStatus sent last */
	size_t status_len;

	struct log_limit log_limit; /* of lines that the collector can cause */
	/* Arguments of ended(). */
	bool useful;
	enum uplink_end why;
	char text[512];
	struct loop_call ended_call, rejected_call, turn_call;
};

/* ---- conn.c ---- */

/*
 * Ends the connection, as the collector broke the protocol or memory is short.
 * The collector's words in the text are escaped by the caller.  Does nothing in
 * UL_OVER.
 */
void uplink_conn_fail(struct uplink_conn *l, const char *fmt, ...)
    PRINTF_LIKE(2, 3);

/* ---- send.c ---- */

/* Makes and arms the status timer, before UL_OPEN; -1: no memory. */
int uplink_send_start(struct uplink_conn *l) MUST_CHECK;
/* Frees the status timer. */
void uplink_send_stop(struct uplink_conn *l);
/* Callback of timer in UL_OPEN: probes or gives up a silent collector. */
void uplink_send_watch(struct uplink_conn *l);
/* Notes an acknowledgement, up to number. */
void uplink_send_acked(struct uplink_conn *l, uint64_t number);
/*
 * Id of PINGs that only ask for a sign of life: no id of link_clocks.h, which
 * counts from 1.
 */
#define UPLINK_PROBE_ID UINT32_MAX

/* ---- receive.c ---- */

/* Takes a LinkFrame of the collector; may end the connection. */
void uplink_receive_frame(struct uplink_conn *l, const uint8_t *data,
    size_t len);
#endif /* RELAY_UPLINK_CONN_INTERNAL_H */
