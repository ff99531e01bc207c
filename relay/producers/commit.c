/*
 * The hot path: chunks are copied once, from where they are into the room that
 * upward gives.
 */
#include <stdlib.h>
#include <string.h>

#include "protos/link.pb-c.h"
#include "transport/shm/commit_wire.h"
#include "transport/wire/pb_reader.h"
#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"

/* Of shm.h's chunk, as it stands in memory. */
#define FLAGS_SHIFT 10u

/* ---- one chunk upward ---- */

static void
say_dropped(struct producers *ps, uint32_t channel,
    const struct commit_chunk *head, const struct shm_chunk *c, uint32_t cause)
{
	struct link_loss loss = {
		.writer = head->writer,
		.buffer = head->buffer,
		.cause = cause,
		.chunks = 1,
		.packets = c->num_fragments,
		.bytes = c->len,
	};

	if (head->incomplete)
		loss.first_chunk = loss.last_chunk = head->chunk_id;
	ps->up.ops->dropped(ps->up.arg, channel, &loss);
}

/*
 * The bytes of a complete chunk's payload that hold fragments: the rest of it
 * means nothing.  All of it when it does not look as it should.
 */
static size_t
used(const uint8_t *payload, size_t len, unsigned fragments)
{
	const uint8_t *p = payload, *end = payload + len;
	uint64_t size;

	while (fragments-- > 0) {
		p = pb_varint(p, end, &size);
		if (p == NULL || size > (uint64_t)(end - p))
			return len;
		p += size;
	}
	return (size_t)(p - payload);
}

/*
 * buffer: the collector's.  loud: a drop is told; else it is as if it had not
 * been tried.
 */
static enum upstream_room
put_chunk(struct producers *ps, uint32_t channel, const struct shm_chunk *c,
    uint16_t buffer, bool complete, bool loud)
{
	struct commit_chunk head = {
		.buffer = buffer,
		.chunk_id = c->chunk_id,
		.writer = c->writer_id,
		.packets = (uint16_t)(c->num_fragments |
		    c->flags << FLAGS_SHIFT),
		.incomplete = !complete,
	};
	size_t head_len = commit_chunk_head_size(&head), len = c->len;
	enum upstream_room room = UPSTREAM_DROPPED;
	uint32_t cause = TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_TOO_LONG;
	uint8_t *out;

	if (head_len + len <= LINK_MESSAGE_MAX) {
		cause = TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_UNSPECIFIED;
		room = ps->up.ops->reserve(ps->up.arg, channel, head_len + len,
		    len > 0 ? len : 1, &out);
	}
	switch (room) {
	case UPSTREAM_LATER:
		break;
	case UPSTREAM_DROPPED:
		if (loud)
			say_dropped(ps, channel, &head, c, cause);
		break;
	case UPSTREAM_ROOM:
		if (len > 0)
			memcpy(out + head_len, c->payload, len);
		/* What was copied does not change any more. */
		if (complete)
			len = used(out + head_len, len, c->num_fragments);
		commit_put_chunk_head(out, &head, len);
		ps->up.ops->commit(ps->up.arg, channel, head_len + len);
		break;
	}
	return room;
}

enum upstream_room
local_put_orphan(struct producers *ps, uint32_t channel,
    const struct shm_chunk *c, bool complete)
{
	return put_chunk(ps, channel, c, 0, complete, true);
}

/*
 * The buffer that data of this writer goes to.  NULL: it is dropped, and
 * counted: as late where it may well be (threads give up the chunk they hold
 * only when they next trace), else as against the rules.
 */
static struct local_buffer *
buffer_of(struct local *l, uint32_t writer, uint32_t wanted)
{
	struct local_buffer *b = local_find_buffer(l, wanted);
	uint16_t bound;

	if (b == NULL && local_buffer_was(l, wanted)) {
		l->late++;
		return NULL;
	}
	bound = local_writer_buffer(l, writer);
	if (b == NULL || writer == 0 || writer > SHM_MAX_WRITER_ID ||
	    (bound != 0 && bound != wanted)) {
		l->discarded++;
		return NULL;
	}
	return l->state == LOCAL_ANNOUNCED ? b : NULL;
}

static void
count_chunk(struct local *l, const struct shm_chunk *c)
{
	l->chunks++;
	l->bytes += c->len;
	l->patch_credit += (int64_t)(c->len / 2);
	if (l->patch_credit > LOCAL_PATCH_CREDIT)
		l->patch_credit = LOCAL_PATCH_CREDIT;
}

