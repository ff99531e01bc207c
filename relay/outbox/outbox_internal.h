/*
 * outbox_internal: the state of the outbox, and the functions that its files
 * offer each other, the lowest file first: a file calls only files above it.
 *
 * A channel's blocks, in their order: blocks that were sent and wait for their
 * acknowledgement; unsent blocks in memory; blocks in the spool; unsent blocks
 * in memory, the last of which may be open for more messages.  Each of the four
 * parts may be empty.
 *
 * All of it belongs to the loop's thread.
 */
#ifndef RELAY_OUTBOX_OUTBOX_INTERNAL_H
#define RELAY_OUTBOX_OUTBOX_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "protos/link.pb-c.h"
#include "relay/outbox/arena.h"
#include "relay/outbox/disk_thread.h"
#include "relay/outbox/outbox.h"
#include "transport/base/hash_map.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

/* Pages of a block that is begun, unless more is wanted. */
#define OB_BEGIN_PAGES 2u
#define OB_BLOCK_PAGES (LINK_BLOCK_MAX / ARENA_PAGE)
/* The first so many pages of an arena with a spool: room to read one block. */
#define OB_READ_RESERVE OB_BLOCK_PAGES
/* Bytes of a LINK_UP_COMMIT's head: the tag, and a length padded to three. */
#define OB_COMMIT_HEAD 4u
/* Quantum of the round robin: bytes that a channel may send in a turn. */
#define OB_QUANTUM (16 * 1024)

#define OB_LOSS(cause) TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_##cause

struct ob_channel;

enum ob_where {
	OB_ARENA,   /* in memory */
	OB_WRITING, /* in memory, and being written to the spool */
	OB_SPOOLED, /* in the spool alone */
	OB_READING, /* in the spool, and being read */
	OB_GONE,    /* as one of these two, in outbox.gone: freed after it */
};

/* A file of the spool. */
struct ob_segment {
	TAILQ_ENTRY(ob_segment) link;
	uint64_t id;
	uint64_t size; /* offset of the next record */
	uint32_t live; /* records that are needed */
	uint64_t held; /* bytes of it that ob_spool.used counts */
};
TAILQ_HEAD(ob_segments, ob_segment);

struct ob_block {
	TAILQ_ENTRY(ob_block) link;   /* of its channel, oldest first */
	TAILQ_ENTRY(ob_block) sent;   /* of all that were sent, by number */
	struct ob_channel *channel; /* NULL: gone, or of a link that is over */
	enum ob_where where;
	uint32_t page;  /* the first one; ARENA_NONE: none */
	uint32_t pages;
	uint32_t used;  /* bytes */
	uint64_t first; /* the rest as in its descriptor (arena_desc) */
	uint64_t last;
	uint32_t version;
	uint64_t number; /* 0: not sent */
	uint64_t time_ms;
	bool bare;       /* known to have no chunk that can be dropped */
	bool fetched;    /* read ahead: ob_spool.ahead_pages counts its pages */
	uint8_t *buffer; /* owned; a record read to be dropped or counted */

	/* The record in the spool; segment NULL: there is none. */
	struct ob_segment *segment;
	uint8_t tag[LINK_ID_BYTES];
	uint64_t offset; /* in the segment */
	uint32_t length; /* bytes of the block in it */
	uint32_t chunks; /* as in spool_record */
	uint32_t packets;
	uint32_t bytes;
	bool closes;
	/* For a block of a link that is over, which waits to be counted. */
	uint32_t old_channel;
	uint32_t old_epoch;
	uint32_t old_cause;
};
TAILQ_HEAD(ob_blocks, ob_block);

/* A channel's list of turns. */
enum ob_turn {
	OB_TURN_NONE, /* nothing to send */
	OB_TURN_NEW,  /* had nothing to send before: served first, once */
	OB_TURN_OLD,
};

/*
 * Bits for writers, by the low bits of their id.  A collision at worst sends a
 * patch whose chunk was dropped.
 */
#define OB_WRITERS 1024u

