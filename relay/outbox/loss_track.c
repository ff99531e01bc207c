#include "relay/outbox/loss_track.h"

#include <string.h>

bool
loss_track_is_sound(const struct arena_track *t)
{
	uint32_t i;

	for (i = 0; i < ARENA_CREDITS; i++)
		if (t->credits[i].n > ARENA_VERSIONS)
			return false;
	return t->n_runs <= ARENA_RUNS && t->kept <= ARENA_VERSIONS;
}

/* Packets that are lost with the first n fragments of a chunk. */
static uint32_t
packets(const struct commit_chunk *c, uint32_t n, bool breaks)
{
	if (n == 0)
		return 0;
	return n - (c->continues ? 1 : 0) + (breaks ? 1 : 0);
}

static uint32_t
most_of(const uint32_t *versions, uint32_t n)
{
	uint32_t most = 0, i;

	for (i = 0; i < n; i++)
		if (versions[i] > most)
			most = versions[i];
	return most;
}

/* Fragments of the chunk that other versions deliver. */
static uint32_t
delivered(const struct arena_track *t, uint32_t chunk)
{
	uint32_t most = 0;

	if (t->has_sent && t->sent == chunk)
		most = t->sent_fragments;
	if (t->scraped == chunk && most_of(t->versions, t->kept) > most)
		most = most_of(t->versions, t->kept);
	return most;
}

static struct arena_run *
run_ending(struct arena_track *t, uint32_t chunk)
{
	uint32_t i;

	for (i = t->n_runs; i-- > 0;)
		if (t->runs[i].to == chunk)
			return &t->runs[i];
	return NULL;
}

static struct arena_run *
new_run(struct arena_track *t, uint32_t chunk, bool cuts)
{
	struct arena_run *r;

	if (t->n_runs == ARENA_RUNS) {
		memmove(&t->runs[0], &t->runs[1],
		    (ARENA_RUNS - 1) * sizeof(t->runs[0]));
		t->n_runs--;
	}
	r = &t->runs[t->n_runs++];
	memset(r, 0, sizeof(*r));
	r->from = chunk;
	r->cuts = cuts;
	return r;
}

static bool
is_bridge(const struct arena_track *t, uint32_t chunk)
{
	uint32_t i;

	for (i = 0; i < ARENA_BRIDGES; i++)
		if (t->has_bridge[i] && t->bridge[i] == chunk)
			return true;
	return false;
}

/* The run that ends with the chunk from now on. */
static struct arena_run *
run_with(struct arena_track *t, const struct commit_chunk *c)
{
	struct arena_run *r = run_ending(t, c->id - 1);
	/* The chunk itself may have been noted as a bridge when it was put. */
	bool bridged = is_bridge(t, c->id - 1) || is_bridge(t, c->id);
	bool broke = c->continues && r == NULL && !bridged;

	if (r == NULL)
		r = new_run(t, c->id, broke);
	r->to = c->id;
	r->broke = broke;
	r->of = 0;
	r->packets = 0;
	r->bytes = 0;
	return r;
}

/*
 * Joins the run behind, whose first chunk was dropped before this one.  True:
 * the packet that goes on there was counted there already.
 */
static bool
join_behind(struct arena_track *t, struct arena_run *r)
{
	struct arena_run *behind = NULL;
	uint32_t i;
	bool cuts;

	for (i = 0; i < t->n_runs; i++)
		if (t->runs[i].from == r->to + 1)
			behind = &t->runs[i];
	if (behind == NULL)
		return false;
	cuts = behind->cuts;
	behind->from = r->from;
	behind->cuts = r->cuts;
	i = (uint32_t)(r - t->runs);
	memmove(r, r + 1, (t->n_runs - i - 1) * sizeof(*r));
	t->n_runs--;
	return cuts;
}

bool
loss_track_has_dropped(const struct arena_track *t, uint32_t chunk)
{
	uint32_t i;

	for (i = 0; i < t->n_runs; i++)
		if (chunk - t->runs[i].from <= t->runs[i].to - t->runs[i].from)
			return true;
	return false;
}

/*
 * Notes that the chunk's last version was counted, without what kept versions
 * deliver.
 */
static void
give_credit(struct arena_track *t, uint32_t chunk, bool broke)
{
	struct arena_credit *c = &t->credits[0];

	if (t->scraped != chunk || t->kept == 0)
		return;
	memmove(c + 1, c, (ARENA_CREDITS - 1) * sizeof(*c));
	c->chunk = chunk;
	c->n = t->kept;
	memcpy(c->versions, t->versions, sizeof(c->versions));
	c->broke = broke;
}

/*
 * Drops a kept version of a chunk that was counted without it, with others
 * behind it by now.  False: there is no such.
 */
static bool
take_credit(struct arena_track *t, const struct commit_chunk *v,
    uint32_t cause, struct link_loss *loss)
{
	struct arena_credit *c = NULL;
	uint32_t i, before, now = 0;

	for (i = 0; i < ARENA_CREDITS; i++)
		if (t->credits[i].n > 0 && t->credits[i].chunk == v->id)
			c = &t->credits[i];
	if (c == NULL)
		return false;
	if (t->has_sent && t->sent == v->id)
		now = t->sent_fragments;
	before = most_of(c->versions, c->n);
	for (i = 0; i < c->n && c->versions[i] != v->fragments; i++)
		;
	if (i == c->n)
		return false;
	c->versions[i] = c->versions[--c->n];
	if (before < now)
		before = now;
	if (most_of(c->versions, c->n) > now)
		now = most_of(c->versions, c->n);
	memset(loss, 0, sizeof(*loss));
	loss->writer = v->writer;
	loss->buffer = v->buffer;
	loss->cause = cause;
	loss->packets = packets(v, before, c->broke) -
	    packets(v, now, c->broke);
	return true;
}

