#include "tests/unit/client/tracing/memory/chunk_reader.h"

#include <stdlib.h>
#include <string.h>

#include "transport/wire/pb_reader.h"

void
chunk_reader_init(struct chunk_reader *r, struct chunk_memory *m)
{
	memset(r, 0, sizeof(*r));
	r->memory = m;
}

void
chunk_reader_forget(struct chunk_reader *r)
{
	size_t i;

	for (i = 0; i < r->n_packets; i++)
		free(r->packets[i].data);
	free(r->packets);
	r->packets = NULL;
	r->n_packets = 0;
}

void
chunk_reader_done(struct chunk_reader *r)
{
	chunk_reader_forget(r);
	free(r->open.data);
}

static void
append(struct chunk_reader *r, const uint8_t *data, size_t len)
{
	r->open.data = realloc(r->open.data, r->open.len + len + 1);
	if (r->open.data == NULL)
		abort();
	memcpy(r->open.data + r->open.len, data, len);
	r->open.len += len;
	r->has_open = true;
}

static void
forget_open(struct chunk_reader *r)
{
	free(r->open.data);
	memset(&r->open, 0, sizeof(r->open));
	r->has_open = false;
}

static void
close_packet(struct chunk_reader *r)
{
	r->packets = realloc(r->packets,
	    (r->n_packets + 1) * sizeof(*r->packets));
	if (r->packets == NULL)
		abort();
	r->packets[r->n_packets++] = r->open;
	memset(&r->open, 0, sizeof(r->open));
	r->has_open = false;
}

static void
read_chunk(struct chunk_reader *r, const struct shm_chunk *c)
{
	const uint8_t *at = c->payload, *end = c->payload + c->len;
	uint64_t size;
	unsigned i;

	r->chunks++;
	if (c->num_fragments > r->most_fragments)
		r->most_fragments = c->num_fragments;
	if (r->has_open != ((c->flags & SHM_FIRST_CONTINUES_FROM_PREV) != 0))
		abort();
	for (i = 0; i < c->num_fragments; i++) {
		if ((at = pb_varint(at, end, &size)) == NULL)
			abort();
		if (size == SHM_SIZE_DROP_PACKET) {
			r->dropped++;
			forget_open(r);
			return;
		}
		if (size > (size_t)(end - at))
			abort();
		append(r, at, size);
		r->open.writer = c->writer_id;
		at += size;
		if (i + 1 < c->num_fragments ||
		    (c->flags & SHM_LAST_CONTINUES_ON_NEXT) == 0)
			close_packet(r);
	}
}

void
chunk_reader_run(struct chunk_reader *r)
{
	struct shm *shm = chunk_memory_shm(r->memory);
	struct chunk_queue_item item;
	struct shm_chunk c;

	while (chunk_memory_take(r->memory, &item, 1) == 1) {
		if (item.is_note) {
			r->notes++;
			continue;
		}
		if (shm_take(shm, item.is.commit.page, item.is.commit.index,
		    &c) != SHM_TAKEN)
			abort();
		read_chunk(r, &c);
		shm_release(shm, c.page, c.index);
	}
}
