#include "transport/shm/shm.h"
#include "transport/shm/shm_internal.h"

/*
 * A page word is changed by the reader at the same time: chunks go from
 * complete to free, and a page whose chunks are all free is undivided.  Each
 * chunk can do that once between two looks, hence the number of attempts.
 */
#define ACQUIRE_ATTEMPTS 64

struct chunk_header {
	uint16_t writer_id;
	uint32_t chunk_id;
	uint8_t flags;
};

/* The header of a chunk that is still free, before it is marked as ours. */
static void
write_header(uint8_t *chunk, const struct chunk_header *h)
{
	atomic_store_explicit(shm_head_writer(chunk), h->writer_id,
	    memory_order_relaxed);
	atomic_store_explicit(shm_head_id(chunk), h->chunk_id,
	    memory_order_relaxed);
	atomic_store_explicit(shm_head_packets(chunk),
	    (uint16_t)((h->flags & SHM_FLAGS_MASK) << SHM_FLAGS_SHIFT),
	    memory_order_release);
}

static int
first_free(uint32_t word)
{
	uint32_t i, n = shm_word_chunks(word);

	for (i = 0; i < n; i++)
		if (shm_word_state(word, i) == SHM_FREE)
			return (int)i;
	return -1;
}

/*
 * Takes a chunk of this page.  While the lock is held no other thread takes a
 * free chunk, so the header is written before the state becomes BEING_WRITTEN,
 * and a scrape never sees a stale one.
 */
static bool
acquire_in_page(struct shm *s, uint32_t page, enum shm_layout layout,
    const struct chunk_header *h, struct shm_slot *out)
{
	_Atomic uint32_t *word = shm_word(s, page);
	uint32_t seen, base, n;
	uint8_t *chunk;
	int attempt, index;

	seen = atomic_load_explicit(word, memory_order_acquire);
	for (attempt = 0; attempt < ACQUIRE_ATTEMPTS; attempt++) {
		base = seen != 0 ? seen : (uint32_t)layout << SHM_LAYOUT_SHIFT;
		if ((index = first_free(base)) < 0)
			return false;
		n = shm_word_chunks(base);
		chunk = shm_chunk_at(s, page, n, (uint32_t)index);
		write_header(chunk, h);
		base |= (uint32_t)SHM_BEING_WRITTEN
		    << ((uint32_t)index * SHM_STATE_BITS);
		if (atomic_compare_exchange_strong_explicit(word, &seen, base,
		    memory_order_acq_rel, memory_order_acquire)) {
			out->page = page;
			out->index = (uint32_t)index;
			out->payload = chunk + SHM_CHUNK_HEADER_BYTES;
			out->len = shm_chunk_size(s, n) -
			    SHM_CHUNK_HEADER_BYTES;
			return true;
		}
	}
	return false;
}

bool
shm_acquire(struct shm *s, enum shm_layout layout, uint16_t writer_id,
    uint32_t chunk_id, uint8_t flags, struct shm_slot *out)
{
	const struct chunk_header h = { writer_id, chunk_id, flags };
	size_t i, page;
	bool got = false;

	if (layout < SHM_DIV1 || layout > SHM_DIV14)
		return false;
	pthread_mutex_lock(&s->lock);
	for (i = 0; i < s->pages && !got; i++) {
		page = (s->next_page + i) % s->pages;
		got = acquire_in_page(s, (uint32_t)page, layout, &h, out);
		if (got) {
			s->next_page = page;
			/* The last of its page: go on with the next one. */
			if (first_free(atomic_load_explicit(
			    shm_word(s, (uint32_t)page),
			    memory_order_relaxed)) < 0)
				s->next_page = (page + 1) % s->pages;
		}
	}
	pthread_mutex_unlock(&s->lock);
	return got;
}

/* Only the owner of a chunk writes this word: no read-modify-write needed. */
static void
store_packets(const struct shm_slot *slot, uint16_t packets)
{
	atomic_store_explicit(
	    shm_head_packets(slot->payload - SHM_CHUNK_HEADER_BYTES), packets,
	    memory_order_release);
}

static uint16_t
load_packets(const struct shm_slot *slot)
{
	return atomic_load_explicit(
	    shm_head_packets(slot->payload - SHM_CHUNK_HEADER_BYTES),
	    memory_order_relaxed);
}

void
shm_add_fragment(struct shm *s, const struct shm_slot *slot)
{
	uint16_t packets = load_packets(slot);

	if ((packets & SHM_COUNT_MASK) < SHM_FRAGMENTS_MAX)
		store_packets(slot, (uint16_t)(packets + 1));
}

void
shm_set_flag(struct shm *s, const struct shm_slot *slot, uint8_t flag)
{
	store_packets(slot, (uint16_t)(load_packets(slot) |
	    (flag & SHM_FLAGS_MASK) << SHM_FLAGS_SHIFT));
}

bool
shm_has_complete(const struct shm *s)
{
	/* COMPLETE and BEING_READ have the high bit of the two. */
	uint32_t high = SHM_ALL_CHUNKS & 0xaaaaaaaau, page;

	for (page = 0; page < s->pages; page++)
		if ((atomic_load_explicit(shm_word(s, page),
		    memory_order_relaxed) & high) != 0)
			return true;
	return false;
}

void
shm_complete(struct shm *s, const struct shm_slot *slot)
{
	/* BEING_WRITTEN (1) to COMPLETE (3): set the high bit. */
	atomic_fetch_or_explicit(shm_word(s, slot->page),
	    2u << (slot->index * SHM_STATE_BITS), memory_order_acq_rel);
}
