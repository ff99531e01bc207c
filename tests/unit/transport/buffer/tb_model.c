#include "tests/unit/transport/buffer/tb_model.h"

#include <stdlib.h>
#include <string.h>

#define CELL        8u
#define HEADER      16u
#define CHUNKS      1100u /* live or left at once */
#define SEQ_CHUNKS  CHUNKS
#define SEQUENCES   4096u
#define KEEP_EMPTY  1024u
#define SWEEP_EMPTY 128u
#define NOBODY      (-1)

#define FIRST TB_FIRST_CONTINUES_FROM_PREV
#define LAST  TB_LAST_CONTINUES_ON_NEXT
#define HOLES TB_NEEDS_PATCHING

struct chunk {
	bool live;
	bool left; /* gone from its sequence, but its cells are as it left them */
	uint32_t lost; /* of a clone: told before its first packet */
	uint32_t cell; /* where it is, or was placed */
	bool padding;
	int seq;
	uint32_t id;
	uint8_t flags;
	bool incomplete;
	enum model_rest rest;
	uint32_t n; /* fragments kept */
	uint32_t next; /* the first of them that is unread */
	uint32_t begin[MODEL_FRAGMENTS];
	uint32_t end[MODEL_FRAGMENTS];
	uint64_t placed; /* running number: the order of the buffer */
	uint32_t cells;
	uint8_t bytes[MODEL_CHUNK_BYTES];
};

struct sequence {
	bool known;
	uint64_t producer;
	uint32_t writer;
	bool has_last;
	uint32_t last;
	bool tail_open;
	uint32_t tail;
	uint32_t loss;
	bool stalled;
	uint64_t emptied; /* when */
	uint64_t end; /* position behind the last chunk that was stored */
	uint32_t first; /* id of the first chunk that clones miss */
	/* Of a clone: the source's front chunk, and what was to be told there. */
	uint32_t front_id, owed;
	uint32_t n;
	int chunks[SEQ_CHUNKS]; /* by id */
};

struct model {
	enum tb_policy policy;
	uint32_t cells;
	uint32_t wr;
	bool stopped, read_only;
	bool wrapped; /* ever */
	bool ended;
	uint64_t laps; /* cells of all laps before this one */
	uint64_t forgotten_chunks, forgotten_bytes;
	uint64_t taken, end; /* of the clone under way: positions, in cells */
	int *ghost; /* of each cell: which chunk that left was there */
	uint64_t clock;
	uint64_t cursor; /* of this pass: `placed` */
	int *owner; /* of each cell */
	struct chunk *chunk; /* CHUNKS of them */
	struct sequence *seq;
	uint32_t top; /* sequences ever used: seq[0 .. top) */
	struct tb_stats stats;
	struct model_packet *scratch;
};

/*
 * Models are large, and made by the thousand: two are kept, with whatever is in
 * them.  (A script and its clone.)
 */
static struct model *spare[2];

static struct model *
take_spare(void)
{
	struct model *m;
	size_t i;

	for (i = 0; i < sizeof(spare) / sizeof(spare[0]); i++)
		if ((m = spare[i]) != NULL) {
			spare[i] = NULL;
			return m;
		}
	if ((m = malloc(sizeof(*m))) == NULL)
		abort();
	m->owner = malloc(MODEL_SIZE_MAX / CELL * sizeof(*m->owner));
	m->ghost = malloc(MODEL_SIZE_MAX / CELL * sizeof(*m->ghost));
	m->chunk = malloc(CHUNKS * sizeof(*m->chunk));
	m->seq = malloc(SEQUENCES * sizeof(*m->seq));
	m->scratch = malloc(sizeof(*m->scratch));
	if (m->owner == NULL || m->chunk == NULL || m->seq == NULL ||
	    m->scratch == NULL || m->ghost == NULL)
		abort();
	return m;
}

struct model *
model_new(size_t size, enum tb_policy policy)
{
	struct model *m = take_spare();
	uint32_t i;

	m->policy = policy;
	m->cells = (uint32_t)(size / CELL);
	m->wr = 0;
	m->stopped = m->read_only = m->wrapped = m->ended = false;
	m->laps = m->forgotten_chunks = m->forgotten_bytes = 0;
	m->clock = m->cursor = 0;
	m->taken = m->end = 0;
	m->top = 0;
	memset(&m->stats, 0, sizeof(m->stats));
	m->stats.buffer_size = size;
	for (i = 0; i < m->cells; i++)
		m->owner[i] = m->ghost[i] = NOBODY;
	for (i = 0; i < CHUNKS; i++)
		m->chunk[i].live = m->chunk[i].left = false;
	return m;
}

