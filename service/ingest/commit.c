#include "service/ingest/commit.h"

#include <string.h>

#include "protos/fields.h"
#include "protos/link.pb-c.h"
#include "service/ingest/arrivals.h"
#include "service/ingest/former_ids.h"
#include "service/ingest/losses.h"
#include "service/ingest/quota.h"
#include "service/ingest/writers.h"
#include "service/model/model.h"
#include "service/packet/sequence_map.h"
#include "transport/base/log.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/loop/loop.h"
#include "transport/shm/commit_plan.h"
#include "transport/shm/commit_wire.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"

/* Notes chunks or patches of this request as refused: no buffer takes them. */
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
 * Counts the refused chunks and patches of a request in each running session
 * that the producer writes for: they may have been meant for any of these, and
 * are no loss of another session.  Once for the whole request: it may hold
 * 60,000 refused chunks, and the producer may write to thousands of buffers.
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
		/* A producer may write to several buffers of a session. */
		if (s->refused.last == sv->counters.refusals ||
		    session_phase(s->state) == SESSION_PHASE_DISABLED)
			continue;
		s->refused.last = sv->counters.refusals;
		s->refused.chunks += p->refused.chunks;
		s->refused.patches += p->refused.patches;
	}
	tell_refused(p);
	p->refused.chunks = p->refused.patches = 0;
}

/* Patches of one chunk that are applied in one go; producers send a few. */
#define PATCHES_AT_ONCE 64u

/*
 * A relay leaves out the buffer's id where the writer has registered it.  The
 * registration may be gone meanwhile: the chunk is late then, like data for a
 * buffer that was freed.
 */
static uint32_t
buffer_of_linked(struct producer *p, uint32_t writer)
{
	uint32_t bound = writers_buffer_of(p, writer);

	if (bound == 0)
		p->service->counters.chunks_late++;
	return bound;
}

/*
 * The buffer that data of this writer goes to.  NULL: the data is dropped,
 * because it breaks a rule (*refused), or is merely late: threads give up the
 * chunk they hold only when they next trace, long after their session was
 * freed.
 */
static struct session_buffer *
find_buffer(struct producer *p, uint32_t writer, uint32_t wanted,
    bool *refused)
{
	struct service *s = p->service;
	struct session_buffer *b;
	uint16_t bound;

	*refused = false;
	if (UNLIKELY(p->former != NULL))
		wanted = former_ids_buffer(p, wanted);
	if (UNLIKELY(wanted == FORMER_IDS_LATE))
		s->counters.chunks_late++;
	if (UNLIKELY(wanted >= FORMER_IDS_LATE))
		return NULL;
	if (wanted == 0 && p->linked &&
	    (wanted = buffer_of_linked(p, writer)) == 0)
		return NULL;
	/* The buffer is gone, or its file closed: no output would read it. */
	if (wanted > 0 && wanted <= s->highest_buffer_id &&
	    (s->buffers[wanted] == NULL ||
	    s->buffers[wanted]->session->wrote_file)) {
		s->counters.chunks_late++;
		return NULL;
	}
	bound = writers_buffer_of(p, writer);
	if (wanted == 0 || wanted > UINT16_MAX || writer == 0 ||
	    writer > SHM_MAX_WRITER_ID || (b = s->buffers[wanted]) == NULL ||
	    (bound != 0 && bound != wanted) ||
	    !writers_may_use(p, (uint16_t)wanted)) {
		s->counters.wrong_buffer++;
		*refused = true;
		return NULL;
	}
	return b;
}

/*
 * Packets that start in this chunk, without one continued from before and one
 * still open.
 */
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
	uint64_t discarded, lost;
	bool stored;

	if (UNLIKELY(p->former != NULL))
		chunk.had = former_ids_part(p, c->writer_id, c->chunk_id);
	if (UNLIKELY(p->losses != NULL))
		chunk.loss = losses_take_bits(p, c->writer_id, b->id);
	if ((c->flags & SHM_NEEDS_PATCHING) != 0)
		p->lacks_patches = true;
	/* A chunk that was scraped before counts only once. */
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
		p->service->counters.chunks_written++;
		p->service->counters.bytes_received += st->bytes_written -
		    before.bytes_written;
		p->wrote.packets += packets_in(&chunk);
		if (UNLIKELY(p->arrivals != NULL))
			arrivals_look(p, b->session, c->writer_id, &chunk);
	}
	discarded = st->chunks_discarded - before.chunks_discarded;
	lost = st->trace_writer_packet_loss - before.trace_writer_packet_loss;
	if (UNLIKELY(discarded + lost != 0)) {
		p->wrote.lost += discarded + lost;
		p->service->counters.chunks_discarded += discarded;
		p->service->counters.packets_lost_by_producers += lost;
	}
	if (b->gate != NULL)
		b->gate->wrote(b);
}

