/*
 * link_internal: declarations that the files of this room share.  Each file
 * calls only those below it:
 *
 *   link_open.c     which link a LinkOpen resumes or begins
 *   link_move.c     a link that another collector had; link_drain.c: the way there
 *   link.c          a link's life and its block numbers
 *   link_apply.c    messages in blocks; link_losses.c: losses among them
 *   link_table.c    all links, and a memory of those that ended
 *   link_channel.c  a link's channels and producers
 *   link_core.c     a link's memory charges and deferred calls
 *
 *   links -> link* -> link_channel* -> producer, link_queued*
 *   links -> link_former*        (links that ended, until the relay returns)
 */
#ifndef SERVICE_LINK_LINK_INTERNAL_H
#define SERVICE_LINK_LINK_INTERNAL_H

#include "service/link/link.h"
#include "service/link/producer_command.h"
#include "service/model/model.h"
#include "transport/base/hash_map.h"
#include "transport/link/link_in.h"
#include "transport/link/link_wire.h"
#include "transport/loop/loop.h"

struct loop_timer;
struct pb_writer;

/* Channels without a producer: refused, or closed and not reported yet. */
#define LINK_IDLE_CHANNELS_MAX 1024u
/* Links that ended and are remembered, and channels of them all. */
#define LINK_FORMER_MAX          4096u
#define LINK_FORMER_CHANNELS_MAX 65536u
/* Unit in which a peer's memory is counted, in bytes. */
#define LINK_MEMORY_UNIT 65536u
/* Length of a link's turn. */
#define LINK_TURN_MS 5u
/*
 * Triggers of one link_apply(); more are dropped: each is tried on every
 * session that waits for triggers.
 */
#define LINK_TRIGGERS_MAX 1024u

/* A block, or the rest of one, that waits to be applied; owns its bytes. */
struct link_queued {
	TAILQ_ENTRY(link_queued) link;
	size_t len;
	size_t at; /* applied so far */
	uint8_t data[];
};

struct link_channel {
	struct producer_command_port commands; /* of producer */
	struct hash_link by_number;
	TAILQ_ENTRY(link_channel) report; /* while reporting: to_report */
	TAILQ_ENTRY(link_channel) run;    /* while ready */
	struct link *link;
	uint32_t number;
	struct producer *producer; /* NULL: refused, closed, or channel 0 */
	uint64_t consumed; /* bytes of its blocks that were applied */
	bool reporting;    /* `consumed` is to be told to the relay */
	bool moved;    /* of a link that was moved here: it was told already */
	bool ready;    /* queued blocks are to be applied: link.ready */
	bool waiting;  /* for producer_ops.resume */
	enum {
		CHANNEL_OPEN,
		CHANNEL_CLOSING, /* closed when its queue is empty */
		CHANNEL_CLOSED,  /* freed when its last report is sent */
	} state;
	TAILQ_HEAD(, link_queued) queue;
};

TAILQ_HEAD(link_channel_list, link_channel);

/* The producer id that a channel of an ended link had. */
struct link_old_channel {
	uint32_t channel;
	uint32_t producer;
};

struct link {
	struct hash_link by_id;
	struct hash_link by_relay;
	TAILQ_ENTRY(link) all;
	struct links *table;
	struct service *service;
	uint8_t id[LINK_ID_BYTES];
	uint8_t relay_id[LINK_ID_BYTES];
	struct principal who;
	uint64_t peer;
	bool nobody;
	struct machine *machine; /* referred to */
	char *machine_name; /* as its relay says, or NULL */
	const struct link_port_ops *ops; /* NULL: cut off */
	void *port;
	enum link_why why; /* as its relay was told when it began */
	uint64_t taken_before; /* of the link that had its id before */
	uint32_t buffer_tag;   /* of ids of our buffers in it (former_ids.h) */
	bool heard;        /* a block came: the relay knows of the link */
	bool left;         /* LINK_UP_LEAVE came, and nothing behind it */
	uint64_t attached_ms; /* loop_now_ms() of its connection's begin */
	/* When LINK_DOWN_DRAIN was last told on this connection; 0: never. */
	uint64_t asked_to_leave_ms;
	uint64_t told_flush; /* service.last_flush_id at the last command */
	/*
	 * told_flush when the relay had last acknowledged all commands: a block
	 * that came may have been under way before.
	 */
	uint64_t heard_flush;
	struct link_in in;
	struct link_out *out;
	uint64_t taken;    /* bytes of all blocks that came */
	uint64_t consumed; /* of them, applied; the window bounds the rest */
	uint64_t consumed_told; /* of them, told to the relay */
	struct hash_map channels; /* by number, without `own`; owned */
	size_t n_served;  /* channels with a producer */
	struct link_channel own; /* channel 0 */
	struct link_channel_list to_report;
	struct link_channel_list ready;
	void (*run)(void *link); /* link.c's: runs what is ready */
	bool run_posted;
	struct loop_call run_call;
	size_t queued;           /* bytes of blocks in queues */
	size_t queued_cost;      /* the same with link_queued's overhead */
	size_t charged;          /* bytes, to service.connection_memory */
	uint32_t charged_units;  /* LINK_MEMORY_UNITs, to links.memory */
	struct loop_timer *grace; /* while cut off */
	uint64_t cut_ms;     /* loop_now_ms() when it was cut last; 0: never */
	bool ended;          /* frees itself when its last channel is gone */
	const char *doomed;  /* why it is given up on a later turn; or NULL */
	/* Channels of the relay's link before this one, sorted by channel. */
	struct link_old_channel *old;
	size_t n_old;
};

