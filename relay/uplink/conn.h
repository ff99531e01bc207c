/*
 * conn: one connection to a collector and the conversation on it: Open, then
 * frames in both directions, until it ends (docs/link-protocol.md).
 *
 * The link itself, which outlives connections, is the outbox's; what an answer
 * to Open means for producers is the owner's decision.
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
	UPLINK_END_UNREACHED, /* never was one */
	UPLINK_END_NO_LINK,   /* the host speaks, but does not know the link */
	UPLINK_END_CUT,
};

struct uplink_conn_ops {
	/*
	 * Called when the collector has answered Open. st: what Open had said.
	 * It sets numbers and window of the outbox; blocks flow afterwards.
	 * NULL, or a sentence that says what is wrong with the answer, which
	 * ends the connection.
	 */
	const char *(*opened)(void *arg, const struct outbox_state *st,
	    const Tributary__LinkOpened *m);
	/* Called when something was acknowledged. */
	void (*acked)(void *arg);
	/*
	 * Called once, at the end, from a turn of the loop of its own;
	 * uplink_conn_free() is expected. useful: blocks were acknowledged, or
	 * came down.
	 */
	void (*ended)(void *arg, enum uplink_end why, bool useful,
	    const char *text);
};

/* Totals over all connections. */
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
/*
 * Frees it; what is queued is still sent, for at most a second.  NULL is fine.
 */
void uplink_conn_free(struct uplink_conn *l);
/* Asks a silent collector for a sign of life, as the network came back. */
void uplink_conn_hurry(struct uplink_conn *l);
/* Ends the connection: ended() with this text. */
void uplink_conn_end(struct uplink_conn *l, const char *text);

bool uplink_conn_is_compressed(const struct uplink_conn *l);
/* The address of our end, for as long as it is up.  -1: none. */
int uplink_conn_address(const struct uplink_conn *l,
    struct sockaddr_storage *out) MUST_CHECK;
/* Sends on a later turn of the loop: the outbox may have something. */
void uplink_conn_kick(struct uplink_conn *l);
/* Sends an encoded LinkClock at once. */
void uplink_conn_send_clock(struct uplink_conn *l, const uint8_t *clock,
    size_t len);

#endif /* RELAY_UPLINK_CONN_H */
