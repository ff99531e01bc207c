#include "transport/shm.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "transport/shm_internal.h"

/*
 * Nothing here loops until the other side behaves: each change of a page word
 * is one atomic operation whose outcome is looked at once.
 */

/* Times a chunk that changes under the scraper is looked at anew. */
#define SCRAPE_ATTEMPTS 4

static void
set_packets(struct shm_chunk *c, uint16_t packets)
{
	c->num_fragments = packets & SHM_COUNT_MASK;
	c->flags = (packets >> SHM_FLAGS_SHIFT) & SHM_FLAGS_MASK;
}

/* Fills *out from the chunk's header; n is the page's number of chunks. */
static void
describe(const struct shm *s, uint32_t page, uint32_t n, uint32_t index,
    struct shm_chunk *out)
{
	uint8_t *chunk = shm_chunk_at(s, page, n, index);

	out->page = page;
	out->index = index;
	/* First: what it counts, and the ids, were stored before it. */
	set_packets(out, atomic_load_explicit(shm_head_packets(chunk),
	    memory_order_acquire));
	out->writer_id = atomic_load_explicit(shm_head_writer(chunk),
	    memory_order_relaxed);
	out->chunk_id = atomic_load_explicit(shm_head_id(chunk),
	    memory_order_relaxed);
	out->payload = chunk + SHM_CHUNK_HEADER_BYTES;
	out->len = shm_chunk_size(s, n) - SHM_CHUNK_HEADER_BYTES;
}

enum shm_take
shm_take(struct shm *s, uint32_t page, uint32_t index, struct shm_chunk *out)
{
	_Atomic uint32_t *word;
	uint32_t seen, prev, n, bit;

	if (page >= s->pages)
		return SHM_BAD_INDEX;
	word = shm_word(s, page);
	seen = atomic_load_explicit(word, memory_order_acquire);
	n = shm_word_chunks(seen);
	if (index >= n)
		return SHM_BAD_INDEX;
	if (shm_word_state(seen, index) != SHM_COMPLETE)
		return SHM_NOT_COMPLETE;

	/* COMPLETE (3) to BEING_READ (2): clear the low bit. */
	bit = 1u << (index * SHM_STATE_BITS);
	prev = atomic_fetch_and_explicit(word, ~bit, memory_order_acq_rel);
	/* Nobody but us may change a complete chunk: a hostile writer did. */
	if (shm_word_state(prev, index) != SHM_COMPLETE ||
	    shm_word_chunks(prev) != n)
		return SHM_NOT_COMPLETE;
	describe(s, page, n, index, out);
	return SHM_TAKEN;
}

void
shm_put_back(struct shm *s, uint32_t page, uint32_t index)
{
	_Atomic uint32_t *word;
	uint32_t seen;

	if (page >= s->pages)
		return;
	word = shm_word(s, page);
	seen = atomic_load_explicit(word, memory_order_acquire);
	if (index < shm_word_chunks(seen) &&
	    shm_word_state(seen, index) == SHM_BEING_READ)
		atomic_fetch_or_explicit(word, 1u << (index * SHM_STATE_BITS),
		    memory_order_acq_rel);
}

void
shm_release(struct shm *s, uint32_t page, uint32_t index)
{
	_Atomic uint32_t *word;
	uint32_t seen, left, n;
	uint8_t *chunk;

	if (page >= s->pages)
		return;
	word = shm_word(s, page);
	seen = atomic_load_explicit(word, memory_order_acquire);
	n = shm_word_chunks(seen);
	if (index >= n || shm_word_state(seen, index) != SHM_BEING_READ)
		return;

	/*
	 * A writer marks a chunk as its own before it writes the header: until
	 * then a scrape must find no fragments there.
	 */
	chunk = shm_chunk_at(s, page, n, index);
	atomic_store_explicit(shm_head_writer(chunk), 0, memory_order_relaxed);
	atomic_store_explicit(shm_head_id(chunk), 0, memory_order_relaxed);
	atomic_store_explicit(shm_head_packets(chunk), 0, memory_order_release);

	left = ~(SHM_STATE_MASK << (index * SHM_STATE_BITS));
	left &= atomic_fetch_and_explicit(word, left, memory_order_acq_rel);
	/*
	 * All free: the page can be divided anew.  When this fails a writer
	 * has acquired a chunk again, whose release comes back here.
	 */
	if ((left & SHM_ALL_CHUNKS) == 0)
		atomic_compare_exchange_strong_explicit(word, &left, 0,
		    memory_order_acq_rel, memory_order_relaxed);
}

