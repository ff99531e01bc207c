/*
 * arena: the memory of an outbox: a file that is mapped, so that what
 * stands in it outlives the process (not the machine: a boot id tells).
 *
 * In front is what the link is and a table of channels; then one descriptor a
 * page, which stands apart from the data because those bytes are producers'
 * own; then the pages of data.  A block is a run of pages, described by the
 * descriptor of its first one.
 *
 * A process may be killed between any two instructions.  So a descriptor
 * becomes valid with one store after all else of it is written, `used` grows
 * after the bytes are there, pages are taken into a descriptor before they are
 * used, and given up by it before another gets them.  What belongs together
 * in struct arena_link is written aside and switched to with one store.
 *
 * The file may be damaged, too: what is read back is checked before it is used
 * (recover.c), and a flag is a byte, as a bool must not be any but 0, 1.
 */
#ifndef RELAY_OUTBOX_ARENA_H
#define RELAY_OUTBOX_ARENA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/link/link_wire.h"

#define ARENA_PAGE     4096u
#define ARENA_NONE     UINT32_MAX
#define ARENA_CHANNELS 4096u /* at a time */
#define ARENA_TRACKS   2048u
#define ARENA_LOSSES   1024u
#define ARENA_PAGES_MAX (1u << 20)

/*
 * The link as this end knows it.  There are two, of which link_now is in force:
 * the other is written and then switched to with one store.
 */
struct arena_link {
	uint32_t epoch; /* counts the links; blocks of others are void */
	uint32_t linked;
	uint8_t tag[LINK_ID_BYTES]; /* of its records in the spool; secret */
	uint8_t link_id[LINK_ID_BYTES];
	uint8_t collector_id[LINK_ID_BYTES];
	_Atomic uint64_t last_sent;
	_Atomic uint64_t last_acked;
	_Atomic uint64_t sent_bytes; /* of blocks, each once */
	_Atomic uint64_t received;
	/*
	 * Set when something that must not be dropped found no room: the link
	 * has to begin anew.
	 */
	_Atomic uint32_t overflowed;
};

struct arena_head {
	uint32_t magic;
	uint32_t version;
	char boot_id[48];
	uint64_t pages;
	uint8_t relay_id[LINK_ID_BYTES];
	struct arena_link links[2];
	_Atomic uint32_t link_now; /* which of them */
	_Atomic uint32_t last_channel;
	uint64_t lost[3][LINK_LOSS_OF_RELAYS]; /* chunks, packets, bytes */
};

/* A channel that was used on this link. */
struct arena_channel {
	_Atomic uint32_t epoch; /* 0: free.  Stored last */
	uint32_t channel;
	_Atomic uint64_t sent;  /* bytes of its blocks, each once */
	/*
	 * High-water mark: records up to this sequence are not in the spool, or
	 * not needed there any more.
	 */
	_Atomic uint64_t untaken_after;
	/* Sequence number up to which the spool holds the channel. */
	_Atomic uint64_t spooled_last;
	uint64_t held_chunks;
	uint64_t held_packets;
	uint64_t held_bytes;
};

/*
 * A run of consecutive chunks that were dropped and counted, and what was
 * counted with the last one.
 */
struct arena_run {
	uint32_t from;
	uint32_t to;
	uint8_t cuts;   /* the first ended a packet that began before */
	uint8_t broke;  /* so did the last */
	uint32_t of;    /* fragments, of its longest version */
	uint32_t packets;
	uint32_t bytes;
};
#define ARENA_RUNS 8u
#define ARENA_BRIDGES 2u
/* Versions of one chunk that are remembered. */
#define ARENA_VERSIONS 4u

/*
 * A chunk whose last version was dropped and counted but for the fragments that
 * earlier ones were to deliver, which are still kept.
 */
struct arena_credit {
	uint32_t chunk;
	uint32_t n; /* of versions; 0: free */
	uint32_t versions[ARENA_VERSIONS]; /* their fragments */
	uint8_t broke; /* as of the run, when it ended there */
};
#define ARENA_CREDITS 4u

/*
 * Memory of a writer that lets its losses be counted exactly
 * (loss_track.h).
 */
struct arena_track {
	_Atomic uint32_t epoch; /* 0: free */
	uint32_t channel;
	uint32_t writer;

	uint32_t n_runs;
	struct arena_run runs[ARENA_RUNS]; /* the oldest first */
	/*
	 * Chunks that were kept, with nothing but the middle of a packet that
	 * had been lost before them: the last that was put, and that was sent.
	 */
	uint8_t has_bridge[ARENA_BRIDGES];
	uint32_t bridge[ARENA_BRIDGES];
	struct arena_credit credits[ARENA_CREDITS]; /* the newest first */
	uint32_t over; /* packets that were told twice */

	/* The last one that was put; known when one of them was scraped. */
	uint8_t known;
	uint8_t whole;    /* complete */
	uint8_t has_left; /* a chunk that it never completed: */
	uint8_t has_sent; /* a version that was sent: */
	uint32_t latest;
	uint32_t left;
	uint32_t sent;
	uint32_t sent_fragments;