struct ob_channel {
	struct hash_link by_id;
	TAILQ_ENTRY(ob_channel) all;
	TAILQ_ENTRY(ob_channel) waits; /* in outbox.turns, by turn */
	struct arena_channel *entry;   /* in the arena; never NULL */
	uint32_t id;
	bool closed;             /* its last message was put */
	bool tracked;            /* writers of it may have tracks */
	uint32_t told_bytes;     /* of losses added since ob_compact() */
	/*
	 * Writers that were unregistered, a bit each (a Bloom filter of one
	 * hash): by now another writer may have the id, and chunks with the
	 * same ids.
	 */
	uint8_t ended[OB_WRITERS / 8];
	struct ob_blocks blocks; /* owned */
	struct ob_block *unsent; /* the first unsent block */
	struct ob_block *open;   /* the last block, when it takes messages */
	uint64_t next;           /* sequence of the next block */
	uint64_t consumed;       /* bytes that the collector has applied */
	enum ob_turn turn;
	int64_t deficit;         /* of the round robin, in bytes */
	uint32_t unsent_pages;   /* in memory */
	bool held;               /* outbox_hold() */
	uint64_t held_from;      /* sequence of the first block that is held */
	/* The last unsent block in the spool, or on its way there or back. */
	struct ob_block *spooled;
	uint64_t spooled_bytes;  /* of records whose block is OB_SPOOLED */
};
TAILQ_HEAD(ob_channels, ob_channel);

enum ob_spool_state {
	SPOOL_WORKS,
	SPOOL_FAILED, /* a write failed; retry is armed, no more writes */
	SPOOL_TRIED,  /* written again, until one succeeds or fails */
};

/* The first OB_READ_RESERVE pages of the arena. */
enum ob_read_reserve {
	RESERVE_MISSING, /* others have, or had, pages of it */
	RESERVE_FREE,
	RESERVE_USED,    /* a block was read into it */
};

struct ob_spool {
	char *dir;               /* owned; the folder's path */
	int dirfd;               /* owned */
	int lock;                /* owned; descriptor of the locked file */
	struct disk *disk;       /* owned; NULL: there is no spool */
	uint64_t limit;          /* bytes */
	uint64_t used;           /* bytes */
	uint64_t segment_bytes;  /* size at which a new segment is begun */
	uint64_t next_id;        /* of a segment */
	uint32_t n_segments;
	struct ob_segments segments; /* owned */
	struct ob_segment *current; /* takes records; NULL: begin one */
	enum relay_fsync fsync;
	struct loop_timer *sync; /* armed while something is not synced */
	enum ob_spool_state state;
	struct loop_timer *retry; /* armed while SPOOL_FAILED */
	char error[96];          /* of the last failure */
	bool no_punch;           /* the file system cannot punch holes */
	uint32_t writing_pages;  /* of blocks that are OB_WRITING */
	uint32_t ahead_pages;    /* read ahead, and not sent yet */
	unsigned dropping;       /* records being read to be dropped */
	enum ob_read_reserve read_reserve;
	uint64_t cut_bytes;      /* as in outbox_stats, as the next */
	uint64_t damaged;
	struct log_limit log_limit;
};

/* Message that outbox_reserve() made room for. */
enum ob_reservation {
	OB_RESERVED_NOTHING, /* outbox_commit() is not legal */
	OB_RESERVED_DATA,    /* a chunk, which may be dropped */
	OB_RESERVED_CONTROL,
};

struct outbox {
	struct loop *loop; /* borrowed, as ops and arg; NULL in tests */
	bool holding;  /* outbox_hold_all(): new channels are held, too */
	const struct outbox_ops *ops;
	void *arg;
	enum relay_drop drop;
	bool synchronous;
	struct loop_call ready_call, overflow_call;

	struct arena arena;
	struct ob_spool spool;
	uint32_t spare;   /* page kept for the rest of a block, or ARENA_NONE */
	bool pumping;     /* inside ob_pump() */
	bool wanted;      /* outbox_want_room(): ops->ready() is owed */
	bool recovered;   /* the link of an earlier process goes on */
	struct hash_map by_id; /* channels */
	struct ob_channels channels; /* owned */
	struct ob_channel *recent; /* cache of ob_channel_get(); or NULL */
	uint32_t entry_hint; /* where the search for a free entry begins */

