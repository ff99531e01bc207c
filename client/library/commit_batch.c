#include "client/library/commit_batch.h"

#include <stdlib.h>

#include "protos/fields.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_writer.h"

/* Bound for tags, lengths and numbers of one ChunksToMove, in bytes. */
#define ENTRY_OVERHEAD 40u

struct entry {
	uint32_t page;
	uint32_t index;
	uint32_t buffer;
	uint32_t used;
};

struct commit_batch {
	struct shm *shm; /* borrowed */
	bool emulated;
	const struct commit_ops *ops;
	void *arg;
	/*
	 * Room for every chunk of the shared memory: each is queued at most
	 * once, from its completion until it was sent.
	 */
	struct entry *entries;
	size_t first; /* entries before it were sent */
	size_t n;
	size_t room;
	size_t bytes; /* payload bytes of the queued chunks */
	struct pb_writer w;
};

struct commit_batch *
commit_batch_new(struct shm *shm, bool emulated, const struct commit_ops *ops,
    void *arg)
{
	struct commit_batch *b;

	if ((b = calloc(1, sizeof(*b))) == NULL)
		return NULL;
	b->shm = shm;
	b->emulated = emulated;
	b->ops = ops;
	b->arg = arg;
	b->room = shm_pages(shm) * SHM_CHUNKS_PER_PAGE_MAX;
	pb_writer_init(&b->w);
	if ((b->entries = calloc(b->room, sizeof(*b->entries))) == NULL) {
		commit_batch_free(b);
		return NULL;
	}
	return b;
}

void
commit_batch_free(struct commit_batch *b)
{
	if (b == NULL)
		return;
	pb_writer_done(&b->w);
	free(b->entries);
	free(b);
}

struct shm *
commit_batch_shm(const struct commit_batch *b)
{
	return b->shm;
}

size_t
commit_batch_waiting(const struct commit_batch *b)
{
	return b->n - b->first;
}

static void
put_entry(struct commit_batch *b, const struct entry *e)
{
	struct shm_chunk c;
	size_t mark;

	mark = pb_nest_begin(&b->w, CommitDataRequest_chunks_to_move);
	pb_put_uint(&b->w, ChunksToMove_page, e->page);
	pb_put_uint(&b->w, ChunksToMove_chunk, e->index);
	pb_put_uint(&b->w, ChunksToMove_target_buffer, e->buffer);
	/* Our own memory: a complete chunk can always be taken. */
	if (b->emulated &&
	    shm_take(b->shm, e->page, e->index, &c) == SHM_TAKEN) {
		pb_put_bytes(&b->w, ChunksToMove_data,
		    c.payload - SHM_CHUNK_HEADER_BYTES,
		    SHM_CHUNK_HEADER_BYTES + e->used);
		shm_release(b->shm, e->page, e->index);
	}
	pb_nest_end(&b->w, mark);
}

static void
send_request(struct commit_batch *b)
{
	if (!b->w.failed)
		b->ops->send(b->arg, b->w.data, b->w.len);
	pb_writer_reset(&b->w);
}

/*
 * Sends one request of as many queued chunks as COMMIT_REQUEST_MAX allows; with
 * the flush id if none are left behind it.
 */
static void
send_some(struct commit_batch *b, uint64_t flush_request_id)
{
	struct entry *e;
	size_t need;

	pb_writer_reset(&b->w);
	while (b->first < b->n) {
		e = &b->entries[b->first];
		need = ENTRY_OVERHEAD +
		    (b->emulated ? SHM_CHUNK_HEADER_BYTES + e->used : 0);
		if (b->w.len + need > COMMIT_REQUEST_MAX - ENTRY_OVERHEAD)
			break;
		put_entry(b, e);
		b->bytes -= e->used;
		b->first++;
	}
	if (b->first == b->n) {
		b->first = b->n = 0;
		if (flush_request_id != 0)
			pb_put_uint(&b->w, CommitDataRequest_flush_request_id,
			    flush_request_id);
	}
	send_request(b);
}

bool
commit_batch_send(struct commit_batch *b)
{
	while (b->first < b->n) {
		if (b->emulated && !b->ops->may_send(b->arg))
			return false;
		send_some(b, 0);
	}
	return true;
}

void
commit_batch_push(struct commit_batch *b)
{
	b->ops->push(b->arg);
	commit_batch_send(b);
}

void
commit_batch_send_all(struct commit_batch *b, uint64_t flush_request_id)
{
	if (b->first == b->n && flush_request_id == 0)
		return;
	do
		send_some(b, flush_request_id);
	while (b->first < b->n);
}

/* Moves queued entries to the front of the array. */
static void
compact(struct commit_batch *b)
{
	size_t i;

	for (i = b->first; i < b->n; i++)
		b->entries[i - b->first] = b->entries[i];
	b->n -= b->first;
	b->first = 0;
}

void
commit_batch_add(struct commit_batch *b, const struct shm_slot *slot,
    size_t used, uint32_t buffer)
{
	struct entry *e;
	bool idle = b->first == b->n;

	shm_complete(b->shm, slot);
	if (b->n == b->room)
		compact(b);
	e = &b->entries[b->n++];
	e->page = slot->page;
	e->index = slot->index;
	e->buffer = buffer;
	e->used = (uint32_t)used;
	b->bytes += used;
	if (b->bytes >= shm_size(b->shm) / 2)
		commit_batch_send(b);
	else if (idle)
		b->ops->wake(b->arg);
}