/*
 * Counts a chunk that a former collector was to have, and for which no session
 * here has a buffer.  False: it has one.
 */
static bool
lose_former(struct producer *p, const struct commit_move *m,
    const struct shm_chunk *c)
{
	uint32_t buffer = former_ids_buffer(p, m->buffer);
	struct link_loss loss = {
		.cause = TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_COLLECTOR_RESTARTED,
		.chunks = 1,
		.packets = c->num_fragments,
		.bytes = c->len,
	};

	if (buffer != FORMER_IDS_NOWHERE && (buffer != 0 ||
	    !former_ids_has_nowhere(p) ||
	    writers_buffer_of(p, c->writer_id) != 0))
		return false;
	losses_count(p->service, p->machine, &loss);
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
	/* A chunk that was complete when scraped does not change any more. */
	known = in_shm && shm_was_scraped(p->shm, m->page, m->chunk);
	if (UNLIKELY(p->former != NULL) && lose_former(p, m, &c))
		known = true;
	if (!known) {
		b = find_buffer(p, c.writer_id, m->buffer, &refused);
		if (refused)
			note_refused(p, 1, 0);
		if (b != NULL && (p->quota == NULL ||
		    !quota_drop(p, b, &c, !m->incomplete, false)))
			write_chunk(p, b, &c, !m->incomplete);
	}
	if (in_shm) {
		shm_forget_scraped(p->shm, m->page, m->chunk);
		shm_release(p->shm, m->page, m->chunk);
	}
}

static bool
parse_patch(struct tb_patch *out, const struct pb_field *f)
{
	struct pb_reader r;
	struct pb_field g;

	memset(out, 0, sizeof(*out));
	pb_init(&r, f->data, f->len);
	while (pb_next(&r, &g)) {
		if (g.number == Patch_offset) {
			out->offset = (uint32_t)g.value;
		} else if (g.number == Patch_data && g.wire == PB_BYTES) {
			out->data = g.data;
			out->len = g.len;
		}
	}
	return !r.bad;
}

/* Reads up to PATCHES_AT_ONCE patches of a chunk. */
static size_t
next_patches(struct pb_reader *r, struct tb_patch *out)
{
	struct pb_field f;
	size_t n = 0;

	while (n < PATCHES_AT_ONCE && pb_next(r, &f))
		if (f.number == ChunkToPatch_patches &&
		    parse_patch(&out[n], &f))
			n++;
	return n;
}

/*
 * Where a patch fails, which the buffer counts, the chunk keeps waiting for
 * patches: a packet that was patched in part must not be read.
 */
static void
patch_chunk(struct producer *p, const struct commit_patch *c)
{
	struct tb_patch patches[PATCHES_AT_ONCE];
	struct session_buffer *b;
	struct pb_reader r;
	bool refused, stalled = c->more;
	size_t left = c->patches, n;

	b = find_buffer(p, c->writer, c->buffer, &refused);
	if (refused)
		note_refused(p, 0, c->patches);
	if (b == NULL)
		return;
	pb_init(&r, c->data, c->len);
	do {
		n = next_patches(&r, patches);
		left -= n;
		if (!trace_buffer_patch(b->tb, p->id, c->writer, c->chunk,
		    &(struct tb_patches){ patches, n, stalled || left > 0 }))
			stalled = true;
	} while (left > 0);
}

/* The buffer that a move will go to; NULL: find_buffer() will refuse it. */
static struct session_buffer *
buffer_of_move(struct producer *p, const struct commit_move *m)
{
	uint32_t buffer = m->buffer;
	struct session_buffer *b;
	struct shm_chunk c;

	if (p->former != NULL)
		buffer = former_ids_buffer(p, buffer);
	if (buffer == 0 && p->linked && m->data != NULL &&
	    shm_chunk_from_bytes(m->data, m->len, &c) == 0)
		buffer = writers_buffer_of(p, c.writer_id);
	if (buffer == 0 || buffer > UINT16_MAX ||
	    (b = p->service->buffers[buffer]) == NULL ||
	    !writers_may_use(p, b->id))
		return NULL;
	return b;
}