void
model_free(struct model *m)
{
	size_t i;

	for (i = 0; i < sizeof(spare) / sizeof(spare[0]); i++)
		if (spare[i] == NULL) {
			spare[i] = m;
			return;
		}
	free(m->scratch);
	free(m->owner);
	free(m->ghost);
	free(m->chunk);
	free(m->seq);
	free(m);
}

const struct tb_stats *
model_stats(const struct model *m)
{
	return &m->stats;
}

/* ---- Sequences ---- */

static struct sequence *
find(struct model *m, uint64_t producer, uint32_t writer)
{
	uint32_t i;

	for (i = 0; i < m->top; i++)
		if (m->seq[i].known && m->seq[i].producer == producer &&
		    m->seq[i].writer == writer)
			return &m->seq[i];
	return NULL;
}

static struct sequence *
get(struct model *m, uint64_t producer, uint32_t writer)
{
	struct sequence *s = find(m, producer, writer);

	if (s != NULL)
		return s;
	for (s = m->seq; s < m->seq + m->top && s->known; s++)
		;
	if (s == m->seq + m->top)
		m->top++;
	memset(s, 0, offsetof(struct sequence, chunks));
	s->known = true;
	s->producer = producer;
	s->writer = writer;
	s->emptied = ++m->clock;
	return s;
}

size_t
model_sequences(const struct model *m)
{
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < m->top; i++)
		n += m->seq[i].known;
	return n;
}

static void
sweep(struct model *m)
{
	struct sequence *oldest;
	uint32_t i, empty = 0;

	for (i = 0; i < m->top; i++)
		empty += m->seq[i].known && m->seq[i].n == 0;
	if (empty <= KEEP_EMPTY + SWEEP_EMPTY)
		return;
	for (; empty > KEEP_EMPTY; empty--) {
		oldest = NULL;
		for (i = 0; i < m->top; i++)
			if (m->seq[i].known && m->seq[i].n == 0 &&
			    (oldest == NULL ||
			    m->seq[i].emptied < oldest->emptied))
				oldest = &m->seq[i];
		if (oldest->end > (m->wrapped ? m->laps + m->wr - m->cells : 0))
			return;
		oldest->known = false;
	}
}

static bool
late(const struct sequence *s, uint32_t id)
{
	return s->has_last && (int32_t)(id - s->last) <= 0;
}

static struct chunk *
front(struct model *m, struct sequence *s)
{
	return &m->chunk[s->chunks[0]];
}

static void
remove_front(struct model *m, struct sequence *s)
{
	memmove(s->chunks, s->chunks + 1, --s->n * sizeof(*s->chunks));
	if (s->n == 0)
		s->emptied = ++m->clock;
}

/* ---- Ring ---- */

static uint32_t
cells_of(size_t len)
{
	return (uint32_t)((len + HEADER + CELL - 1) / CELL);
}

static uint32_t
used(const struct chunk *c)
{
	return c->n == 0 ? 0 : c->end[c->n - 1];
}

static bool
unread(const struct chunk *c)
{
	return !c->padding && c->next < c->n;
}

static void
free_cells(struct model *m, struct chunk *c)
{
	uint32_t i;

	for (i = 0; i < m->cells; i++)
		if (m->owner[i] == (int)(c - m->chunk))
			m->owner[i] = NOBODY;
	c->live = false;
}

/* What was left in these cells is overwritten, as a whole. */
static void
overwrite_left(struct model *m, uint32_t from, uint32_t n)
{
	struct chunk *c;
	uint32_t i;

	for (i = from; i < from + n; i++) {
		if (m->ghost[i] == NOBODY)
			continue;
		c = &m->chunk[m->ghost[i]];
		c->left = false;
		memset(&m->ghost[c->cell], 0xff, c->cells * sizeof(*m->ghost));
	}
}

/* The chunk leaves; its cells are free. */
static void
leave(struct model *m, struct chunk *c)
{
	uint32_t i;

	free_cells(m, c);
	c->left = true;
	for (i = 0; i < c->cells; i++)
		m->ghost[c->cell + i] = (int)(c - m->chunk);
}

static struct chunk *
place(struct model *m, uint32_t cell, uint32_t n)
{
	struct chunk *c = m->chunk;
	uint32_t i;

	overwrite_left(m, cell, n);
	while (c->live || c->left)
		c++;
	memset(c, 0, offsetof(struct chunk, bytes));
	c->live = true;
	c->placed = ++m->clock;
	c->cells = n;
	c->cell = cell;
	for (i = cell; i < cell + n; i++)
		m->owner[i] = (int)(c - m->chunk);
	return c;
}

