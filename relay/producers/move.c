/* Descriptions of producers, for a collector to which the link is moved. */
#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "transport/wire/pb_writer.h"

/* Bytes of a LinkMove, from which on another is begun. */
#define MOVE_MAX (LINK_MESSAGE_MAX / 2)
/* Chunks beyond twice those that were left, at which all are looked at. */
#define PARTS_SWEEP 64u

/*
 * A LinkMove of a producer that has ended, whose last blocks may not have
 * arrived.  It names no data source.
 */
struct former_local {
	STAILQ_ENTRY(former_local) next;
	uint32_t channel;
	size_t len;
	uint8_t move[];
};

/*
 * A chunk that went upward while it was written, until all of it has arrived.  A
 * collector that got its first packets has them, the next one must not get them
 * again.
 */
struct local_part {
	struct hash_link by_chunk;
	uint32_t writer;
	uint32_t chunk;
	uint32_t arrived; /* bytes of its payload that have arrived */
	/* Scrapes under way, the oldest and the newest: bytes, place. */
	struct {
		uint32_t bytes; /* that hold whole packets */
		uint64_t place; /* on the channel */
	} put[2];
	unsigned n_put;
	bool complete;
	uint64_t place; /* complete: of all of it */
};

/* LinkMoves of a producer, while they are written. */
struct move_out {
	const struct local *l;
	struct pb_writer w;
	void (*tell)(void *arg, uint32_t channel, const uint8_t *move,
	    size_t len);
	void *arg;
	bool failed;
};

static void
begin(struct move_out *out)
{
	pb_writer_init(&out->w);
	pb_put_uint(&out->w, LinkMove_channel, out->l->channel);
}

static void
end(struct move_out *out)
{
	out->failed |= out->w.failed;
	if (!out->failed)
		out->tell(out->arg, out->l->channel, out->w.data, out->w.len);
	pb_writer_done(&out->w);
}

/* Begins another LinkMove where len more bytes are too many for this one. */
static void
make_room(struct move_out *out, size_t len)
{
	if (out->w.len + len <= MOVE_MAX)
		return;
	end(out);
	begin(out);
}

/* Bytes of a LinkMoveBuffer, LinkMoveInstance or LinkWriter, at most. */
#define PART_MAX 64u

static void
put_buffers(struct move_out *out)
{
	const struct local_buffer *b;
	size_t n, mark;

	for (n = 0; n < out->l->n_buffers; n++) {
		make_room(out, PART_MAX);
		b = &out->l->buffers[n];
		mark = pb_nest_begin(&out->w, LinkMove_buffer);
		pb_put_uint(&out->w, LinkMoveBuffer_id, b->remote);
		if (b->has_origin) {
			pb_put_bytes(&out->w, LinkMoveBuffer_session,
			    b->config, sizeof(b->config));
			pb_put_uint(&out->w, LinkMoveBuffer_index, b->index);
		}
		pb_nest_end(&out->w, mark);
	}
}

static void
put_writer(void *arg, uint32_t writer, uint16_t buffer)
{
	struct move_out *out = arg;
	const struct local_buffer *b = local_find_buffer(out->l, buffer);
	size_t mark;

	if (b == NULL)
		return;
	make_room(out, PART_MAX);
	mark = pb_nest_begin(&out->w, LinkMove_register_writer);
	pb_put_uint(&out->w, LinkWriter_writer, writer);
	pb_put_uint(&out->w, LinkWriter_buffer, b->remote);
	pb_nest_end(&out->w, mark);
}

static bool
has_arrived(const struct local *l, uint64_t place)
{
	const struct producers *ps = l->owner;

	return ps->has_arrived(ps->channel_arg, l->channel, place);
}

/* Notes what has arrived of it by now. */
static void
look(const struct local *l, struct local_part *part)
{
	unsigned n;

	for (n = part->n_put; n > 0; n--)
		if (has_arrived(l, part->put[n - 1].place))
			break;
	if (n == 0)
		return;
	part->arrived = part->put[n - 1].bytes;
	part->put[0] = part->put[1];
	part->n_put -= n;
}

