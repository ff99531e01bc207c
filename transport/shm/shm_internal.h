/*
 * shm_internal: the words of the shared memory, for shm_reader.c and
 * shm_writer.c only.
 *
 * A page begins with a word of 32 bits: two bits of state per chunk (chunk 0
 * lowest), the layout in bits 28..30; four reserved bytes follow.  A chunk
 * begins with its id (32 bits), its writer (16) and a word of 10 bits count of
 * fragments and 6 bits flags.  All little-endian.
 */
#ifndef TRANSPORT_SHM_SHM_INTERNAL_H
#define TRANSPORT_SHM_SHM_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/shm/shm.h"

#define SHM_STATE_BITS     2u
#define SHM_STATE_MASK     3u
#define SHM_ALL_CHUNKS     0x0fffffffu
#define SHM_LAYOUT_SHIFT   28u
#define SHM_LAYOUT_MASK    0x70000000u
#define SHM_COUNT_MASK     0x3ffu /* fragments, low bits of the packets word */
#define SHM_FLAGS_SHIFT    10u
#define SHM_FLAGS_MASK     0x7u /* the three flags that exist */

struct shm {
	uint8_t *base; /* owned mapping */
	size_t size;
	size_t page_size;
	size_t pages;
	int fd; /* owned */

	/* Reader only: a bit for each chunk, by page; owned, or NULL. */
	uint16_t *scraped;

	/* Writer only: held while a chunk is acquired. */
	pthread_mutex_t lock;
	size_t next_page; /* where the search for a free chunk begins */
};

static inline _Atomic uint32_t *
shm_word(const struct shm *s, uint32_t page)
{
	return (_Atomic uint32_t *)(void *)(s->base + page * s->page_size);
}

/* Chunks in a page with this first word; 0 when it is not partitioned. */
static inline uint32_t
shm_word_chunks(uint32_t word)
{
	static const uint8_t chunks[8] = { 0, 1, 2, 4, 7, 14, 0, 0 };

	return chunks[(word & SHM_LAYOUT_MASK) >> SHM_LAYOUT_SHIFT];
}

static inline uint32_t
shm_word_state(uint32_t word, uint32_t index)
{
	return (word >> (index * SHM_STATE_BITS)) & SHM_STATE_MASK;
}

/* Bytes of a chunk in a page of n (not 0) chunks, with its header. */
static inline size_t
shm_chunk_size(const struct shm *s, uint32_t n)
{
	return ((s->page_size - SHM_PAGE_HEADER_BYTES) / n) & ~(size_t)3;
}

/* Where chunk `index` of a page divided by n begins; index < n. */
static inline uint8_t *
shm_chunk_at(const struct shm *s, uint32_t page, uint32_t n, uint32_t index)
{
	return s->base + page * s->page_size + SHM_PAGE_HEADER_BYTES +
	    index * shm_chunk_size(s, n);
}

static inline _Atomic uint32_t *
shm_head_id(uint8_t *chunk)
{
	return (_Atomic uint32_t *)(void *)chunk;
}

static inline _Atomic uint16_t *
shm_head_writer(uint8_t *chunk)
{
	return (_Atomic uint16_t *)(void *)(chunk + 4);
}

static inline _Atomic uint16_t *
shm_head_packets(uint8_t *chunk)
{
	return (_Atomic uint16_t *)(void *)(chunk + 6);
}

#endif /* TRANSPORT_SHM_SHM_INTERNAL_H */