static void
pad(struct model *m, uint32_t cell, uint32_t n)
{
	place(m, cell, n)->padding = true;
	m->stats.padding_bytes_written += n * CELL;
}

uint64_t
model_unread(const struct model *m)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < CHUNKS; i++)
		if (m->chunk[i].live && unread(&m->chunk[i]))
			bytes += m->chunk[i].cells * CELL;
	return bytes;
}

/* ---- Consuming ---- */

static void
open_front(struct model *m, struct sequence *s)
{
	struct chunk *c = front(m, s);

	if (c->next > 0)
		return;
	if (s->has_last && c->id != s->last + 1)
		s->loss |= TB_LOSS_READ_GAP;
	if (c->lost != 0)
		s->loss |= c->lost;
	else if (s->tail_open)
		s->loss |= TB_LOSS_OVERWRITE;
	c->lost = 0;
	s->tail_open = false;
	s->has_last = true;
	s->last = c->id - 1;
}

static void
erase_front(struct model *m, struct sequence *s, bool lost)
{
	struct chunk *c = front(m, s);

	open_front(m, s);
	if (c->rest == MODEL_BAD)
		s->loss |= TB_LOSS_CHUNK_CORRUPTED;
	if (c->rest == MODEL_DROPPED)
		s->loss |= TB_LOSS_WRITER_ABORT;
	if (c->incomplete) {
		s->tail_open = true;
		s->tail = used(c);
	}
	s->last = c->id;
	if (lost) {
		m->stats.chunks_overwritten++;
		m->stats.bytes_overwritten += c->cells * CELL;
	} else {
		m->stats.chunks_read++;
		m->stats.bytes_read += c->cells * CELL;
	}
	remove_front(m, s);
	leave(m, c);
}

/* The last packet of the front chunk will not be whole, or s stalls for it. */
static void
drop_or_stall(struct model *m, struct sequence *s)
{
	struct chunk *c = front(m, s);

	if (!m->ended || s->n == 1) {
		s->stalled = true;
		return;
	}
	open_front(m, s);
	c->flags &= (uint8_t)~(HOLES | LAST);
	c->rest = MODEL_DROPPED;
	c->n--;
}

static uint32_t
loss_mask(const struct sequence *s)
{
	return s->loss == 0 ? 0 : s->loss | TB_LOSS_PRESENT;
}

static void
start_packet(const struct sequence *s, struct model_packet *out)
{
	out->producer = s->producer;
	out->writer = s->writer;
	out->size = 0;
}

static void
add(struct model_packet *out, const struct chunk *c, uint32_t i)
{
	memcpy(out->bytes + out->size, c->bytes + c->begin[i],
	    c->end[i] - c->begin[i]);
	out->size += c->end[i] - c->begin[i];
}

/* Returns whether there is a packet to hand out, with its loss said. */
static bool
finish_packet(struct sequence *s, bool forced, struct model_packet *out)
{
	if (out->size == 0)
		return false;
	out->loss = loss_mask(s);
	if (!forced)
		s->loss = 0;
	return true;
}

/* ---- Reassembly ---- */

enum chain { WHOLE, WAIT, GAP, BROKEN, SAID };

/* *n: how many chunks hold only this packet, before the one that ends it. */
static enum chain
chain(struct model *m, struct sequence *s, uint32_t *n)
{
	struct chunk *c, *before = front(m, s);

	if ((before->flags & HOLES) != 0)
		return WAIT;
	for (*n = 1; *n < s->n; ++*n) {
		c = &m->chunk[s->chunks[*n]];
		if (c->id != before->id + 1)
			return GAP;
		if ((c->flags & HOLES) != 0)
			return WAIT;
		before = c;
		if (c->n == 0 && c->incomplete)
			return WAIT;
		if (c->n == 0 && c->rest != MODEL_NOTHING)
			return SAID;
		if (c->n == 0)
			continue;
		if ((c->flags & FIRST) == 0 || c->next > 0)
			return BROKEN;
		if (c->n == 1 && (c->flags & LAST) != 0)
			continue;
		return WHOLE;
	}
	return WAIT;
}

/* Consumes the packet that begins in the front chunk, or what is left of it. */
static enum chain
reassemble(struct model *m, struct sequence *s, bool forced,
    struct model_packet *out)
{
	enum chain result;
	struct chunk *c;
	bool had;
	uint32_t n;

