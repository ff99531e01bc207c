/*
 * uplink_internal: the uplink's state, for its five files: connections and their
 * ends (uplink.c); which collector is tried, and when (attempts.c); begin, resumption and end of a link (resume.c); the way of
 * producers' messages (upstream_switch.c); the view for --status
 * (status_view.c).
 */
#ifndef RELAY_UPLINK_UPLINK_INTERNAL_H
#define RELAY_UPLINK_UPLINK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "relay/outbox/outbox.h"
#include "relay/perfetto/perfetto_relay.h"
#include "relay/uplink/choice.h"
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
	struct choice choice; /* where there is `to` */
	size_t placed_at;     /* rank + 1 that was logged last; 0: none */
	struct loop_call home_call;
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

	/*
	 * Where there is `to`.  WAITING: the next attempt; CONNECTING, CLASSIC:
	 * its end, where another collector can be tried instead.
	 */
	struct loop_timer *retry;
	uint64_t next_try_ms; /* of retry; times are loop_now_ms() */
	uint64_t tried_ms;   /* begin of the last attempt */
	uint64_t hurried_ms; /* when one was last begun anew; 0: never */
	char last_error[320];
	struct log_limit log_limit;

	enum uplink_recovery recovery;
	uint32_t old_at;  /* channels below are known to be empty */
	uint32_t old_end; /* the killed relay's channels are below it */

	/* Going to another collector while this one lives: leave.c's. */
	struct {
		enum {
			LEAVE_NOT,
			LEAVE_FLUSHES, /* until producers and blocks settled */
			LEAVE_SAYS_SO, /* LINK_UP_LEAVE is on the way */
			LEAVE_GOES,
		} state;
		enum choice_why why;
		size_t awaited; /* producers whose flush is under way */
		struct loop_timer *patience; /* armed in FLUSHES */
		unsigned times;   /* that one was left so, in a row */
		uint64_t left_ms; /* when it was last, and which */
		uint8_t left_id[LINK_ID_BYTES];
		struct loop_call call;
	} leave;

	struct loop_timer *linger;
	bool stopping; /* no attempt is made any more */
	void (*stopped_fn)(void *arg); /* called, or deferred, in STOPPED */
	void *stopped_arg;
	struct loop_call stopped_call;
};

/* ---- uplink.c ---- */

void uplink_set_state(struct uplink *u, enum uplink_state state);
/* Begins to connect to uplink_to(). */
void uplink_attempt(struct uplink *u);
/* Ends the connection, whichever it is, without a word to attempts.c. */
void uplink_disconnect(struct uplink *u);
/* Perfetto's way has ended. */
void uplink_classic_down(struct uplink *u, const char *why);
/* No block waits for its acknowledgement. */
bool uplink_all_has_arrived(const struct uplink *u);

/* ---- attempts.c ---- */

/* -1 with a sentence in err. */
int uplink_choice_start(struct uplink *u, char *err, size_t err_size)
    MUST_CHECK;
/*
 * Where a link is to be resumed: begins with the collector that the relay before
 * this one was linked to.
 */
void uplink_choice_recall(struct uplink *u);
/* Where there is `to`: the collector that is tried, or connected to. */
const struct addr *uplink_to(const struct uplink *u);
const char *uplink_peer_text(const struct uplink *u);
/* Arms retry for an attempt that has begun, so that it does not take long. */
void uplink_lose_patience(struct uplink *u);
void uplink_retry_cb(void *arg);
/* The attempt has succeeded. */
void uplink_reached(struct uplink *u);
/*
 * An attempt, or a connection, has ended: WAITING for the next.  good: the
 * connection was of use.
 */
void uplink_failed(struct uplink *u, const char *text, bool good);
/*
 * Disconnects from the collector and goes to another, if there is one that
 * answers (choice_leave()).  What has not arrived is the next link's business.
 */
void uplink_move_on(struct uplink *u, enum choice_why why);
/* On a later turn, after uplink_reached(): goes home, if it ought to and may. */
void uplink_look_homeward(struct uplink *u);
void uplink_watch_network(struct uplink *u);

/* ---- leave.c ---- */

/* -1: no memory. */
int uplink_leave_start(struct uplink *u) MUST_CHECK;
/*
 * Goes to another collector without a loss: producers flush, what they wrote
 * arrives at this one, and the rest is for the other.  Does nothing where there
 * is no link to leave, or this collector was left within move_after_ms.
 */
void uplink_leave_begin(struct uplink *u, enum choice_why why);
/* Takes the next step when all has arrived; legal at any time. */
void uplink_leave_look(struct uplink *u);
/* Ends it: the link was left, or cut, and what waits may be sent on the next. */
void uplink_leave_end(struct uplink *u);

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
