#include "service/session/commit.h"

#include <stdlib.h>
#include <string.h>

#include "transport/shm/commit_wire.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_reader.h"
#include "transport/shm/shm.h"
#include "service/buffer/trace_buffer.h"
#include "service/session/arrivals.h"
#include "service/session/file_writer.h"
#include "service/session/flush.h"
#include "service/session/losses.h"
#include "service/model/model.h"
#include "service/session/producer.h"
#include "service/session/quota.h"
#include "service/packet/sequence_map.h"
#include "service/session/session.h"

/* Field numbers: wire-format.md, ChunkToPatch. */
enum {
	PATCH_BUFFER = 1,
	PATCH_WRITER = 2,
	PATCH_CHUNK = 3,
	PATCH_PATCHES = 4,
	PATCH_MORE = 5,
	ONE_OFFSET = 1,
	ONE_DATA = 2,
};

/* Notes chunks or patches of this request that no buffer takes. */
static void
note_refused(struct producer *p, uint64_t chunks, uint64_t patches)
{
	p->wrote.lost++;
	p->refused.chunks += chunks;
	p->refused.patches += patches;
}

static void
tell_refused(const struct producer *p)
{
	char name[128];

	log_limited(&p->service->discard_log, loop_now_ms(), LOG_LEVEL_WARN,
	    "producer %u (\"%s\", pid %d, machine %u): %llu chunks and %llu "
	    "patches of a commit discarded: they name a buffer that it may not "
	    "write to, or cannot be read", p->id, log_escape(name,
	    sizeof(name), p->name, strlen(p->name)), p->pid, p->machine->id,
	    (unsigned long long)p->refused.chunks,
	    (unsigned long long)p->refused.patches);
}

/*
 * Counts what was refused of a request in each session that runs and that the
 * producer writes for: it may have been meant for any of these, and is no loss
 * of anybody else's.  Once for the whole request: it may hold 60,000 refused
 * chunks, and the producer may write to thousands of buffers.
 */
static void
count_refused(struct producer *p)
{
	struct service *sv = p->service;
	struct session *s;
	size_t i;

	if (LIKELY(p->refused.chunks == 0 && p->refused.patches == 0))
		return;
	sv->counters.refusals++;
	for (i = 0; i < p->n_allowed; i++) {
		s = sv->buffers[p->allowed[i]]->session;
		/* It may have several of its buffers. */
		if (s->refused.last == sv->counters.refusals ||
		    s->state == SESSION_DISABLED)
			continue;
		s->refused.last = sv->counters.refusals;
		s->refused.chunks += p->refused.chunks;
		s->refused.patches += p->refused.patches;
	}
	tell_refused(p);
	p->refused.chunks = p->refused.patches = 0;
}

/* Of one chunk; producers send a few. */
#define PATCHES_AT_ONCE 64u

/*
 * A relay leaves out a buffer that it knows its writer registered.  That one
 * may be gone meanwhile: it is late then, like data for a buffer of old.
 */
static uint32_t
buffer_of_linked(struct producer *p, uint32_t writer)
{
	uint32_t bound = producer_writer_buffer(p, writer);

	if (bound == 0)
		p->service->counters.chunks_late++;
	return bound;
}

/*
 * The buffer that data of this writer goes to.  NULL: it is dropped.  *refused
 * tells whether that breaks a rule, or it is merely late: threads give up the
 * chunk they hold only when they next trace, long after their session was freed.
 */
static struct session_buffer *
find_buffer(struct producer *p, uint32_t writer, uint32_t wanted,
    bool *refused)
{
	struct service *s = p->service;
	struct session_buffer *b;
	uint16_t bound;

	*refused = false;
	if (wanted == 0 && p->linked &&
	    (wanted = buffer_of_linked(p, writer)) == 0)
		return NULL;
	/* Of a buffer that is gone, or whose file is closed: nobody reads it. */
	if (wanted > 0 && wanted <= s->highest_buffer_id &&
	    (s->buffers[wanted] == NULL ||
	    s->buffers[wanted]->session->wrote_file)) {
		s->counters.chunks_late++;
		return NULL;
	}
	bound = producer_writer_buffer(p, writer);
	if (wanted == 0 || wanted > UINT16_MAX || writer == 0 ||
	    writer > SHM_MAX_WRITER_ID || (b = s->buffers[wanted]) == NULL ||
	    (bound != 0 && bound != wanted) ||
	    !producer_may_write(p, (uint16_t)wanted)) {
		s->counters.wrong_buffer++;
		*refused = true;
		return NULL;
	}
	return b;
}

