/*
 * uplink_link's connection, which is in several files: its life
 * (uplink_link.c), what it sends (uplink_up.c), and what it is told
 * (uplink_down.c).  Nobody else includes it.
 */
#ifndef RELAY_UPLINK_LINK_INTERNAL_H
#define RELAY_UPLINK_LINK_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/outbox.h"
#include "relay/uplink_link.h"
#include "relay/uplink_watch.h"
#include "transport/link_in.h"
#include "transport/log.h"
#include "transport/loop.h"

struct link_compressor;
struct link_decompressor;
struct loop_timer;
struct rpc_client;

enum uplink_link_state {
	UL_CONNECTING, /* timer: how long it may take */
	UL_OPENING,    /* the same; Open was sent */
	UL_OPEN,       /* timer: the next look at watch, when it owes us */
	UL_OVER,       /* no client, no timer; ended() is deferred */
};

struct uplink_link {
	struct uplink_link_setup setup;
	struct rpc_client *client;
	enum uplink_link_state state;
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
	bool kicked;        /* turn_cb is deferred */
	struct uplink_watch watch;
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

/* ---- uplink_link.c ---- */

/* The other end broke the protocol, or we have no memory; escaped. */
void uplink_link_fail(struct uplink_link *l, const char *fmt, ...)
    PRINTF_LIKE(2, 3);

/* ---- uplink_up.c ---- */

/* UL_OPEN begins; -1: no memory. */
int uplink_up_start(struct uplink_link *l) MUST_CHECK;
/* Nothing is sent any more. */
void uplink_up_stop(struct uplink_link *l);
/* The timer of UL_OPEN. */
void uplink_up_watch(struct uplink_link *l);
/* An ack, or consumed bytes, may let more go. */
void uplink_up_acked(struct uplink_link *l, uint64_t number);
/* The id of our own PINGs: not one of relay/clocks.h, which count from 1. */
#define UPLINK_PROBE_ID UINT32_MAX

/* ---- uplink_down.c ---- */

/* A LinkFrame came. */
void uplink_down_frame(struct uplink_link *l, const uint8_t *data, size_t len);
/* Kind and id of a LinkClock; 0: not given, or malformed. */
void uplink_peek_clock(const uint8_t *clock, size_t len, uint32_t *kind,
    uint32_t *id);

#endif /* RELAY_UPLINK_LINK_INTERNAL_H */