	start_packet(s, out);
	if ((result = chain(m, s, &n)) == WHOLE)
		m->stats.readaheads_succeeded++;
	else
		m->stats.readaheads_failed++;
	if (result == WAIT)
		return result;
	for (; n > 0; n--) {
		c = front(m, s);
		open_front(m, s);
		had = unread(c);
		if (c->n > 0)
			add(out, c, c->n - 1);
		c->next = c->n;
		erase_front(m, s, forced && had);
	}
	if (result == GAP)
		s->loss |= TB_LOSS_REASSEMBLY_GAP;
	if (result == BROKEN)
		s->loss |= TB_LOSS_REASSEMBLY_BROKEN_CHAIN;
	if (result != WHOLE)
		return result;
	c = front(m, s);
	open_front(m, s);
	add(out, c, 0);
	c->next = 1;
	return result;
}

/* ---- Reading ---- */

/* Whether the front chunk of s can be read on, or erased. */
static bool
can_go_on(struct model *m, struct sequence *s)
{
	struct chunk *c;
	uint32_t n;

	if (s->n == 0)
		return false;
	c = front(m, s);
	if (c->next == c->n)
		return !c->incomplete;
	if (c->next < c->n - 1 || (c->next == 0 && (c->flags & FIRST) != 0))
		return true;
	if ((c->flags & LAST) != 0)
		return chain(m, s, &n) != WAIT;
	return (c->flags & HOLES) == 0;
}

/* A pass tries again what was stalled, where that is not in vain. */
void
model_begin_read(struct model *m)
{
	uint32_t i;

	for (i = 0; i < m->top; i++)
		if (m->seq[i].known && m->seq[i].stalled &&
		    can_go_on(m, &m->seq[i]))
			m->seq[i].stalled = false;
	m->cursor = 0;
}

/* One step on the front chunk; forced: nothing may hold it up. */
static bool
step(struct model *m, struct sequence *s, bool forced, struct model_packet *out)
{
	struct chunk *c = front(m, s);
	uint32_t i = c->next;
	bool ok;

	if (i == c->n) {
		if (c->incomplete && !forced && m->ended && s->n > 1) {
			c->rest = MODEL_DROPPED;
			erase_front(m, s, false);
			s->tail_open = false;
		} else if (c->incomplete && !forced) {
			s->stalled = true;
		} else {
			erase_front(m, s, false);
		}
		return false;
	}
	if (i == 0 && (c->flags & FIRST) != 0) {
		open_front(m, s);
		s->loss |= TB_LOSS_ORPHAN_CONTINUATION;
		c->next++;
		return false;
	}
	if (i == c->n - 1 && (c->flags & LAST) != 0) {
		switch (reassemble(m, s, forced, out)) {
		case WHOLE:
			ok = finish_packet(s, forced, out);
			c = front(m, s);
			if (c->next == c->n && !c->incomplete)
				erase_front(m, s, forced);
			return ok;
		case WAIT:
			drop_or_stall(m, s);
			break;
		case GAP:
		case BROKEN:
		case SAID:
			break;
		}
		return false;
	}
	if (i == c->n - 1 && (c->flags & HOLES) != 0) {
		drop_or_stall(m, s);
		return false;
	}
	open_front(m, s);
	start_packet(s, out);
	add(out, c, i);
	c->next++;
	ok = finish_packet(s, forced, out);
	if (!forced && ok && c->next == c->n && !c->incomplete)
		erase_front(m, s, false);
	return ok;
}

bool
model_read(struct model *m, struct model_packet *out)
{
	struct chunk *c, *target;
	uint32_t i;

	for (;;) {
		target = NULL;
		for (i = 0; i < CHUNKS; i++) {
			c = &m->chunk[i];
			if (!c->live || c->padding || c->placed < m->cursor ||
			    m->seq[c->seq].stalled)
				continue;
			if (target == NULL || c->placed < target->placed)
				target = c;
		}
		if (target == NULL) {
			m->cursor = m->clock + 1;
			return false;
		}
		m->cursor = target->placed;
		if (step(m, &m->seq[target->seq], false, out))
			return true;
	}
}

/* ---- Overwriting ---- */

/* A forced read of the front chunk, up to and including its end. */
static void
force_front(struct model *m, struct sequence *s)
{
	struct chunk *c = front(m, s);
	bool had = unread(c);

	while (s->n > 0 && front(m, s) == c && unread(c)) {
		s->stalled = false;
		(void)step(m, s, true, m->scratch);
		if (s->stalled)
			break;
	}
	s->stalled = false;
	/* Reassembly erases it, if nothing else does. */
	if (c->live && s->n > 0 && front(m, s) == c) {
		open_front(m, s);
		c->next = c->n;
		erase_front(m, s, had);
	}
	if (had)
		s->loss |= TB_LOSS_OVERWRITE;
}