static enum upstream_room
put_for(struct local *l, const struct shm_chunk *c, uint32_t buffer,
    bool complete)
{
	struct local_buffer *b = buffer_of(l, c->writer_id, buffer);
	enum upstream_room room;

	if (b == NULL)
		return UPSTREAM_DROPPED;
	room = put_chunk(l->owner, l->channel, c, b->remote, complete, true);
	if (room == UPSTREAM_ROOM)
		count_chunk(l, c);
	return room;
}

/* ---- what was scraped before it was committed ---- */

/*
 * A chunk that was complete when it was scraped does not change any more: its
 * commit brings nothing new.  Those that still wait for a patch are left out:
 * their writer may patch them in place.
 */
static void
remember_scraped(struct local *l, const struct shm_chunk *c)
{
	if ((c->flags & SHM_NEEDS_PATCHING) != 0)
		return;
	if (l->scraped == NULL)
		l->scraped = calloc(shm_pages(l->shm), sizeof(*l->scraped));
	if (l->scraped != NULL)
		l->scraped[c->page] |= (uint16_t)(1u << c->index);
}

static bool
was_scraped(const struct local *l, uint32_t page, uint32_t index)
{
	return l->scraped != NULL && (l->scraped[page] >> index & 1) != 0;
}

static void
forget_scraped(struct local *l, uint32_t page, uint32_t index)
{
	if (l->scraped != NULL)
		l->scraped[page] &= (uint16_t)~(1u << index);
}

/* ---- CommitData ---- */

/* False: it has to come again. */
static bool
take_from_memory(struct local *l, const struct commit_move *m)
{
	enum upstream_room room = UPSTREAM_ROOM;
	struct shm_chunk c;

	if (l->shm == NULL || shm_take(l->shm, m->page, m->chunk, &c) !=
	    SHM_TAKEN) {
		l->discarded++;
		return true;
	}
	if (!was_scraped(l, m->page, m->chunk))
		room = put_for(l, &c, m->buffer, !m->incomplete);
	if (room == UPSTREAM_LATER) {
		/* Should there be no later, it is still there to be scraped. */
		shm_put_back(l->shm, m->page, m->chunk);
		return false;
	}
	forget_scraped(l, m->page, m->chunk);
	shm_release(l->shm, m->page, m->chunk);
	return true;
}

/* Applies the index-th move unless it was before; false: not now. */
static bool
next_move(struct local *l, size_t index, const struct commit_move *m)
{
	struct shm_chunk c;

	if (index < l->moves_done)
		return true;
	if (m->data == NULL) {
		if (!take_from_memory(l, m))
			return false;
	} else if (shm_chunk_from_bytes(m->data, m->len, &c) != 0) {
		l->discarded++;
	} else if (put_for(l, &c, m->buffer,
	    !m->incomplete) == UPSTREAM_LATER) {
		return false;
	}
	l->moves_done = index + 1;
	return true;
}

/* Patches are neither dropped nor put off: without them packets are lost. */
static void
put_patch(struct local *l, const uint8_t *data, size_t len)
{
	const struct upstream *up = &l->owner->up;
	struct commit_patch p;
	struct local_buffer *b;
	uint8_t *out;

	if (!commit_parse_patch(&p, data, len) ||
	    len + COMMIT_PATCH_MORE > LINK_MESSAGE_MAX) {
		l->discarded++;
		return;
	}
	if ((b = buffer_of(l, p.writer, p.buffer)) == NULL)
		return;
	if (l->patch_credit < 0) {
		l->discarded++;
		return;
	}
	l->patch_credit -= (int64_t)len;
	if (up->ops->reserve(up->arg, l->channel, len + COMMIT_PATCH_MORE, 0,
	    &out) == UPSTREAM_ROOM)
		up->ops->commit(up->arg, l->channel, commit_put_patch(out,
		    data, len, b->remote));
}

/*
 * What a request asks for, found in one walk: a request that does not parse is
 * not applied in part.  Its first moves are kept, so that the usual request is
 * parsed once.
 */
#define MOVES_KEPT 32u

struct plan {
	struct commit_move moves[MOVES_KEPT];
	size_t n_moves; /* in all; may be more than are kept */
	uint64_t flush_id;
	bool has_patches;
};