/* Those that begin in it and are kept, as its header says. */
static uint32_t
packets_in(const struct tb_chunk *c)
{
	uint32_t not_ours = !c->complete +
	    ((c->flags & TB_FIRST_CONTINUES_FROM_PREV) != 0);

	return c->num_fragments > not_ours ? c->num_fragments - not_ours : 0;
}

static void
write_chunk(struct producer *p, struct session_buffer *b,
    const struct shm_chunk *c, bool complete)
{
	const struct tb_stats *st = trace_buffer_stats(b->tb);
	struct tb_origin origin = {
		.producer = p->id,
		.writer = c->writer_id,
		.share = machine_account(p->machine)->share,
		.machine = p->machine->id,
		.uid = p->uid,
		.pid = p->pid,
	};
	struct tb_chunk chunk = {
		.id = c->chunk_id,
		.num_fragments = c->num_fragments,
		.flags = c->flags,
		.complete = complete,
		.payload = c->payload,
		.len = c->len,
	};
	struct tb_stats before = *st;
	bool stored;

	if (UNLIKELY(p->losses != NULL))
		chunk.loss = link_loss_before(p, c->writer_id, b->id);
	if ((c->flags & SHM_NEEDS_PATCHING) != 0)
		p->lacks_patches = true;
	/* One that was scraped before counts only once. */
	stored = trace_buffer_write(b->tb, &origin, &chunk);
	ring_ahead_follow(&b->ahead, p->service->populator, b->tb,
	    loop_turn_ms(p->service->loop));
	if (UNLIKELY(p->quota != NULL))
		quota_charge(p, stored && st->chunks_written !=
		    before.chunks_written ? (size_t)(st->bytes_written -
		    before.bytes_written) : c->len);
	if (stored && st->chunks_written != before.chunks_written) {
		sequence_map_count_chunk(b->session->sequences, &origin,
		    (uint32_t)(b - b->session->buffers),
		    (size_t)(st->bytes_written - before.bytes_written));
		b->session->packets_stored += packets_in(&chunk);
		p->wrote.bytes += st->bytes_written - before.bytes_written;
		p->wrote.packets += packets_in(&chunk);
		if (UNLIKELY(p->arrivals != NULL))
			arrivals_look(p, b->session, c->writer_id, &chunk);
	}
	p->wrote.lost += st->chunks_discarded - before.chunks_discarded +
	    st->trace_writer_packet_loss - before.trace_writer_packet_loss;
	if (b->session->file != NULL)
		file_writer_wrote(b->session->file, b);
}

static void
set_scraped(struct producer *p, const struct shm_chunk *c)
{
	if (p->scraped == NULL)
		p->scraped = calloc(shm_pages(p->shm), sizeof(*p->scraped));
	if (p->scraped != NULL)
		p->scraped[c->page] |= (uint16_t)(1u << c->index);
}

/*
 * A chunk that was complete when it was scraped does not change any more: its
 * commit brings nothing new, and must not look like something that came too
 * late when its packets have been read meanwhile.  Those that still wait for a
 * patch are left out: their writer may patch them in place.
 */
static void
remember_scraped(struct producer *p, const struct shm_chunk *c)
{
	if ((c->flags & TB_NEEDS_PATCHING) == 0)
		set_scraped(p, c);
}

static bool
was_scraped(const struct producer *p, uint32_t page, uint32_t index)
{
	return p->scraped != NULL && (p->scraped[page] >> index & 1) != 0;
}

/* page and index have been found valid. */
static bool
forget_scraped(struct producer *p, uint32_t page, uint32_t index)
{
	if (!was_scraped(p, page, index))
		return false;
	p->scraped[page] &= (uint16_t)~(1u << index);
	return true;
}

static void
apply_move(struct producer *p, const struct commit_move *m)
{
	struct service *s = p->service;
	struct session_buffer *b;
	struct shm_chunk c;
	bool in_shm = m->data == NULL, known, refused;

	if (!in_shm) {
		if (shm_chunk_from_bytes(m->data, m->len, &c) != 0) {
			note_refused(p, 1, 0);
			return;
		}
	} else if (p->shm == NULL ||
	    shm_take(p->shm, m->page, m->chunk, &c) != SHM_TAKEN) {
		s->counters.bad_chunk_index++;
		note_refused(p, 1, 0);
		return;
	}
	known = in_shm && forget_scraped(p, m->page, m->chunk);
	if (!known) {
		b = find_buffer(p, c.writer_id, m->buffer, &refused);
		if (refused)
			note_refused(p, 1, 0);
		if (b != NULL && (p->quota == NULL ||
		    !quota_drops(p, b, &c, !m->incomplete, false)))
			write_chunk(p, b, &c, !m->incomplete);
	}
	if (in_shm)
		shm_release(p->shm, m->page, m->chunk);
}