	struct ob_blocks sent;   /* sent and not acknowledged, by number */
	struct ob_block *again;  /* the next of them to send again; or NULL */
	uint64_t sent_count;     /* of them */
	uint32_t sent_pages;
	struct ob_channels turns[2]; /* new list, old list (schedule.c) */
	size_t waiting;              /* channels in both */

	struct ob_blocks gone;   /* freed while the disk works on them */
	struct ob_blocks old;    /* of links that are over, to be counted */
	bool old_tracks;         /* tracks of links that are over are left */
	uint32_t old_losses;     /* entries in use of the arena's table */

	uint64_t window;         /* credit window, in bytes */
	uint64_t consumed;       /* bytes that the collector has applied */

	/* Between outbox_reserve() and outbox_commit(). */
	enum ob_reservation reservation;
	struct ob_block *reserved; /* NULL: no room, the message is dropped */
	uint32_t reserved_max;     /* bytes */
	uint8_t *unplaced; /* owned, LINK_BLOCK_MAX; the message without room */

	/* Owned, OB_STRIP_BYTES each: blocks that are being rewritten. */
	uint8_t *scratch;
	uint8_t *rest; /* two blocks being joined, in drop_policy.c */
	uint8_t *left; /* the rest of a message without room, in append.c */

	struct loop_timer *trim; /* armed while there is memory to give back */
};

/* ---- notify.c: words to the owner ---- */

/* Calls ops->ready() on a later turn. */
void ob_ready(struct outbox *o);
/* Notes that the link has to begin anew; ops->overflow() on a later turn. */
void ob_overflow(struct outbox *o);
/* CLOCK_BOOTTIME in ms, comparable between processes of one boot. */
uint64_t ob_now_ms(void);

/* ---- undo_journal.c: counts of losses, which survive a kill ---- */

/* The account of the current link; its changes are logged while armed. */
struct loss_account ob_account(const struct outbox *o);
/* Adds to the totals that --status shows. */
void ob_count_lost(struct outbox *o, const struct link_loss *loss);
/*
 * Takes back packets of a loss that were counted twice, from *loss and from the
 * totals.  All blocks of the channel before this loss must have been sent or
 * counted.  True: there were such packets.
 */
bool ob_take_back(struct outbox *o, struct loss_account *k, uint32_t channel,
    struct link_loss *loss);
/*
 * Arms the undo log.  After a kill before ob_undo_disarm() the next process
 * rolls back the counts, unless by then another block has taken b's place, or b
 * was sent, or its record in the spool is not needed any more.
 */
void ob_undo_arm(struct outbox *o, const struct ob_block *b);
/* Arms the undo log; no roll-back once bytes were added at b's end. */
void ob_undo_arm_end(struct outbox *o, const struct ob_block *b);
void ob_undo_disarm(struct outbox *o);
/* Rolls back now, and disarms. */
void ob_undo_now(struct outbox *o);
/* Rolls back counts of an earlier process that it was killed in; disarms. */
void ob_undo_recover(struct outbox *o);

/* ---- schedule.c: which channel sends next ---- */

/*
 * Notes that the channel has something to send: puts it into the new list
 * unless it is in one already, and calls ops->ready() on a later turn.
 */
void ob_turn_want(struct outbox *o, struct ob_channel *c);
/* Takes the channel out of the list that it is in, if any. */
void ob_turn_leave(struct outbox *o, struct ob_channel *c);
/*
 * Returns the channel whose turn it is; NULL: none may send.  may_send() is
 * called for channels that have something to send; it may start to read the
 * channel's next block from the spool.
 */
struct ob_channel *ob_turn_next(struct outbox *o,
    bool (*may_send)(struct outbox *o, struct ob_channel *c));

/* ---- pages.c: pages of the arena, and reserves of them ---- */

