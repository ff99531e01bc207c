/*
 * chunk_writer: packets of one sequence into chunks.
 *
 * A packet is whole before any of it is in a chunk, so a program that is killed
 * leaves whole packets, and none needs to be patched.  A whole packet is in the
 * memory for good as soon as it was put: no instant at which the program is
 * killed hides it again.  Packets that fit are
 * written in place (chunk_writer_room(), chunk_writer_publish()), larger ones
 * are cut over several chunks.  The first packet of the sequence, and the first
 * after a loss, are marked.  One thread at a time.  A writer that waits for a
 * chunk holds none.
 */
#ifndef CLIENT_TRACING_MEMORY_CHUNK_WRITER_H
#define CLIENT_TRACING_MEMORY_CHUNK_WRITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tributary/data_source.h>

#include "client/tracing/memory/chunk_memory.h"
#include "transport/base/compiler.h"

/* Longer packets are dropped, as services refuse them. */
#define CHUNK_WRITER_PACKET_MAX (64u * 1024u * 1024u)
/* Most bytes of a packet that is written in place: its size is one byte. */
#define CHUNK_WRITER_SMALL_MAX 127u

struct chunk_writer {
	uint8_t *at;  /* the next fragment, in the chunk */
	uint8_t *end; /* end of the chunk but a byte; NULL: there is none */
	uint16_t fragments; /* in the chunk, whole */
	uint16_t flags;
	bool plain; /* the next packet needs no mark */
	bool started; /* a packet was written */
	bool lossy;   /* the last packet was dropped */
	bool stalled_in_vain; /* and no chunk was had since */
	bool torn;    /* the rest of a packet was to come in the next chunk */
	uint8_t waits; /* for a chunk; read by other threads */
	uint8_t policy; /* enum tributary_full_policy, not DEFAULT */
	uint16_t id;
	uint32_t buffer;
	uint32_t next_chunk;
	struct shm_slot slot;
	struct chunk_memory *memory; /* a reference */
	uint64_t dropped;
};

/* Takes a reference to m.  -1: no writer id is free. */
int chunk_writer_init(struct chunk_writer *w, struct chunk_memory *m,
    uint32_t buffer, enum tributary_full_policy policy) MUST_CHECK;
/* Hands over what was written, and lets go of the memory. */
void chunk_writer_done(struct chunk_writer *w);

/*
 * Writes a packet.  false: dropped and counted; also in a signal handler that
 * has interrupted the library.
 */
bool chunk_writer_put(struct chunk_writer *w, const uint8_t *packet,
    size_t len);

/* n packets were dropped that were never given to chunk_writer_put(). */
void chunk_writer_count_drop(struct chunk_writer *w, uint64_t n);
/* Any thread. */
static inline uint64_t
chunk_writer_dropped(const struct chunk_writer *w)
{
	return __atomic_load_n(&w->dropped, __ATOMIC_RELAXED);
}
/* Any thread: the writer is in chunk_writer_put(), and has no chunk. */
static inline bool
chunk_writer_waits(const struct chunk_writer *w)
{
	return __atomic_load_n(&w->waits, __ATOMIC_ACQUIRE) != 0;
}

/*
 * Hands the chunk over to the service; the next packet takes another.  The
 * caller has entered (own_memory.h).
 */
void chunk_writer_flush(struct chunk_writer *w);

/*
 * Where to write a packet of up to `most` bytes (CHUNK_WRITER_SMALL_MAX) in
 * place; NULL: by chunk_writer_put().
 */
static inline uint8_t *
chunk_writer_room(const struct chunk_writer *w, size_t most)
{
	if (UNLIKELY(!w->plain || (size_t)(w->end - w->at) < most + 1 ||
	    w->fragments >= SHM_FRAGMENTS_MAX - 1))
		return NULL;
	return w->at + 1;
}

/*
 * The packet in chunk_writer_room() is whole, len bytes.  The chunk's count is
 * one more than its whole fragments while it is being written: a reader that
 * scrapes it leaves the last one out, which does not exist yet.
 */
static inline void
chunk_writer_publish(struct chunk_writer *w, size_t len)
{
	w->at[0] = (uint8_t)len;
	w->at += len + 1;
	w->fragments++;
	shm_set_packets(&w->slot, (uint16_t)(w->fragments + 1), w->flags);
}

#endif /* CLIENT_TRACING_MEMORY_CHUNK_WRITER_H */
