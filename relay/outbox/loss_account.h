/*
 * loss_account: counts what is lost with chunks that are dropped, to the
 * packet, for all writers.
 *
 * Each writer has a track (loss_track.h) in the arena, where it survives a kill.
 * A log undoes what was counted and not told.
 *
 * Pure; bounded by ARENA_TRACKS (beyond, counts may be a packet too high).
 */
#ifndef RELAY_OUTBOX_LOSS_ACCOUNT_H
#define RELAY_OUTBOX_LOSS_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "relay/outbox/arena.h"
#include "relay/outbox/commit_chunk.h"
#include "transport/base/compiler.h"

struct count {
	struct arena_track *tracks; /* ARENA_TRACKS */
	uint32_t epoch;
	struct arena_undo *undo; /* NULL: what happens is not to be undone */
};

/*
 * Whether something is lost when the chunk is put, as it is not the one that
 * was pending: count_end() of the writer first, and tell that.
 */
bool count_is_over(const struct count *k, uint32_t channel,
    const struct commit_chunk *c);
/*
 * Notes a chunk that is put at the end of its channel (also when it is dropped
 * there).
 */
void count_put(struct count *k, uint32_t channel, const struct commit_chunk *c);
/*
 * Copies what is remembered of the writer into the undo log, before chunks of
 * it are dropped, or its id is another's.  False: the log is full.  All other
 * functions here do so where they can.
 */
bool count_note(struct count *k, uint32_t channel, uint32_t writer) MUST_CHECK;
/* Restores everything that the log has. */
void count_undo(struct arena_track *tracks, const struct arena_undo *undo);
/* Counts a chunk that is dropped.  True: *loss is lost with it. */
bool count_drop(struct count *k, uint32_t channel, const struct commit_chunk *c,
    uint32_t cause, struct link_loss *loss);
/*
 * Notes a chunk that is to be sent: it may show that a packet was counted twice
 * (count_twice()).  May be said again, until it was sent.
 */
void count_bridge(struct count *k, uint32_t channel,
    const struct commit_chunk *c);
/* Notes a chunk that is sent. */
void count_sent(struct count *k, uint32_t channel,
    const struct commit_chunk *c);
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