static void
force(struct model *m, struct chunk *target)
{
	struct sequence *s = &m->seq[target->seq];

	/* The stall is over: the walk goes back for what is left. */
	if (s->stalled)
		m->cursor = 0;
	s->stalled = false;
	while (target->live)
		force_front(m, s);
}

static void
clear_ahead(struct model *m, uint32_t n)
{
	uint32_t i, end = m->wr + n, over;
	struct chunk *c;

	for (i = m->wr; i < end; i++) {
		if (m->owner[i] == NOBODY)
			continue;
		c = &m->chunk[m->owner[i]];
		for (over = 0; end + over < m->cells &&
		    m->owner[end + over] == m->owner[i]; over++)
			;
		if (c->padding) {
			m->stats.padding_bytes_cleared += c->cells * CELL;
			free_cells(m, c);
		} else {
			force(m, c);
		}
		if (over > 0)
			pad(m, end, over);
	}
	overwrite_left(m, m->wr, n);
}

static void
wrap(struct model *m)
{
	uint32_t rest = m->cells - m->wr;

	clear_ahead(m, rest);
	if (rest > 0)
		pad(m, m->wr, rest);
	m->wr = 0;
	m->laps += m->cells;
	m->wrapped = true;
	m->stats.write_wrap_count++;
}

static bool
loses(const struct model *m, uint32_t from, uint32_t to)
{
	const struct chunk *c;
	uint32_t i;

	for (i = from; i < to; i++) {
		if (m->owner[i] == NOBODY)
			continue;
		c = &m->chunk[m->owner[i]];
		if (c->padding)
			continue;
		if (unread(c) || m->seq[c->seq].chunks[0] != m->owner[i])
			return true;
	}
	return false;
}

bool
model_would_lose(const struct model *m, size_t len)
{
	uint32_t n = cells_of(len), rest = m->cells - m->wr;

	if (n > m->cells || m->stopped)
		return true;
	if (m->policy == TB_DISCARD)
		return n > rest;
	if (n <= rest)
		return loses(m, m->wr, m->wr + n);
	return loses(m, m->wr, m->cells) || loses(m, 0, n);
}

/* ---- Writing ---- */

/* The commit as it would be stored. */
static void
describe(struct model *m, const struct model_commit *k, struct chunk *c)
{
	memset(c, 0, offsetof(struct chunk, bytes));
	c->id = k->id;
	c->flags = k->flags & (FIRST | LAST | HOLES);
	c->incomplete = !k->complete;
	c->n = k->n;
	c->rest = k->rest;
	if (c->incomplete && k->n + (k->rest != MODEL_NOTHING) > 0) {
		/* The last one, whatever it is, is held back. */
		if (k->rest == MODEL_NOTHING)
			c->n--;
		c->rest = MODEL_NOTHING;
		c->flags &= FIRST;
	}
	if (c->rest != MODEL_NOTHING)
		c->flags &= FIRST;
	if (c->rest == MODEL_BAD)
		m->stats.abi_violations++;
	if (c->rest == MODEL_DROPPED)
		m->stats.trace_writer_packet_loss++;
	memcpy(c->begin, k->begin, sizeof(c->begin));
	memcpy(c->end, k->end, sizeof(c->end));
	memcpy(c->bytes, k->bytes, sizeof(c->bytes));
}

static void
copy_contents(struct chunk *to, const struct chunk *from)
{
	to->flags = from->flags;
	to->incomplete = from->incomplete;
	to->rest = from->rest;
	to->n = from->n;
	memcpy(to->begin, from->begin, sizeof(to->begin));
	memcpy(to->end, from->end, sizeof(to->end));
	memcpy(to->bytes, from->bytes, sizeof(to->bytes));
}

static bool
discard(struct model *m)
{
	m->stats.chunks_discarded++;
	return false;
}

static bool
violate(struct model *m)
{
	m->stats.abi_violations++;
	return false;
}

