#include "service/ingest/former_ids.h"

#include <stddef.h>
#include <stdlib.h>

#include "service/model/model.h"
#include "transport/base/hash_map.h"
#include "transport/link/link_wire.h"

struct former_buffer {
	uint32_t id;
	uint32_t own; /* or NOWHERE, LATE */
};

/* A chunk of a writer that was scraped for another collector. */
struct former_part {
	struct hash_link by_chunk;
	uint32_t writer;
	uint32_t chunk;
	uint32_t bytes;
};

struct former_ids {
	uint32_t tag;
	struct hash_map parts; /* owned */
	struct former_buffer *buffers;
	size_t n_buffers;
	bool has_nowhere; /* one of the buffers is NOWHERE */
	/* Taken ones are removed; freed with the last. */
	struct former_instance *instances;
	size_t n_instances;
};

int
former_ids_begin(struct producer *p, uint32_t tag)
{
	if ((p->former = calloc(1, sizeof(*p->former))) == NULL)
		return -1;
	p->former->tag = tag;
	return 0;
}

static struct former_buffer *
find(const struct former_ids *f, uint32_t id)
{
	size_t n;

	/* The newest first, as it is the one that is written to. */
	for (n = f->n_buffers; n-- > 0;)
		if (f->buffers[n].id == id)
			return &f->buffers[n];
	return NULL;
}

int
former_ids_add_buffer(struct producer *p, uint32_t id, uint32_t own)
{
	struct former_ids *f = p->former;
	struct former_buffer *grown;

	if (find(f, id) != NULL)
		return 0;
	if (f->n_buffers == FORMER_IDS_BUFFERS_MAX)
		return -1;
	grown = realloc(f->buffers, (f->n_buffers + 1) * sizeof(*grown));
	if (grown == NULL)
		return -1;
	f->buffers = grown;
	f->buffers[f->n_buffers++] = (struct former_buffer){ id, own };
	f->has_nowhere |= own == FORMER_IDS_NOWHERE;
	return 0;
}

int
former_ids_add_instance(struct producer *p, const struct former_instance *i)
{
	struct former_ids *f = p->former;
	struct former_instance *grown;

	if (f->n_instances == FORMER_IDS_INSTANCES_MAX)
		return -1;
	grown = realloc(f->instances, (f->n_instances + 1) * sizeof(*grown));
	if (grown == NULL)
		return -1;
	f->instances = grown;
	f->instances[f->n_instances++] = *i;
	return 0;
}

static struct former_part *
find_part(const struct former_ids *f, uint32_t writer, uint32_t chunk)
{
	struct former_part *part;

	HASH_MAP_FOREACH_OF(part, &f->parts, hash_numbers(writer, chunk),
	    by_chunk)
		if (part->writer == writer && part->chunk == chunk)
			return part;
	return NULL;
}

int
former_ids_add_part(struct producer *p, uint32_t writer, uint32_t chunk,
    uint32_t bytes)
{
	struct former_part *part = find_part(p->former, writer, chunk);

	if (part == NULL && p->former->parts.n >= FORMER_IDS_PARTS_MAX)
		return 0; /* its packets may be in two traces */
	if (part == NULL) {
		if ((part = calloc(1, sizeof(*part))) == NULL)
			return -1;
		part->writer = writer;
		part->chunk = chunk;
		hash_map_put(&p->former->parts, &part->by_chunk,
		    hash_numbers(writer, chunk));
	}
	part->bytes = bytes;
	return 0;
}

uint32_t
former_ids_part(const struct producer *p, uint32_t writer, uint32_t chunk)
{
	const struct former_part *part = find_part(p->former, writer, chunk);

	return part != NULL ? part->bytes : 0;
}

uint32_t
former_ids_buffer(const struct producer *p, uint32_t id)
{
	const struct former_buffer *b;

	if (id == 0)
		return 0;
	if (id >> LINK_TAG_SHIFT == p->former->tag)
		return id & UINT16_MAX;
	b = find(p->former, id);
	return b != NULL ? b->own : FORMER_IDS_NOWHERE;
}

bool
former_ids_has_nowhere(const struct producer *p)
{
	return p->former->has_nowhere;
}

void
former_ids_forget_buffer(struct producer *p, uint16_t own)
{
	struct former_ids *f = p->former;
	size_t n;

	for (n = 0; n < f->n_buffers; n++)
		if (f->buffers[n].own == own)
			f->buffers[n].own = FORMER_IDS_LATE;
}

static bool
take(struct former_ids *f, size_t at, struct former_instance *out)
{
	*out = f->instances[at];
	f->instances[at] = f->instances[--f->n_instances];
	if (f->n_instances == 0) {
		free(f->instances);
		f->instances = NULL;
	}
	return true;
}

bool
former_ids_take_instance(struct producer *p, uint16_t own, uint32_t source,
    struct former_instance *out)
{
	struct former_ids *f = p->former;
	size_t n;

	for (n = 0; n < f->n_instances; n++)
		if (f->instances[n].source == source &&
		    former_ids_buffer(p, f->instances[n].buffer) == own)
			return take(f, n, out);
	return false;
}

bool
former_ids_take_left(struct producer *p, struct former_instance *out)
{
	return p->former->n_instances > 0 && take(p->former, 0, out);
}

void
former_ids_free(struct producer *p)
{
	struct hash_cursor at;
	struct former_part *part;

	if (p->former == NULL)
		return;
	HASH_MAP_FOREACH(part, &p->former->parts, &at, by_chunk) {
		hash_map_remove(&p->former->parts, &part->by_chunk);
		free(part);
	}
	hash_map_done(&p->former->parts);
	free(p->former->buffers);
	free(p->former->instances);
	free(p->former);
	p->former = NULL;
}