static inline uint32_t
ob_pages(size_t bytes)
{
	return (uint32_t)((bytes + ARENA_PAGE - 1) / ARENA_PAGE);
}
/*
 * Whether enough pages are free to take n.  control: for messages that must
 * neither wait nor be dropped; data leaves them a sixteenth of the memory.
 */
bool ob_may_take(const struct outbox *o, uint32_t n, bool control);
/*
 * Takes a run of `want` pages, or else of `need`; *got: how many.  Returns the
 * first; ARENA_NONE: neither, *got may have changed.
 */
uint32_t ob_take_pages(struct outbox *o, uint32_t need, uint32_t want,
    bool control, uint32_t *got) MUST_CHECK;
/* Whether the block that begins at this page was read into the read reserve. */
static inline bool
ob_is_in_reserve(const struct outbox *o, uint32_t page)
{
	return page == 0 && o->spool.read_reserve == RESERVE_USED;
}
/* Frees a run that ob_take_pages() took, or the read reserve. */
void ob_give_pages(struct outbox *o, uint32_t page, uint32_t pages);
/* Whether a chunk of any length would find room. */
bool ob_has_room(struct outbox *o);
/* Takes o->spare if there is none: a page for the rest of a dropped block. */
void ob_keep_spare(struct outbox *o);
/* Takes the read reserve if it is not taken: room to read a block into. */
void ob_keep_read_reserve(struct outbox *o);
/* Callback of o->trim: gives unused memory back to the system. */
void ob_trim_cb(void *arg);

/* ---- channels.c ---- */

/* NULL: there is none with this id. */
struct ob_channel *ob_channel_find(const struct outbox *o, uint32_t id);
/* Finds or makes the channel.  NULL: too many, or no memory. */
struct ob_channel *ob_channel_get(struct outbox *o, uint32_t id) MUST_CHECK;
/* Notes that the writer is unregistered: another writer may get its id. */
void ob_writer_end(struct ob_channel *c, uint64_t writer);
/*
 * Whether a writer with this id may have been unregistered: false is certain,
 * true may be another writer's bit, or unknown since a restart.
 */
bool ob_writer_has_ended(const struct ob_channel *c, uint32_t writer);
/* Frees a channel, and its entry, when it is closed and has no blocks. */
void ob_channel_settle(struct outbox *o, struct ob_channel *c);
/* Frees a channel without blocks; its entry in the arena stays.  NULL: fine. */
void ob_channel_free(struct outbox *o, struct ob_channel *c);
/*
 * Makes the channel of an entry that an earlier process left; a second entry of
 * one channel is freed.  -1: no memory.
 */
int ob_channel_adopt(struct outbox *o, struct arena_channel *e) MUST_CHECK;

/* ---- segments.c: places of records in the spool's files ---- */

/*
 * Gives b's record a place at the end of the current segment, or of a new one.
 * False: no memory, or too many segments.
 */
bool ob_segment_place(struct outbox *o, struct ob_block *b) MUST_CHECK;
/* Gives the place back when the record could not be written. */
void ob_segment_unplace(struct outbox *o, struct ob_block *b);
/*
 * Gives up b's record, if it has one: punches it out, or removes the segment
 * with its last one.
 */
void ob_segment_release(struct outbox *o, struct ob_block *b);
/* Describes b's record in a job that writes or reads it. */
void ob_segment_describe(const struct ob_block *b, struct disk_job *j);
/* Callback of spool.sync, for RELAY_FSYNC_PERIODIC. */
void ob_segment_sync_cb(void *arg);

/* ---- spool_folder.c ---- */

struct ob_found {
	struct ob_block **blocks; /* the array is owned */
	size_t n;
	size_t cap;
};
/* Opens and locks the folder, and makes it if missing.  -1 with a sentence. */
int ob_spool_open(struct outbox *o, const struct outbox_setup *setup,
    char *err, size_t err_size) MUST_CHECK;
void ob_spool_close(struct outbox *o);
/* Reopens the folder after a failed write, if another one has its path now. */
void ob_spool_find_folder(struct outbox *o);
/*
 * Adds a block for each record in the folder, owned by the caller; its epoch is
 * 0 when the link is unknown.  -1: no memory, or the folder cannot be read.
 */