/*
 * Computes what is lost with the chunk and was not told yet, and notes it as
 * told.
 */
static void
weigh(struct arena_track *t, const struct commit_chunk *c, uint32_t cause,
    struct link_loss *loss)
{
	struct arena_run *r = run_ending(t, c->id);
	bool again = r != NULL;
	uint32_t of = c->fragments, all, part;

	memset(loss, 0, sizeof(*loss));
	if (!again && loss_track_has_dropped(t, c->id))
		return; /* an old version of what was counted whole */
	if (!again) {
		r = run_with(t, c);
		give_credit(t, c->id, r->broke);
	}
	if (of < r->of)
		of = r->of;
	all = packets(c, of, r->broke);
	part = packets(c, delivered(t, c->id), r->broke) + r->packets;

	loss->writer = c->writer;
	loss->buffer = c->buffer;
	loss->cause = cause;
	loss->chunks = again ? 0 : 1;
	loss->packets = all > part ? all - part : 0;
	loss->bytes = c->bytes > r->bytes ? c->bytes - r->bytes : 0;
	if (c->incomplete) {
		loss->first_chunk = c->id;
		loss->last_chunk = c->id;
	}
	r->of = of;
	r->packets += (uint32_t)loss->packets;
	r->bytes += (uint32_t)loss->bytes;
	if (join_behind(t, r) && c->goes_on)
		t->over++;
}

static bool
is_loss(const struct link_loss *l)
{
	return l->chunks != 0 || l->packets != 0 || l->bytes != 0;
}

bool
loss_track_end(struct arena_track *t, struct link_loss *due)
{
	struct commit_chunk c = { .writer = t->writer, .buffer = t->buffer,
		.id = t->scraped, .fragments = t->fragments,
		.continues = t->continues, .incomplete = true,
		.bytes = t->payload };

	t->pending = false;
	weigh(t, &c, t->cause, due);
	return is_loss(due);
}

static void
note_version(struct arena_track *t, const struct commit_chunk *c)
{
	if (t->scraped != c->id)
		t->kept = 0;
	t->scraped = c->id;
	if (t->kept == ARENA_VERSIONS) {
		memmove(&t->versions[0], &t->versions[1],
		    (ARENA_VERSIONS - 1) * sizeof(t->versions[0]));
		t->kept--;
	}
	t->versions[t->kept++] = c->fragments;
}

void
loss_track_bridge(struct arena_track *t, const struct commit_chunk *c,
    bool sent)
{
	uint32_t i;

	if (!c->continues || !c->goes_on || c->fragments != 1)
		return;
	if (run_ending(t, c->id - 1) == NULL &&
	    !is_bridge(t, c->id - 1))
		return;
	/*
	 * Two bridges: what is sent is far behind what is put, and must not
	 * hide it.
	 */
	t->has_bridge[sent] = true;
	t->bridge[sent] = c->id;
	/* The chunk behind may be gone already, and the packet told with it. */
	for (i = 0; i < t->n_runs; i++)
		if (t->runs[i].from == c->id + 1 && t->runs[i].cuts) {
			t->runs[i].cuts = false;
			t->over++;
		}
}

/*
 * Drops one version of a chunk that was not complete.  True: that is a loss
 * now.
 */
static bool
drop_version(struct arena_track *t, const struct commit_chunk *c,
    uint32_t cause)
{
	uint32_t i;

	for (i = 0; t->scraped == c->id && i < t->kept; i++) {
		if (t->versions[i] != c->fragments)
			continue;
		t->kept--;
		memmove(&t->versions[i], &t->versions[i + 1],
		    (t->kept - i) * sizeof(t->versions[0]));
		break;
	}
	if (run_ending(t, c->id) != NULL)
		return true; /* a later one was, and relied on this one */
	if ((t->pending && t->scraped == c->id) ||
	    (t->scraped == c->id && t->kept > 0 &&
	    delivered(t, c->id) >= c->fragments))
		return false;
	if (t->has_left && t->left == c->id)
		return true;
	if (!t->known || t->latest != c->id || t->whole)
		return false; /* it came whole, and is still there */
	t->pending = true;
	t->continues = c->continues;
	t->fragments = c->fragments;
	t->payload = c->bytes;
	t->buffer = c->buffer;
	t->cause = cause;
	return false;
}

void
loss_track_put(struct arena_track *t, const struct commit_chunk *c)
{
	t->pending = false;
	loss_track_bridge(t, c, false);
	if (c->incomplete)
		note_version(t, c);
	if (c->incomplete || t->known) {
		if (t->known && !t->whole && t->latest != c->id) {
			t->has_left = true;
			t->left = t->latest;
		}
		t->known = true;
		t->whole = !c->incomplete;
		t->latest = c->id;
	}
}

bool
loss_track_drop(struct arena_track *t, const struct commit_chunk *c,
    uint32_t cause, struct link_loss *loss)
{
	if (c->incomplete && run_ending(t, c->id) == NULL &&
	    take_credit(t, c, cause, loss))
		return loss->packets != 0;
	if (c->incomplete && !drop_version(t, c, cause))
		return false;
	weigh(t, c, cause, loss);
	return is_loss(loss);
}