/* ---- link_move.c ---- */

/* Whether another collector may have a session that is the same as this. */
bool link_session_moves(const struct session *s);
/* Whether a session here has one of the buffers that are named. */
bool link_moves_fit(struct links *t, const struct link_moves *m);
/*
 * Makes the channels of a new link from what its relay told: data sources that
 * run go on in sessions of the same config, others are stopped.  NULL, or why
 * the link cannot be (static).
 */
const char *link_moves_apply(struct link *l, const struct link_request *q);

/* ---- link_table.c ---- */

struct link_former {
	TAILQ_ENTRY(link_former) link;
	uint8_t id[LINK_ID_BYTES];
	uint8_t relay_id[LINK_ID_BYTES];
	struct principal who;
	uint64_t peer;
	enum link_why why;
	uint64_t taken; /* the number of its last block up */
	struct link_old_channel *old;
	size_t n_old;
};

TAILQ_HEAD(link_list, link);
TAILQ_HEAD(link_former_list, link_former);

struct links {
	struct service *service;
	uint8_t collector_id[LINK_ID_BYTES];
	struct hash_map by_id;
	struct hash_map by_relay;
	struct link_list all;
	size_t n;
	struct link_list ended; /* wait for a file, or to be freed */
	struct {
		bool on;
		struct loop_timer *timer; /* armed while on; NULL: never was */
		uint64_t since_ms;
		uint32_t after_ms;
	} drain;
	uint64_t opened[LINK_MOVED + 1]; /* by what relays were told */
	struct per_peer_count peers;  /* links of each peer */
	struct per_peer_count memory; /* of each peer, in LINK_MEMORY_UNITs */
	struct link_former_list former; /* oldest first */
	size_t n_former;
	size_t n_former_channels;
};

void link_table_add(struct link *l);
/*
 * Moves a link from the table to `ended`, and remembers why, for when its relay
 * opens it again.
 */
void link_table_remove(struct link *l, enum link_why why);
struct link *link_table_find(struct links *t, const uint8_t id[LINK_ID_BYTES]);
/* A link of the same relay and peer that is cut; NULL: none. */
struct link *link_table_find_cut(const struct links *t,
    const struct link_request *q);
/*
 * Links of the same relay that still have a connection, which is half-open: a
 * new one replaces it.
 */
uint32_t link_table_attached(const struct links *t,
    const struct link_request *q);
/*
 * Why a link that is not in the table begins, and the number of the last block
 * taken on the link that had its id before (0: none or unknown).
 */
enum link_why link_table_why_anew(struct links *t,
    const struct link_request *q, uint64_t *taken_before);
/* Moves the remembered channels of the relay's previous link to l. */
void link_table_take_old(struct link *l, const struct link_request *q);
/* Frees the table; no link may be left. */
void link_table_free(struct links *t);
/* Whether the relay of l is connected with another link. */
bool link_table_has_newer(const struct link *l);

/* ---- link.c ---- */

/* A link that is in no table yet, without a connection.  NULL: no memory. */
struct link *link_new(struct links *t, const struct link_request *q) MUST_CHECK;
/* Serves the link over a port; closes the port that it had. */
void link_attach(struct link *l, const struct link_port_ops *ops, void *port);
/*
 * Ends the link, and remembers why, for when the relay opens it again.  reason
 * is for the log and the port's close() (static).  The link frees itself once
 * its last channel is gone.
 */