int ob_spool_scan(struct outbox *o, struct ob_found *f) MUST_CHECK;
/*
 * Sets the relay's id, unless the arena has it (known), to the one in the
 * folder or a new random one, and writes it to the folder.  -1: there are no
 * random bytes.
 */
int ob_spool_relay_id(struct outbox *o, bool known) MUST_CHECK;

/* ---- block.c ---- */

/*
 * Begins a block at the channel's end with room for need bytes, and closes the
 * open one before it.  NULL: no room, or no memory.
 */
struct ob_block *ob_block_begin(struct outbox *o, struct ob_channel *c,
    size_t need, bool control) MUST_CHECK;
/* Frees the channel's open block if it is empty and not reserved. */
void ob_forget_empty(struct outbox *o, struct ob_channel *c);
/* Writes the descriptor: from here on the block outlives the process. */
void ob_block_describe(struct outbox *o, const struct ob_block *b);
/*
 * Makes room for need more bytes in the pages behind the block.  False: it
 * would be longer than LINK_BLOCK_MAX, or a page there may not be taken.
 */
bool ob_block_grow(struct outbox *o, struct ob_block *b, size_t need,
    bool control) MUST_CHECK;
/*
 * Replaces the blocks `from` to `to` of a channel, none of which was sent, by
 * one with these len bytes, and frees them.  NULL: no room; nothing changed.
 */
struct ob_block *ob_block_replace(struct outbox *o, struct ob_block *from,
    struct ob_block *to, const uint8_t *data, size_t len) MUST_CHECK;
/* Adds n bytes to the block, which were written at its end before. */
void ob_block_add(struct outbox *o, struct ob_block *b, size_t n);
/* Closes the block for messages, and frees the pages that it did not use. */
void ob_block_close(struct outbox *o, struct ob_block *b);
/* Takes the block out of its channel's and the outbox's lists. */
void ob_block_unlink(struct outbox *o, struct ob_block *b);
/* Frees a block that is in no list but o->gone, and its pages. */
void ob_block_destroy(struct outbox *o, struct ob_block *b);
/*
 * Unlinks the block and gives up its record; frees it now, or when the disk
 * thread is done with it.
 */
void ob_block_free(struct outbox *o, struct ob_block *b);
/* Updates channel->spooled: b is in memory again, or is being freed. */
void ob_not_spooled(struct ob_block *b);
/* Whether the block may be replaced: in memory, not sent, not reserved. */
static inline bool
ob_is_idle(const struct outbox *o, const struct ob_block *b)
{
	return b->where == OB_ARENA && b->number == 0 && b->used > 0 &&
	    b != o->reserved;
}
static inline struct arena_desc *
ob_desc(const struct outbox *o, const struct ob_block *b)
{
	return &o->arena.desc[b->page];
}

/* ---- drop_chunks.c ---- */

#define OB_STRIP_KEPT  (LINK_BLOCK_MAX + 4096u)
#define OB_STRIP_BYTES (2u * OB_STRIP_KEPT) /* size of out, at least */
/* The LinkLossCause of chunks dropped now: disk failure, or spool full. */
uint32_t ob_cause(const struct outbox *o);
/*
 * Copies messages to out without their chunks, which it counts, with losses in
 * their places.  Returns the bytes written, at most LINK_BLOCK_MAX.  Some
 * chunks stay when their writers cannot be logged (*logged is false then), or
 * when the losses would take more room than they.  The caller has armed the
 * undo log.
 */
size_t ob_drop_chunks(struct outbox *o, struct ob_channel *c,
    const uint8_t *data, size_t len, uint8_t *out, bool *logged);
/* Copies messages to out, adjacent losses added up.  Returns the bytes. */
size_t ob_join_losses(const uint8_t *data, size_t len, uint8_t *out);
/* Whether the messages have a chunk that can be dropped. */
bool ob_has_chunks(const uint8_t *data, size_t len);
/*
 * Whether the chunk that a ChunkToPatch is for was dropped.  at_end: the patch
 * is being added at the channel's end; else it is in a block being dropped.
 */
