#include "relay/outbox/loss_account.h"

#include <string.h>

#include "relay/outbox/loss_track.h"

/* Places where the track of a writer may be. */
#define PROBES 16u

static uint32_t
place(uint32_t channel, uint32_t writer, uint32_t i)
{
	return (channel * 2654435761u + writer * 40503u + i) % ARENA_TRACKS;
}

static struct arena_track *
find(const struct loss_account *k, uint32_t channel, uint32_t writer)
{
	struct arena_track *t;
	uint32_t i;

	for (i = 0; i < PROBES; i++) {
		t = &k->tracks[place(channel, writer, i)];
		if (t->epoch == k->epoch && t->channel == channel &&
		    t->writer == writer)
			return t;
	}
	return NULL;
}

/* The place for a new track, which may be another's; NULL: none is free. */
static struct arena_track *
choose(const struct loss_account *k, uint32_t channel, uint32_t writer)
{
	struct arena_track *t = NULL, *at;
	uint32_t i;

	for (i = 0; i < PROBES; i++) {
		at = &k->tracks[place(channel, writer, i)];
		if (at->epoch == 0 || at->epoch + 1 < k->epoch)
			return at;
		/* The youngest producers are the ones that still write. */
		if (!at->pending && (t == NULL || at->channel < t->channel))
			t = at;
	}
	return t;
}

/* Made where there is none, in the place of another when it has to be. */
static struct arena_track *
get(struct loss_account *k, uint32_t channel, uint32_t writer)
{
	struct arena_track *t = find(k, channel, writer);

	if (t != NULL || (t = choose(k, channel, writer)) == NULL)
		return t;
	t->epoch = 0;
	memset(t, 0, sizeof(*t));
	t->channel = channel;
	t->writer = writer;
	atomic_store_explicit(&t->epoch, k->epoch, memory_order_release);
	return t;
}

bool
loss_account_note(struct loss_account *k, uint32_t channel, uint32_t writer)
{
	struct arena_track *t = find(k, channel, writer);
	struct arena_undo *u = k->undo;
	uint32_t i, n;

	if (u == NULL)
		return true;
	if (t == NULL && (t = choose(k, channel, writer)) == NULL)
		return true; /* nothing is remembered of it */
	n = u->n;
	for (i = 0; i < n; i++)
		if (&k->tracks[u->tracks[i].place] == t)
			return true;
	if (n == ARENA_UNDO)
		return false;
	u->tracks[n].place = (uint32_t)(t - k->tracks);
	memcpy(&u->tracks[n].track, t, sizeof(*t));
	atomic_store_explicit(&u->n, n + 1, memory_order_release);
	return true;
}

/*
 * Notes it if there is room: beyond ARENA_UNDO writers in one step a kill may
 * have one of them counted wrong.
 */
static void
note(struct loss_account *k, uint32_t channel, uint32_t writer)
{
	(void)!loss_account_note(k, channel, writer);
}

void
loss_account_undo(struct arena_track *tracks, const struct arena_undo *undo)
{
	uint32_t n = undo->n < ARENA_UNDO ? undo->n : ARENA_UNDO, i;

	for (i = 0; i < n; i++)
		if (undo->tracks[i].place < ARENA_TRACKS)
			memcpy(&tracks[undo->tracks[i].place],
			    &undo->tracks[i].track, sizeof(tracks[0]));
}

bool
loss_account_is_over(const struct loss_account *k, uint32_t channel,
    const struct commit_chunk *c)
{
	const struct arena_track *t = find(k, channel, c->writer);

	return t != NULL && t->pending && t->scraped != c->id;
}

void
loss_account_put(struct loss_account *k, uint32_t channel,
    const struct commit_chunk *c)
{
	struct arena_track *t = find(k, channel, c->writer);

	if (t == NULL && !c->incomplete)
		return;
	note(k, channel, c->writer);
	if ((t = get(k, channel, c->writer)) != NULL)
		loss_track_put(t, c);
}

bool
loss_account_drop(struct loss_account *k, uint32_t channel,
    const struct commit_chunk *c, uint32_t cause, struct link_loss *loss)
{
	struct arena_track *t = get(k, channel, c->writer);
	struct arena_track none = { .epoch = 0 };

	return loss_track_drop(t != NULL ? t : &none, c, cause, loss);
}

void
loss_account_bridge(struct loss_account *k, uint32_t channel,
    const struct commit_chunk *c)
{
	struct arena_track *t = find(k, channel, c->writer);

	if (t == NULL)
		return;
	note(k, channel, c->writer);
	loss_track_bridge(t, c, true);
}

void
loss_account_sent(struct loss_account *k, uint32_t channel,
    const struct commit_chunk *c)
{
	struct arena_track *t = find(k, channel, c->writer);

	if (t == NULL || !c->incomplete)
		return;
	note(k, channel, c->writer);
	t->has_sent = true;
	t->sent = c->id;
	t->sent_fragments = c->fragments;
}

uint32_t
loss_account_twice(struct loss_account *k, uint32_t channel, uint32_t writer,
    uint64_t packets)
{
	struct arena_track *t = find(k, channel, writer);
	uint32_t n;

	if (t == NULL || t->over == 0)
		return 0;
	note(k, channel, writer);
	n = packets < t->over ? (uint32_t)packets : t->over;
	t->over -= n;
	return n;
}

bool
loss_account_next_pending(const struct loss_account *k, uint32_t channel,
    uint32_t *writer)
{
	const struct arena_track *t;
	uint32_t i;

	if (*writer != UINT32_MAX) {
		t = find(k, channel, *writer);
		return t != NULL && t->pending;
	}
	for (i = 0; i < ARENA_TRACKS; i++) {
		t = &k->tracks[i];
		if (t->epoch == k->epoch && t->channel == channel &&
		    t->pending) {
			*writer = t->writer;
			return true;
		}
	}
	return false;
}

bool
loss_account_end(struct loss_account *k, uint32_t channel, uint32_t writer,
    struct link_loss *due)
{
	struct arena_track *t = find(k, channel, writer);

	if (t == NULL || !t->pending)
		return false;
	note(k, channel, writer);
	return loss_track_end(t, due);
}

void
loss_account_forget(struct loss_account *k, uint32_t channel, uint32_t writer)
{
	struct arena_track *t = find(k, channel, writer);

	if (t == NULL)
		return;
	t->n_runs = 0;
	memset(t->has_bridge, 0, sizeof(t->has_bridge));
	memset(t->credits, 0, sizeof(t->credits));
}

bool
loss_account_was_dropped(const struct loss_account *k, uint32_t channel,
    uint32_t writer, uint32_t chunk)
{
	const struct arena_track *t = find(k, channel, writer);

	return t != NULL && loss_track_has_dropped(t, chunk);
}
