/*
 * outbox_internal: the state of the outbox, and what its files offer each
 * other, lowest first: a file calls only those above it.
 *
 * A channel's blocks, in their order: first those that were sent and wait to be
 * acknowledged, then those in memory that come next, then those in the spool,
 * then those in memory behind these; the last one may be open for more.  Each
 * of the four may be empty.
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
/* The first pages of an arena that has a spool: room to read one block. */
#define OB_READ_RESERVE OB_BLOCK_PAGES
/* Tag and a length of three bytes, whatever it is. */
#define OB_COMMIT_HEAD 4u
/* Quantum of the round robin: bytes that a channel may send in a turn. */
#define OB_QUANTUM (16 * 1024)

#define OB_LOSS(cause) TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_##cause

struct ob_channel;

enum ob_where {
	OB_ARENA,   /* in memory */
	OB_WRITING, /* there, and being written to the spool */
	OB_SPOOLED, /* in the spool alone */
	OB_READING, /* there, and being read */
};

/* A file of the spool. */
struct ob_segment {
	TAILQ_ENTRY(ob_segment) link;
	uint64_t id;
	uint64_t size; /* where the next record goes */
	uint32_t live; /* records that are needed */
	uint64_t held; /* bytes that count as used */
};
TAILQ_HEAD(ob_segments, ob_segment);

struct ob_block {
	TAILQ_ENTRY(ob_block) link;   /* of its channel, oldest first */
	TAILQ_ENTRY(ob_block) sent;   /* of all that were sent, by number */
	struct ob_channel *channel;
	enum ob_where where;
	uint32_t page;  /* ARENA_NONE: none */
	uint32_t pages;
	uint32_t used;
	uint64_t first; /* sequences that it holds, as in its descriptor */
	uint64_t last;
	uint32_t version;
	uint64_t number; /* 0: not sent */
	uint64_t time_ms;
	bool bare;       /* known to have no chunk that can be dropped */
	bool fetched;    /* it came back from the spool */
	bool gone;       /* freed, as soon as the disk is done with it */
	uint8_t *buffer; /* READING, to be dropped or counted: owned */

	/* The record in the spool; segment NULL: there is none. */
	struct ob_segment *segment;
	uint8_t tag[LINK_ID_BYTES];
	uint64_t offset;
	uint32_t length;
	uint32_t chunks; /* what there is to lose with it */
	uint32_t packets;
	uint32_t bytes;
	bool closes;
	/*
	 * For a block of a link that is over, to be counted: channel is NULL.
	 */
	uint32_t old_channel;
	uint32_t old_epoch;
	uint32_t old_cause;
};
TAILQ_HEAD(ob_blocks, ob_block);

/* A channel's list of turns. */
enum ob_turn {
	OB_TURN_NONE, /* nothing to send */
	OB_TURN_NEW,  /* had nothing: its first quantum comes soon */
	OB_TURN_OLD,
};

/*
 * Writers by the low bits of their id: two that share them are taken for one,
 * which has a patch sent for nothing at worst.
 */
#define OB_WRITERS 1024u

struct ob_channel {
	struct hash_link by_id;
	TAILQ_ENTRY(ob_channel) all;
	TAILQ_ENTRY(ob_channel) waits; /* when turn is not NONE */
	struct arena_channel *entry;
	uint32_t id;
	bool closed;             /* its last message was put */
	bool tracked;            /* something is remembered of its writers */
	uint32_t told_bytes;     /* of losses in the open block */
	/*
	 * Writers that were unregistered, a bit each (a Bloom filter of one
	 * hash): by now their ids may be those of others, whose chunks have the
	 * same ids.
	 */
	uint8_t ended[OB_WRITERS / 8];
	struct ob_blocks blocks;
	struct ob_block *unsent; /* the first of them */
	struct ob_block *open;   /* the last one, where there is room */
	uint64_t next;           /* sequence of the next block */
	uint64_t consumed;       /* of entry->sent, there */
	enum ob_turn turn;
	int64_t deficit;
	uint32_t unsent_pages;   /* in memory */
	struct ob_block *spooled; /* the last that is not in memory alone */
	uint64_t spooled_bytes;  /* in the spool alone */
};
TAILQ_HEAD(ob_channels, ob_channel);

struct ob_spool {
	char *dir;               /* its name; where it is may change */
	int dirfd;
	int lock;
	struct disk *disk;       /* NULL: there is no spool */
	uint64_t limit;
	uint64_t used;
	uint64_t segment_bytes;
	uint64_t next_id;
	uint32_t n_segments;
	struct ob_segments segments;
	struct ob_segment *current; /* takes records; NULL: a new one */
	enum relay_fsync fsync;
	struct loop_timer *sync; /* armed while something is not synced */
	bool sync_armed;
	struct loop_timer *retry; /* armed while failed */
	bool failed;             /* writing did, lately */
	char error[96];          /* ""; how */
	bool no_punch;           /* room of single records does not come back */
	uint32_t writing_pages;
	uint32_t ahead_pages;    /* read, and not sent yet */
	unsigned dropping;
	uint32_t read_reserve;   /* pages to read into when none are free */
	bool read_reserve_used;
	uint64_t cut_bytes;
	uint64_t damaged;
	struct log_limit log_limit;
};