/* One ChunkToPatch; its patches are read from `from` again. */
struct patching {
	uint32_t buffer, writer, chunk;
	bool more; /* of later requests */
	size_t n;
	const struct pb_field *from;
};

static bool
parse_patch(struct tb_patch *out, const struct pb_field *f)
{
	struct pb_reader r;
	struct pb_field g;

	memset(out, 0, sizeof(*out));
	pb_init(&r, f->data, f->len);
	while (pb_next(&r, &g)) {
		if (g.number == ONE_OFFSET) {
			out->offset = (uint32_t)g.value;
		} else if (g.number == ONE_DATA && g.wire == PB_BYTES) {
			out->data = g.data;
			out->len = g.len;
		}
	}
	return !r.bad;
}

static bool
parse_patching(struct patching *out, const struct pb_field *f)
{
	struct pb_reader r;
	struct pb_field g;
	struct tb_patch patch;

	*out = (struct patching){ .from = f };
	pb_init(&r, f->data, f->len);
	while (pb_next(&r, &g)) {
		switch (g.number) {
		case PATCH_BUFFER:
			out->buffer = (uint32_t)g.value;
			break;
		case PATCH_WRITER:
			out->writer = (uint32_t)g.value;
			break;
		case PATCH_CHUNK:
			out->chunk = (uint32_t)g.value;
			break;
		case PATCH_MORE:
			out->more = g.value != 0;
			break;
		case PATCH_PATCHES:
			if (g.wire != PB_BYTES || !parse_patch(&patch, &g))
				return false;
			out->n++;
			break;
		default:
			break;
		}
	}
	return !r.bad;
}

/* The next of them; up to PATCHES_AT_ONCE. */
static size_t
next_patches(struct pb_reader *r, struct tb_patch *out)
{
	struct pb_field f;
	size_t n = 0;

	while (n < PATCHES_AT_ONCE && pb_next(r, &f))
		if (f.number == PATCH_PATCHES && parse_patch(&out[n], &f))
			n++;
	return n;
}

/*
 * Where one of them fails, which the buffer counts, the chunk stays unpatched:
 * a packet that was patched in part must not be read.
 */
static void
patch_chunk(struct producer *p, const struct patching *c)
{
	struct tb_patch patches[PATCHES_AT_ONCE];
	struct session_buffer *b;
	struct pb_reader r;
	bool refused, stalled = c->more;
	size_t left = c->n, n;

	b = find_buffer(p, c->writer, c->buffer, &refused);
	if (refused)
		note_refused(p, 0, c->n);
	if (b == NULL)
		return;
	pb_init(&r, c->from->data, c->from->len);
	do {
		n = next_patches(&r, patches);
		left -= n;
		if (!trace_buffer_patch(b->tb, p->id, c->writer, c->chunk,
		    patches, n, stalled || left > 0))
			stalled = true;
	} while (left > 0);
}

/* The buffer that a move goes to, when it comes to that; or NULL. */
static struct session_buffer *
buffer_of_move(struct producer *p, const struct commit_move *m)
{
	uint32_t buffer = m->buffer;
	struct session_buffer *b;
	struct shm_chunk c;

	if (buffer == 0 && p->linked && m->data != NULL &&
	    shm_chunk_from_bytes(m->data, m->len, &c) == 0)
		buffer = producer_writer_buffer(p, c.writer_id);
	if (buffer == 0 || buffer > UINT16_MAX ||
	    (b = p->service->buffers[buffer]) == NULL ||
	    !producer_may_write(p, b->id))
		return NULL;
	return b;
}

/*
 * Whether writing len more bytes to the buffer must wait for its file; then the
 * producer is woken later.
 */
