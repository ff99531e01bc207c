/*
 * chunker: the numbered packets of one sequence, cut into chunks as trace
 * writers do: one packet behind the other, packets that go on in the next
 * chunk, and those whose size is patched in when it is known.
 *
 * Knows nothing of connections and memory: chunks are handed out.  Pure.
 */
#ifndef TESTS_BENCH_LOAD_CHUNKER_H
#define TESTS_BENCH_LOAD_CHUNKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/bench/load/numbered.h"
#include "transport/base/compiler.h"

struct pb_writer;

/* Payload of a chunk that takes a page: less both headers. */
#define CHUNKER_BYTES 4080u
/* Patches of a sequence that wait; more packets than that go without. */
#define CHUNKER_PATCHES_MAX 16u

struct chunker_chunk {
	uint32_t id;
	uint16_t fragments;
	uint8_t flags;          /* enum shm_chunk_flag */
	const uint8_t *payload; /* borrowed for the call */
	size_t len;
};
typedef void (*chunker_fn)(void *arg, const struct chunker_chunk *c);

struct chunker_patch {
	uint64_t number; /* of its packet */
	uint32_t chunk;
	uint32_t offset; /* in the payload */
	uint8_t size[NUMBERED_SIZE_BYTES];
};

struct chunker {
	uint32_t key;
	bool patching; /* sizes of packets that go on in the next chunk */
	uint32_t next_chunk;
	uint64_t next_packet;
	uint64_t bytes; /* of all packets */
	uint32_t flags; /* enum numbered_flag of the next packet; 0: stateless */
	uint8_t *open;  /* CHUNKER_BYTES, owned; NULL: none is open */
	size_t used;
	uint16_t fragments;
	size_t repeat_len; /* of what chunker_repeat() hands out; 0: none yet */
	uint16_t repeat_fragments;
	struct chunker_patch patches[CHUNKER_PATCHES_MAX];
	size_t n_patches;
};

void chunker_init(struct chunker *c, uint32_t key, bool patching);
/* The next packet begins anew; all behind it need what it says. */
void chunker_begin_anew(struct chunker *c);
void chunker_done(struct chunker *c);

/*
 * Writes the next packet, of about size bytes; fn is called for each chunk
 * that is full.  scratch is emptied.  -1: no memory, and nothing was written.
 */
int chunker_packet(struct chunker *c, size_t size, uint64_t timestamp_ns,
    struct pb_writer *scratch, chunker_fn fn, void *arg) MUST_CHECK;
/* Packets of chunker_repeat(). */
#define CHUNKER_REPEAT_MAX 4000u
/*
 * Hands out one full chunk of whole packets of this size, made by the first
 * call: afterwards only its id is new, so that it costs next to nothing and a
 * generator can be faster than what it measures.  Nothing else may be written
 * to this sequence.  -1: no memory.
 */
int chunker_repeat(struct chunker *c, size_t size, uint64_t timestamp_ns,
    struct pb_writer *scratch, chunker_fn fn, void *arg) MUST_CHECK;
/* Hands out the open chunk, too.  false: there was none. */
bool chunker_flush(struct chunker *c, chunker_fn fn, void *arg);
/*
 * Adds what patches wait to a CommitDataRequest, which has to go behind the
 * chunks.  All packets below the result are then whole.
 */
void chunker_put_patches(struct chunker *c, uint32_t buffer, uint16_t writer,
    struct pb_writer *commit);
/* Packets below it need no patch that waits, and no chunk that is open. */
uint64_t chunker_complete(const struct chunker *c);

#endif /* TESTS_BENCH_LOAD_CHUNKER_H */
