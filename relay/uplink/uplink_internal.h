/*
 * uplink_internal: the uplink's state, for its four files: attempts and their
 * ends (uplink.c), how a link is begun, resumed and given up (resume.c), where
 * producers' messages go (upstream_switch.c), and what people see
 * (status_view.c).
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

/* Destination of producers' messages. */
enum uplink_way {
	WAY_NONE,    /* nowhere: none is announced */
	WAY_LINK,    /* into the outbox; connected or not */
	WAY_CLASSIC, /* to u->classic */
};

/* State of what a killed relay left. */
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
	struct uplink_conn *conn; /* CONNECTING, LINKED */
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
	void (*stopped_fn)(void *arg); /* called, or deferred, in STOPPED */
	void *stopped_arg;
	struct loop_call stopped_call;
};

/* ---- uplink.c ---- */

const char *uplink_peer_text(const struct uplink *u);

/* ---- resume.c ---- */

/*
 * The collector has answered Open: the link goes on or begins anew.  NULL, or a
 * sentence that says what is wrong with the answer.  st: what Open had said.
 */
const char *uplink_begin(struct uplink *u, const struct outbox_state *st,
    const Tributary__LinkOpened *m);
/* Sends losses of earlier links, as far as they are counted, on this one. */
void uplink_tell_old_losses(struct uplink *u);
/*
 * Gives up what was agreed with the collector: producers end their sessions,
 * and nothing more is put. cause: LinkLossCause.
 */
void uplink_leave(struct uplink *u, uint32_t cause);
/* Gives up the outbox's content as well. */
void uplink_forget(struct uplink *u, uint32_t cause);

/* Recovers chunks from producers' memory, and then closes their channels. */
void uplink_recover_start(struct uplink *u, const struct outbox_state *st);
/* Looks whether the old channels are empty: after an acknowledgement. */
void uplink_recover_look(struct uplink *u);

#endif /* RELAY_UPLINK_UPLINK_INTERNAL_H */
