/*
 * The hot path: a chunk is copied once, from shared memory or the request into
 * the room that upstream reserves.
 */
#include <string.h>

#include "protos/link.pb-c.h"
#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "transport/shm/commit_plan.h"
#include "transport/shm/commit_wire.h"
#include "transport/wire/pb_reader.h"

/* Flags of a chunk's header, above its count of fragments (shm.h). */
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
 * Notes a chunk that comes again, for a move: its first packets may arrive where
 * the rest does not.
 */
static void
note_again(struct local *l, const struct shm_chunk *c)
{
	unsigned whole = c->num_fragments > 0 ? c->num_fragments - 1u : 0;

	if (whole > 0)
		local_note_part(l, c, used(c->payload, c->len, whole));
}

/*
 * buffer: local_buffer.remote.  loud: a drop is told; else it is as if it had not
 * been tried.
 */
static enum upstream_room
put_chunk(struct producers *ps, uint32_t channel, const struct shm_chunk *c,
    uint32_t buffer, bool complete, bool loud)
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
		/* The copy does not change under the parser. */
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
	return local_is_known(l) ? b : NULL;
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
	if (room == UPSTREAM_ROOM) {
		count_chunk(l, c);
		if (!complete)
			note_again(l, c);
		else if (l->parts.n > 0)
			local_part_done(l, c);
	}
	return room;
}

/* ---- CommitData ---- */

/* False: upward has no room now; the request has to come again. */
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
	if (!shm_was_scraped(l->shm, m->page, m->chunk))
		room = put_for(l, &c, m->buffer, !m->incomplete);
	if (room == UPSTREAM_LATER) {
		/* If the request does not come again, a scrape finds it. */
		shm_put_back(l->shm, m->page, m->chunk);
		return false;
	}
	shm_forget_scraped(l->shm, m->page, m->chunk);
	shm_release(l->shm, m->page, m->chunk);
	return true;
}

/* Puts a chunk of the request; false as above. */
static bool
put_move(struct local *l, const struct commit_move *m)
{
	struct shm_chunk c;

	if (m->data == NULL)
		return take_from_memory(l, m);
	if (shm_chunk_from_bytes(m->data, m->len, &c) == 0)
		return put_for(l, &c, m->buffer, !m->incomplete) !=
		    UPSTREAM_LATER;
	l->discarded++;
	return true;
}

/* Patches are neither dropped nor put off: without them packets are lost. */
static void
put_patch(struct local *l, const struct commit_patch *p)
{
	const struct upstream *up = &l->owner->up;
	struct local_buffer *b;
	uint8_t *out;

	if (p->len + COMMIT_PATCH_MORE > LINK_MESSAGE_MAX) {
		l->discarded++;
		return;
	}
	if ((b = buffer_of(l, p->writer, p->buffer)) == NULL)
		return;
	if (l->patch_credit < 0) {
		l->discarded++;
		return;
	}
	l->patch_credit -= (int64_t)p->len;
	if (up->ops->reserve(up->arg, l->channel, p->len + COMMIT_PATCH_MORE,
	    0, &out) == UPSTREAM_ROOM)
		up->ops->commit(up->arg, l->channel, commit_put_patch(out,
		    p->data, p->len, b->remote));
}

enum local_commit
local_commit(struct local *l, const uint8_t *request, size_t len,
    uint64_t *flush_id)
{
	const struct commit_move *m;
	struct commit_patch patch;
	struct commit_plan plan;
	size_t i;

	if (!commit_plan_make(&plan, request, len))
		return LOCAL_COMMIT_BAD;
	for (i = 0; (m = commit_plan_move(&plan, i)) != NULL; i++) {
		/* Moved before the request had to come again. */
		if (i < l->moves_done)
			continue;
		if (!put_move(l, m))
			return LOCAL_COMMIT_AGAIN;
		l->moves_done = i + 1;
	}
	l->moves_done = 0;
	while (commit_plan_patch(&plan, &patch))
		put_patch(l, &patch);
	*flush_id = plan.flush_id;
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
		if (i->session == session && i->state < LOCAL_INSTANCE_STOPPING)
			return true;
	return false;
}

static bool
scrape_chunk(void *arg, const struct shm_chunk *c, bool complete)
{
	struct scrape *sc = arg;
	struct local *l = sc->l;
	struct local_buffer *b;

	if (complete && shm_was_scraped(l->shm, c->page, c->index))
		return true;
	/* Only a writer that named its buffer can be placed. */
	b = local_find_buffer(l, local_writer_buffer(l, c->writer_id));
	if (b == NULL || (sc->session != 0 && b->session != sc->session) ||
	    (c->behind && goes_on(l, b->session)))
		return false;
	switch (put_chunk(l->owner, l->channel, c, b->remote, complete,
	    sc->last)) {
	case UPSTREAM_ROOM:
		count_chunk(l, c);
		/* A chunk that lacks patches may still be patched in place. */
		if (!complete || (c->flags & SHM_NEEDS_PATCHING) != 0 ||
		    !shm_remember_scraped(l->shm, c))
			note_again(l, c);
		break;
	case UPSTREAM_LATER:
		sc->complete = false;
		return false;
	case UPSTREAM_DROPPED:
		/* Where it is not the last, its commit puts or counts it. */
		return sc->last;
	}
	return true;
}

/* Whether commits of this session's writers are still expected. */
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

	if (l->shm == NULL || !l->scrape || !local_is_known(l))
		return true;
	shm_scrape(l->shm, more_comes(l, session, rest), scrape_chunk, &sc);
	return sc.complete;
}
