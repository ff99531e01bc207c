#include "relay/outbox_count.h"

#include <string.h>

#include "transport/shm.h"

/* Places where the track of a writer may be. */
#define PROBES 16u

static uint32_t
place(uint32_t channel, uint32_t writer, uint32_t i)
{
	return (channel * 2654435761u + writer * 40503u + i) % ARENA_TRACKS;
}

static struct arena_track *
find(const struct count *k, uint32_t channel, uint32_t writer)
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

/* Made where there is none, in the place of another when it has to be. */
static struct arena_track *
get(struct count *k, uint32_t channel, uint32_t writer)
{
	struct arena_track *t = find(k, channel, writer), *at;
	uint32_t i;

	if (t != NULL)
		return t;
	for (i = 0; i < PROBES; i++) {
		at = &k->tracks[place(channel, writer, i)];
		if (at->epoch == 0 || at->epoch + 1 < k->epoch) {
			t = at;
			break;
		}
		/* The youngest producers are the ones that still write. */
		if (!at->pending && (t == NULL || at->channel < t->channel))
			t = at;
	}
	if (t == NULL)
		return NULL;
	t->epoch = 0;
	memset(t, 0, sizeof(*t));
	t->channel = channel;
	t->writer = writer;
	atomic_store_explicit(&t->epoch, k->epoch, memory_order_release);
	return t;
}

static bool
read_chunk(const struct pb_field *move, struct count_chunk *c)
{
	struct shm_chunk chunk;
	struct pb_reader r;
	struct pb_field f;
	bool ok = false;

	memset(c, 0, sizeof(*c));
	pb_init(&r, move->data, move->len);
	while (pb_next(&r, &f)) {
		if (f.number == 3 && f.wire == PB_VARINT)
			c->buffer = (uint32_t)f.value;
		else if (f.number == 5 && f.wire == PB_VARINT)
			c->incomplete = f.value != 0;
		else if (f.number == 4 && f.wire == PB_BYTES)
			ok = shm_chunk_from_bytes(f.data, f.len, &chunk) == 0;
	}
	if (!ok || r.bad)
		return false;
	c->writer = chunk.writer_id;
	c->id = chunk.chunk_id;
	c->continues = (chunk.flags & SHM_FIRST_CONTINUES_FROM_PREV) != 0;
	c->fragments = chunk.num_fragments;
	/* The last one is still being written. */
	if (c->incomplete && c->fragments > 0)
		c->fragments--;
	c->bytes = (uint32_t)chunk.len;
	return true;
}

bool
count_next(struct pb_reader *commit, struct pb_field *f, bool *is_chunk,
    struct count_chunk *c)
{
	if (!pb_next(commit, f))
		return false;
	*is_chunk = f->number == 1 && f->wire == PB_BYTES;
	if (*is_chunk && !read_chunk(f, c))
		memset(c, 0, sizeof(*c));
	return true;
}

/* Packets that are lost with the first n fragments of a chunk. */
static uint32_t
packets(const struct count_chunk *c, uint32_t n, bool breaks)
{
	if (n == 0)
		return 0;
	return n - (c->continues ? 1 : 0) + (breaks ? 1 : 0);
}

/* Fragments of the chunk that an earlier version delivers. */
static uint32_t
delivered(const struct arena_track *t, const struct count_chunk *c)
{
	uint32_t left = t->put - t->gone;

	if (t->scraped != c->id || t->put <= t->gone)
		return 0;
	/* They are dropped oldest first: those that are left are the first. */
	return t->versions[left > 4 ? 3 : left - 1];
}

static void
weigh(struct arena_track *t, const struct count_chunk *c, uint32_t cause,
    struct link_loss *loss)
{
	bool again = t->dropped && t->chunk == c->id, breaks;
	uint32_t all, part;

	if (again)
		breaks = t->broke;
	else
		breaks = c->continues && !(t->dropped && t->chunk + 1 == c->id);
	all = packets(c, c->fragments, breaks);
	part = packets(c, delivered(t, c), breaks);
	if (again)
		part += t->packets;

	memset(loss, 0, sizeof(*loss));
	loss->writer = c->writer;
	loss->buffer = c->buffer;
	loss->cause = cause;
	loss->chunks = again ? 0 : 1;
	loss->packets = all > part ? all - part : 0;
	loss->bytes = !again ? c->bytes :
	    c->bytes > t->bytes ? c->bytes - t->bytes : 0;
	if (c->incomplete) {
		loss->first_chunk = c->id;
		loss->last_chunk = c->id;
	}
}

