#include "tests/unit/transport/buffer/tb_script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/transport/buffer/tb_model.h"
#include "transport/buffer/tb_state.h"

#define WRITERS 8u
#define HISTORY 4u
#define HELD_BACK 1200u /* reserved by a scrape, at most */

struct writer {
	uint64_t producer;
	uint32_t writer;
	uint32_t next_id;
	bool continues;           /* the last chunk's last packet does */
	bool open;                /* scraped, not committed yet */
	unsigned n_history;
	struct model_commit chunk; /* the open one */
	struct model_commit history[HISTORY];
};

struct script {
	struct trace_buffer *tb;
	struct model *model;
	struct writer w[WRITERS];
	unsigned n_writers;
	uint32_t id_base;
	uint32_t identities;
	uint32_t fill; /* running, so that all bytes differ */
	bool churn;
	/* A clone that is filled between operations, and its model; or NULL. */
	struct trace_buffer *copy;
	struct model *copy_model;
	struct model_packet expected;
	struct script_result *r;
};

static bool
differ(struct script *s, const char *fmt, ...)
{
	size_t n = strlen(s->r->what);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->r->what + n, sizeof(s->r->what) - n, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- Comparing ---- */

static bool
same_stats(struct script *s, const struct tb_stats *a,
    const struct tb_stats *b)
{
	static const char *const names[] = {"buffer_size", "bytes_written",
	    "bytes_overwritten", "bytes_read", "padding_bytes_written",
	    "padding_bytes_cleared", "chunks_written", "chunks_rewritten",
	    "chunks_relocated", "chunks_overwritten", "chunks_discarded",
	    "chunks_read", "chunks_committed_out_of_order", "write_wrap_count",
	    "patches_succeeded", "patches_failed", "readaheads_succeeded",
	    "readaheads_failed", "abi_violations", "trace_writer_packet_loss",
	    "chunks_kept"};
	const uint64_t *x = (const uint64_t *)a, *y = (const uint64_t *)b;
	size_t i;

	_Static_assert(sizeof(*a) == sizeof(names) / sizeof(names[0]) *
	    sizeof(uint64_t), "all counters have names");
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (x[i] != y[i])
			return differ(s, "%s is %llu, model %llu", names[i],
			    (unsigned long long)x[i], (unsigned long long)y[i]);
	return true;
}

static bool
same_counts(struct script *s, const struct trace_buffer *tb,
    const struct model *m)
{
	if (!same_stats(s, trace_buffer_stats(tb), model_stats(m)))
		return false;
	if (trace_buffer_unread(tb) != model_unread(m))
		return differ(s, "unread is %llu, model %llu",
		    (unsigned long long)trace_buffer_unread(tb),
		    (unsigned long long)model_unread(m));
	return true;
}

static bool
same_state(struct script *s, const struct trace_buffer *tb,
    const struct model *m, size_t len)
{
	if (!same_counts(s, tb, m))
		return false;
	if (trace_buffer_sequences(tb) != model_sequences(m))
		return differ(s, "sequences: %zu, model %zu",
		    trace_buffer_sequences(tb), model_sequences(m));
	if (trace_buffer_would_lose(tb, len) != model_would_lose(m, len))
		return differ(s, "would_lose(%zu): model %d", len,
		    model_would_lose(m, len));
	return true;
}

/* From a position of the walk, records lead exactly to the write cursor. */
static bool
leads_to_end(struct script *s, const struct trace_buffer *tb, uint64_t at,
    const char *what)
{
	uint64_t end = tb_write_position(tb), size;

	if (at > end || (at != end && at + tb->size < end))
		return differ(s, "%s is out of the ring", what);
	while (at < end) {
		size = tb_record_size(tb_record_at(tb, tb_offset_of(tb, at)));
		if (size == 0)
			break;
		at += size;
	}
	return at == end || differ(s, "%s is not on a record", what);
}

/* What must hold in the ring at any time. */
static bool
is_sound(struct script *s, const struct trace_buffer *tb)
{
	uint64_t oldest = tb_write_position(tb), off, held = 0, unread = 0;
	const struct tb_record *r;

	oldest = oldest > tb->size ? oldest - tb->size : 0;
	if (tb->top == tb->size && !leads_to_end(s, tb, oldest, "oldest"))
		return false;
	for (off = 0; off < tb->top; off += tb_record_size(r)) {
		r = tb_record_at(tb, off);
		if (r->kind != TB_CHUNK)
			continue;
		held += tb_record_size(r);
		unread += tb_has_unread(r) ? tb_record_size(r) : 0;
	}
	if (held != tb->held || unread != tb->unread)
		return differ(s, "held or unread is wrong");
	return leads_to_end(s, tb, tb->reader.at, "reader.at") &&
	    (tb->reader.wake == TB_NO_POSITION ||
	    leads_to_end(s, tb, tb->reader.wake, "reader.wake")) &&
	    (tb->reader.run == TB_NO_POSITION ||
	    leads_to_end(s, tb, tb->reader.run, "reader.run"));
}

static bool
same_packet(struct script *s, const struct tb_packet *p,
    const struct model_packet *q)
{
	size_t i, at = 0;

	if (p->origin->producer != q->producer ||
	    p->origin->writer != q->writer)
		return differ(s, "packet of %llu/%u, model %llu/%u",
		    (unsigned long long)p->origin->producer, p->origin->writer,
		    (unsigned long long)q->producer, q->writer);
	if (p->loss != q->loss)
		return differ(s, "loss %u, model %u", p->loss, q->loss);
	if (p->size != q->size)
		return differ(s, "size %zu, model %zu", p->size, q->size);
	for (i = 0; i < p->n_slices; i++) {
		if (at + p->slices[i].len > p->size)
			return differ(s, "slices are more than the size");
		if (memcmp(p->slices[i].data, q->bytes + at,
		    p->slices[i].len) != 0)
			return differ(s, "slice %zu differs", i);
		at += p->slices[i].len;
	}
	return at == p->size || differ(s, "slices are less than the size");
}

static bool
same_reads(struct script *s, struct trace_buffer *tb, struct model *m,
    unsigned n)
{
	struct tb_packet p;
	bool got, want;

	while (n-- > 0) {
		got = trace_buffer_read(tb, &p);
		want = model_read(m, &s->expected);
		if (got != want)
			return differ(s, "%s packet, model of %zu bytes",
			    got ? "a" : "no", want ? s->expected.size : 0);
		if (!got)
			return true;
		if (!same_packet(s, &p, &s->expected) ||
		    !same_stats(s, trace_buffer_stats(tb), model_stats(m)))
			return false;
	}
	return true;
}

/* ---- Making chunks ---- */

static void
put_size(struct model_commit *c, uint32_t v, bool redundant)
{
	unsigned i;

	if (redundant) {
		for (i = 0; i < 3; i++, v >>= 7)
			c->bytes[c->len++] = (uint8_t)(v | 0x80);
		c->bytes[c->len++] = (uint8_t)(v & 0x7f);
		return;
	}
	for (; v >= 0x80; v >>= 7)
		c->bytes[c->len++] = (uint8_t)(v | 0x80);
	c->bytes[c->len++] = (uint8_t)v;
}

static void
add_fragment(struct script *s, struct model_commit *c, uint32_t size,
    bool redundant)
{
	uint32_t i;

	if (c->n == MODEL_FRAGMENTS || c->len + size + 8 > HELD_BACK - 100)
		return;
	put_size(c, size, redundant);
	c->begin[c->n] = (uint32_t)c->len;
	for (i = 0; i < size; i++)
		c->bytes[c->len++] = (uint8_t)(++s->fill * 167u >> 3);
	c->end[c->n++] = (uint32_t)c->len;
}

static uint32_t
size_of(uint8_t b)
{
	static const uint16_t sizes[16] = {0, 1, 2, 5, 9, 14, 20, 33, 60, 90,
	    127, 128, 160, 230, 300, 440};

	return sizes[b & 15];
}

static void
add_fragments(struct script *s, struct model_commit *c, const uint8_t *op)
{
	unsigned i, n = op[2] & 7;

	for (i = 0; i < n; i++)
		add_fragment(s, c, size_of((uint8_t)(op[3] + i * op[4])),
		    (op[4] & 0x10) != 0);
}

static void
start_chunk(struct writer *w, struct model_commit *c, const uint8_t *op)
{
	memset(c, 0, offsetof(struct model_commit, bytes));
	c->producer = w->producer;
	c->writer = w->writer;
	c->id = w->next_id++;
	if (w->continues != ((op[6] & 15) == 1))
		c->flags |= TB_FIRST_CONTINUES_FROM_PREV;
	w->continues = false;
}

/* How the chunk ends: whole, continued, broken or aborted. */
static void
end_chunk(struct writer *w, struct model_commit *c, const uint8_t *op)
{
	if ((op[5] & 3) == 0 && c->n > 0) {
		c->flags |= TB_LAST_CONTINUES_ON_NEXT;
		w->continues = true;
	}
	if ((op[5] & 3) == 0 ? (op[5] & 4) != 0 : op[5] == 7)
		c->flags |= TB_NEEDS_PATCHING;
	if (op[6] >> 4 == 1) {
		c->rest = MODEL_BAD;
		if ((op[6] & 2) != 0) {
			memcpy(c->bytes + c->len, "\xff\x7f", 2);
			c->len += 2;
		}
	} else if (op[6] >> 4 == 2) {
		c->rest = MODEL_DROPPED;
		memcpy(c->bytes + c->len, "\xff\xff\xff\x7f", 4);
		c->len += 4;
	}
	c->complete = true;
}

/* The buffer is a step ahead: what the clone took was as the model is still. */
static void
follow_copy(struct script *s)
{
	if (s->copy != NULL)
		model_clone_up_to(s->copy_model, s->model,
		    s->copy->copying.at);
}

static bool
commit(struct script *s, const struct model_commit *c)
{
	struct tb_origin origin = {.producer = c->producer,
	    .writer = c->writer};
	struct tb_chunk chunk = {
		.id = c->id,
		.num_fragments = (uint16_t)(c->n + (c->rest != MODEL_NOTHING)),
		.flags = c->flags,
		.complete = c->complete,
		.payload = c->bytes,
		.len = c->len,
	};
	bool got, want;

	got = trace_buffer_write(s->tb, &origin, &chunk);
	follow_copy(s);
	want = model_write(s->model, c);
	return got == want || differ(s, "write is %d, model %d", got, want);
}

static void
remember(struct writer *w, const struct model_commit *c)
{
	w->history[w->n_history++ % HISTORY] = *c;
}

/* ---- Operations ---- */

static void
new_identity(struct script *s, struct writer *w)
{
	memset(w, 0, offsetof(struct writer, chunk));
	s->identities++;
	w->producer = s->identities % 3 + ((uint64_t)s->identities << 31);
	w->writer = s->identities * 7;
	w->next_id = s->id_base;
}

static bool
op_finish(struct script *s, struct writer *w, const uint8_t *op)
{
	struct model_commit *c = &w->chunk;

	add_fragments(s, c, op);
	end_chunk(w, c, op);
	w->open = false;
	remember(w, c);
	return commit(s, c);
}

static bool
op_commit(struct script *s, struct writer *w, const uint8_t *op)
{
	if (!w->open)
		start_chunk(w, &w->chunk, op);
	return op_finish(s, w, op);
}

static bool
op_scrape(struct script *s, struct writer *w, const uint8_t *op)
{
	struct model_commit c;

	if (!w->open)
		start_chunk(w, &w->chunk, op);
	w->open = true;
	add_fragments(s, &w->chunk, op);
	c = w->chunk;
	c.complete = false;
	if (c.len < HELD_BACK - op[5] * 2u) {
		memset(c.bytes + c.len, 0, HELD_BACK - c.len);
		c.len = HELD_BACK - op[5] * 2u;
	}
	return commit(s, &c);
}

static bool
op_batch(struct script *s, struct writer *w, const uint8_t *op)
{
	static const uint8_t orders[6][3] = {{1, 0, 2}, {0, 2, 1}, {2, 1, 0},
	    {2, 0, 1}, {1, 2, 0}, {1, 0, 2}};
	static struct model_commit c[3];
	uint8_t varied[SCRIPT_RECORD];
	unsigned i;

	if (w->open && !op_finish(s, w, op))
		return false;
	for (i = 0; i < 3; i++) {
		memcpy(varied, op, sizeof(varied));
		varied[3] = (uint8_t)(op[3] + i);
		varied[5] = (uint8_t)(op[5] + i);
		start_chunk(w, &c[i], varied);
		add_fragments(s, &c[i], varied);
		end_chunk(w, &c[i], varied);
		remember(w, &c[i]);
	}
	for (i = 0; i < 3; i++)
		if (!commit(s, &c[orders[op[7] % 6][i]]))
			return false;
	return true;
}

/* A chunk that was committed before, as it was or with a twist. */
static bool
op_again(struct script *s, struct writer *w, const uint8_t *op)
{
	static struct model_commit c;

	if (w->n_history < HISTORY)
		return true;
	c = w->history[(w->n_history - 1 - op[2] % HISTORY) % HISTORY];
	switch (op[3] % 8) {
	case 0:
		if (c.n > 0 && c.rest == MODEL_NOTHING)
			c.len = --c.n > 0 ? c.end[c.n - 1] : 0;
		break;
	case 1:
		add_fragments(s, &c, op);
		break;
	case 2:
		c.flags ^= op[4] & 7;
		break;
	case 3:
		c.flags &= (uint8_t)~TB_NEEDS_PATCHING;
		break;
	case 4:
		c.complete = false;
		break;
	default:
		break;
	}
	/* A fragment after a broken one would not be where it is said to be. */
	if (op[3] % 8 == 1 && c.rest != MODEL_NOTHING)
		return true;
	return commit(s, &c);
}

static bool
op_patch(struct script *s, struct writer *w, const uint8_t *op)
{
	const struct model_commit *c;
	struct tb_patch patch[2];
	uint32_t last, room, n = 1 + (op[3] & 1), id, i;
	bool got, want;

	if (w->n_history == 0)
		return true;
	c = &w->history[op[2] % (w->n_history < HISTORY ? w->n_history :
	    HISTORY)];
	if (c->n == 0)
		return true;
	last = c->n - 1;
	room = c->end[last] - c->begin[last];
	for (i = 0; i < n; i++) {
		patch[i].len = op[4] % 5;
		if (patch[i].len > room)
			patch[i].len = room;
		patch[i].offset = c->begin[last] +
		    (uint32_t)(op[5] * (i + 1)) %
		    (room - (uint32_t)patch[i].len + 1);
		patch[i].data = op + 3;
	}
	/* Its own or one that never was: fragments stay where they are. */
	id = c->id + (op[6] == 1 ? 100000 : 0);
	if (op[6] == 0)
		patch[n - 1].offset = UINT32_MAX - op[5];
	got = trace_buffer_patch(s->tb, c->producer, c->writer, id,
	    &(struct tb_patches){ patch, n, (op[7] & 3) == 0 });
	want = model_patch(s->model, c->producer, c->writer,
	    id, patch, n, (op[7] & 3) == 0);
	return got == want || differ(s, "patch is %d, model %d", got, want);
}

/* ---- Clones ---- */

static bool
same_clone(struct script *s, struct trace_buffer *tb, struct model *m)
{
	bool ok = is_sound(s, tb) && same_counts(s, tb, m);

	trace_buffer_begin_read(tb);
	model_begin_read(m);
	ok = ok && same_reads(s, tb, m, UINT32_MAX) && same_counts(s, tb, m);
	trace_buffer_free(tb);
	model_free(m);
	return ok;
}

static bool
fill_clone(struct script *s, uint64_t bytes)
{
	enum tb_fill filled;
	struct trace_buffer *copy = s->copy;

	if (copy == NULL)
		return true;
	filled = trace_buffer_fill(copy, bytes);
	follow_copy(s);
	if (filled == TB_FILL_MORE)
		return true;
	s->copy = NULL;
	model_clone_end(s->copy_model, s->model);
	return same_clone(s, copy, s->copy_model) &&
	    (filled == TB_FILL_DONE || differ(s, "no whole clone"));
}

static bool
finish_clone(struct script *s)
{
	while (s->copy != NULL)
		if (!fill_clone(s, 64))
			return false;
	return true;
}

static bool
op_clone(struct script *s)
{
	if (!finish_clone(s))
		return false;
	s->copy_model = model_clone(s->model);
	s->copy = trace_buffer_clone(s->tb);
	if (s->copy != NULL)
		return true;
	model_free(s->copy_model);
	return differ(s, "no clone");
}

static bool
op_take(struct script *s)
{
	struct trace_buffer *tb;
	enum tb_fill filled;
	struct model *m;

	if (!finish_clone(s))
		return false;
	m = model_take(s->model);
	model_clear(s->model);
	if ((tb = trace_buffer_take(s->tb)) == NULL) {
		model_free(m);
		return differ(s, "not taken");
	}
	while ((filled = trace_buffer_fill(tb, 64)) == TB_FILL_MORE)
		;
	return same_clone(s, tb, m) &&
	    (filled == TB_FILL_DONE || differ(s, "not taken whole"));
}

static bool
op_compact(struct script *s)
{
	bool got = trace_buffer_compact(s->tb);

	follow_copy(s);
	return got == model_compact(s->model) || differ(s, "compact");
}

static bool
op_rare(struct script *s, const uint8_t *op)
{
	switch (op[1] % 8) {
	case 0:
		return op_clone(s) && finish_clone(s);
	case 1:
	case 2:
		return op_clone(s);
	case 3:
		/* Which sequences were emptied first is not said. */
		return s->churn || op_take(s);
	case 4:
		if (!s->churn && op[2] < 64) {
			trace_buffer_clear(s->tb);
			follow_copy(s);
			model_clear(s->model);
		}
		return true;
	case 5:
		return op_compact(s);
	default:
		new_identity(s, &s->w[op[2] % s->n_writers]);
		return true;
	}
}

static void
begin_read(struct script *s)
{
	trace_buffer_begin_read(s->tb);
	model_begin_read(s->model);
}

static bool
run_op(struct script *s, const uint8_t *op)
{
	struct writer *w = &s->w[op[1] % s->n_writers];
	unsigned kind = op[0] % 32;

	if (s->churn && (op[0] & 0x20) != 0)
		new_identity(s, w);
	if (kind < 12)
		return op_commit(s, w, op);
	if (kind < 14)
		return op_batch(s, w, op);
	if (kind == 14)
		w->next_id += w->open ? 0 : 1u + op[2] % 3;
	else if (kind < 18)
		return op_scrape(s, w, op);
	else if (kind < 20)
		return op_commit(s, w, op);
	else if (kind < 22)
		return op_again(s, w, op);
	else if (kind < 26)
		return op_patch(s, w, op);
	else if (kind == 26)
		begin_read(s);
	else if (kind < 30)
		return same_reads(s, s->tb, s->model, op[2] & 15);
	else if (kind == 30)
		return op_rare(s, op);
	else {
		begin_read(s);
		return same_reads(s, s->tb, s->model,
		    op[2] < 64 ? UINT32_MAX : op[2] & 31);
	}
	return true;
}

static void
start(struct script *s, const uint8_t *h)
{
	size_t size = 4096u << (h[0] & 1);
	enum tb_policy policy = h[1] % 8 == 1 ? TB_DISCARD : TB_RING;
	unsigned i;

	s->tb = trace_buffer_new(size, policy);
	s->model = model_new(size, policy);
	s->id_base = (h[3] & 1) != 0 ? 0u - h[3] : 0;
	s->n_writers = 1 + h[4] % WRITERS;
	s->churn = (h[5] & 1) != 0;
	for (i = 0; i < s->n_writers; i++)
		new_identity(s, &s->w[i]);
}

bool
script_run(const uint8_t *bytes, size_t len, struct script_result *r)
{
	struct script *s;
	size_t at;
	bool ok = true;

	r->ops = 0;
	r->what[0] = '\0';
	if (len < SCRIPT_RECORD)
		return true;
	if ((s = calloc(1, sizeof(*s))) == NULL)
		abort();
	s->r = r;
	start(s, bytes);
	for (at = SCRIPT_RECORD; ok && at + SCRIPT_RECORD <= len;
	    at += SCRIPT_RECORD) {
		r->ops++;
		ok = run_op(s, bytes + at) && is_sound(s, s->tb) &&
		    same_state(s, s->tb, s->model,
		    bytes[at + 7] * 8u) &&
		    fill_clone(s, bytes[at + 7]);
	}
	ok = ok && finish_clone(s);
	if (s->copy != NULL) {
		trace_buffer_free(s->copy);
		model_free(s->copy_model);
	}
	trace_buffer_free(s->tb);
	model_free(s->model);
	free(s);
	return ok;
}
