/*
 * outbox_internal: what the parts of the outbox share; for relay/outbox*.c only.
 *
 * Of a channel's blocks, in their order: first those that were sent and wait to
 * be acknowledged, then those in memory that come next, then those in the spool,
 * then those in memory behind these; the last one may be open for more.  Each
 * of the four may be empty.
 */
#ifndef RELAY_OUTBOX_INTERNAL_H
#define RELAY_OUTBOX_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "relay/outbox.h"
#include "link.pb-c.h"
#include "relay/outbox_arena.h"

/* Pages of a block that is begun. */
#define OB_BEGIN_PAGES 2u
#define OB_BLOCK_PAGES (LINK_BLOCK_MAX / ARENA_PAGE)
/* Tag and a length of three bytes, whatever it is. */
#define OB_COMMIT_HEAD 4u
/* Bytes that a channel may send in a turn. */
#define OB_QUANTUM (16 * 1024)
#define OB_BUCKETS 256u

#define OB_LOSS(cause) TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_##cause

struct ob_channel;

enum ob_where {
	OB_ARENA,   /* in memory */
};

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
	uint64_t number; /* 0: not sent */
	uint64_t time_ms;
};
TAILQ_HEAD(ob_blocks, ob_block);

/* Where a channel waits for its turn. */
enum ob_turn {
	OB_TURN_NONE, /* nothing to send */
	OB_TURN_NEW,  /* had nothing: its first quantum comes soon */
	OB_TURN_OLD,
};

struct ob_channel {
	TAILQ_ENTRY(ob_channel) bucket;
	TAILQ_ENTRY(ob_channel) all;
	TAILQ_ENTRY(ob_channel) waits; /* when turn is not NONE */
	struct arena_channel *entry;
	uint32_t id;
	bool closed;             /* its last message was put */
	struct ob_blocks blocks;
	struct ob_block *unsent; /* the first of them */
	struct ob_block *open;   /* the last one, where there is room */
	uint64_t next;           /* sequence of the next block */
	uint64_t consumed;       /* of entry->sent, there */
	enum ob_turn turn;
	int64_t deficit;
	uint32_t unsent_pages;   /* in memory */
};
TAILQ_HEAD(ob_channels, ob_channel);

struct outbox {
	struct loop *loop; /* borrowed, like all of these */
	const struct outbox_ops *ops;
	void *arg;
	enum outbox_drop drop;
	bool synchronous;
	bool ready_due; /* ops->ready() will be called */
	bool overflow_due;

	struct arena arena;
	bool recovered;
	struct ob_channels buckets[OB_BUCKETS];
	struct ob_channels channels;
	struct ob_channel *recent; /* the last one that was asked for */
	uint32_t entry_hint;

	struct ob_blocks sent;   /* every one that was sent, by number */
	struct ob_block *again;  /* of them, the next to be sent again */
	uint64_t sent_count;
	uint32_t sent_pages;
	struct ob_channels turns[2]; /* new ones, old ones */
	size_t waiting;              /* channels in them */

	uint64_t window;
	uint64_t consumed;

	/* Between outbox_reserve() and outbox_commit() */
	struct ob_block *reserved; /* NULL: none */
	uint32_t reserved_max;

	struct loop_timer *trim; /* armed while there is memory to give back */
	bool trim_armed;
};

/* ---- outbox.c ---- */

/* ops->ready() on a later turn. */
void ob_ready(struct outbox *o);
void ob_overflow(struct outbox *o);
uint64_t ob_now_ms(void);

/* ---- outbox_channels.c ---- */

struct ob_channel *ob_channel_find(const struct outbox *o, uint32_t id);
/* The same, made when there is none.  NULL: too many, or no memory. */
struct ob_channel *ob_channel_get(struct outbox *o, uint32_t id) MUST_CHECK;
/* Forgets those that have nothing left and will not say more. */
void ob_channel_settle(struct outbox *o, struct ob_channel *c);
void ob_channel_free(struct outbox *o, struct ob_channel *c);
/* Takes the entry that an earlier process had, or marks one as its own. */
int ob_channel_adopt(struct outbox *o, struct arena_channel *e) MUST_CHECK;

/* ---- outbox_block.c ---- */

/* An open one at the end of its channel, with room.  NULL: there is none. */
struct ob_block *ob_block_begin(struct outbox *o, struct ob_channel *c,
    size_t need, bool control) MUST_CHECK;
/* Room for need more bytes, where it stands. */
bool ob_block_grow(struct outbox *o, struct ob_block *b, size_t need,
    bool control) MUST_CHECK;
/* n bytes behind those that are there were written. */
void ob_block_add(struct outbox *o, struct ob_block *b, size_t n);
/* Takes no more; gives back what it did not use. */
void ob_block_close(struct outbox *o, struct ob_block *b);
/* It is gone for good. */
void ob_block_free(struct outbox *o, struct ob_block *b);
static inline struct arena_desc *
ob_desc(const struct outbox *o, const struct ob_block *b)
{
	return &o->arena.desc[b->page];
}

/* ---- outbox_send.c ---- */

/* The channel has something to send, or more than before. */
void ob_turn_want(struct outbox *o, struct ob_channel *c);
void ob_turn_leave(struct outbox *o, struct ob_channel *c);

/* ---- outbox_recover.c ---- */

/* What the arena holds, into memory.  -1: no memory. */
int ob_recover(struct outbox *o) MUST_CHECK;
/* A new link: another id, numbers from 1 on; nothing is on the way. */
int ob_new_link(struct outbox *o) MUST_CHECK;

#endif /* RELAY_OUTBOX_INTERNAL_H */
