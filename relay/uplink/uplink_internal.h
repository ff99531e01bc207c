/*
 * The uplink, which is in several files: its life and attempts (uplink.c), what
 * an opened link means (link_opened.c), what a changed network means
 * (network_changes.c), what a killed relay left (recover.c), what
 * producers speak to (upstream_switch.c), and what people see (status_view.c).
 * Nobody else includes it.
 */
#ifndef RELAY_UPLINK_UPLINK_INTERNAL_H
#define RELAY_UPLINK_UPLINK_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/outbox/outbox.h"
#include "relay/perfetto/perfetto_relay.h"
#include "relay/uplink/conn.h"
#include "relay/uplink/uplink.h"
#include "transport/base/log.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"

struct link_clocks;
struct loop_timer;
struct uplink_network;

/* Where what producers say goes. */
enum uplink_way {
	WAY_NONE,    /* nowhere: none is announced */
	WAY_LINK,    /* into the outbox; connected or not */
	WAY_CLASSIC, /* to u->classic */
};

/* What a killed relay left, on its way up. */
enum uplink_recovery {
	RECOVERY_NONE,
	RECOVERY_SCRAPING, /* producers_recover() goes on */
	RECOVERY_DRAINING, /* channels below old_end are not empty yet */
};

struct uplink {
	struct uplink_setup setup;
	struct addr to;
	struct dial_options how;
	struct producers *producers; /* NULL: not started */
	enum uplink_state state;
	uint64_t since_ms;
	enum uplink_way way;
	bool put_off; /* a chunk was, until the outbox is ready */
	struct uplink_conn *link; /* CONNECTING, LINKED */
	struct perfetto_relay *classic;  /* CLASSIC */
	struct perfetto_relay_totals perfetto_relay_totals;
	struct link_clocks *clocks;
	struct uplink_network *network; /* NULL: the kernel does not tell */
	struct uplink_totals totals;
	bool opened_before;

	struct loop_timer *retry; /* armed in WAITING, where there is `to` */
	uint64_t next_try_ms;
	uint64_t tried_ms;   /* the last attempt's begin */
	uint64_t hurried_ms; /* the last one that was begun anew; 0: none */
	unsigned failures;   /* in a row */
	char last_error[320];
	struct log_limit log_limit;

	enum uplink_recovery recovery;
	uint32_t old_at;  /* channels below are known to be empty */
	uint32_t old_end;

	struct loop_timer *linger;
	bool stopping; /* no attempt is made any more */
	bool stopped;  /* stopped_fn is deferred, or was called */
	void (*stopped_fn)(void *arg);
	void *stopped_arg;
	struct loop_call stopped_call;
};

/* ---- uplink.c ---- */

void uplink_set_state(struct uplink *u, enum uplink_state state);
/* To u->to; what was under way has ended. */
void uplink_attempt(struct uplink *u);
/* The next attempt comes so much later. */
void uplink_wait(struct uplink *u, uint64_t ms);
const char *uplink_peer_text(const struct uplink *u);

/* ---- network_changes.c ---- */

void uplink_watch_network(struct uplink *u);

/* ---- link_opened.c ---- */

/* The link's opened(). */
const char *uplink_begin(struct uplink *u, const struct outbox_state *st,
    const Tributary__LinkOpened *m);
/* What is known by now of links before; on the one that is. */
void uplink_tell_old_losses(struct uplink *u);
/* What was agreed with a collector is void, and nothing more is put. */
void uplink_leave(struct uplink *u, uint32_t cause);
/* The same, and what the outbox has is lost: LinkLossCause. */
void uplink_forget(struct uplink *u, uint32_t cause);

/* ---- recover.c ---- */

void uplink_recover_start(struct uplink *u, const struct outbox_state *st);
/* Blocks were acknowledged. */
void uplink_recover_look(struct uplink *u);
/* Nobody waits for it any more. */
void uplink_recover_forget(struct uplink *u);

#endif /* RELAY_UPLINK_UPLINK_INTERNAL_H */
