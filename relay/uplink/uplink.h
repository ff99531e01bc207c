/*
 * uplink: keeps the relay connected to its collector, for as long as the relay
 * lives: reaches it, finds out which protocol it speaks (link or Perfetto's),
 * resumes, and tells local producers what became of their sessions.
 *
 * Carries the outbox over the link; or leads producers to
 * relay/perfetto/perfetto_relay.h.
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
	/* NULL: connections are given with uplink_take() (--stdio). */
	const struct addr *to;
	const struct dial_options *how; /* borrowed for its life */
	struct outbox *outbox;
	int state_dirfd;
};

struct uplink *uplink_new(const struct uplink_setup *setup, char *err,
    size_t err_size) MUST_CHECK;
void uplink_free(struct uplink *u);
/*
 * The upstream that producers write to; they are made known with
 * uplink_start().
 */
struct upstream uplink_upward(struct uplink *u);
/* Begins: recovers what an earlier process left, then connects. */
void uplink_start(struct uplink *u, struct producers *ps);
/*
 * Ends the uplink: closes what is closed, sends for at most linger_ms, then
 * done().  What was not sent stays in the outbox.
 */
void uplink_stop(struct uplink *u, uint64_t linger_ms, void (*done)(void *),
    void *arg);

/*
 * The outbox's events (outbox_ops), passed on by who opened it.  NULL: nothing
 * is done (the outbox is there before the uplink).
 */
void uplink_outbox_ready(struct uplink *u);
void uplink_outbox_overflow(struct uplink *u);

/*
 * Takes a connected socket that leads to a collector; owned.  Replaces another.
 */
void uplink_take(struct uplink *u, int fd);
/*
 * Tries now, as the network has changed, instead of at the next attempt's time.
 */
void uplink_try_now(struct uplink *u);

struct uplink_view {
	enum uplink_state state;
	char peer[160];       /* whom it is linked to, or tries */
	char last_error[320]; /* "": none since it is connected */
	uint64_t since_ms;    /* loop_now_ms() of the last change of state */
	uint64_t next_try_ms; /* WAITING */
	uint64_t reconnects;
	uint64_t bytes_up;    /* of blocks, and as they were sent */
	uint64_t bytes_sent;
	uint64_t bytes_again; /* of them, sent again after a cut */
	bool compressed;
	const char *why_classic; /* static; NULL: it is not */
	bool without_clocks;     /* the collector has no RelayPort */
	bool clock_known;
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