/*
 * Describes one chunk when it holds something to scrape.  word is the page's
 * as last seen.
 */
static bool
scrape_chunk(struct shm *s, uint32_t page, uint32_t index, uint32_t word,
    bool left, struct shm_chunk *out, bool *complete)
{
	uint32_t n, state, again, mask;
	int attempt;

	mask = SHM_LAYOUT_MASK | SHM_STATE_MASK << (index * SHM_STATE_BITS);
	for (attempt = 0; attempt < SCRAPE_ATTEMPTS; attempt++) {
		n = shm_word_chunks(word);
		if (index >= n)
			return false;
		state = shm_word_state(word, index);
		if (state != SHM_BEING_WRITTEN && state != SHM_COMPLETE &&
		    !(left && state == SHM_BEING_READ))
			return false;
		describe(s, page, n, index, out);
		again = atomic_load_explicit(shm_word(s, page),
		    memory_order_acquire);
		if (((word ^ again) & mask) == 0) {
			*complete = state != SHM_BEING_WRITTEN;
			/*
			 * The last fragment of an unfinished chunk is not
			 * whole, and with less than two the header itself may
			 * not be written yet.
			 */
			return *complete || out->num_fragments >= 2;
		}
		word = again; /* most likely completed just now */
	}
	return false;
}

static void
scrape_page(struct shm *s, uint32_t page, bool left, shm_scrape_fn fn,
    void *arg)
{
	struct shm_chunk c;
	uint32_t index, word, n;
	bool complete;

	word = atomic_load_explicit(shm_word(s, page), memory_order_acquire);
	n = shm_word_chunks(word);
	for (index = 0; index < n; index++)
		if (scrape_chunk(s, page, index, word, left, &c, &complete))
			fn(arg, &c, complete);
}

/*
 * Finds the next run of pages that begin in something written, from *page up to
 * *end.  The others are holes of the memfd: reading one would allocate it, and
 * a crowd that has written little would cost all of its shared memory.
 */
static bool
find_written(const struct shm *s, uint32_t *page, uint32_t *end)
{
	off_t size = (off_t)s->size, data, hole;

	*end = (uint32_t)s->pages;
	if (*page >= s->pages)
		return false;
	data = lseek(s->fd, (off_t)(*page * s->page_size), SEEK_DATA);
	if (data < 0)
		return errno != ENXIO; /* not known: all of them */
	hole = lseek(s->fd, data, SEEK_HOLE);
	if (hole == data)
		hole++; /* a hole meanwhile: each call gets on by a page */
	if (hole < 0 || hole > size)
		hole = size;
	if (data > size)
		data = size;
	*page = (uint32_t)(((size_t)data + s->page_size - 1) / s->page_size);
	*end = (uint32_t)(((size_t)hole + s->page_size - 1) / s->page_size);
	return true;
}

static void
scrape(struct shm *s, bool left, shm_scrape_fn fn, void *arg)
{
	uint32_t page, end;

	for (page = 0; find_written(s, &page, &end); page = end)
		for (; page < end; page++)
			scrape_page(s, page, left, fn, arg);
}

void
shm_scrape(struct shm *s, shm_scrape_fn fn, void *arg)
{
	scrape(s, false, fn, arg);
}

void
shm_scrape_left(struct shm *s, shm_scrape_fn fn, void *arg)
{
	scrape(s, true, fn, arg);
}

int
shm_chunk_from_bytes(const uint8_t *data, size_t len, struct shm_chunk *out)
{
	uint16_t packets;

	if (len < SHM_CHUNK_HEADER_BYTES)
		return -1;
	memset(out, 0, sizeof(*out));
	memcpy(&out->chunk_id, data, 4);
	memcpy(&out->writer_id, data + 4, 2);
	memcpy(&packets, data + 6, 2);
	set_packets(out, packets);
	out->payload = data + SHM_CHUNK_HEADER_BYTES;
	out->len = len - SHM_CHUNK_HEADER_BYTES;
	return 0;
}
