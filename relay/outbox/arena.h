/*
 * arena: the memory of an outbox, as a file that is mapped, so that it outlives
 * a relay that is killed, but no reboot: the boot id in its head is compared.
 *
 * Layout: the head with the state of the link; tables of channels, of writers
 * whose losses are counted (tracks) and of losses that no collector was told;
 * the undo log; a descriptor for each page of data; the pages of data.
 * Descriptors stand apart from the data because producers choose its bytes.  A
 * block is a run of pages, described by the descriptor of its first page.
 *
 * A process may be killed between any two instructions.  So a descriptor
 * becomes valid with one store after all else of it is written, `used` grows
 * after the bytes are there, pages are taken into a descriptor before they are
 * used, and given up by it before another descriptor gets them.  A change of
 * several members of struct arena_link is made in a copy, and one store
 * switches to the copy.
 *
 * The file may be damaged, too: recover.c checks its content before use, and a
 * flag is a byte, as any value of a bool but 0 and 1 is undefined behaviour.
 *
 * Belongs to the loop's thread; the disk thread reads and writes only the pages
 * that its jobs name.
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
#define ARENA_NONE     UINT32_MAX /* no page */
/* Entries of the tables. */
#define ARENA_CHANNELS 4096u
#define ARENA_TRACKS   2048u
#define ARENA_LOSSES   1024u
#define ARENA_PAGES_MAX (1u << 20)

/*
 * State of the link at this end.  The head has two copies: link_now says which
 * is in force; arena_set_link() writes the other and switches with one store.
 */
struct arena_link {
	uint32_t epoch;  /* number of the link; blocks of others are lost */
	uint32_t linked; /* 1: a collector has accepted the link */
	uint8_t tag[LINK_ID_BYTES]; /* of its records in the spool; secret */
	uint8_t link_id[LINK_ID_BYTES];
	uint8_t collector_id[LINK_ID_BYTES];
	_Atomic uint64_t last_sent;  /* number of a block, up */
	_Atomic uint64_t last_acked; /* number of a block, up */
	_Atomic uint64_t sent_bytes; /* of blocks, each once */
	_Atomic uint64_t received;   /* number of a block, down */
	/*
	 * 1: a message that must not be dropped found no room, so the link has
	 * to begin anew.
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
	_Atomic uint32_t link_now; /* index of the one in force */
	_Atomic uint32_t last_channel; /* highest number that was given */
	/* Totals of chunks, packets and bytes, by LinkLossCause. */
	uint64_t lost[3][LINK_LOSS_OF_RELAYS];
};

/* A channel of this link that has blocks, or may yet get some. */
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
	/* Sums of its records in the spool, to count those that are missing. */
	uint64_t held_chunks;
	uint64_t held_packets;
	uint64_t held_bytes;
};

/*
 * A run of consecutive chunks that were dropped and counted.  All after `cuts`
 * is of its last chunk, which may be counted again.
 */
struct arena_run {
	uint32_t from;  /* ids of chunks, inclusive */
	uint32_t to;
	uint8_t cuts;   /* the first ended a packet that began before */
	uint8_t broke;  /* the last one did */
	uint32_t of;    /* most fragments of the versions counted so far */
	uint32_t packets; /* counted so far */
	uint32_t bytes;
};
#define ARENA_RUNS 8u
#define ARENA_BRIDGES 2u
/* Versions of one chunk that are remembered. */
#define ARENA_VERSIONS 4u

/*
 * A chunk whose last version was dropped, and counted without the fragments
 * that earlier versions of it deliver, which wait in the outbox.
 */
struct arena_credit {
	uint32_t chunk;
	uint32_t n; /* of versions; 0: free */
	uint32_t versions[ARENA_VERSIONS]; /* fragments of each */
	uint8_t broke; /* arena_run.broke when the chunk was the run's last */
};
#define ARENA_CREDITS 4u

/* State of a writer by which its losses are counted exactly (loss_track.h). */
struct arena_track {
	_Atomic uint32_t epoch; /* 0: free */
	uint32_t channel;
	uint32_t writer;

	uint32_t n_runs;
	struct arena_run runs[ARENA_RUNS]; /* the oldest first */
	/*
	 * Bridges: kept chunks that hold nothing but the middle of a lost
	 * packet.  [0]: the last that was put, [1]: the last that was sent.
	 */
	uint8_t has_bridge[ARENA_BRIDGES];
	uint32_t bridge[ARENA_BRIDGES];
	struct arena_credit credits[ARENA_CREDITS]; /* the newest first */
	uint32_t over; /* packets that were counted twice, to be taken back */

	uint8_t known;    /* latest is set: since a chunk was put incomplete */
	uint8_t whole;    /* latest is complete */
	uint8_t has_left; /* left is set */
	uint8_t has_sent; /* sent and sent_fragments are set */
	uint32_t latest;  /* the chunk that was put last */
	uint32_t left;    /* a chunk that the writer never completed */
	uint32_t sent;    /* the chunk of the incomplete version sent last */
	uint32_t sent_fragments;