/* True: len more bytes have to wait, and the producer is in the queue. */
static bool
hold_at_gate(struct producer *p, struct session_buffer *b, size_t len)
{
	if (b->gate == NULL)
		return false;
	if (b->gate->must_wait(b, len)) {
		b->gate->wait(b, p, len);
		return true;
	}
	p->at_gate.turn = 0;
	return false;
}

/* True: the move has to wait at a gate or for a rate; p is resumed then. */
static bool
hold_move(struct producer *p, const struct commit_move *m)
{
	struct session_buffer *b = NULL;
	size_t bytes;

	bytes = m->data != NULL ? m->len :
	    p->shm != NULL ? shm_page_size(p->shm) : 0;
	if (p->service->n_lossless > 0 || p->quota != NULL)
		b = buffer_of_move(p, m);
	if (b != NULL && p->service->n_lossless > 0 &&
	    hold_at_gate(p, b, bytes))
		return true;
	return p->quota != NULL && quota_hold(p, b != NULL ? bytes : 0);
}

static enum commit_verdict
apply(struct producer *p, struct commit_plan *plan)
{
	const struct commit_move *m;
	struct commit_patch patch;
	size_t i;

	for (i = 0; (m = commit_plan_move(plan, i)) != NULL; i++) {
		/*
		 * Skips moves that were applied before the request had to wait:
		 * one request may hold more than a buffer has room for.
		 */
		if (i < p->moves_done)
			continue;
		if (hold_move(p, m))
			return COMMIT_AGAIN;
		apply_move(p, m);
		p->moves_done = i + 1;
	}
	p->moves_done = 0;
	while (commit_plan_patch(plan, &patch))
		patch_chunk(p, &patch);
	return COMMIT_OK;
}

enum commit_verdict
commit_data(struct producer *p, const uint8_t *request, size_t len,
    uint64_t *flush_id)
{
	enum commit_verdict verdict;
	struct commit_plan plan;

	if (!commit_plan_make(&plan, request, len)) {
		p->service->counters.unparsable_commits++;
		return COMMIT_BAD;
	}
	verdict = apply(p, &plan);
	count_refused(p);
	if (verdict == COMMIT_OK)
		*flush_id = plan.flush_id;
	return verdict;
}

struct scrape {
	struct producer *p;
	const struct session *only;
	bool complete;
};

static bool
scrape_chunk(void *arg, const struct shm_chunk *c, bool complete)
{
	struct scrape *sc = arg;
	struct session_buffer *b;
	uint16_t id;

	if (complete && shm_was_scraped(sc->p->shm, c->page, c->index))
		return true;
	/* Without a registered buffer nothing says where the chunk belongs. */
	id = writers_buffer_of(sc->p, c->writer_id);
	if (id == 0 || (b = sc->p->service->buffers[id]) == NULL ||
	    (sc->only != NULL && b->session != sc->only) || c->behind)
		return false;
	if (b->gate != NULL && b->gate->must_wait(b, c->len)) {
		b->gate->wait(b, NULL, c->len);
		sc->complete = false;
		return false;
	}
	/*
	 * A chunk is scraped for the last time when its producer is gone (no
	 * session is named) or its session closes; else its commit follows.
	 */
	if (sc->p->quota != NULL && quota_drop(sc->p, b, c, complete,
	    sc->only == NULL || b->closing)) {
		if (complete)
			(void)!shm_remember_scraped(sc->p->shm, c);
		return true;
	}
	write_chunk(sc->p, b, c, complete);
	/*
	 * The commit of a chunk that was complete must not look late when its
	 * packets have been read meanwhile.  A chunk that waits for a patch may
	 * be patched in place by its writer, so its commit is needed.
	 */
	if (complete && (c->flags & SHM_NEEDS_PATCHING) == 0)
		(void)!shm_remember_scraped(sc->p->shm, c);
	return true;
}

bool
commit_scrape(struct producer *p, const struct session *only, bool more_comes)
{
	struct scrape sc = { .p = p, .only = only, .complete = true };

	if (p->shm == NULL || !p->scrape)
		return true;
	shm_scrape(p->shm, more_comes, scrape_chunk, &sc);
	return sc.complete;
}