/* Kind of message that outbox_commit() will bring. */
enum ob_reservation {
	OB_RESERVED_NOTHING, /* outbox_reserve() comes first */
	OB_RESERVED_DATA,    /* a chunk, which may be dropped */
	OB_RESERVED_CONTROL,
};

struct outbox {
	struct loop *loop; /* borrowed, like all of these */
	const struct outbox_ops *ops;
	void *arg;
	enum relay_drop drop;
	bool synchronous;
	struct loop_call ready_call, overflow_call;

	struct arena arena;
	struct ob_spool spool;
	uint32_t spare; /* a page; ARENA_NONE: none, for now */
	bool pumping;
	bool wanted;      /* somebody was put off: outbox_is_busy() */
	bool recovered;
	struct hash_map by_id; /* channels */
	struct ob_channels channels;
	struct ob_channel *recent; /* the last one that was asked for */
	uint32_t entry_hint;

	struct ob_blocks sent;   /* every one that was sent, by number */
	struct ob_block *again;  /* of them, the next to be sent again */
	uint64_t sent_count;
	uint32_t sent_pages;
	struct ob_channels turns[2]; /* new ones, old ones */
	size_t waiting;              /* channels in them */

	struct ob_blocks gone;   /* freed while the disk works on them */
	struct ob_blocks old;    /* of links that are over, to be counted */
	bool old_tracks;         /* something is remembered of their writers */
	uint32_t old_losses;     /* places in the arena's table in use */

	uint64_t window;
	uint64_t consumed;

	/* Between outbox_reserve() and outbox_commit() */
	enum ob_reservation reservation;
	struct ob_block *reserved; /* NULL: what comes is dropped */
	uint32_t reserved_max;
	uint8_t *unplaced; /* where it is written then */

	/* Room of OB_STRIP_BYTES: of drop_policy.c, and of append.c. */
	uint8_t *scratch;
	bool stripped_all; /* ob_drop_chunks() could note every writer */
	uint8_t *rest;
	uint8_t *left;

	struct loop_timer *trim; /* armed while there is memory to give back */
	bool trim_armed;
};

/* ---- notify.c: words to the owner ---- */

/* ops->ready() on a later turn. */
void ob_ready(struct outbox *o);
/* The link has to begin anew: notes it, and ops->overflow() on a later turn. */
void ob_overflow(struct outbox *o);
/* CLOCK_BOOTTIME, as other processes of this boot have it. */
uint64_t ob_now_ms(void);

/* ---- undo_journal.c: counts of losses, which survive a kill ---- */

/* The account of the link that is, for loss_account.h. */
struct count ob_count(const struct outbox *o);
/* Adds to the totals that --status shows. */
void ob_count_lost(struct outbox *o, const struct link_loss *loss);
/*
 * Takes packets of a loss back that were counted twice.  It was parsed, and
 * nothing that stands before it is to be sent or counted any more.  True: there
 * were such.
 */
bool ob_take_back(struct outbox *o, struct count *k, uint32_t channel,
    struct link_loss *loss);
/*
 * Arms the journal: from here on, until it is disarmed, a kill undoes what is
 * counted, unless something stands in b's place, or b was sent, or its record
 * is not needed any more.
 */
void ob_undo_arm(struct outbox *o, const struct ob_block *b);
/* Arms it until something is added at b's end. */
void ob_undo_arm_end(struct outbox *o, const struct ob_block *b);
void ob_undo_disarm(struct outbox *o);
/* Rolls back now, and disarms. */
void ob_undo_now(struct outbox *o);
/* Rolls back what an earlier process counted, and did not come to tell. */
void ob_undo_recover(struct outbox *o);

/* ---- schedule.c: which channel sends next ---- */

/* Puts the channel into a list of turns: it has something to send, or more. */
void ob_turn_want(struct outbox *o, struct ob_channel *c);
void ob_turn_leave(struct outbox *o, struct ob_channel *c);
/*
 * The channel whose turn it is; NULL: none may send.  may_send() is asked of
 * channels that have something; it may begin to read what the channel needs.
 */
struct ob_channel *ob_turn_next(struct outbox *o,
    bool (*may_send)(struct outbox *o, struct ob_channel *c));

/* ---- pages.c: pages of the arena, and those that are kept ---- */

