/*
 * uplink_internal: the uplink's state, for its four files: attempts and their
 * ends (uplink.c); begin, resumption and end of a link (resume.c); the way of
 * producers' messages (upstream_switch.c); the view for --status
 * (status_view.c).
 */
#ifndef RELAY_UPLINK_UPLINK_INTERNAL_H
#define RELAY_UPLINK_UPLINK_INTERNAL_H

#include <stdbool.h>
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

/* Recovery of the channels of a relay that was killed. */
enum uplink_recovery {
	RECOVERY_NONE,
	RECOVERY_SCRAPING, /* until producers_recover() calls done() */
	RECOVERY_DRAINING, /* until all their blocks are acknowledged */
};

struct uplink {
	struct uplink_setup setup;
	struct addr to;
	struct dial_options how;
	struct producers *producers; /* NULL: not started */
	enum uplink_state state;
	uint64_t since_ms;
	enum uplink_way way;
	bool put_off; /* a producer got UPSTREAM_LATER: resume it on ready() */
	struct uplink_conn *conn; /* owned; in CONNECTING, LINKED */
	struct perfetto_relay *classic;  /* owned; in CLASSIC */
	struct perfetto_relay_totals perfetto_relay_totals;
	struct link_clocks *clocks;
	struct uplink_network *network; /* owned; NULL: none, or no `to` */
	struct uplink_totals totals;
	bool opened_before; /* the next link that is opened is a reconnect */

	struct loop_timer *retry; /* armed in WAITING, where there is `to` */
	uint64_t next_try_ms; /* of retry; times are loop_now_ms() */
	uint64_t tried_ms;   /* begin of the last attempt */
	uint64_t hurried_ms; /* when one was last begun anew; 0: never */
	unsigned failures;   /* in a row, for the backoff */
	char last_error[320];
	struct log_limit log_limit;

	enum uplink_recovery recovery;
	uint32_t old_at;  /* channels below are known to be empty */
	uint32_t old_end; /* the killed relay's channels are below it */

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
 * Resumes the link or begins a new one, as the collector has answered to Open,
 * and announces producers.  Returns NULL, or a static sentence that says what
 * is wrong with the answer.  st: the state that Open named.
 */
const char *uplink_begin(struct uplink *u, const struct outbox_state *st,
    const Tributary__LinkOpened *m);
/* Puts counted losses of earlier links on channel 0 of this one. */
void uplink_tell_old_losses(struct uplink *u);
/*
 * Ends the agreement with the collector: producers end their sessions, and no
 * more messages are put.  cause: LinkLossCause.
 */
void uplink_leave(struct uplink *u, uint32_t cause);
/* Resets the outbox as well: all blocks in it are lost. */
void uplink_forget(struct uplink *u, uint32_t cause);

/*
 * Recovers chunks that a killed relay left in producers' memory, if the link
 * goes on, and then closes all its channels.
 */
void uplink_recover_start(struct uplink *u, const struct outbox_state *st);
/* Closes them if all their blocks were acknowledged. */
void uplink_recover_look(struct uplink *u);

#endif /* RELAY_UPLINK_UPLINK_INTERNAL_H */