	/*
	 * The versions of a chunk that were put before it was complete, and were
	 * not dropped: their fragments.
	 */
	uint32_t scraped;
	uint32_t kept;
	uint32_t versions[ARENA_VERSIONS];

	/*
	 * A dropped version that may still be replaced: the last one, when
	 * nothing of the writer has come since.  A loss only if the chunk does
	 * not come again.
	 */
	uint8_t pending;
	uint8_t continues;
	uint32_t fragments;
	uint32_t payload;
	uint32_t buffer;
	uint32_t cause;
};

/*
 * Undo log, written ahead of the counts: tracks and totals as they were.
 * Counts and the block that tells of them stand in different places, and a
 * process may be killed between two stores.  A kill after the counts and before
 * the block leaves it armed: the next process rolls back, and counts once more
 * when it drops the same chunks (BLOCK), or never, as the message never came
 * (END).
 */
#define ARENA_UNDO 64u /* tracks at a time */
#define ARENA_UNDO_BLOCK 0u
#define ARENA_UNDO_END   1u
struct arena_undo {
	_Atomic uint32_t armed;
	uint32_t kind;
	uint32_t used;
	/* The block, as its descriptor had it. */
	uint32_t page;
	uint32_t epoch;
	uint32_t channel;
	uint32_t version;
	uint64_t first;
	uint64_t last;
	uint64_t lost[3][LINK_LOSS_OF_RELAYS]; /* of arena_head */
	_Atomic uint32_t n;
	struct {
		uint32_t place;
		struct arena_track track;
	} tracks[ARENA_UNDO];
};

/* A loss of an earlier link that no collector was told yet. */
struct arena_loss {
	_Atomic uint32_t full; /* 0: free */
	struct link_loss loss;
};

struct arena_desc {
	_Atomic uint32_t valid; /* ARENA_VALID, or nothing is here */
	uint32_t epoch;
	uint32_t channel;
	_Atomic uint32_t pages;
	_Atomic uint32_t used; /* bytes */
	uint32_t version;      /* of those that hold the same: the higher */
	uint64_t first;        /* sequences in its channel that it holds */
	uint64_t last;
	_Atomic uint64_t number;
	_Atomic uint64_t channel_sent; /* totals behind it, once it is sent */
	_Atomic uint64_t link_sent;
	uint64_t time_ms;      /* CLOCK_BOOTTIME, when it was begun */
};
#define ARENA_VALID 0x4b434f4cu

struct arena {
	int fd; /* -1: plain memory */
	uint8_t *map;
	size_t map_bytes;
	uint32_t pages;
	uint32_t free_pages;
	uint32_t run_hint; /* where arena_has_run() found one */
	/* The first pages, which arena_take_at() alone takes; 0 at first. */
	uint32_t set_apart;
	uint32_t touched; /* pages below this may hold memory */
	uint64_t *taken;  /* a bit a page */
	uint64_t *backed; /* a bit an extent: there is room for it in the file */
	/*
	 * Pages without disk space, as the file system is full: neither free
	 * nor taken, until arena_trim() finds space for some.
	 */
	uint32_t set_aside;
	struct arena_head *head;
	struct arena_channel *channels;
	struct arena_track *tracks;
	struct arena_loss *losses;
	struct arena_undo *undo;
	struct arena_desc *desc;
	uint8_t *data;
};

/*
 * dirfd -1: plain memory.  *found: the file was there, of this boot, and its
 * head is sound (then its size stays as it was); nothing else of it has been
 * looked at, and no page is taken.  -1 with a sentence in err.
 */
int arena_open(struct arena *a, int dirfd, size_t bytes, bool *found,
    char *err, size_t err_size) MUST_CHECK;
/* Fine for one that was not opened, when its fd is -1. */
void arena_close(struct arena *a);

/* A run of n free pages; ARENA_NONE: there is none. */
uint32_t arena_take(struct arena *a, uint32_t n) MUST_CHECK;
/* Whether there is such a run. */
bool arena_has_run(struct arena *a, uint32_t n);
/* Takes these pages; false: one of them is not free. */
bool arena_take_at(struct arena *a, uint32_t page, uint32_t n) MUST_CHECK;
void arena_give(struct arena *a, uint32_t page, uint32_t n);
/*
 * Gives the memory of free pages back to the system, and looks for disk space
 * for those that were set aside.
 */
void arena_trim(struct arena *a);

/* Pages with disk space, or that can have it; taken or not. */
static inline uint32_t
arena_usable(const struct arena *a)
{
	return a->pages - a->set_aside;
}

static inline uint32_t
arena_taken(const struct arena *a)
{
	return arena_usable(a) - a->free_pages;
}

static inline uint8_t *
arena_at(const struct arena *a, uint32_t page)
{
	return a->data + (size_t)page * ARENA_PAGE;
}

static inline struct arena_link *
arena_link(const struct arena *a)
{
	return &a->head->links[atomic_load_explicit(&a->head->link_now,
	    memory_order_relaxed) & 1];
}

/* Switches to *l; its atomics are plain numbers here. */
void arena_set_link(struct arena *a, const struct arena_link *l);

#endif /* RELAY_OUTBOX_ARENA_H */
