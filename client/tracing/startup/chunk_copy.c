#include "client/tracing/startup/chunk_copy.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/tracing/memory/chunk_memory.h"
#include "client/tracing/memory/chunk_writer.h"
#include "client/tracing/memory/own_memory.h"
#include "client/tracing/source/registry.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

struct copy {
	struct shm *shm;
	/* Taken chunks, in the order in which they were queued; owned. */
	struct shm_chunk *chunks;
	size_t n, cap;
	/* Members for the writer whose turn it is: */
	struct chunk_writer w;
	bool writes;
	struct pb_writer packet; /* cut, and its rest is to come */
	uint64_t lost;
};

/* ---- Chunks ---- */

static bool
add(struct copy *c, const struct chunk_commit *commit)
{
	size_t cap = c->cap == 0 ? 64 : c->cap * 2;
	struct shm_chunk *chunks;

	if (c->n == c->cap) {
		chunks = realloc(c->chunks, cap * sizeof(*chunks));
		if (chunks == NULL)
			return false;
		c->chunks = chunks;
		c->cap = cap;
	}
	if (shm_take(c->shm, commit->page, commit->index, &c->chunks[c->n]) ==
	    SHM_TAKEN)
		c->n++;
	return true;
}

/* Packets that end in the chunk. */
static uint64_t
packets_in(const struct shm_chunk *chunk)
{
	bool continues = (chunk->flags & SHM_LAST_CONTINUES_ON_NEXT) != 0;

	return chunk->num_fragments - (continues ? 1u : 0);
}

/* Without memory for more chunks, those that are left are lost. */
static void
collect(struct copy *c, struct chunk_memory *m)
{
	struct chunk_queue_item item;
	struct shm_chunk chunk;

	while (chunk_memory_take(m, &item, 1) == 1) {
		if (item.is_note || add(c, &item.is.commit))
			continue;
		if (shm_take(c->shm, item.is.commit.page, item.is.commit.index,
		    &chunk) == SHM_TAKEN)
			c->lost += packets_in(&chunk);
	}
}

/* ---- Packets ---- */

static void
put(struct copy *c, const uint8_t *packet, size_t len)
{
	if (!c->writes || c->packet.failed ||
	    !chunk_writer_put(&c->w, packet, len))
		c->lost++;
}

/* One fragment; more: the packet goes on in the next chunk. */
static void
put_fragment(struct copy *c, const uint8_t *at, size_t len, bool more)
{
	if (!more && c->packet.len == 0) {
		put(c, at, len);
		return;
	}
	pb_put_raw(&c->packet, at, len);
	if (more)
		return;
	put(c, c->packet.data, c->packet.len);
	pb_writer_done(&c->packet);
	pb_writer_init(&c->packet);
}

static void
put_chunk(struct copy *c, const struct shm_chunk *chunk)
{
	const uint8_t *at = chunk->payload, *end = at + chunk->len;
	uint64_t size;
	unsigned i;

	for (i = 0; i < chunk->num_fragments; i++) {
		at = pb_varint(at, end, &size);
		/* The last one: its packet was dropped, and counted. */
		if (at == NULL || size > (size_t)(end - at)) {
			pb_writer_reset(&c->packet);
			return;
		}
		put_fragment(c, at, (size_t)size,
		    i + 1 == chunk->num_fragments &&
		    (chunk->flags & SHM_LAST_CONTINUES_ON_NEXT) != 0);
		at += size;
	}
}

static void
begin_writer(struct copy *c, const struct tributary_instance *to)
{
	c->writes = to != NULL && chunk_writer_init(&c->w, to->memory,
	    to->buffer, TRIBUTARY_FULL_STALL) == 0;
	/* The packets have the marks of a sequence's beginning. */
	if (c->writes)
		c->w.started = true;
}

static void
end_writer(struct copy *c)
{
	if (!c->writes)
		return;
	own_enter();
	chunk_writer_done(&c->w);
	own_leave();
	c->writes = false;
}

/* All chunks of the writer whose first one is at `first`. */
static void
copy_writer(struct copy *c, size_t first, const struct tributary_instance *to)
{
	uint16_t id = c->chunks[first].writer_id;
	size_t i;

	begin_writer(c, to);
	for (i = first; i < c->n; i++) {
		if (c->chunks[i].writer_id != id)
			continue;
		put_chunk(c, &c->chunks[i]);
		c->chunks[i].writer_id = 0;
	}
	pb_writer_reset(&c->packet);
	end_writer(c);
}

uint64_t
chunk_copy(struct chunk_memory *m, struct tributary_instance *to)
{
	struct copy c = { .shm = chunk_memory_shm(m) };
	size_t i;

	pb_writer_init(&c.packet);
	collect(&c, m);
	for (i = 0; i < c.n; i++)
		if (c.chunks[i].writer_id != 0)
			copy_writer(&c, i, to);
	pb_writer_done(&c.packet);
	free(c.chunks);
	return c.lost;
}