static void
put_parts(struct move_out *out)
{
	struct local_part *part;
	struct hash_cursor at;
	size_t mark;

	HASH_MAP_FOREACH(part, &out->l->parts, &at, by_chunk) {
		look(out->l, part);
		if (part->arrived == 0 || (part->complete &&
		    has_arrived(out->l, part->place)))
			continue;
		make_room(out, PART_MAX);
		mark = pb_nest_begin(&out->w, LinkMove_part);
		pb_put_uint(&out->w, LinkMovePart_writer, part->writer);
		pb_put_uint(&out->w, LinkMovePart_chunk, part->chunk);
		pb_put_uint(&out->w, LinkMovePart_bytes, part->arrived);
		pb_nest_end(&out->w, mark);
	}
}

static void
put_instances(struct move_out *out)
{
	const struct local_instance *i;
	const struct local_buffer *b;
	size_t mark;

	TAILQ_FOREACH(i, &out->l->instances, link) {
		b = local_find_buffer(out->l, i->buffer);
		/* The collector stops what it does not find a session for. */
		if (i->state >= LOCAL_INSTANCE_STOPPING)
			continue;
		make_room(out, PART_MAX);
		mark = pb_nest_begin(&out->w, LinkMove_instance);
		pb_put_uint(&out->w, LinkMoveInstance_id, i->remote);
		pb_put_uint(&out->w, LinkMoveInstance_buffer,
		    b == NULL ? 0 : b->remote);
		pb_put_uint(&out->w, LinkMoveInstance_source, i->source);
		pb_put_uint(&out->w, LinkMoveInstance_started,
		    i->state == LOCAL_INSTANCE_STARTED);
		pb_put_uint(&out->w, LinkMoveInstance_runs, i->runs);
		pb_nest_end(&out->w, mark);
	}
}

static void
put_sources(struct move_out *out)
{
	const struct local_source *ds;

	TAILQ_FOREACH(ds, &out->l->sources, link) {
		make_room(out, ds->descriptor.len);
		pb_put_bytes(&out->w, LinkMove_register_source,
		    ds->descriptor.encoded, ds->descriptor.len);
	}
}

/* with_sources: data sources, those that run, and all that is registered. */
static int
tell_of(struct move_out *out, bool with_sources)
{
	size_t mark;

	begin(out);
	mark = pb_nest_begin(&out->w, LinkMove_producer);
	local_put_producer(&out->w, out->l);
	pb_nest_end(&out->w, mark);
	put_buffers(out);
	local_each_writer(out->l, put_writer, out);
	if (with_sources) {
		put_parts(out);
		put_instances(out);
		put_sources(out);
	}
	end(out);
	return out->failed ? -1 : 0;
}

/* ---- chunks that are still being written ---- */

static void
part_free(struct local *l, struct local_part *part)
{
	hash_map_remove(&l->parts, &part->by_chunk);
	free(part);
}

static struct local_part *
find_part(const struct local *l, uint32_t writer, uint32_t chunk)
{
	struct local_part *part;

	HASH_MAP_FOREACH_OF(part, &l->parts, hash_numbers(writer, chunk),
	    by_chunk)
		if (part->writer == writer && part->chunk == chunk)
			return part;
	return NULL;
}

/* Forgets those that have arrived as a whole, now and then. */
static void
sweep(struct local *l)
{
	struct local_part *part;
	struct hash_cursor at;

	if (l->parts.n < l->parts_sweep)
		return;
	HASH_MAP_FOREACH(part, &l->parts, &at, by_chunk)
		if (part->complete && has_arrived(l, part->place))
			part_free(l, part);
	l->parts_sweep = 2 * l->parts.n + PARTS_SWEEP;
}

static struct local_part *
new_part(struct local *l, uint32_t writer, uint32_t chunk)
{
	struct local_part *part;

	sweep(l);
	if ((part = calloc(1, sizeof(*part))) == NULL)
		return NULL;
	part->writer = writer;
	part->chunk = chunk;
	hash_map_put(&l->parts, &part->by_chunk, hash_numbers(writer, chunk));
	return part;
}

