#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/shm/shm.h"
#include "transport/shm/shm_internal.h"

/*
 * No loop here waits until the other side behaves: each change of a page word
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
	out->behind = false;
	/* First: the writer stored the fragments and ids before this word. */
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
	/* A complete chunk is ours to change: a hostile writer changed it. */
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

/* How far the chunks of a writer follow one another. */
struct extent {
	bool seen, unfinished;
	uint32_t newest; /* seen */
	uint32_t first;  /* unfinished */
};

struct scrape {
	struct shm *s;
	bool left;
	bool noted;             /* any chunk */
	struct extent *extents; /* by writer; NULL: nothing is behind */
	shm_scrape_fn fn;
	void *arg;
};

/*
 * Describes one chunk when it holds something to scrape.  word is the page's
 * as last seen.
 */
static bool
scrape_chunk(struct scrape *sc, uint32_t page, uint32_t index, uint32_t word,
    struct shm_chunk *out, bool *complete)
{
	struct shm *s = sc->s;
	uint32_t n, state, again, mask;
	int attempt;

	mask = SHM_LAYOUT_MASK | SHM_STATE_MASK << (index * SHM_STATE_BITS);
	for (attempt = 0; attempt < SCRAPE_ATTEMPTS; attempt++) {
		n = shm_word_chunks(word);
		if (index >= n)
			return false;
		state = shm_word_state(word, index);
		if (state != SHM_BEING_WRITTEN && state != SHM_COMPLETE &&
		    !(sc->left && state == SHM_BEING_READ))
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

typedef void (*page_fn)(struct scrape *sc, uint32_t page);

static bool
is_after(uint32_t id, uint32_t other)
{
	return id != other && id - other < 1u << 31;
}

static bool
is_behind(const struct scrape *sc, const struct shm_chunk *c)
{
	const struct extent *e;

	if (sc->extents == NULL || c->writer_id > SHM_MAX_WRITER_ID)
		return false;
	e = &sc->extents[c->writer_id];
	return !e->seen || is_after(c->chunk_id, e->newest) ||
	    (e->unfinished && is_after(c->chunk_id, e->first));
}

static void
scrape_page(struct scrape *sc, uint32_t page)
{
	struct shm_chunk c;
	uint32_t index, word, n;
	bool complete;

	word = atomic_load_explicit(shm_word(sc->s, page),
	    memory_order_acquire);
	n = shm_word_chunks(word);
	for (index = 0; index < n; index++) {
		if (!scrape_chunk(sc, page, index, word, &c, &complete))
			continue;
		c.behind = is_behind(sc, &c);
		sc->fn(sc->arg, &c, complete);
	}
}

static void
note_newest(struct extent *e, uint32_t id)
{
	if (!e->seen || is_after(id, e->newest))
		e->newest = id;
	e->seen = true;
}

static void
note_first(struct extent *e, uint32_t id)
{
	if (!e->unfinished || is_after(e->first, id))
		e->first = id;
	e->unfinished = true;
}

typedef void (*note_fn)(struct extent *e, uint32_t id);

/*
 * The extents are allocated with the first chunk: most producers have no chunk
 * in their memory when they are scraped.
 */
static void
note_chunk(struct scrape *sc, const struct shm_chunk *c, note_fn note)
{
	if (c->writer_id > SHM_MAX_WRITER_ID || c->num_fragments == 0)
		return;
	if (!sc->noted)
		sc->extents = calloc(SHM_MAX_WRITER_ID + 1,
		    sizeof(*sc->extents));
	sc->noted = true;
	if (sc->extents != NULL)
		note(&sc->extents[c->writer_id], c->chunk_id);
}

/* Chunks that have a header yet, in a state that is wanted. */
static void
note_page(struct scrape *sc, uint32_t page, bool unfinished, note_fn note)
{
	struct shm_chunk c;
	uint32_t index, word, n, state;

	word = atomic_load_explicit(shm_word(sc->s, page),
	    memory_order_acquire);
	n = shm_word_chunks(word);
	for (index = 0; index < n; index++) {
		state = shm_word_state(word, index);
		if (state != SHM_BEING_WRITTEN &&
		    (unfinished || state != SHM_COMPLETE))
			continue;
		describe(sc->s, page, n, index, &c);
		note_chunk(sc, &c, note);
	}
}

static void
note_seen(struct scrape *sc, uint32_t page)
{
	note_page(sc, page, false, note_newest);
}

static void
note_unfinished(struct scrape *sc, uint32_t page)
{
	note_page(sc, page, true, note_first);
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
		return errno != ENXIO; /* holes are not known: all pages */
	hole = lseek(s->fd, data, SEEK_HOLE);
	if (hole == data)
		hole++; /* became a hole: each call advances by a page */
	if (hole < 0 || hole > size)
		hole = size;
	if (data > size)
		data = size;
	*page = (uint32_t)(((size_t)data + s->page_size - 1) / s->page_size);
	*end = (uint32_t)(((size_t)hole + s->page_size - 1) / s->page_size);
	return true;
}

static void
walk(struct scrape *sc, page_fn fn)
{
	uint32_t page, end;

	for (page = 0; find_written(sc->s, &page, &end); page = end)
		for (; page < end; page++)
			fn(sc, page);
}

/*
 * Walks twice, as writers go on meanwhile: whatever the first walk saw has all
 * that is earlier in memory when the second one begins, so that no unfinished
 * chunk is overlooked.  False: the first walk saw nothing, so that all there is
 * now is newer than the scrape.  Without memory for the extents all chunks are
 * scraped as if none were unfinished.
 */
static bool
find_order(struct scrape *sc)
{
	walk(sc, note_seen);
	if (sc->extents != NULL)
		walk(sc, note_unfinished);
	return sc->noted;
}

void
shm_scrape(struct shm *s, bool in_order, shm_scrape_fn fn, void *arg)
{
	struct scrape sc = { .s = s, .fn = fn, .arg = arg };

	if (!in_order || find_order(&sc))
		walk(&sc, scrape_page);
	free(sc.extents);
}

void
shm_scrape_left(struct shm *s, shm_scrape_fn fn, void *arg)
{
	struct scrape sc = { .s = s, .left = true, .fn = fn, .arg = arg };

	walk(&sc, scrape_page);
}

bool
shm_remember_scraped(struct shm *s, const struct shm_chunk *c)
{
	if (s->scraped == NULL)
		s->scraped = calloc(s->pages, sizeof(*s->scraped));
	if (s->scraped == NULL)
		return false;
	s->scraped[c->page] |= (uint16_t)(1u << c->index);
	return true;
}

bool
shm_was_scraped(const struct shm *s, uint32_t page, uint32_t index)
{
	return s->scraped != NULL && (s->scraped[page] >> index & 1) != 0;
}

void
shm_forget_scraped(struct shm *s, uint32_t page, uint32_t index)
{
	if (s->scraped != NULL)
		s->scraped[page] &= (uint16_t)~(1u << index);
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