void link_end(struct link *l, enum link_why why, const char *reason);
/* Frees a link that has ended, with its channels and their producers. */
void link_release(struct link *l);

/* ---- link_core.c ---- */

/* Gives the link up on a later turn; legal anywhere.  why is static. */
void link_doom(struct link *l, const char *why);
/*
 * Charges now bytes, no longer *charged, to the budget of all connections.
 * False: it is more than before, and too much, which is counted.
 */
bool link_charge_connections(const struct service *s, size_t *charged,
    size_t now) MUST_CHECK;
/*
 * Charges the link's memory, which has changed, to the budgets of all
 * connections and of its peer; dooms the link when either is exceeded.
 */
void link_charge(struct link *l);
/* Tells the port, if there is one, that there are frames to send. */
void link_wake(struct link *l);
/* Runs the queues of ready channels on a later turn. */
void link_post_run(struct link *l);

/* ---- link_channel.c ---- */

void link_channels_init(struct link *l);
struct link_channel *link_channel_find(struct link *l, uint32_t number);
/*
 * LINK_UP_OPEN: makes the channel and its producer.  A producer that a limit
 * refuses leaves a channel without one, and the relay is told.  NULL: a
 * violation, or no memory (*why, static).
 */
struct link_channel *link_channel_open(struct link *l, uint32_t number,
    const uint8_t *producer, size_t len, const char **why);
/* Ends its producer now; the channel is freed once its last report is sent. */
void link_channel_close(struct link_channel *c);
void link_channel_free(struct link_channel *c);
void link_channels_close_below(struct link *l, uint32_t number);
/* Closes all channels but 0; those with a queue when it is empty. */
void link_channels_close_all(struct link *l);
/* Frees closed channels: their last report has no connection to go over. */
void link_channels_forget_closed(struct link *l);
/* Closes and frees all channels, with blocks that wait. */
void link_channels_drop(struct link *l);
void link_channels_set_cut(struct link *l, bool cut);
/* Counts an unknown loss for each running instance of their producers. */
void link_channels_mark_lost(struct link *l, uint32_t cause);
/*
 * {channel, producer} of the channels that have a producer, sorted by channel;
 * at most max.  Returns their number.
 */
size_t link_channels_list(struct link *l, struct link_old_channel *out,
    size_t max);
/* The order of that list, for qsort() and bsearch(). */
int link_channels_compare(const void *a, const void *b);
/* Counts n bytes of blocks as applied.  c NULL: of no channel that is known. */
void link_channel_consumed(struct link *l, struct link_channel *c, size_t n);
/* Appends LinkConsumed of up to max channels, as this field. */
void link_channels_put_consumed(struct link *l, struct pb_writer *w,
    uint32_t field, size_t max);
/* Puts all channels on to_report. */
void link_channels_report_all(struct link *l);
/* Queues a message down for the channel (copied); dooms the link on failure. */
void link_tell(struct link_channel *c, enum link_down kind, const void *data,
    size_t len);
/* Ends the channel's wait; a queue of blocks is run on a later turn. */
void link_channel_make_ready(struct link_channel *c);
/* Appends a copy of a block to the channel's queue.  -1: no memory. */
int link_channel_queue(struct link_channel *c, const uint8_t *data, size_t len)
    MUST_CHECK;
/* Frees the first block of the channel's queue, which is not empty. */
void link_channel_unqueue(struct link_channel *c);

/* ---- link_losses.c ---- */

/*
 * Counts a loss that a block of channel c reports for the machine, and marks it
 * in the traces that miss the data.
 */
void link_loss_take(struct link *l, struct link_channel *c,
    const struct link_loss *loss);

/* ---- link_apply.c ---- */

/* LINK_UP_REGISTER_SOURCE; the relay is told when it is refused. */
void link_register_source(struct link_channel *c, const uint8_t *descriptor,
    size_t len);

enum link_applied {
	LINK_APPLIED,
	LINK_LATER,     /* from `used` on: the channel waits, or had its turn */
	LINK_MALFORMED,
};
/* A block, or the rest of one, that is to be applied. */
struct link_piece {
	uint32_t number;              /* of its channel */
	struct link_channel *channel; /* NULL: not known yet */
	const uint8_t *data;          /* borrowed */
	size_t len;
	size_t used;                  /* bytes that were applied */
	const char *why;              /* of LINK_MALFORMED; static */
};
/* Applies messages of the piece from its start on. */
enum link_applied link_apply(struct link *l, struct link_piece *piece)
    MUST_CHECK;

#endif /* SERVICE_LINK_LINK_INTERNAL_H */