bool ob_patch_is_void(const struct outbox *o, const struct ob_channel *c,
    const struct pb_field *patch, bool at_end);

/* ---- drop_policy.c ---- */

/*
 * Drops the chunks of one block in memory, of the channel that takes most of
 * it.  False: no block has any.
 */
bool ob_drop_in_memory(struct outbox *o);
/* Whether the block is idle and has chunks; remembers in b->bare if not. */
bool ob_can_drop(const struct outbox *o, struct ob_block *b);
/* Rewrites a block without its chunks. */
void ob_drop_block(struct outbox *o, struct ob_block *b);
/* Adds up adjacent losses in the channel's open block. */
void ob_compact(struct outbox *o, struct ob_channel *c);
/*
 * Replaces b, whose chunks were counted, by its rest: the first len bytes of
 * scratch; len 0 frees b.  bare: the rest's ob_block.bare.  False: there is no
 * page for the rest; b stays, and the caller rolls the counts back.
 */
bool ob_keep_rest(struct outbox *o, struct ob_block *b, size_t len, bool bare)
    MUST_CHECK;

/* ---- spool_read.c: from the spool to memory ---- */

/*
 * Starts to read the channel's next blocks from the spool (read-ahead): the
 * first, and more within credit, in bytes.
 */
void ob_fetch(struct outbox *o, struct ob_channel *c, uint64_t credit);
/*
 * Drops the chunks of a block of the channel with most bytes in the spool, or
 * starts to read its record for that.  False: nothing to drop now.
 */
bool ob_drop_in_spool(struct outbox *o);
/*
 * Starts to read the record of a block of an old link, to count it; without
 * memory the next ob_old_pump() tries again.
 */
void ob_read_old(struct outbox *o, struct ob_block *b);

/* ---- previous_links.c ---- */

/* Moves all blocks to o->old, as the link is over, and frees the channels. */
void ob_old_all(struct outbox *o, uint32_t cause);
/* Adds a block that is in no list to o->old. */
void ob_old_add(struct outbox *o, struct ob_block *b, uint32_t channel,
    uint32_t epoch, uint32_t cause);
/*
 * Count losses for which the ending link has no room, so that they are told on
 * the next one: ob_old_loss() a loss that is in the totals already,
 * ob_old_commit() the chunks of a CommitDataRequest, which are not.
 */
void ob_old_loss(struct outbox *o, uint32_t channel, struct link_loss *loss);
void ob_old_commit(struct outbox *o, uint32_t channel, const uint8_t *commit,
    size_t len);
/* Counts and frees blocks of o->old, in order, until one must be read first. */
void ob_old_pump(struct outbox *o);

/* ---- spool_write.c: from memory to the spool ---- */

/*
 * Starts the disk thread and makes the timers; the folder is open.  -1 with a
 * sentence.
 */
int ob_spool_start(struct outbox *o, char *err, size_t err_size) MUST_CHECK;
/*
 * Starts to move blocks to the spool while too little memory is free, or to
 * drop chunks there when the spool is full; counts o->old.
 */
void ob_pump(struct outbox *o);
/* Callback of spool.retry: tries to write again. */
void ob_retry_cb(void *arg);

/* ---- missing_records.c ---- */

/*
 * Adds a loss for records that the arena names and the spool does not have, for
 * a link that goes on.  -1: no memory.
 */
int ob_tell_missing(struct outbox *o) MUST_CHECK;

/* ---- recover.c ---- */

/*
 * Restores the blocks that an earlier process left; found: arena_open()'s.
 * Sets o->recovered.  -1: no memory.
 */
int ob_recover(struct outbox *o, bool found) MUST_CHECK;
/*
 * Begins a new link in the arena: another id, numbers from 1 on, no window.
 * -1: no random bytes.
 */
int ob_new_link(struct outbox *o) MUST_CHECK;

#endif /* RELAY_OUTBOX_OUTBOX_INTERNAL_H */