/* The loss is told. */
static void
told(struct arena_track *t, uint32_t chunk, const struct link_loss *loss,
    bool continues)
{
	bool again = t->dropped && t->chunk == chunk;

	if (!again) {
		t->broke = continues && !(t->dropped && t->chunk + 1 == chunk);
		if (!t->dropped || t->chunk + 1 != chunk)
			t->run = chunk;
		t->packets = 0;
		t->bytes = 0;
	}
	t->dropped = true;
	t->chunk = chunk;
	t->packets += (uint32_t)loss->packets;
	t->bytes += (uint32_t)loss->bytes;
}

static void
tell_pending(struct arena_track *t, struct link_loss *due)
{
	*due = t->loss;
	t->pending = false;
	told(t, t->scraped, due, t->goes_on);
}

static void
note_version(struct arena_track *t, const struct count_chunk *c)
{
	if (t->scraped != c->id || t->put == 0) {
		t->scraped = c->id;
		t->put = 0;
		t->gone = 0;
	}
	if (t->put - t->gone >= 4) {
		memmove(&t->versions[0], &t->versions[1],
		    3 * sizeof(t->versions[0]));
		t->versions[3] = (uint16_t)c->fragments;
	} else {
		t->versions[t->put - t->gone] = (uint16_t)c->fragments;
	}
	t->put++;
}

bool
count_put(struct count *k, uint32_t channel, const struct count_chunk *c,
    struct link_loss *due)
{
	struct arena_track *t = find(k, channel, c->writer);
	bool lost;

	if (t == NULL && (!c->incomplete ||
	    (t = get(k, channel, c->writer)) == NULL))
		return false;
	lost = t->pending && t->scraped != c->id;
	if (lost)
		tell_pending(t, due);
	t->pending = false;
	if (c->incomplete)
		note_version(t, c);
	if (c->incomplete || t->known) {
		t->known = true;
		t->whole = !c->incomplete;
		t->latest = c->id;
		t->fragments = c->fragments;
	}
	return lost;
}

/* A version that was dropped before its chunk was complete: what of it? */
static bool
drop_version(struct arena_track *t, const struct count_chunk *c,
    uint32_t cause, struct link_loss *loss)
{
	if (t->scraped == c->id && t->gone < t->put)
		t->gone++;
	if (!t->known || t->latest != c->id)
		return true; /* the writer left it like this */
	if (t->whole || t->fragments > c->fragments || t->put > t->gone)
		return false; /* another version has all that it has */
	weigh(t, c, cause, &t->loss);
	t->goes_on = c->continues;
	t->pending = true;
	return false;
}

bool
count_drop(struct count *k, uint32_t channel, const struct count_chunk *c,
    uint32_t cause, struct link_loss *loss)
{
	struct arena_track *t = get(k, channel, c->writer);
	struct arena_track none = { .epoch = 0 };

	if (t == NULL)
		t = &none;
	if (c->incomplete && !drop_version(t, c, cause, loss))
		return false;
	weigh(t, c, cause, loss);
	told(t, c->id, loss, c->continues);
	return loss->chunks != 0 || loss->packets != 0 || loss->bytes != 0;
}

bool
count_end(struct count *k, uint32_t channel, uint32_t writer,
    struct link_loss *due)
{
	struct arena_track *t;
	uint32_t i;

	if (writer != UINT32_MAX) {
		t = find(k, channel, writer);
		if (t == NULL || !t->pending)
			return false;
		tell_pending(t, due);
		return true;
	}
	for (i = 0; i < ARENA_TRACKS; i++) {
		t = &k->tracks[i];
		if (t->epoch == k->epoch && t->channel == channel &&
		    t->pending) {
			tell_pending(t, due);
			return true;
		}
	}
	return false;
}

void
count_forget(struct count *k, uint32_t channel, uint32_t writer)
{
	struct arena_track *t = find(k, channel, writer);

	if (t == NULL)
		return;
	t->dropped = false;
}

bool
count_was_dropped(const struct count *k, uint32_t channel, uint32_t writer,
    uint32_t chunk)
{
	const struct arena_track *t = find(k, channel, writer);

	return t != NULL && t->dropped && chunk - t->run <= t->chunk - t->run;
}
