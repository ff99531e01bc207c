/*
 * loss_track: counts the losses of one writer, to the packet.
 *
 * A packet is lost with the chunk it begins in, once; one that began in a kept
 * chunk and goes on in a dropped one is lost with the latter.  A chunk that was
 * scraped before it was complete comes again: then only the last version
 * matters, and fragments that an earlier version delivers are not lost.  So the
 * track of a writer has:
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
 * Pure; a track is the caller's (arena.h).  cause: LinkLossCause.
 */
#ifndef RELAY_OUTBOX_LOSS_TRACK_H
#define RELAY_OUTBOX_LOSS_TRACK_H

#include <stdbool.h>
#include <stdint.h>

#include "relay/outbox/arena.h"
#include "relay/outbox/commit_chunk.h"

/*
 * Whether all indices in a track that was read from a file are within their
 * tables.
 */
bool loss_track_is_sound(const struct arena_track *t);
/* Notes a chunk that is put at the end of its channel. */
void loss_track_put(struct arena_track *t, const struct commit_chunk *c);
/* Counts a chunk that is dropped.  True: it loses *loss, to be told. */
bool loss_track_drop(struct arena_track *t, const struct commit_chunk *c,
    uint32_t cause, struct link_loss *loss);
/*
 * Notes a kept chunk if it holds only the middle of a lost packet.  sent: it is
 * being sent; else it is put.
 */
void loss_track_bridge(struct arena_track *t, const struct commit_chunk *c,
    bool sent);
/* Counts the pending version.  True: it loses *due, to be told. */
bool loss_track_end(struct arena_track *t, struct link_loss *due);
/* Whether the chunk is in one of the track's runs. */
bool loss_track_has_dropped(const struct arena_track *t, uint32_t chunk);

#endif /* RELAY_OUTBOX_LOSS_TRACK_H */
