/*
 * link_internal: what the files of a link share.  Each calls only those below
 * it:
 *
 *   link_open.c     who comes with which link
 *   link.c          its life and its numbers
 *   link_apply.c    what blocks say; link_losses.c: what was lost
 *   link_table.c    all links, and those that ended
 *   link_channel.c  its producers
 *   link_core.c     what it keeps and when it runs
 *
 *   links -> link* -> link_channel* -> producer, link_queued*
 *   links -> link_former*        (links that ended, for when they come again)
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

/* Channels whose producer was refused, or whose close is still to be told. */
#define LINK_IDLE_CHANNELS_MAX 1024u
/* Links that ended and are remembered, and channels of them all. */
#define LINK_FORMER_MAX          4096u
#define LINK_FORMER_CHANNELS_MAX 65536u
/* Unit in which a peer's memory is counted, in bytes. */
#define LINK_MEMORY_UNIT 65536u
/* Length of a link's turn. */
#define LINK_TURN_MS 5u
/* Triggers of one block: each is tried on every session that waits. */
#define LINK_TRIGGERS_MAX 1024u

/* A block, or the rest of one, that waits. */
struct link_queued {
	TAILQ_ENTRY(link_queued) link;
	size_t len;
	size_t at; /* applied so far */
	uint8_t data[];
};

