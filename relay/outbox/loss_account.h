/*
 * loss_account: counts what is lost with a chunk that is dropped, to the
 * packet.
 *
 * A packet is lost with the chunk it begins in, once; one that began in a kept
 * chunk and goes on in a dropped one is lost with the latter.  A chunk that was
 * scraped before it was complete comes again: then only the last version
 * matters, and what an earlier one delivered of it is not lost.  So a little is
 * remembered of each writer, in the arena, where it survives a kill:
 *
 * run: consecutive chunks that were dropped.  A packet across their border is
 * counted once, and counting a chunk again adds only what is new.
 *
 * bridge: a kept chunk inside a lost packet.  If chunks on both its sides are
 * dropped, the packet is counted on both, and `over` says how many to take
 * back.
 *
 * version, credit: fragments of a chunk that an earlier, kept version delivers.
 *
 * pending: the last version was dropped, and the chunk may still come again.
 *
 * Pure; bounded by ARENA_TRACKS (beyond, counts may be a packet too high).
 */
#ifndef RELAY_OUTBOX_LOSS_ACCOUNT_H
#define RELAY_OUTBOX_LOSS_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "relay/outbox/arena.h"
#include "transport/wire/pb_reader.h"

struct count {
	struct arena_track *tracks; /* ARENA_TRACKS */
	uint32_t epoch;
	struct arena_undo *undo; /* NULL: what happens is not to be undone */
};

struct count_chunk {
	uint32_t writer;
	uint32_t buffer;
	uint32_t id;
	uint32_t fragments; /* whole ones */
	bool continues; /* the first belongs to a packet of the chunk before */
	bool goes_on;   /* the last one does to one of the chunk behind, too */
	bool incomplete;
	uint32_t bytes;
};

/*
 * Steps through a CommitDataRequest: the next field; *is_chunk tells whether it
 * is a chunk, described in *c (fragments 0 when it is none that can be read).
 */
bool count_next(struct pb_reader *commit, struct pb_field *f, bool *is_chunk,
    struct count_chunk *c);
/* Steps to the next chunk. */
bool count_next_chunk(struct pb_reader *commit, struct count_chunk *c);

/*
 * Whether something is lost when the chunk is put, as it is not the one that
 * was pending: count_end() of the writer first, and tell that.
 */
bool count_is_over(const struct count *k, uint32_t channel,
    const struct count_chunk *c);
/*
 * Notes a chunk that is put at the end of its channel (also when it is dropped
 * there).
 */
void count_put(struct count *k, uint32_t channel, const struct count_chunk *c);
/*
 * Copies what is remembered of the writer into the undo log, before chunks of
 * it are dropped, or its id is another's.  False: the log is full.  All other
 * functions here do so where they can.
 */
bool count_note(struct count *k, uint32_t channel, uint32_t writer) MUST_CHECK;
/* Restores everything that the log has. */
void count_undo(struct arena_track *tracks, const struct arena_undo *undo);
/*
 * Whether all indices in a track that was read from a file are within their
 * tables.
 */
bool count_is_sound(const struct arena_track *t);
/* Counts a chunk that is dropped.  True: *loss is lost with it. */
bool count_drop(struct count *k, uint32_t channel, const struct count_chunk *c,
    uint32_t cause, struct link_loss *loss);
/*
 * Notes a chunk that is to be sent: it may show that a packet was counted twice
 * (count_twice()).  May be said again, until it was sent.
 */
void count_bridge(struct count *k, uint32_t channel,
    const struct count_chunk *c);
/* Notes a chunk that is sent. */
void count_sent(struct count *k, uint32_t channel,
    const struct count_chunk *c);
/*
 * How many packets of a loss of the writer were counted twice, as what was sent
 * before it has shown.  Each is subtracted from one loss only.
 */
uint32_t count_twice(struct count *k, uint32_t channel, uint32_t writer,
    uint64_t packets);
/*
 * Finds a writer of which something is pending: this one, or any of the channel
 * for UINT32_MAX. False: there is none.
 */
bool count_next_pending(const struct count *k, uint32_t channel,
    uint32_t *writer);
/*
 * Counts what was pending of the writer, as it will not come again.  False:
 * nothing was, or it is told already.
 */
bool count_end(struct count *k, uint32_t channel, uint32_t writer,
    struct link_loss *due);
/* Forgets what was dropped: the writer's id is another one's from here on. */
void count_forget(struct count *k, uint32_t channel, uint32_t writer);
/* Whether the chunk is among those that were dropped last. */
bool count_was_dropped(const struct count *k, uint32_t channel,
    uint32_t writer, uint32_t chunk);

#endif /* RELAY_OUTBOX_LOSS_ACCOUNT_H */