static bool
store(struct model *m, struct sequence *s, const struct chunk *new,
    size_t capacity, bool relocated)
{
	uint32_t n = cells_of(capacity), i, j;
	struct chunk *c;

	if (n > m->cells - m->wr) {
		if (m->policy == TB_DISCARD) {
			m->stopped = true;
			return discard(m);
		}
		wrap(m);
	}
	clear_ahead(m, n);
	if (late(s, new->id))
		return discard(m);
	c = place(m, m->wr, n);
	copy_contents(c, new);
	c->id = new->id;
	c->next = new->next;
	c->seq = (int)(s - m->seq);
	m->wr += n;
	s->end = m->laps + m->wr;
	for (i = s->n; i > 0; i--)
		if ((int32_t)(c->id - m->chunk[s->chunks[i - 1]].id) > 0)
			break;
	m->stats.chunks_committed_out_of_order += i < s->n;
	for (j = s->n++; j > i; j--)
		s->chunks[j] = s->chunks[j - 1];
	s->chunks[i] = (int)(c - m->chunk);
	m->stats.bytes_written += n * CELL;
	if (relocated)
		m->stats.chunks_relocated++;
	else
		m->stats.chunks_written++;
	sweep(m);
	return true;
}

/* A position, of what is in the ring. */
static uint64_t
position_of(const struct model *m, uint32_t cell)
{
	return cell < m->wr ? m->laps + cell : m->laps + cell - m->cells;
}

static bool
may_relocate(struct model *m, struct sequence *s, const struct chunk *old)
{
	uint64_t at = position_of(m, old->cell);

	return m->policy == TB_RING && !unread(old) && old == front(m, s) &&
	    !(at >= m->taken && at < m->end);
}

static bool
relocate(struct model *m, struct sequence *s, struct chunk *old,
    struct chunk *new, size_t capacity)
{
	size_t had = old->cells * CELL - HEADER;

	open_front(m, s);
	new->next = old->n;
	m->stats.bytes_read += old->cells * CELL;
	remove_front(m, s);
	free_cells(m, old);
	if (new->incomplete && capacity < had)
		capacity = had;
	if (store(m, s, new, capacity, true))
		return true;
	m->stats.chunks_read++;
	return false;
}

static bool
recommit(struct model *m, struct sequence *s, struct chunk *old,
    struct chunk *new, size_t capacity)
{
	if (used(new) < used(old) ||
	    used(new) > old->cells * CELL - HEADER ||
	    (old->flags & ~new->flags & (FIRST | LAST)) != 0)
		return violate(m);
	if (!old->incomplete) {
		if (new->incomplete || used(new) != used(old))
			return violate(m);
		if ((old->flags & HOLES) != 0 && (new->flags & HOLES) == 0) {
			memcpy(old->bytes, new->bytes, sizeof(old->bytes));
			old->flags &= (uint8_t)~HOLES;
			m->stats.chunks_rewritten++;
		}
		return true;
	}
	if (used(new) == used(old)) {
		old->flags = new->flags;
		old->incomplete = new->incomplete;
		old->rest = new->rest;
		return true;
	}
	if (may_relocate(m, s, old))
		return relocate(m, s, old, new, capacity);
	copy_contents(old, new);
	m->stats.chunks_rewritten++;
	return true;
}

static bool
write_late(struct model *m, struct sequence *s, struct chunk *new,
    size_t capacity)
{
	if (new->id != s->last || !s->tail_open)
		return discard(m);
	if (used(new) < s->tail)
		return violate(m);
	if (used(new) == s->tail) {
		if (!new->incomplete)
			s->tail_open = false;
		return true;
	}
	while (new->end[new->next] < s->tail)
		new->next++;
	if (s->tail > 0)
		new->next++;
	s->tail_open = false;
	s->last = new->id - 1;
	return store(m, s, new, capacity, false);
}

bool
model_write(struct model *m, const struct model_commit *k)
{
	struct sequence *s;
	struct chunk new;
	size_t capacity;
	uint32_t i;

	if (m->read_only)
		return false;
	if (m->stopped)
		return discard(m);
	describe(m, k, &new);
	capacity = k->complete ? used(&new) : k->len;
	if (cells_of(capacity) > m->cells)
		return violate(m);
	s = get(m, k->producer, k->writer);
	if (s->n == 0 && !s->has_last)
		s->first = k->id;
	if (late(s, k->id))
		return write_late(m, s, &new, capacity);
	for (i = 0; i < s->n; i++)
		if (m->chunk[s->chunks[i]].id == k->id)
			return recommit(m, s, &m->chunk[s->chunks[i]], &new,
			    capacity);
	return store(m, s, &new, capacity, false);
}

