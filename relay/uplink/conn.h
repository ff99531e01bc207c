/*
 * conn: one connection to a collector and the messages on it: Open, then frames
 * in both directions, until it ends (docs/link-protocol.md).
 *
 * The state of the link, which outlives connections, is in the outbox; the
 * owner (uplink.c) decides what an answer to Open means for producers.
 *
 * Belongs to the loop's thread.
 */
#ifndef RELAY_UPLINK_CONN_H
#define RELAY_UPLINK_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "protos/link.pb-c.h"
#include "transport/base/compiler.h"

struct addr;
struct link_clocks;
struct dial_options;
struct loop;
struct outbox;
struct outbox_state;
struct producers;
struct relay_settings;
struct uplink_conn;

/* Reason of a connection's end. */
enum uplink_end {
	UPLINK_END_UNREACHED, /* it ended before Open was answered */
	UPLINK_END_NO_LINK,   /* the collector answers, without a link port */
	UPLINK_END_CUT,       /* it ended after that */
};

struct uplink_conn_ops {
	/*
	 * Called when the collector has answered Open.  st: the state that Open
	 * named; m: the answer, which ends with the call.  The callee sets
	 * numbers and window of the outbox; blocks flow afterwards.  Returns
	 * NULL, or a static sentence that says what is wrong with the answer,
	 * which ends the connection.
	 */
	const char *(*opened)(void *arg, const struct outbox_state *st,
	    const Tributary__LinkOpened *m);
	/* Called when the collector asks to be left for another. */
	void (*leave)(void *arg);
	/* Called after a frame that acknowledges blocks. */
	void (*acked)(void *arg);
	/*
	 * Called once, on a turn after the end, to call uplink_conn_free().
	 * useful: blocks were acknowledged, or came down.  text: the reason,
	 * for people; it ends with uplink_conn_free().
	 */
	void (*ended)(void *arg, enum uplink_end why, bool useful,
	    const char *text);
};

/* Totals over all connections. */
struct uplink_totals {
	uint64_t bytes_up;    /* of blocks, before compression */
	uint64_t bytes_sent;  /* of the same blocks, compressed or not */
	uint64_t bytes_again; /* of bytes_up, in blocks that were sent before */
	/* Links opened; the first only where an earlier process left one. */
	uint64_t reconnects;
};

struct uplink_conn_setup {
	struct loop *loop;
	const struct relay_settings *settings; /* borrowed, as all below */
	const struct addr *to;
	const struct dial_options *how;
	int fd; /* to NULL: connected already; owned on success */
	bool can_move; /* producers know what all channels with blocks are */
	struct outbox *outbox;
	struct producers *producers;
	struct link_clocks *clocks;
	struct uplink_totals *totals;
	const struct uplink_conn_ops *ops;
	void *arg;
};

/*
 * Begins to connect; copies setup.  NULL with a sentence in err: it cannot be
 * reached, or no memory; fd stays the caller's.
 */
struct uplink_conn *uplink_conn_new(const struct uplink_conn_setup *setup,
    char *err, size_t err_size) MUST_CHECK;
/*
 * Frees the connection, without ended(); bytes in its output queue are still
 * sent, for at most a second.  NULL is fine.
 */
void uplink_conn_free(struct uplink_conn *l);
/* Sends a PING to a collector that owes an answer, as the network came back. */
void uplink_conn_hurry(struct uplink_conn *l);
/* Ends the connection; ended() follows with this text, which is copied. */
void uplink_conn_end(struct uplink_conn *l, const char *text);

bool uplink_conn_is_compressed(const struct uplink_conn *l);
/* Sets *out to the address of our end.  -1: there is no connection. */
int uplink_conn_address(const struct uplink_conn *l,
    struct sockaddr_storage *out) MUST_CHECK;
/* Sends on a later turn of the loop: the outbox may have something. */
void uplink_conn_kick(struct uplink_conn *l);
/* Sends an encoded LinkClock at once. */
void uplink_conn_send_clock(struct uplink_conn *l, const uint8_t *clock,
    size_t len);

#endif /* RELAY_UPLINK_CONN_H */
