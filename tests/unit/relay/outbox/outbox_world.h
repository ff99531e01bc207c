/*
 * outbox_world: an outbox in a folder of its own, for tests: can be opened
 * again as a later process would, filled with chunks and emptied.
 */
#ifndef TESTS_UNIT_RELAY_OUTBOX_OUTBOX_WORLD_H
#define TESTS_UNIT_RELAY_OUTBOX_OUTBOX_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/outbox/outbox.h"

struct outbox_world {
	struct loop *loop;
	struct outbox *o;
	struct outbox_setup setup;
	char dir[64];
	char spool[80];
	unsigned ready;
	unsigned overflows;
};

/* Makes the folder; memory_bytes as in the setup; no spool yet. */
void world_init(struct outbox_world *w, size_t memory_bytes);
/* Closes and removes all. */
void world_done(struct outbox_world *w);
/* With a spool of so many bytes. */
void world_spool(struct outbox_world *w, uint64_t bytes);
/* Must succeed. */
void world_open(struct outbox_world *w);
/* What a process that ends leaves to the next one. */
void world_reopen(struct outbox_world *w);
/* Runs what is deferred. */
void world_turn(struct outbox_world *w);

/* Every page that is free, as if what must not be dropped had taken it. */
void world_take_every_page(struct outbox_world *w);

/* A CommitDataRequest with a chunk, as producers.c makes it. */
struct chunk {
	uint32_t writer;
	uint32_t buffer;
	uint32_t id;
	uint32_t fragments;
	uint32_t flags;
	size_t payload;
	bool incomplete;
	uint32_t mark; /* the payload's first four bytes, when it has them */
};
/* Behind the mark a byte is the chunk's id plus its place. */
size_t chunk_encode(uint8_t *out, const struct chunk *c);
/* Reserves and commits.  False: there was no room. */
bool world_chunk(struct outbox_world *w, uint32_t channel,
    const struct chunk *c);

#endif /* TESTS_UNIT_RELAY_OUTBOX_OUTBOX_WORLD_H */
