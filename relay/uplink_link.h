/*
 * uplink_link: one connection to a collector and the conversation on it: Open,
 * then frames in both directions, until it ends (docs/link-protocol.md).
 *
 * What the link is, and goes on with after this connection, is the outbox's;
 * what an answer to Open means for producers is the owner's to say.
 */
#ifndef RELAY_UPLINK_LINK_H
#define RELAY_UPLINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "protos/link.pb-c.h"
#include "transport/compiler.h"

struct addr;
struct clocks;
struct dial_options;
struct loop;
struct outbox;
struct outbox_state;
struct producers;
struct relay_settings;
struct uplink_link;

/* Why a connection ended. */
enum uplink_end {
	UPLINK_END_UNREACHED, /* never was one */
	UPLINK_END_NO_LINK,   /* the host speaks, but does not know the link */
	UPLINK_END_CUT,
};

struct uplink_link_ops {
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
	 * The one end, from a turn of the loop of its own; uplink_link_free().
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

struct uplink_link_setup {
	struct loop *loop;
	const struct relay_settings *settings; /* borrowed, as all below */
	const struct addr *to;
	const struct dial_options *how;
	int fd; /* to NULL: connected already; owned on success */
	struct outbox *outbox;
	struct producers *producers;
	struct clocks *clocks;
	struct uplink_totals *totals;
	const struct uplink_link_ops *ops;
	void *arg;
};

/* NULL with a sentence in err: it cannot be reached, no memory. */
struct uplink_link *uplink_link_new(const struct uplink_link_setup *setup,
    char *err, size_t err_size) MUST_CHECK;
/* NULL is fine.  What is queued is still sent, for at most a second. */
void uplink_link_free(struct uplink_link *l);
/* The network came back: a collector that is silent is asked for a sign. */
void uplink_link_hurry(struct uplink_link *l);
/* Ends it: ended() with this text. */
void uplink_link_end(struct uplink_link *l, const char *text);

bool uplink_link_is_compressed(const struct uplink_link *l);
/* The address of our end, for as long as it is up.  -1: none. */
int uplink_link_address(const struct uplink_link *l,
    struct sockaddr_storage *out) MUST_CHECK;
/* The outbox may have something to send. */
void uplink_link_kick(struct uplink_link *l);
/* An encoded LinkClock, sent at once. */
void uplink_link_send_clock(struct uplink_link *l, const uint8_t *clock,
    size_t len);

#endif /* RELAY_UPLINK_LINK_H */
