/*
 * conn: one connection to a collector and the conversation on it: Open,
 * then frames in both directions, until it ends (docs/link-protocol.md).
 *
 * What the link is, and goes on with after this connection, is the outbox's;
 * what an answer to Open means for producers is the owner's to say.
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

/* Why a connection ended. */
enum uplink_end {
	UPLINK_END_UNREACHED, /* never was one */
	UPLINK_END_NO_LINK,   /* the host speaks, but does not know the link */
	UPLINK_END_CUT,
};

struct uplink_conn_ops {
	/*
	 * The collector answered.  st: what Open had said.  Numbers and window
	 * of the outbox are to be set here; blocks flow afterwards.  NULL, or a
	 * sentence that says what is wrong with it: then it ends.
	 */
	const char *(*opened)(void *arg, const struct outbox_state *st,
	    const Tributary__LinkOpened *m);
	/* Something was acknowledged. */
	void (*acked)(void *arg);
	/*
	 * The one end, from a turn of the loop of its own; uplink_conn_free().
	 * useful: blocks were acknowledged, or came down.
	 */
	void (*ended)(void *arg, enum uplink_end why, bool useful,
	    const char *text);
};

/* Counted over all connections. */
struct uplink_totals {
	uint64_t bytes_up;    /* of blocks */
	uint64_t bytes_sent;  /* of them, as they were sent */
	uint64_t bytes_again; /* of blocks that were sent before */
	uint64_t reconnects;  /* links that were opened after the first */
};

struct uplink_conn_setup {
	struct loop *loop;
	const struct relay_settings *settings; /* borrowed, as all below */
	const struct addr *to;
	const struct dial_options *how;
	int fd; /* to NULL: connected already; owned on success */
	struct outbox *outbox;
	struct producers *producers;
	struct link_clocks *clocks;
	struct uplink_totals *totals;
	const struct uplink_conn_ops *ops;
	void *arg;
};

/* NULL with a sentence in err: it cannot be reached, no memory. */
struct uplink_conn *uplink_conn_new(const struct uplink_conn_setup *setup,
    char *err, size_t err_size) MUST_CHECK;
/* NULL is fine.  What is queued is still sent, for at most a second. */
void uplink_conn_free(struct uplink_conn *l);
/* The network came back: a collector that is silent is asked for a sign. */
void uplink_conn_hurry(struct uplink_conn *l);
/* Ends it: ended() with this text. */
void uplink_conn_end(struct uplink_conn *l, const char *text);

bool uplink_conn_is_compressed(const struct uplink_conn *l);
/* The address of our end, for as long as it is up.  -1: none. */
int uplink_conn_address(const struct uplink_conn *l,
    struct sockaddr_storage *out) MUST_CHECK;
/* The outbox may have something to send. */
void uplink_conn_kick(struct uplink_conn *l);
/* An encoded LinkClock, sent at once. */
void uplink_conn_send_clock(struct uplink_conn *l, const uint8_t *clock,
    size_t len);

#endif /* RELAY_UPLINK_CONN_H */