struct link_channel {
	struct producer_command_port commands; /* of producer */
	struct hash_link by_number;
	TAILQ_ENTRY(link_channel) report; /* while reporting */
	TAILQ_ENTRY(link_channel) run;    /* while ready */
	struct link *link;
	uint32_t number;
	struct producer *producer; /* NULL: refused, closed, or channel 0 */
	uint64_t consumed;
	bool reporting;
	bool ready;    /* to be run */
	bool waiting;  /* for producer_ops.resume */
	enum {
		CHANNEL_OPEN,
		CHANNEL_CLOSING, /* goes when its queue is empty */
		CHANNEL_CLOSED,  /* only its last report is wanted */
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
	enum link_why why; /* it began */
	uint64_t taken_before; /* of the link that had its id before */
	bool heard;        /* so its relay knows that it did */
	uint64_t heard_flush; /* service.last_flush_id when it was that last */
	struct link_in in;
	struct link_out *out;
	uint64_t taken;    /* bytes of all blocks */
	uint64_t consumed;
	uint64_t consumed_told;
	struct hash_map channels; /* but `own` */
	size_t n_served;  /* with a producer */
	struct link_channel own; /* channel 0 */
	struct link_channel_list to_report;
	struct link_channel_list ready;
	void (*run)(void *link); /* link.c's: runs what is ready */
	bool run_posted;
	struct loop_call run_call;
	size_t queued;
	size_t queued_cost;      /* in memory: small blocks are not free */
	size_t charged;          /* in the service's budget */
	uint32_t charged_units;  /* in the peer's */
	struct loop_timer *grace; /* while cut off */
	uint64_t cut_ms;
	bool ended;          /* frees itself when its last channel is gone */
	const char *doomed;  /* to be given up, on a later turn */
	/* Channels of the relay's link before this one, sorted by channel. */
	struct link_old_channel *old;
	size_t n_old;
};

/* ---- link_table.c ---- */

struct link_former {
	TAILQ_ENTRY(link_former) link;
	uint8_t id[LINK_ID_BYTES];
	uint8_t relay_id[LINK_ID_BYTES];
	struct principal who;
	uint64_t peer;
	enum link_why why;
	uint64_t taken; /* its last up block */
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
	struct link_list ended; /* that wait for a file, or to be freed */
	struct per_peer_count peers;
	struct per_peer_count memory; /* of each peer, in LINK_MEMORY_UNITs */
	struct link_former_list former; /* oldest first */
	size_t n_former;
	size_t n_former_channels;
};

void link_table_add(struct link *l);
/* Takes it out of the table; who comes again is told why. */
void link_table_remove(struct link *l, enum link_why why);
struct link *link_table_find(struct links *t, const uint8_t id[LINK_ID_BYTES]);
/* A link of the same relay that is cut off; NULL: none. */
struct link *link_table_find_cut(const struct links *t,
    const struct link_request *q);
/* Connections of the relay that a new one replaces: they are half-open. */
uint32_t link_table_attached(const struct links *t,
    const struct link_request *q);
/* Why a link that is not in the table begins, and what was taken on it. */
enum link_why link_table_why_anew(struct links *t,
    const struct link_request *q, uint64_t *taken_before);
/* Takes over what is known of the channels of the relay's link before. */
void link_table_take_old(struct link *l, const struct link_request *q);
/* Without links, of which none is left. */
void link_table_free(struct links *t);
/* Whether its relay is connected with another link. */
bool link_table_has_newer(const struct link *l);

/* ---- link.c ---- */

struct link *link_new(struct links *t, const struct link_request *q) MUST_CHECK;
void link_attach(struct link *l, const struct link_port_ops *ops, void *port);
/* Gives the link up, and remembers why, for when the relay comes again. */
void link_end(struct link *l, enum link_why why, const char *reason);
void link_release(struct link *l);

/* ---- link_core.c ---- */

/* Gives the link up on a later turn; legal anywhere. */
void link_doom(struct link *l, const char *why);
/*
 * Charges budgets after the link's memory has changed; dooms it when over a
 * limit.
 */
void link_charge(struct link *l);
/* Something is to be sent. */
void link_wake(struct link *l);
/* Runs its queues on a later turn. */
void link_post_run(struct link *l);

/* ---- link_channel.c ---- */

void link_channels_init(struct link *l);
struct link_channel *link_channel_find(struct link *l, uint32_t number);
/* LINK_UP_OPEN.  NULL: a violation, or no memory (*why). */
struct link_channel *link_channel_open(struct link *l, uint32_t number,
    const uint8_t *producer, size_t len, const char **why);
/* Ends its producer now, and the channel once its last report was sent. */
void link_channel_close(struct link_channel *c);
void link_channel_free(struct link_channel *c);
void link_channels_close_below(struct link *l, uint32_t number);
/* All of them; those with a queue when it is empty. */
void link_channels_close_all(struct link *l);
/* Forgets those of which only a report was left. */
void link_channels_forget_closed(struct link *l);
/* Frees them all, whatever waits. */
void link_channels_drop(struct link *l);
void link_channels_set_cut(struct link *l, bool cut);
/* Counts an unknown loss for each running instance of their producers. */
void link_channels_mark_lost(struct link *l, uint32_t cause);
/* {channel, producer} of those that are served, by channel. */
size_t link_channels_list(struct link *l, struct link_old_channel *out,
    size_t max);
/* The order of that list. */
int link_channels_compare(const void *a, const void *b);
/* Bytes of the channel's blocks have been applied. */
void link_channel_consumed(struct link *l, struct link_channel *c, size_t n);
/* LinkConsumed of up to max channels, as this field. */
void link_channels_put_consumed(struct link *l, struct pb_writer *w,
    uint32_t field, size_t max);
/* All channels are to be reported anew. */
void link_channels_report_all(struct link *l);
/* A message down.  Failing, the link is doomed. */
void link_tell(struct link_channel *c, enum link_down kind, const void *data,
    size_t len);
void link_channel_make_ready(struct link_channel *c);
/* -1: no memory. */
int link_channel_queue(struct link_channel *c, const uint8_t *data, size_t len)
    MUST_CHECK;
void link_channel_unqueue(struct link_channel *c);

/* ---- link_losses.c ---- */

/* A loss that stands here in the channel's blocks. */
void link_loss_take(struct link *l, struct link_channel *c,
    const struct link_loss *loss);

/* ---- link_apply.c ---- */

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
	size_t used;                  /* bytes that are done with */
	const char *why;              /* of LINK_MALFORMED; static */
};
enum link_applied link_apply(struct link *l, struct link_piece *piece)
    MUST_CHECK;

#endif /* SERVICE_LINK_LINK_INTERNAL_H */
