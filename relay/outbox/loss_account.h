/*
 * loss_account: what is lost with a chunk that is dropped, to the packet.
 *
 * A packet is lost with the chunk it begins in, once; one that began in a
 * chunk that is kept and goes on in one that is dropped is lost with the
 * latter.  A chunk that was scraped before it was complete comes again: then
 * only the last version matters, and what of it an earlier one delivered is
 * not lost.  For that a little is remembered of a writer, in the arena.
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
/* The same, chunks alone. */
bool count_next_chunk(struct pb_reader *commit, struct count_chunk *c);

/*
 * Whether something is lost when the chunk is put, as it is not the one that
 * was pending: count_end() of the writer first, and tell that.
 */
bool count_is_over(const struct count *k, uint32_t channel,
    const struct count_chunk *c);
/* A chunk is put at the end of its channel (also when it is dropped there). */
void count_put(struct count *k, uint32_t channel, const struct count_chunk *c);
/*
 * Notes what is remembered of the writer, before chunks of it are dropped, or
 * its id is another's.  False: there is no room to note one more.  Everything
 * else here notes it where it can.
 */
bool count_note(struct count *k, uint32_t channel, uint32_t writer) MUST_CHECK;
/* Puts everything back that was noted. */
void count_undo(struct arena_track *tracks, const struct arena_undo *undo);
/* Whether no index in it, read back from a file, leads out of its table. */
bool count_is_sound(const struct arena_track *t);
/* A chunk is dropped.  True: *loss is lost with it. */
bool count_drop(struct count *k, uint32_t channel, const struct count_chunk *c,
    uint32_t cause, struct link_loss *loss);
/*
 * A chunk is to be sent: it may show that a packet was counted twice
 * (count_twice()).  May be said again, until it was sent.
 */
void count_bridge(struct count *k, uint32_t channel,
    const struct count_chunk *c);
/* It is sent. */
void count_sent(struct count *k, uint32_t channel,
    const struct count_chunk *c);
/*
 * How many of the packets that a loss of the writer tells of were counted
 * twice, as what was sent before it has shown.  They are not owed any more.
 */
uint32_t count_twice(struct count *k, uint32_t channel, uint32_t writer,
    uint64_t packets);
/*
 * A writer of which something is pending: this one, or any of the channel for
 * UINT32_MAX.  False: there is none.
 */
bool count_next_pending(const struct count *k, uint32_t channel,
    uint32_t *writer);
/*
 * What was pending of the writer will not come: it is lost.  False: nothing
 * was, or it is told already.
 */
bool count_end(struct count *k, uint32_t channel, uint32_t writer,
    struct link_loss *due);
/* The writer's id is another one's from here on. */
void count_forget(struct count *k, uint32_t channel, uint32_t writer);
/* Whether the chunk is among those that were dropped last. */
bool count_was_dropped(const struct count *k, uint32_t channel,
    uint32_t writer, uint32_t chunk);

#endif /* RELAY_OUTBOX_LOSS_ACCOUNT_H */
