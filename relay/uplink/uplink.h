/*
 * uplink: keeps the relay connected to its collector, for as long as the relay
 * lives: connects with backoff, finds out which protocol the collector speaks
 * (link or Perfetto's), resumes the link, and announces local producers or ends
 * their sessions.
 *
 * Carries the outbox over the link, or passes producers' messages to
 * relay/perfetto/perfetto_relay.h.  Belongs to the loop's thread.
 */
#ifndef RELAY_UPLINK_UPLINK_H
#define RELAY_UPLINK_UPLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/producers/upstream.h"
#include "transport/base/compiler.h"
#include "transport/socket/addr.h"

struct dial_options;
struct loop;
struct outbox;
struct producers;
struct relay_settings;
struct uplink;

enum uplink_state {
	UPLINK_WAITING,    /* for the next attempt, or for a collector's dial */
	UPLINK_CONNECTING,
	UPLINK_LINKED,     /* over the link */
	UPLINK_CLASSIC,    /* in Perfetto's way */
	UPLINK_STOPPED,
};
const char *uplink_state_text(enum uplink_state s);

struct uplink_setup {
	struct loop *loop;
	const struct relay_settings *settings; /* borrowed */
	/*
	 * The collectors, of which one is chosen; borrowed.  NULL: connections
	 * come with uplink_take() (--stdio).
	 */
	const struct addr *to;
	size_t n_to;
	int state_dirfd; /* borrowed; -1: no relay comes after this one */
	const struct dial_options *how; /* copied; its pointers are borrowed */
	struct outbox *outbox; /* borrowed */
};

/* Connects nowhere before uplink_start().  NULL with a sentence in err. */
struct uplink *uplink_new(const struct uplink_setup *setup, char *err,
    size_t err_size) MUST_CHECK;
/* NULL is fine. */
void uplink_free(struct uplink *u);
/* The upstream that producers write to; it lives as long as u. */
struct upstream uplink_upward(struct uplink *u);
/*
 * Begins: recovers chunks that a killed relay left in producers' memory, then
 * connects.  ps is borrowed until uplink_free().
 */
void uplink_start(struct uplink *u, struct producers *ps);
/*
 * Ends the uplink: sends on, if there is a connection, until all blocks are
 * acknowledged or for linger_ms, then disconnects and calls done() on a later
 * turn.  Blocks that were not acknowledged stay in the outbox.
 */
void uplink_stop(struct uplink *u, uint64_t linger_ms, void (*done)(void *),
    void *arg);

/*
 * The outbox's events (outbox_ops), passed on by daemon.c, which opened it.
 * Both ignore NULL, as the outbox is opened before the uplink.
 */
void uplink_outbox_ready(struct uplink *u);
void uplink_outbox_overflow(struct uplink *u);

/*
 * Opens the link on a connected socket to a collector, which u owns from now
 * on; replaces the connection that there is.
 */
void uplink_take(struct uplink *u, int fd);
/* Connects now if it waits for the next attempt, as the network has changed. */
void uplink_try_now(struct uplink *u);

struct uplink_view {
	enum uplink_state state;
	char peer[160];       /* the collector's address, or words for it */
	char last_error[320]; /* "": none since it is connected */
	size_t n_collectors;  /* 1, or none are named: the next five say nothing */
	size_t rank;          /* of peer, for this machine; 0: home */
	char home[160];       /* home's address */
	const char *why;      /* static: why it is there; "": from the start */
	uint64_t moves;       /* from one collector to another */
	uint64_t moved_ms;    /* loop_now_ms() of the last */
	uint64_t since_ms;    /* loop_now_ms() of the last change of state */
	uint64_t next_try_ms; /* loop_now_ms() of the next attempt; 0: none */
	uint64_t reconnects;  /* as in uplink_totals, as the next three */
	uint64_t bytes_up;
	uint64_t bytes_sent;
	uint64_t bytes_again;
	bool compressed;
	const char *why_classic; /* static; NULL: not UPLINK_CLASSIC */
	bool without_clocks;     /* the collector has no RelayPort */
	bool clock_known;        /* the four below are set */
	int64_t clock_offset_ns; /* collector's BOOTTIME minus ours */
	uint64_t clock_uncertainty_ns;
	uint64_t round_trip_ns;
	uint64_t round_trips_ago_ms;
	/*
	 * Losses over Perfetto's protocol, by LinkLossCause; besides the
	 * outbox's.
	 */
	uint64_t chunks_lost[LINK_LOSS_OF_RELAYS];
	uint64_t packets_lost[LINK_LOSS_OF_RELAYS];
	uint64_t bytes_lost[LINK_LOSS_OF_RELAYS];
};
void uplink_view(const struct uplink *u, struct uplink_view *out);

#endif /* RELAY_UPLINK_UPLINK_H */