static bool
must_wait(struct producer *p, struct session_buffer *b, size_t len)
{
	if (b->session->file == NULL)
		return false;
	if (!file_writer_must_wait(b->session->file, b, len)) {
		p->wait_turn = 0;
		return false;
	}
	file_writer_wait(b->session->file, p, b, len);
	return true;
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
	struct pb_reader r;
	struct pb_field f;
	struct commit_move other;
	struct patching patching;

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
			if (f.wire != PB_BYTES || !parse_patching(&patching,
			    &f))
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

/*
 * Applies the index-th move of the request unless it was before the request had
 * to wait, or has to wait now (false): one request may hold more than a buffer.
 */
static bool
next_move(struct producer *p, size_t index, const struct commit_move *m)
{
	struct session_buffer *b = NULL;
	size_t bytes;

	if (index < p->moves_done)
		return true;
	bytes = m->data != NULL ? m->len :
	    p->shm != NULL ? shm_page_size(p->shm) : 0;
	if (p->service->n_lossless > 0 || p->quota != NULL)
		b = buffer_of_move(p, m);
	if (b != NULL && p->service->n_lossless > 0 && must_wait(p, b, bytes))
		return false;
	if (p->quota != NULL && quota_holds(p, b != NULL ? bytes : 0))
		return false;
	apply_move(p, m);
	p->moves_done = index + 1;
	return true;
}

/* The moves that the plan has no place for. */
static bool
apply_rest(struct producer *p, const uint8_t *request, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	struct commit_move m;
	size_t n = 0;

	pb_init(&r, request, len);
	while (pb_next(&r, &f))
		if (f.number == COMMIT_MOVE && n++ >= MOVES_KEPT &&
		    commit_parse_move(&m, f.data, f.len) &&
		    !next_move(p, n - 1, &m))
			return false;
	return true;
}

static void
apply_patches(struct producer *p, const uint8_t *request, size_t len)
{
	struct patching patching;
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, request, len);
	while (pb_next(&r, &f))
		if (f.number == COMMIT_PATCH && parse_patching(&patching, &f))
			patch_chunk(p, &patching);
}

static enum commit_verdict
apply(struct producer *p, const struct plan *plan, const uint8_t *request,
    size_t len)
{
	size_t i;

	for (i = 0; i < plan->n_moves && i < MOVES_KEPT; i++)
		if (!next_move(p, i, &plan->moves[i]))
			return COMMIT_AGAIN;
	if (plan->n_moves > MOVES_KEPT && !apply_rest(p, request, len))
		return COMMIT_AGAIN;
	p->moves_done = 0;
	if (plan->has_patches)
		apply_patches(p, request, len);
	return COMMIT_OK;
}

enum commit_verdict
commit_data(struct producer *p, const uint8_t *request, size_t len)
{
	enum commit_verdict verdict;
	struct plan plan;

	if (!make_plan(&plan, request, len)) {
		p->service->counters.unparsable_commits++;
		return COMMIT_BAD;
	}
	verdict = apply(p, &plan, request, len);
	count_refused(p);
	if (verdict == COMMIT_OK && plan.flush_id != 0)
		flush_ack(p, plan.flush_id);
	return verdict;
}

struct scrape {
	struct producer *p;
	struct session *only;
	bool complete;
};

/*
 * What is behind a chunk that is still to come waits for it: a reader would go
 * past it.  When nothing more will come, or nobody knows as the producer does
 * not answer, all is taken that is there.
 */
static bool
more_comes(const struct producer *p, const struct session *only)
{
	return only != NULL && only->state != SESSION_DISABLING &&
	    only->state != SESSION_DISABLED && !flush_has_given_up_on(only, p);
}

static void
scrape_chunk(void *arg, const struct shm_chunk *c, bool complete)
{
	struct scrape *sc = arg;
	struct session_buffer *b;
	uint16_t id;

	if (complete && was_scraped(sc->p, c->page, c->index))
		return;
	/* Only a writer that named its buffer can be placed. */
	id = producer_writer_buffer(sc->p, c->writer_id);
	if (id == 0 || (b = sc->p->service->buffers[id]) == NULL ||
	    (sc->only != NULL && b->session != sc->only) || c->behind)
		return;
	if (b->session->file != NULL &&
	    file_writer_must_wait(b->session->file, b, c->len)) {
		sc->complete = false;
		return;
	}
	/* Other sessions' may go on, but a producer that is gone does not. */
	if (sc->p->quota != NULL && quota_drops(sc->p, b, c, complete,
	    sc->only == NULL || session_is_over(sc->only))) {
		if (complete)
			set_scraped(sc->p, c);
		return;
	}
	write_chunk(sc->p, b, c, complete);
	if (complete)
		remember_scraped(sc->p, c);
}

bool
commit_scrape(struct producer *p, struct session *only)
{
	struct scrape sc = { .p = p, .only = only, .complete = true };

	if (p->shm == NULL || !p->scrape)
		return true;
	shm_scrape(p->shm, more_comes(p, only), scrape_chunk, &sc);
	return sc.complete;
}