void
local_note_part(struct local *l, const struct shm_chunk *c, size_t bytes)
{
	struct producers *ps = l->owner;
	struct local_part *part;

	if (ps->channel_place == NULL || bytes == 0)
		return;
	part = find_part(l, c->writer_id, c->chunk_id);
	/* Without memory packets may be in two traces after a move. */
	if (part == NULL &&
	    (part = new_part(l, c->writer_id, c->chunk_id)) == NULL)
		return;
	look(l, part);
	if (part->n_put == 2)
		part->n_put--;
	part->put[part->n_put].bytes = (uint32_t)bytes;
	part->put[part->n_put++].place = ps->channel_place(ps->channel_arg,
	    l->channel);
}

void
local_part_done(struct local *l, const struct shm_chunk *c)
{
	struct producers *ps = l->owner;
	struct local_part *part = find_part(l, c->writer_id, c->chunk_id);

	if (part == NULL || part->complete)
		return;
	part->complete = true;
	part->place = ps->channel_place(ps->channel_arg, l->channel);
}

void
local_forget_parts(struct local *l)
{
	struct local_part *part;
	struct hash_cursor at;

	HASH_MAP_FOREACH(part, &l->parts, &at, by_chunk)
		part_free(l, part);
	hash_map_done(&l->parts);
}

/* ---- producers that have ended ---- */

void
formers_forget(struct producers *ps)
{
	struct former_local *f;

	while ((f = STAILQ_FIRST(&ps->formers)) != NULL) {
		STAILQ_REMOVE_HEAD(&ps->formers, next);
		free(f);
	}
	ps->formers_cost = 0;
	ps->missing_from = ps->missing_end = 0;
}

static bool
all_has_arrived(const struct producers *ps, uint32_t channel)
{
	return ps->has_arrived(ps->channel_arg, channel, UINT64_MAX);
}

/* Forgets those of which nothing is left in the outbox. */
static void
forget_arrived(struct producers *ps)
{
	struct former_local *f, *next;

	for (f = STAILQ_FIRST(&ps->formers); f != NULL; f = next) {
		next = STAILQ_NEXT(f, next);
		if (!all_has_arrived(ps, f->channel))
			continue;
		STAILQ_REMOVE(&ps->formers, f, former_local, next);
		ps->formers_cost -= f->len + LINK_MOVE_COST;
		free(f);
	}
	while (ps->missing_from < ps->missing_end &&
	    all_has_arrived(ps, ps->missing_from))
		ps->missing_from++;
}

static void
miss(struct producers *ps, uint32_t channel)
{
	if (ps->missing_from == ps->missing_end)
		ps->missing_from = ps->missing_end = channel;
	if (channel < ps->missing_from)
		ps->missing_from = channel;
	if (channel >= ps->missing_end)
		ps->missing_end = channel + 1;
}

static void
keep_one(void *arg, uint32_t channel, const uint8_t *move, size_t len)
{
	struct producers *ps = arg;
	struct former_local *f;

	/* With more, the link cannot be moved. */
	if (ps->formers_cost + len + LINK_MOVE_COST > LINK_MOVES_MAX ||
	    (f = malloc(sizeof(*f) + len)) == NULL) {
		miss(ps, channel);
		return;
	}
	f->channel = channel;
	f->len = len;
	memcpy(f->move, move, len);
	STAILQ_INSERT_TAIL(&ps->formers, f, next);
	ps->formers_cost += len + LINK_MOVE_COST;
}

void
local_keep_for_move(const struct local *l)
{
	struct producers *ps = l->owner;
	struct move_out out = { .l = l, .tell = keep_one, .arg = ps };

	if (ps->has_arrived == NULL)
		return;
	forget_arrived(ps);
	if (tell_of(&out, false) != 0)
		miss(ps, l->channel);
}

/* ---- all of them ---- */

int
producers_tell_moves(struct producers *ps, void (*tell)(void *arg,
    uint32_t channel, const uint8_t *move, size_t len), void *arg)
{
	const struct former_local *f;
	const struct local *l;
	struct move_out out;

	forget_arrived(ps);
	if (ps->missing_from < ps->missing_end)
		return -1;
	STAILQ_FOREACH(f, &ps->formers, next)
		tell(arg, f->channel, f->move, f->len);
	TAILQ_FOREACH(l, &ps->locals, link) {
		if (!local_is_known(l))
			continue;
		out = (struct move_out){ .l = l, .tell = tell, .arg = arg };
		if (tell_of(&out, l->state == LOCAL_ANNOUNCED) != 0)
			return -1;
	}
	return 0;
}