bool
model_patch(struct model *m, uint64_t producer, uint32_t writer, uint32_t id,
    const struct tb_patch *patches, size_t n, bool more)
{
	struct sequence *s = find(m, producer, writer);
	struct chunk *c = NULL;
	uint32_t i;

	if (m->read_only)
		return false;
	for (i = 0; s != NULL && i < s->n; i++)
		if (m->chunk[s->chunks[i]].id == id)
			c = &m->chunk[s->chunks[i]];
	for (i = 0; c != NULL && i < n; i++)
		if (patches[i].offset + patches[i].len > used(c))
			c = NULL;
	if (c == NULL) {
		m->stats.patches_failed += n;
		return false;
	}
	for (i = 0; i < n; i++)
		memcpy(c->bytes + patches[i].offset, patches[i].data,
		    patches[i].len);
	m->stats.patches_succeeded += n;
	if (!more)
		c->flags &= (uint8_t)~HOLES;
	return true;
}

void
model_clear(struct model *m)
{
	struct sequence *s;
	struct chunk *c;
	uint32_t i;

	for (i = 0; i < m->top; i++) {
		s = &m->seq[i];
		if (!s->known)
			continue;
		s->loss = 0;
		s->stalled = false;
		s->end = 0;
		s->first = s->last + 1;
		if (s->n == 0)
			continue;
		c = &m->chunk[s->chunks[s->n - 1]];
		s->has_last = true;
		s->last = c->id;
		s->first = s->last + 1;
		s->tail_open = c->incomplete;
		s->tail = used(c);
		s->n = 0;
		s->emptied = ++m->clock;
	}
	for (i = 0; i < CHUNKS; i++)
		m->chunk[i].live = m->chunk[i].left = false;
	for (i = 0; i < m->cells; i++)
		m->owner[i] = m->ghost[i] = NOBODY;
	m->forgotten_chunks = m->stats.chunks_written -
	    m->stats.chunks_overwritten;
	m->forgotten_bytes = m->stats.bytes_written -
	    m->stats.bytes_overwritten;
	m->laps = 0;
	m->wr = 0;
	m->cursor = 0;
	m->stopped = m->wrapped = false;
}

/* All chunks, oldest first, again from the write position on. */
bool
model_compact(struct model *m)
{
	int order[CHUNKS], where[CHUNKS], n = 0, i, j, k;
	uint32_t held = 0;
	struct chunk *c;

	for (i = 0; i < (int)CHUNKS; i++)
		if (m->chunk[i].live && !m->chunk[i].padding)
			held += m->chunk[i].cells;
	if (m->policy != TB_RING || m->read_only || held > m->cells / 2)
		return false;
	if (!m->wrapped && m->wr < m->cells)
		wrap(m);
	for (i = 0; i < (int)CHUNKS; i++) {
		c = &m->chunk[i];
		if (c->live && c->padding) {
			m->stats.padding_bytes_cleared += c->cells * CELL;
			free_cells(m, c);
		}
		if (!c->live)
			continue;
		for (j = n++; j > 0 && m->chunk[order[j - 1]].placed >
		    c->placed; j--)
			order[j] = order[j - 1];
		order[j] = i;
	}
	for (i = 0; i < n; i++)
		for (where[i] = 0; m->owner[where[i]] != order[i]; where[i]++)
			;
	overwrite_left(m, 0, m->cells);
	for (i = 0; i < (int)m->cells; i++)
		m->owner[i] = NOBODY;
	for (i = 0; i < n; i++) {
		c = &m->chunk[order[i]];
		if (c->cells > m->cells - m->wr) {
			if (m->wr < m->cells)
				pad(m, m->wr, m->cells - m->wr);
			m->wr = 0;
			m->laps += m->cells;
			m->wrapped = true;
			m->stats.write_wrap_count++;
		}
		c->cell = m->wr;
		for (k = 0; k < (int)c->cells; k++)
			m->owner[m->wr + (uint32_t)k] = order[i];
		c->placed = ++m->clock;
		if (where[i] != (int)m->wr) {
			m->stats.chunks_relocated++;
			m->stats.bytes_read += c->cells * CELL;
			m->stats.bytes_written += c->cells * CELL;
		}
		m->wr += c->cells;
		m->seq[c->seq].end = m->laps + m->wr;
	}
	m->cursor = 0;
	return true;
}

/* ---- Clones ---- */

static void
start_sequence(struct sequence *s, const struct sequence *from)
{
	memset(s, 0, offsetof(struct sequence, chunks));
	s->known = from->known;
	s->producer = from->producer;
	s->writer = from->writer;
	s->first = from->first;
}

