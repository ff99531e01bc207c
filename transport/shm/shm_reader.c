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

/* A chunk as a walk over the pages found it. */
struct found {
	uint32_t id;
	uint32_t page;
	uint16_t writer;
	uint8_t index;
	bool unfinished;
	bool before; /* by the walk before the last */
};

struct scrape {
	struct shm *s;
	bool in_order;
	bool left;
	struct found *found;
	size_t n, cap;
	bool no_memory; /* for all that was found */
	shm_scrape_fn fn;
	void *arg;
};

static bool
holds_something(const struct scrape *sc, uint32_t state)
{
	return state == SHM_BEING_WRITTEN || state == SHM_COMPLETE ||
	    (sc->left && state == SHM_BEING_READ);
}

/* Describes one chunk when it holds something to scrape. */
static bool
look_at(const struct scrape *sc, uint32_t page, uint32_t index,
    struct shm_chunk *out, bool *complete)
{
	struct shm *s = sc->s;
	uint32_t word, n, state, again, mask;
	int attempt;

	word = atomic_load_explicit(shm_word(s, page), memory_order_acquire);
	mask = SHM_LAYOUT_MASK | SHM_STATE_MASK << (index * SHM_STATE_BITS);
	for (attempt = 0; attempt < SCRAPE_ATTEMPTS; attempt++) {
		n = shm_word_chunks(word);
		if (index >= n)
			return false;
		state = shm_word_state(word, index);
		if (!holds_something(sc, state))
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

/* False: the rest of the chunk's writer is to be left. */
static bool
show(struct scrape *sc, uint32_t page, uint32_t index, bool behind)
{
	struct shm_chunk c;
	bool complete;

	if (!look_at(sc, page, index, &c, &complete))
		return true;
	c.behind = behind;
	return sc->fn(sc->arg, &c, complete);
}

typedef void (*page_fn)(struct scrape *sc, uint32_t page, uint32_t word);

static void
show_page(struct scrape *sc, uint32_t page, uint32_t word)
{
	uint32_t index, n = shm_word_chunks(word);

	for (index = 0; index < n; index++)
		(void)show(sc, page, index, false);
}

static void
add_found(struct scrape *sc, const struct found *f)
{
	size_t cap = sc->cap == 0 ? 64 : sc->cap * 2;
	struct found *grown;

	if (sc->n == sc->cap) {
		grown = reallocarray(sc->found, cap, sizeof(*grown));
		if (grown == NULL) {
			sc->no_memory = true;
			return;
		}
		sc->found = grown;
		sc->cap = cap;
	}
	sc->found[sc->n++] = *f;
}

static void
find_in_page(struct scrape *sc, uint32_t page, uint32_t word)
{
	uint32_t index, n = shm_word_chunks(word), state;
	struct shm_chunk c;

	for (index = 0; index < n; index++) {
		state = shm_word_state(word, index);
		if (!holds_something(sc, state))
			continue;
		describe(sc->s, page, n, index, &c);
		/* Without a fragment, its header may not be written yet. */
		if (state == SHM_BEING_WRITTEN && c.num_fragments == 0)
			continue;
		add_found(sc, &(struct found){ .id = c.chunk_id,
		    .page = page, .writer = c.writer_id,
		    .index = (uint8_t)index,
		    .unfinished = state == SHM_BEING_WRITTEN });
	}
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
			fn(sc, page, atomic_load_explicit(shm_word(sc->s,
			    page), memory_order_acquire));
}

/*
 * Walks twice for in_order, as writers go on meanwhile: whatever the first walk
 * saw has all that is earlier in memory when the second one begins, so that no
 * unfinished chunk is overlooked.
 */
static void
find_chunks(struct scrape *sc)
{
	size_t i;

	walk(sc, find_in_page);
	/* Chunks that come after a walk that saw none are newer than it. */
	if (!sc->in_order || sc->n == 0)
		return;
	for (i = 0; i < sc->n; i++)
		sc->found[i].before = true;
	walk(sc, find_in_page);
}

/* A chunk that was found twice stands before what marks it as found before. */
static int
compare_found(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->writer != y->writer)
		return x->writer < y->writer ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->before != y->before)
		return x->before ? 1 : -1;
	if (x->page != y->page)
		return x->page < y->page ? -1 : 1;
	return x->index - y->index;
}

/* The writer's oldest chunk: ids wrap, so it need not have the lowest. */
static size_t
oldest_of(const struct found *f, size_t n)
{
	size_t i;

	for (i = 1; i < n; i++)
		if (f[i].id - f[0].id >= 1u << 31)
			return i;
	return 0;
}

/* Shows the n chunks of one writer, the oldest first. */
static void
show_writer(struct scrape *sc, const struct found *f, size_t n)
{
	size_t oldest = oldest_of(f, n), in_time = 0, i;
	const struct found *at;
	bool behind = false;

	for (i = 0; i < n; i++)
		if (f[(oldest + i) % n].before)
			in_time = i + 1;
	for (i = 0; i < n; i++) {
		at = &f[(oldest + i) % n];
		if (at->before)
			continue;
		behind = behind || (sc->in_order && i >= in_time);
		if (!show(sc, at->page, at->index, behind))
			return;
		behind = behind || (sc->in_order && at->unfinished);
	}
}

static void
show_found(struct scrape *sc)
{
	size_t begin, end;

	qsort(sc->found, sc->n, sizeof(*sc->found), compare_found);
	for (begin = 0; begin < sc->n; begin = end) {
		for (end = begin + 1; end < sc->n; end++)
			if (sc->found[end].writer != sc->found[begin].writer)
				break;
		show_writer(sc, &sc->found[begin], end - begin);
	}
}

/*
 * Without memory for what is found all chunks are shown in page order, as if
 * none were unfinished and none had to wait.
 */
static void
scrape(struct scrape *sc)
{
	find_chunks(sc);
	if (sc->no_memory)
		walk(sc, show_page);
	else if (sc->n > 0)
		show_found(sc);
	free(sc->found);
}

void
shm_scrape(struct shm *s, bool in_order, shm_scrape_fn fn, void *arg)
{
	scrape(&(struct scrape){ .s = s, .in_order = in_order, .fn = fn,
	    .arg = arg });
}

void
shm_scrape_left(struct shm *s, shm_scrape_fn fn, void *arg)
{
	scrape(&(struct scrape){ .s = s, .left = true, .fn = fn,
	    .arg = arg });
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