static inline uint32_t
ob_pages(size_t bytes)
{
	return (uint32_t)((bytes + ARENA_PAGE - 1) / ARENA_PAGE);
}
/*
 * Whether n pages may be taken.  control: for what must neither wait nor be
 * dropped; data leaves a sixteenth of the memory to it.
 */
bool ob_may_take(const struct outbox *o, uint32_t n, bool control);
/* A run of `want` pages, or of `need`; ARENA_NONE: neither. */
uint32_t ob_take_pages(struct outbox *o, uint32_t need, uint32_t want,
    bool control, uint32_t *got) MUST_CHECK;
void ob_give_pages(struct outbox *o, uint32_t page, uint32_t pages);
/* Whether data would find room for any message. */
bool ob_has_room(struct outbox *o);
/* Keeps a page for what is left of a block, when all else is taken. */
void ob_keep_spare(struct outbox *o);
/* Keeps pages to read a block into, when all else is taken. */
void ob_keep_read_reserve(struct outbox *o);
/* The timer's: gives unused memory back. */
void ob_trim_cb(void *arg);

/* ---- channels.c ---- */

struct ob_channel *ob_channel_find(const struct outbox *o, uint32_t id);
/* Finds or makes one.  NULL: too many, or no memory. */
struct ob_channel *ob_channel_get(struct outbox *o, uint32_t id) MUST_CHECK;
/* The writer is unregistered: from here on its id may be another's. */
void ob_writer_end(struct ob_channel *c, uint64_t writer);
/* Whether one of that id was, or may have been before a restart. */
bool ob_writer_has_ended(const struct ob_channel *c, uint32_t writer);
/* Frees a channel that is closed and has nothing left. */
void ob_channel_settle(struct outbox *o, struct ob_channel *c);
void ob_channel_free(struct outbox *o, struct ob_channel *c);
/* Makes the channel of an entry that an earlier process left. */
int ob_channel_adopt(struct outbox *o, struct arena_channel *e) MUST_CHECK;

/* ---- segments.c: places of records in the spool's files ---- */

/* A place for b's record at the end of the current file.  False: none. */
bool ob_segment_place(struct outbox *o, struct ob_block *b) MUST_CHECK;
/* Gives it back: it could not be written. */
void ob_segment_unplace(struct outbox *o, struct ob_block *b);
/* Gives up b's record, if it has one: it is not needed any more. */
void ob_segment_release(struct outbox *o, struct ob_block *b);
/* Describes the record in a job that writes or reads it. */
void ob_segment_describe(const struct ob_block *b, struct disk_job *j);
/* The timer's: for RELAY_FSYNC_PERIODIC. */
void ob_segment_sync_cb(void *arg);

/* ---- spool_folder.c ---- */

struct ob_found {
	struct ob_block **blocks; /* owned */
	size_t n;
	size_t cap;
};
/* Takes the folder.  -1 with a sentence. */
int ob_spool_open(struct outbox *o, const struct outbox_setup *setup,
    char *err, size_t err_size) MUST_CHECK;
void ob_spool_close(struct outbox *o);
/*
 * Looks after a failure whether the folder was replaced, and takes the new one.
 */
void ob_spool_find_folder(struct outbox *o);
/* Adds a block for each record; its epoch is 0 when the link is unknown. */
int ob_spool_scan(struct outbox *o, struct ob_found *f) MUST_CHECK;
/* Reads or writes the relay's id there; makes one unless it is known. */
int ob_spool_relay_id(struct outbox *o, bool known) MUST_CHECK;

/* ---- block.c ---- */

/* Begins a block at the end of its channel, with room.  NULL: there is none. */
struct ob_block *ob_block_begin(struct outbox *o, struct ob_channel *c,
    size_t need, bool control) MUST_CHECK;
/* Frees an open block that nothing came to stand in. */
void ob_forget_empty(struct outbox *o, struct ob_channel *c);
/* Writes its descriptor: from here on it outlives the process. */
void ob_block_describe(struct outbox *o, const struct ob_block *b);
/* Makes room for need more bytes, where the block stands. */
bool ob_block_grow(struct outbox *o, struct ob_block *b, size_t need,
    bool control) MUST_CHECK;
/*
 * A block that holds what those from `from` to `to` of a channel hold, in their
 * place: data of len bytes.  None of them was sent.  NULL: there is no room.
 */
struct ob_block *ob_block_replace(struct outbox *o, struct ob_block *from,
    struct ob_block *to, const uint8_t *data, size_t len) MUST_CHECK;