/* Chunk i joins its sequence, in the place of an earlier one with its id. */
static void
join(struct model *c, struct chunk *k)
{
	struct sequence *s = &c->seq[k->seq];
	struct chunk *other;
	uint32_t i, j;

	k->live = true;
	k->left = false;
	k->next = 0;
	k->placed = ++c->clock;
	for (i = 0; i < s->n; i++) {
		other = &c->chunk[s->chunks[i]];
		if (other->id == k->id) {
			c->stats.chunks_read++;
			c->stats.bytes_read += other->cells * CELL;
			other->live = false;
			s->chunks[i] = (int)(k - c->chunk);
			return;
		}
		if ((int32_t)(k->id - other->id) < 0)
			break;
	}
	for (j = s->n++; j > i; j--)
		s->chunks[j] = s->chunks[j - 1];
	s->chunks[i] = (int)(k - c->chunk);
}

/* What the source had still to say of the sequence, and what only a clone has. */
static void
settle(struct model *c, struct sequence *s)
{
	uint32_t i;

	if (s->n == 0)
		return;
	if ((int32_t)(front(c, s)->id - s->first) > 0)
		s->loss = TB_LOSS_OVERWRITE;
	for (i = 0; i < s->n; i++) {
		if ((int32_t)(c->chunk[s->chunks[i]].id - s->front_id) < 0)
			continue;
		if (i == 0)
			s->loss |= s->owed;
		else
			c->chunk[s->chunks[i]].lost = s->owed;
		return;
	}
}

/* A copy of all but what is in the ring. */
static struct model *
copy_state(const struct model *m)
{
	struct model *c = take_spare(), own = *c;
	const struct sequence *from;
	uint32_t i;

	*c = *m;
	c->owner = own.owner;
	c->ghost = own.ghost;
	c->chunk = own.chunk;
	c->seq = own.seq;
	c->scratch = own.scratch;
	c->read_only = c->ended = true;
	c->stats.bytes_read = c->stats.chunks_read = 0;
	c->stats.readaheads_succeeded = c->stats.readaheads_failed = 0;
	for (i = 0; i < m->top; i++) {
		from = &m->seq[i];
		start_sequence(&c->seq[i], from);
		if (from->n == 0)
			continue;
		c->seq[i].front_id = m->chunk[from->chunks[0]].id;
		c->seq[i].owed = from->loss;
	}
	memset(c->owner, 0xff, c->cells * sizeof(*c->owner));
	memset(c->ghost, 0xff, c->cells * sizeof(*c->ghost));
	for (i = 0; i < CHUNKS; i++)
		c->chunk[i].live = c->chunk[i].left = false;
	return c;
}

struct model *
model_clone(struct model *m)
{
	m->end = m->laps + m->wr;
	m->taken = m->wrapped ? m->end - m->cells : 0;
	return copy_state(m);
}

static void
take_cells(struct model *c, const struct model *m, uint64_t from, uint64_t to,
    bool in_place)
{
	uint32_t at;
	int k;

	for (; from < to; from++) {
		at = (uint32_t)(from % m->cells);
		k = m->owner[at] != NOBODY ? m->owner[at] : m->ghost[at];
		if (k == NOBODY || m->chunk[k].cell != at ||
		    m->chunk[k].padding)
			continue;
		c->chunk[k] = m->chunk[k];
		if (!in_place)
			c->chunk[k].cells = cells_of(used(&m->chunk[k]));
		join(c, &c->chunk[k]);
	}
}

void
model_clone_up_to(struct model *c, struct model *m, uint64_t position)
{
	uint64_t to = position / CELL < m->end ? position / CELL : m->end;

	take_cells(c, m, m->taken, to, false);
	m->taken = to > m->taken ? to : m->taken;
}

static void
count_gone(struct model *c)
{
	uint64_t held = c->forgotten_bytes + c->stats.bytes_read, chunks = 0;
	uint32_t i;

	for (i = 0; i < CHUNKS; i++) {
		chunks += c->chunk[i].live;
		held += c->chunk[i].live ? c->chunk[i].cells * CELL : 0;
	}
	c->stats.chunks_overwritten = c->stats.chunks_written -
	    c->forgotten_chunks - chunks - c->stats.chunks_read;
	c->stats.bytes_overwritten = c->stats.chunks_overwritten == 0 ||
	    c->stats.bytes_written < held ? 0 : c->stats.bytes_written - held;
}

static void
finish(struct model *c)
{
	uint32_t i;

	for (i = 0; i < c->top; i++)
		settle(c, &c->seq[i]);
	count_gone(c);
}

void
model_clone_end(struct model *c, struct model *m)
{
	m->taken = m->end = 0;
	finish(c);
}

struct model *
model_take(const struct model *m)
{
	struct model *c = copy_state(m);
	uint64_t end = m->laps + m->wr;

	take_cells(c, m, m->wrapped ? end - m->cells : 0, end, true);
	finish(c);
	return c;
}