static bool
make_plan(struct plan *plan, const uint8_t *request, size_t len)
{
	struct commit_patch patch;
	struct commit_move other;
	struct pb_reader r;
	struct pb_field f;

	plan->n_moves = 0;
	plan->flush_id = 0;
	plan->has_patches = false;
	pb_init(&r, request, len);
	while (pb_next(&r, &f)) {
		switch (f.number) {
		case COMMIT_MOVE:
			if (f.wire != PB_BYTES || !commit_parse_move(
			    plan->n_moves < MOVES_KEPT ?
			    &plan->moves[plan->n_moves] : &other, f.data,
			    f.len))
				return false;
			plan->n_moves++;
			break;
		case COMMIT_PATCH:
			if (f.wire != PB_BYTES ||
			    !commit_parse_patch(&patch, f.data, f.len))
				return false;
			plan->has_patches = true;
			break;
		case COMMIT_FLUSH:
			plan->flush_id = f.value;
			break;
		default:
			break;
		}
	}
	return !r.bad;
}

/* The moves that the plan has no place for. */
static bool
apply_rest(struct local *l, const uint8_t *request, size_t len)
{
	struct commit_move m;
	struct pb_reader r;
	struct pb_field f;
	size_t n = 0;

	pb_init(&r, request, len);
	while (pb_next(&r, &f))
		if (f.number == COMMIT_MOVE && n++ >= MOVES_KEPT &&
		    commit_parse_move(&m, f.data, f.len) &&
		    !next_move(l, n - 1, &m))
			return false;
	return true;
}

static void
put_patches(struct local *l, const uint8_t *request, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, request, len);
	while (pb_next(&r, &f))
		if (f.number == COMMIT_PATCH)
			put_patch(l, f.data, f.len);
}

enum local_commit
local_commit(struct local *l, const uint8_t *request, size_t len)
{
	struct plan plan;
	size_t i;

	if (!make_plan(&plan, request, len))
		return LOCAL_COMMIT_BAD;
	for (i = 0; i < plan.n_moves && i < MOVES_KEPT; i++)
		if (!next_move(l, i, &plan.moves[i]))
			return LOCAL_COMMIT_AGAIN;
	if (plan.n_moves > MOVES_KEPT && !apply_rest(l, request, len))
		return LOCAL_COMMIT_AGAIN;
	l->moves_done = 0;
	if (plan.has_patches)
		put_patches(l, request, len);
	if (plan.flush_id != 0)
		local_flush_acked(l, plan.flush_id);
	return LOCAL_COMMIT_OK;
}

/* ---- scraping ---- */

struct scrape {
	struct local *l;
	uint64_t session;
	bool last;
	bool complete;
};

static bool
goes_on(const struct local *l, uint64_t session)
{
	const struct local_instance *i;

	TAILQ_FOREACH(i, &l->instances, link)
		if (i->session == session && !i->stopping && !i->stopped)
			return true;
	return false;
}

static void
scrape_chunk(void *arg, const struct shm_chunk *c, bool complete)
{
	struct scrape *sc = arg;
	struct local *l = sc->l;
	struct local_buffer *b;

	if (complete && was_scraped(l, c->page, c->index))
		return;
	/* Only a writer that named its buffer can be placed. */
	b = local_find_buffer(l, local_writer_buffer(l, c->writer_id));
	if (b == NULL || (sc->session != 0 && b->session != sc->session) ||
	    (c->behind && goes_on(l, b->session)))
		return;
	switch (put_chunk(l->owner, l->channel, c, b->remote, complete,
	    sc->last)) {
	case UPSTREAM_ROOM:
		count_chunk(l, c);
		if (complete)
			remember_scraped(l, c);
		break;
	case UPSTREAM_LATER:
		sc->complete = false;
		break;
	case UPSTREAM_DROPPED:
		/* Its commit is to come, and may find room or be counted. */
		break;
	}
}

/* Only when more comes is anything behind what is still to come. */
static bool
more_comes(const struct local *l, uint64_t session, enum local_rest rest)
{
	return rest == LOCAL_REST_COMES &&
	    (session == 0 || goes_on(l, session));
}

bool
local_scrape(struct local *l, uint64_t session, enum local_rest rest)
{
	struct scrape sc = { .l = l, .session = session,
	    .last = rest == LOCAL_REST_NONE, .complete = true };

	if (l->shm == NULL || !l->scrape || l->state != LOCAL_ANNOUNCED)
		return true;
	shm_scrape(l->shm, more_comes(l, session, rest), scrape_chunk, &sc);
	return sc.complete;
}
