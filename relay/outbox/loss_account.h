/*
 * loss_account: counts the losses of all writers to the packet, as their chunks
 * are dropped.
 *
 * Each writer has a track (loss_track.h) in the arena, where it survives a
 * kill.  The undo log (arena.h) takes back counts whose LINK_UP_LOSS was not
 * added.
 *
 * Pure.  With more than ARENA_TRACKS writers the track of one is given to
 * another, and counts may be a packet too high.
 */
#ifndef RELAY_OUTBOX_LOSS_ACCOUNT_H
#define RELAY_OUTBOX_LOSS_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "relay/outbox/arena.h"
#include "relay/outbox/commit_chunk.h"
#include "transport/base/compiler.h"

/* The account of one link; all is borrowed. */
struct loss_account {
	struct arena_track *tracks; /* ARENA_TRACKS */
	uint32_t epoch;             /* of the link */
	struct arena_undo *undo;    /* NULL: changes are not logged */
};

/*
 * Whether the writer has a pending loss that this chunk, another one, makes
 * final: the caller has to call loss_account_end(), and tell that loss, before
 * loss_account_put().
 */
bool loss_account_is_over(const struct loss_account *k, uint32_t channel,
    const struct commit_chunk *c);
/*
 * Notes a chunk that is put at the end of its channel (also when it is dropped
 * there).
 */
void loss_account_put(struct loss_account *k, uint32_t channel,
    const struct commit_chunk *c);
/*
 * Copies the writer's track into the undo log, once, before it is changed.
 * False: the log is full.  The functions that change a track log it themselves
 * where there is room; before loss_account_drop() and loss_account_forget() the
 * caller does.
 */
bool loss_account_note(struct loss_account *k, uint32_t channel,
    uint32_t writer) MUST_CHECK;
/* Restores every track in the log; its content is checked. */
void loss_account_undo(struct arena_track *tracks,
    const struct arena_undo *undo);
/* Counts a chunk that is dropped.  True: *loss is lost with it. */
bool loss_account_drop(struct loss_account *k, uint32_t channel,
    const struct commit_chunk *c, uint32_t cause, struct link_loss *loss);
/*
 * Notes a chunk that is to be sent: it may show that a packet was counted twice
 * (loss_account_twice()).  May be called again for the chunk until
 * loss_account_sent().
 */
void loss_account_bridge(struct loss_account *k, uint32_t channel,
    const struct commit_chunk *c);
/* Notes a chunk that is sent. */
void loss_account_sent(struct loss_account *k, uint32_t channel,
    const struct commit_chunk *c);
/*
 * Returns how many of the packets of a loss were counted twice, by the chunks
 * of the writer sent before it, and forgets them: each packet is subtracted
 * from one loss only.
 */
uint32_t loss_account_twice(struct loss_account *k, uint32_t channel,
    uint32_t writer, uint64_t packets);
/*
 * Finds a writer with a pending loss: *writer, or for UINT32_MAX any of the
 * channel, which *writer is set to.  False: there is none.
 */
bool loss_account_next_pending(const struct loss_account *k, uint32_t channel,
    uint32_t *writer);
/*
 * Counts the writer's pending loss, as its chunk will not come again.  False:
 * nothing was pending, or all of it was counted before.
 */
bool loss_account_end(struct loss_account *k, uint32_t channel, uint32_t writer,
    struct link_loss *due);
/* Forgets which chunks were dropped: another writer has the id from now on. */
void loss_account_forget(struct loss_account *k, uint32_t channel,
    uint32_t writer);
/* Whether the chunk is in one of the runs that the track remembers. */
bool loss_account_was_dropped(const struct loss_account *k, uint32_t channel,
    uint32_t writer, uint32_t chunk);

#endif /* RELAY_OUTBOX_LOSS_ACCOUNT_H */
