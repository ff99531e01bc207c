/*
 * outbox: queues what goes up the link until it has arrived: in memory, then in
 * a spool on disk.  The relay's sending side of the link.
 *
 * Messages of a channel are gathered in blocks (LinkUpBlock), which keep their
 * order within the channel.  Channels take turns by deficit round robin
 * (schedule.c); the channel's oldest block gets its number when it is sent, and
 * stays until it is acknowledged.  Memory is a file that is mapped (arena), so
 * that it outlives the process; over its limit, blocks that were not sent are
 * moved into the spool, of the fullest channel first, and are read back when
 * their turn comes.  A block in the spool has a checksum; a torn tail is cut
 * off and counted.  Where both are full, blocks are dropped by the setting:
 * chunks only, everything else of a block stays; a LINK_UP_LOSS stands where
 * they stood.  When something that cannot be dropped finds no room, the link
 * fails (ops->overflow).
 *
 * Credit window: a channel may have so much on the way that half of what is
 * left of the window stays free for others; one that has nothing there may
 * always send a block that the window has room for.
 *
 * Belongs to the loop's thread; disk work is done by a thread of its own, for
 * which no call waits.
 */
#ifndef RELAY_OUTBOX_OUTBOX_H
#define RELAY_OUTBOX_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/settings/policy.h"
#include "transport/base/compiler.h"
#include "transport/link/link_wire.h"

struct loop;
struct outbox;

struct outbox_ops {
	/* outbox_next() may have something that it had not before. */
	void (*ready)(void *arg);
	/*
	 * Called later: something that must not be dropped found no room, so
	 * the link has to end.
	 */
	void (*overflow)(void *arg);
};

struct outbox_setup {
	struct loop *loop;
	int state_dirfd; /* for the arena's file, borrowed; -1: plain memory */
	size_t memory_bytes;
	const char *spool_dir; /* NULL: none */
	uint64_t spool_bytes;
	enum relay_fsync fsync;
	enum relay_drop drop;
	bool synchronous; /* tests: disk work is done inside the calls */
	const struct outbox_ops *ops;
	void *arg;
};

/*
 * Opens it, and finds what an earlier process left (locks: two relays cannot
 * share a folder).  NULL with a sentence in err.
 */
struct outbox *outbox_open(const struct outbox_setup *setup, char *err,
    size_t err_size) MUST_CHECK;
/* Keeps what was not acknowledged for the next process. */
void outbox_close(struct outbox *o);

/* ---- what outlives the process ---- */

struct outbox_state {
	bool resumable;       /* there is a link: a collector knows us */
	/*
	 * The link has to end: it is resumed once more to hear what has
	 * arrived, then reset.
	 */
	bool overflowed;
	uint8_t link_id[LINK_ID_BYTES];
	uint8_t relay_id[LINK_ID_BYTES];
	uint8_t collector_id[LINK_ID_BYTES];
	uint64_t last_sent;
	uint64_t last_acked;
	uint64_t received;    /* down */
	uint32_t last_channel;
};
void outbox_state(const struct outbox *o, struct outbox_state *out);
/*
 * Notes that a collector took the link as a new one, under the id that it was
 * told when the connection was opened (a reset since then has made another).
 */
void outbox_linked(struct outbox *o, const uint8_t link_id[LINK_ID_BYTES],
    const uint8_t collector_id[LINK_ID_BYTES]);
/* Notes that every block up to number came down and was acted on. */
void outbox_set_received(struct outbox *o, uint64_t number);
/* Returns the number of a new channel; never one that was used on this link. */
uint32_t outbox_new_channel(struct outbox *o);
/*
 * Ends the link: everything is dropped, its chunks counted with this cause
 * (LinkLossCause); numbers and the link's id begin anew.  The next collector
 * can be told of the losses: outbox_take_old_losses().
 */
void outbox_reset(struct outbox *o, uint32_t cause);
/*
 * Takes up to max losses of earlier links, once each.  Returns how many: none
 * as long as what the spool had of the old link is being counted; ops->ready()
 * comes afterwards.
 */
size_t outbox_take_old_losses(struct outbox *o, struct link_loss *out,
    size_t max);

/* ---- filling it ---- */

/* Adds one message; kinds that are a varint: len 0, value counts. */
void outbox_put(struct outbox *o, uint32_t channel, enum link_up kind,
    const void *data, size_t len, uint64_t value);
/*
 * Whether memory is full, but the disk makes room: a chunk should be put off
 * until ops->ready(), or else it may be dropped.
 */
bool outbox_is_busy(struct outbox *o);
/*
 * Room for a LINK_UP_COMMIT of at most max (<= LINK_MESSAGE_MAX) bytes, to be
 * written at once.  NULL: it is longer; tell what is dropped with
 * outbox_dropped().  data: it is a chunk, and may be dropped (then this is
 * counted and told when it is committed).
 */
uint8_t *outbox_reserve(struct outbox *o, uint32_t channel, size_t max,
    bool data) MUST_CHECK;
void outbox_commit(struct outbox *o, uint32_t channel, size_t len);
void outbox_dropped(struct outbox *o, uint32_t channel,
    const struct link_loss *loss);
/* Whether nothing of the channel waits or is on the way. */
bool outbox_channel_is_empty(const struct outbox *o, uint32_t channel);

/* ---- emptying it ---- */

struct outbox_block {
	uint64_t number;
	uint32_t channel;
	const uint8_t *data; /* until it is acknowledged, or a reset */
	size_t len;
};

/* The next block to send now, within the window.  False: none, or not now. */
bool outbox_next(struct outbox *o, struct outbox_block *b);
/* -1: was never sent. */
int outbox_acked(struct outbox *o, uint64_t number) MUST_CHECK;
/*
 * Begins a connection to a collector that has every block up to `received`:
 * sent ones behind it come first. -1: it cannot have.
 */
int outbox_resume(struct outbox *o, uint64_t received) MUST_CHECK;

/*
 * Credit from the collector (LinkOpened, LinkFrame): totals. -1: more than was
 * sent.
 */
void outbox_set_window(struct outbox *o, uint64_t bytes);
int outbox_consumed(struct outbox *o, uint32_t channel, uint64_t bytes)
    MUST_CHECK;
int outbox_consumed_in_all(struct outbox *o, uint64_t bytes) MUST_CHECK;

/* ---- for --status ---- */

struct outbox_stats {
	uint64_t memory_bytes;
	uint64_t memory_limit;
	uint64_t spool_bytes;
	uint64_t spool_limit; /* 0: no spool */
	uint64_t blocks_on_the_way;
	uint64_t oldest_ms;   /* age of the oldest unsent block; 0: none */
	uint64_t spool_cut_bytes;  /* torn tails, at the start */
	uint64_t spool_damaged;    /* blocks whose checksum was wrong */
	uint64_t chunks_lost[LINK_LOSS_OF_RELAYS];
	uint64_t packets_lost[LINK_LOSS_OF_RELAYS];
	uint64_t bytes_lost[LINK_LOSS_OF_RELAYS];
	const char *spool_error; /* NULL: it works */
};
void outbox_stats(const struct outbox *o, struct outbox_stats *out);

#endif /* RELAY_OUTBOX_OUTBOX_H */