/* Counts n bytes that were written behind those that are there. */
void ob_block_add(struct outbox *o, struct ob_block *b, size_t n);
/* Takes no more; gives back pages that it did not use. */
void ob_block_close(struct outbox *o, struct ob_block *b);
/* Takes it out of the lists that it is in. */
void ob_block_unlink(struct outbox *o, struct ob_block *b);
/* Frees a block that is in no list. */
void ob_block_destroy(struct outbox *o, struct ob_block *b);
/* Unlinks and frees it, as soon as the disk is done with it. */
void ob_block_free(struct outbox *o, struct ob_block *b);
/* Takes it out of what the spool has: memory has it, or it is gone. */
void ob_not_spooled(struct ob_block *b);
/* Whether it may be replaced: in memory, not sent, and nobody works on it. */
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
#define OB_STRIP_BYTES (2u * OB_STRIP_KEPT) /* what `out` has room for */
/* The cause of what is dropped now: LinkLossCause. */
uint32_t ob_cause(const struct outbox *o);
/*
 * Messages without their chunks, which are counted, with the losses in their
 * places.  Returns the bytes, at most LINK_BLOCK_MAX.
 */
size_t ob_drop_chunks(struct outbox *o, struct ob_channel *c,
    const uint8_t *data, size_t len, uint8_t *out);
/* Messages with losses that stand side by side added up.  Returns the bytes. */
size_t ob_join_losses(const uint8_t *data, size_t len, uint8_t *out);
/* Whether there is a chunk in it that can be dropped. */
bool ob_has_chunks(const uint8_t *data, size_t len);
/*
 * Whether all that a ChunkToPatch is for was dropped.  at_end: it comes now, at
 * the end of the channel; else it stands among what is being dropped.
 */
bool ob_patch_is_void(const struct outbox *o, const struct ob_channel *c,
    const struct pb_field *patch, bool at_end);

/* ---- drop_policy.c ---- */

/* Drops a block's chunks, and so frees memory.  False: there are none. */
bool ob_drop_in_memory(struct outbox *o);
/* Whether the block has chunks and may lose them. */
bool ob_can_drop(const struct outbox *o, struct ob_block *b);
/* Rewrites a block without its chunks. */
void ob_drop_block(struct outbox *o, struct ob_block *b);
/* Adds up losses that stand side by side at the end of a channel. */
void ob_compact(struct outbox *o, struct ob_channel *c);
/*
 * The first len bytes of scratch are what is left of b, whose chunks are
 * counted: they take its place.  False: there is no page for them; b is as it
 * was, but counted.
 */
bool ob_keep_rest(struct outbox *o, struct ob_block *b, size_t len) MUST_CHECK;

/* ---- spool_read.c: from the spool to memory ---- */

/*
 * Reads what the channel sends next, ahead of its turn: a block, and more
 * within the credit that it has.
 */
void ob_fetch(struct outbox *o, struct ob_channel *c, uint64_t credit);
/* Reads a spooled block to drop its chunks.  False: there is nothing. */
bool ob_drop_in_spool(struct outbox *o);
/* Reads a block of an old link, to count it. */
void ob_read_old(struct outbox *o, struct ob_block *b);

/* ---- previous_links.c ---- */

/* Makes every block one of a link that is over; the channels go. */
void ob_old_all(struct outbox *o, uint32_t cause);
/* Makes one that is in no list a block of a link that is over. */
void ob_old_add(struct outbox *o, struct ob_block *b, uint32_t channel,
    uint32_t epoch, uint32_t cause);
/*
 * Count for the link that ends now, for want of room to tell it there: a loss
 * of the channel, and the chunks of a CommitDataRequest, which were not counted
 * yet.
 */
void ob_old_loss(struct outbox *o, uint32_t channel, struct link_loss *loss);
void ob_old_commit(struct outbox *o, uint32_t channel, const uint8_t *commit,
    size_t len);
/* Counts blocks of links that are over, as far as they are in memory. */
void ob_old_pump(struct outbox *o);

/* ---- spool_write.c: from memory to the spool ---- */

/*
 * Starts the disk's thread and timers; the folder is open. -1 with a sentence.
 */
int ob_spool_start(struct outbox *o, char *err, size_t err_size) MUST_CHECK;
/* Moves blocks between memory and spool as the limits ask. */
void ob_pump(struct outbox *o);
/* The timer's: writing is tried again. */
void ob_retry_cb(void *arg);

/* ---- missing_records.c ---- */

/* Tells what is missing in the spool of a link that goes on.  -1: no memory. */
int ob_tell_missing(struct outbox *o) MUST_CHECK;

/* ---- recover.c ---- */

/* Restores what an earlier process left. -1: no memory. */
int ob_recover(struct outbox *o, bool found) MUST_CHECK;
/* Begins a new link: another id, numbers from 1 on; nothing is on the way. */
int ob_new_link(struct outbox *o) MUST_CHECK;

#endif /* RELAY_OUTBOX_OUTBOX_INTERNAL_H */
