/*
 * outbox: the relay's sending side of the link: queues messages to the
 * collector until it has acknowledged them, in memory, then in a spool on disk.
 *
 * Messages of a channel are gathered in blocks (LinkUpBlock), which keep their
 * order within the channel.  Channels take turns by deficit round robin
 * (schedule.c); the channel's oldest block gets its number when it is sent, and
 * stays until it is acknowledged.  Memory is a file that is mapped (arena), so
 * that it outlives the process; over its limit, blocks that were not sent are
 * moved into the spool, of the fullest channel first, and are read back when
 * their turn comes.  A block in the spool has a checksum; a torn tail is cut
 * off and counted.  Where both are full, chunks are dropped, the oldest or the
 * newest as the setting says; all other messages of a block stay, and a
 * LINK_UP_LOSS stands in the chunks' place.  When a message that cannot be
 * dropped finds no room, the link fails (ops->overflow).
 *
 * Credit window: a channel may use at most half of the window that the other
 * channels leave; a channel with nothing on the way may send its first block
 * whenever it fits into the window.
 *
 * Belongs to the loop's thread.  Disk work is done by a thread of its own, for
 * which only outbox_close() waits.
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
	/*
	 * Called on a later turn of the loop: outbox_next() may have a block
	 * again, outbox_is_busy() may have become false, and
	 * outbox_take_old_losses() may have losses.
	 */
	void (*ready)(void *arg);
	/*
	 * Called on a later turn: a message that must not be dropped found no
	 * room, so the link has to end (outbox_reset()).
	 */
	void (*overflow)(void *arg);
};

struct outbox_setup {
	struct loop *loop;
	int state_dirfd; /* for the arena's file, borrowed; -1: plain memory */
	size_t memory_bytes;   /* of a new arena; one that is found stays */
	const char *spool_dir; /* copied; NULL: no spool */
	uint64_t spool_bytes;
	enum relay_fsync fsync;
	enum relay_drop drop;
	bool synchronous; /* tests: disk work is done inside the calls */
	const struct outbox_ops *ops;
	void *arg;
};

/*
 * Opens arena and spool, and takes over the blocks that an earlier process left
 * in them.  Locks both: two relays cannot share a folder.  Copies setup and
 * borrows its loop, ops and arg.  NULL with a sentence in err.
 */
struct outbox *outbox_open(const struct outbox_setup *setup, char *err,
    size_t err_size) MUST_CHECK;
/*
 * Frees it; blocks that were not acknowledged stay in the files, for the next
 * process.  Waits for the disk job under way.  NULL is fine.
 */
void outbox_close(struct outbox *o);

/* ---- what outlives the process ---- */

struct outbox_state {
	bool resumable;       /* a collector has accepted the link */
	/*
	 * The link has to end: it is resumed once more to learn which blocks
	 * have arrived, then reset.
	 */
	bool overflowed;
	uint8_t link_id[LINK_ID_BYTES];
	uint8_t relay_id[LINK_ID_BYTES];
	uint8_t collector_id[LINK_ID_BYTES];
	uint64_t last_sent;   /* numbers of blocks, up */
	uint64_t last_acked;
	uint64_t sent_bytes;  /* of blocks up, each once */
	uint64_t received;    /* number of a block, down */
	uint32_t last_channel; /* highest number that was given */
};
void outbox_state(const struct outbox *o, struct outbox_state *out);
/*
 * Notes that a collector took the link as a new one, under the link_id that
 * Open had named (a reset since then has made another id).
 */
void outbox_linked(struct outbox *o, const uint8_t link_id[LINK_ID_BYTES],
    const uint8_t collector_id[LINK_ID_BYTES]);
/*
 * Notes that another collector goes on with the link: blocks up as before, with
 * what was acknowledged as consumed; down from 1 on.
 */
void outbox_moved(struct outbox *o, const uint8_t collector_id[LINK_ID_BYTES]);
/*
 * Bytes of blocks up that were acknowledged, of all channels, and of one (0: it
 * has no blocks).
 */
uint64_t outbox_acked_bytes(const struct outbox *o);
uint64_t outbox_acked_bytes_of(const struct outbox *o, uint32_t channel);
/* Notes that every block up to number came down and was acted on. */
void outbox_set_received(struct outbox *o, uint64_t number);
/* Returns the number of a new channel, which no channel had on this link. */
uint32_t outbox_new_channel(struct outbox *o);
/*
 * Ends the link: all blocks are dropped, their chunks counted as lost with this
 * cause (LinkLossCause); block numbers, the link's id and the credit window
 * begin anew.  outbox_take_old_losses() has the losses, for the next link.
 */
void outbox_reset(struct outbox *o, uint32_t cause);
/*
 * Takes up to max losses of earlier links, once each.  Returns how many: 0 as
 * long as blocks of an old link in the spool are being counted; ops->ready()
 * comes afterwards.
 */
size_t outbox_take_old_losses(struct outbox *o, struct link_loss *out,
    size_t max);

/* ---- filling it ---- */

