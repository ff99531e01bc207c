#include "relay/outbox/commit_chunk.h"

#include <string.h>

#include "protos/fields.h"
#include "transport/shm/shm.h"

static bool
read_chunk(const struct pb_field *move, struct commit_chunk *c)
{
	struct shm_chunk chunk;
	struct pb_reader r;
	struct pb_field f;
	bool ok = false;

	memset(c, 0, sizeof(*c));
	PB_FOREACH(&f, &r, move->data, move->len) {
		if (f.number == ChunksToMove_target_buffer &&
		    f.wire == PB_VARINT)
			c->buffer = (uint32_t)f.value;
		else if (f.number == ChunksToMove_chunk_incomplete &&
		    f.wire == PB_VARINT)
			c->incomplete = f.value != 0;
		else if (f.number == ChunksToMove_data && f.wire == PB_BYTES)
			ok = shm_chunk_from_bytes(f.data, f.len, &chunk) == 0;
	}
	if (!ok || r.bad)
		return false;
	c->writer = chunk.writer_id;
	c->id = chunk.chunk_id;
	c->goes_on = (chunk.flags & SHM_LAST_CONTINUES_ON_NEXT) != 0;
	c->continues = (chunk.flags & SHM_FIRST_CONTINUES_FROM_PREV) != 0;
	c->fragments = chunk.num_fragments;
	/* The last one is still being written. */
	if (c->incomplete && c->fragments > 0)
		c->fragments--;
	c->bytes = (uint32_t)chunk.len;
	return true;
}

bool
commit_chunk_next_field(struct pb_reader *commit, struct pb_field *f,
    bool *is_chunk, struct commit_chunk *c)
{
	if (!pb_next(commit, f))
		return false;
	*is_chunk = f->number == CommitDataRequest_chunks_to_move &&
	    f->wire == PB_BYTES;
	if (*is_chunk && !read_chunk(f, c))
		memset(c, 0, sizeof(*c));
	return true;
}

bool
commit_chunk_next(struct pb_reader *commit, struct commit_chunk *c)
{
	struct pb_field f;
	bool is_chunk;

	while (commit_chunk_next_field(commit, &f, &is_chunk, c))
		if (is_chunk)
			return true;
	return false;
}