	uint32_t scraped; /* the chunk that was put incomplete last */
	/* Fragments of its incomplete versions that were not dropped. */
	uint32_t kept;
	uint32_t versions[ARENA_VERSIONS];

	/*
	 * Set while the latest version of `scraped` is dropped and the writer
	 * has put nothing since: a loss only if the chunk does not come again.
	 * The other members describe that version, as struct commit_chunk does.
	 */
	uint8_t pending;
	uint8_t continues;
	uint32_t fragments;
	uint32_t payload; /* bytes */
	uint32_t buffer;
	uint32_t cause;   /* LinkLossCause */
};

/*
 * Undo log: tracks and totals as they were, written ahead of a change.  Counts
 * and the block with their LINK_UP_LOSS stand in different places, and a
 * process may be killed between two stores.  A kill after the counts and before
 * the block leaves the log armed: the next process rolls back, and counts once
 * more when it drops the same chunks (BLOCK), or never, as the message was not
 * added (END).
 */
#define ARENA_UNDO 64u /* tracks that it has room for */
#define ARENA_UNDO_BLOCK 0u
#define ARENA_UNDO_END   1u
struct arena_undo {
	_Atomic uint32_t armed; /* 0 or 1 */
	uint32_t kind;          /* ARENA_UNDO_BLOCK or ARENA_UNDO_END */
	/* The block, as its descriptor had it. */
	uint32_t used;
	uint32_t page;
	uint32_t epoch;
	uint32_t channel;
	uint32_t version;
	uint64_t first;
	uint64_t last;
	uint64_t lost[3][LINK_LOSS_OF_RELAYS]; /* of arena_head */
	_Atomic uint32_t n;
	struct {
		uint32_t place; /* index in the arena's tracks */
		struct arena_track track;
	} tracks[ARENA_UNDO];
};

/* A loss of an earlier link that no collector was told yet. */
struct arena_loss {
	_Atomic uint32_t full; /* 0: free */
	struct link_loss loss;
};

/* Descriptor of the block that begins in this page. */
struct arena_desc {
	_Atomic uint32_t valid; /* ARENA_VALID; else no block begins here */
	uint32_t epoch;         /* arena_link.epoch of its link */
	uint32_t channel;
	_Atomic uint32_t pages;
	_Atomic uint32_t used; /* bytes */
	uint32_t version;      /* the highest counts, of one range */
	uint64_t first;        /* sequences in its channel, first to last */
	uint64_t last;
	_Atomic uint64_t number; /* on the link; 0: not sent */
	/* Bytes sent by channel and link with this block, once it is sent. */
	_Atomic uint64_t channel_sent;
	_Atomic uint64_t link_sent;
	uint64_t time_ms;      /* CLOCK_BOOTTIME, when the block was begun */
};
#define ARENA_VALID 0x4b434f4cu

/* Process-local state; all pointers from head on point into map. */
struct arena {
	int fd; /* owned; locked; -1: plain memory */
	uint8_t *map;
	size_t map_bytes;
	uint32_t pages;
	uint32_t free_pages;
	uint32_t run_hint; /* where arena_has_run() found one */
	/* Number of first pages that only arena_take_at() takes; owner's. */
	uint32_t set_apart;
	uint32_t touched; /* pages from here on were not used since a trim */
	uint64_t *taken;  /* owned; a bit for each page */
	uint64_t *backed; /* owned; a bit for each extent that claimed space */
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
 * Opens or makes the file in dirfd, which stays the caller's, and locks it: two
 * relays cannot share it.  dirfd -1: plain memory.  bytes: of the data pages of
 * a new file.  *found: a file of this boot with a sound head was there, and
 * keeps its size; its other content was not checked, and no page is taken.  -1
 * with a sentence in err.
 */
int arena_open(struct arena *a, int dirfd, size_t bytes, bool *found,
    char *err, size_t err_size) MUST_CHECK;
/* Legal for an arena that is all zero but for an fd of -1. */
void arena_close(struct arena *a);

/*
 * Takes a run of n free pages and returns its first; ARENA_NONE: no such run,
 * or no disk space for it.
 */
uint32_t arena_take(struct arena *a, uint32_t n) MUST_CHECK;
/* Whether there is a run of n free pages; disk space is not looked for. */
bool arena_has_run(struct arena *a, uint32_t n);
/*
 * Takes these pages.  False: one is not free or out of range, or there is no
 * disk space; none is taken then.
 */
bool arena_take_at(struct arena *a, uint32_t page, uint32_t n) MUST_CHECK;
/* Frees n pages that were taken. */
void arena_give(struct arena *a, uint32_t page, uint32_t n);
/*
 * Gives the memory of free pages back to the system, and looks for disk space
 * for pages that were set aside.
 */
void arena_trim(struct arena *a);

/* Number of pages that were not set aside, taken or free. */
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

/* Copies *l, which no other thread uses, and switches to the copy. */
void arena_set_link(struct arena *a, const struct arena_link *l);

#endif /* RELAY_OUTBOX_ARENA_H */
