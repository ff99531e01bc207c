/*
 * chunk_reader: a service for tests: takes the chunks that a chunk_memory has
 * queued, frees them, and puts their packets together.
 */
#ifndef TESTS_UNIT_CLIENT_TRACING_MEMORY_CHUNK_READER_H
#define TESTS_UNIT_CLIENT_TRACING_MEMORY_CHUNK_READER_H

#include <stddef.h>
#include <stdint.h>

#include "client/tracing/memory/chunk_memory.h"

struct read_packet {
	uint8_t *data;
	size_t len;
	uint16_t writer;
};

/* Of one writer at a time. */
struct chunk_reader {
	struct chunk_memory *memory; /* borrowed */
	struct read_packet *packets;
	size_t n_packets;
	struct read_packet open; /* cut, and its rest did not come yet */
	bool has_open;
	size_t chunks, notes;
	size_t dropped;        /* packets with SHM_SIZE_DROP_PACKET */
	size_t most_fragments; /* in one chunk */
};

void chunk_reader_init(struct chunk_reader *r, struct chunk_memory *m);
void chunk_reader_done(struct chunk_reader *r);
/* All that is queued. */
void chunk_reader_run(struct chunk_reader *r);
/* Forgets the packets that it has. */
void chunk_reader_forget(struct chunk_reader *r);

#endif /* TESTS_UNIT_CLIENT_TRACING_MEMORY_CHUNK_READER_H */