/*
 * Adds one message, of any kind but LINK_UP_COMMIT; data is copied.  For a kind
 * that is a varint, value counts and data and len are ignored.  A message above
 * LINK_MESSAGE_MAX is logged and left out; one without room ends the link
 * (ops->overflow).
 */
void outbox_put(struct outbox *o, uint32_t channel, enum link_up kind,
    const void *data, size_t len, uint64_t value);
/*
 * Whether memory is full, but the disk thread is making room (back-pressure):
 * the caller should put off a chunk, which may be dropped otherwise.
 */
bool outbox_is_busy(struct outbox *o);
/* Has ops->ready() called when outbox_is_busy() has become false. */
void outbox_want_room(struct outbox *o);
/*
 * Returns memory for a CommitDataRequest of at most max bytes; the caller
 * writes it and calls outbox_commit() before any other function that adds.
 * NULL: max is above LINK_MESSAGE_MAX, nothing was reserved, and the caller
 * reports the chunk with outbox_dropped().  data: the message is a chunk, which
 * may be dropped: outbox_commit() counts it then, and adds a LINK_UP_LOSS.
 */
uint8_t *outbox_reserve(struct outbox *o, uint32_t channel, size_t max,
    bool data) MUST_CHECK;
/* Adds the first len of the reserved bytes as a LINK_UP_COMMIT; 0: nothing. */
void outbox_commit(struct outbox *o, uint32_t channel, size_t len);
/*
 * Counts a chunk that the caller dropped, and adds its LINK_UP_LOSS.  For cause
 * LINK_LOSS_UNSPECIFIED the outbox sets the one of its own drops (ob_cause()).
 */
void outbox_dropped(struct outbox *o, uint32_t channel,
    const struct link_loss *loss);
/*
 * The place of what was put on the channel last: of its block; and whether all
 * up to a place has been acknowledged.
 */
uint64_t outbox_channel_place(const struct outbox *o, uint32_t channel);
bool outbox_has_arrived(const struct outbox *o, uint32_t channel,
    uint64_t place);
/* Whether all blocks of the channel were acknowledged. */
bool outbox_channel_is_empty(const struct outbox *o, uint32_t channel);

/* ---- emptying it ---- */

struct outbox_block {
	uint64_t number;
	uint32_t channel;
	const uint8_t *data; /* until it is acknowledged, or a reset */
	size_t len;
};

/*
 * Takes the next block to send, within the credit window, and notes it as sent.
 * False: none, or none for now; ops->ready() comes when that may have changed.
 */
bool outbox_next(struct outbox *o, struct outbox_block *b);
/*
 * Frees the sent blocks up to number, which the collector acknowledged.  -1: no
 * block with this number was sent.
 */
int outbox_acked(struct outbox *o, uint64_t number) MUST_CHECK;
/*
 * Begins a connection to a collector that has every block up to `received`:
 * outbox_next() first repeats the sent blocks behind it.  -1: the number is
 * below the last acknowledged or above the last sent.
 */
int outbox_resume(struct outbox *o, uint64_t received) MUST_CHECK;

/*
 * Holds what is put on the channel from now on, or on all but channel 0: it is
 * kept, and sent after outbox_release() alone, which the next link calls.
 * outbox_let_go() ends it for one channel.
 */
void outbox_hold(struct outbox *o, uint32_t channel);
void outbox_hold_all(struct outbox *o);
void outbox_let_go(struct outbox *o, uint32_t channel);
void outbox_release(struct outbox *o);
/* Whether all that was put before it was held has been acknowledged. */
bool outbox_is_settled(const struct outbox *o);

/* Sets the size of the credit window, from LinkOpened. */
void outbox_set_window(struct outbox *o, uint64_t bytes);
/*
 * Notes how many bytes of blocks the collector has applied, of a channel and of
 * all: totals of the link; a lower one than before is ignored.  -1: more than
 * was sent, or a channel that never was.
 */
int outbox_consumed(struct outbox *o, uint32_t channel, uint64_t bytes)
    MUST_CHECK;
int outbox_consumed_in_all(struct outbox *o, uint64_t bytes) MUST_CHECK;

/* ---- for --status ---- */

struct outbox_stats {
	uint64_t memory_bytes;
	uint64_t memory_limit;
	uint64_t spool_bytes;
	uint64_t spool_limit; /* 0: no spool */
	uint64_t blocks_on_the_way; /* sent, and not acknowledged */
	uint64_t oldest_ms;   /* age of the oldest unsent block; 0: none */
	uint64_t spool_cut_bytes;  /* torn tails, at the start */
	uint64_t spool_damaged;    /* records found damaged */
	uint64_t chunks_lost[LINK_LOSS_OF_RELAYS]; /* by LinkLossCause */
	uint64_t packets_lost[LINK_LOSS_OF_RELAYS];
	uint64_t bytes_lost[LINK_LOSS_OF_RELAYS];
	const char *spool_error; /* until outbox_close(); NULL: it works */
};
void outbox_stats(const struct outbox *o, struct outbox_stats *out);

#endif /* RELAY_OUTBOX_OUTBOX_H */
