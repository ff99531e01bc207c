/* Finished chunks on their way to the service. */
#include "client/tracing/port/port_internal.h"
#include "protos/fields.h"
#include "transport/shm/shm.h"

/* A request is never longer; the frame around it has room in FRAME_MAX_BYTES. */
#define REQUEST_MAX (128u * 1024u - 256u)
/* Bound for tags and numbers of one ChunksToMove, in bytes. */
#define ENTRY_OVERHEAD 48u
#define BATCH 64

static void
put_chunk(struct port *p, struct pb_writer *w, const struct chunk_commit *c)
{
	struct shm *shm = chunk_memory_shm(p->memory);
	struct shm_chunk chunk;
	size_t mark;

	mark = pb_nest_begin(w, CommitDataRequest_chunks_to_move);
	pb_put_uint(w, ChunksToMove_page, c->page);
	pb_put_uint(w, ChunksToMove_chunk, c->index);
	pb_put_uint(w, ChunksToMove_target_buffer, c->buffer);
	/* Our own memory: a complete chunk can always be taken. */
	if (p->emulated &&
	    shm_take(shm, c->page, c->index, &chunk) == SHM_TAKEN) {
		pb_put_bytes(w, ChunksToMove_data,
		    chunk.payload - SHM_CHUNK_HEADER_BYTES,
		    SHM_CHUNK_HEADER_BYTES + c->used);
		shm_release(shm, c->page, c->index);
	}
	pb_nest_end(w, mark);
}

static void
tell_note(struct port *p, const struct writer_note *n)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, RegisterTraceWriterRequest_trace_writer_id, n->writer);
	if (n->buffer != 0)
		pb_put_uint(&w, RegisterTraceWriterRequest_target_buffer,
		    n->buffer);
	port_call(p, n->buffer != 0 ? PORT_REGISTER_WRITER :
	    PORT_UNREGISTER_WRITER, &w);
	pb_writer_done(&w);
}

static void
send_commits(struct port *p, struct pb_writer *w)
{
	if (w->len > 0)
		port_call(p, PORT_COMMIT, w);
}

static void
tell_items(struct port *p, const struct chunk_queue_item *items, size_t n)
{
	struct pb_writer w;
	size_t i, need;

	pb_writer_init(&w);
	for (i = 0; i < n; i++) {
		if (items[i].is_note) {
			send_commits(p, &w);
			tell_note(p, &items[i].is.note);
			continue;
		}
		need = ENTRY_OVERHEAD + (p->emulated ?
		    SHM_CHUNK_HEADER_BYTES + items[i].is.commit.used : 0);
		if (w.len + need > REQUEST_MAX)
			send_commits(p, &w);
		put_chunk(p, &w, &items[i].is.commit);
	}
	send_commits(p, &w);
	pb_writer_done(&w);
}

static bool
may_tell(const struct port *p, bool all)
{
	return all || !p->emulated ||
	    port_wire_queued(&p->wire) < PORT_QUEUED_PAUSE;
}

void
port_commit(struct port *p, bool all)
{
	struct chunk_queue_item items[BATCH];
	size_t n;

	if (p->memory == NULL || p->state != PORT_READY)
		return;
	registry_relieve(p->memory);
	while (may_tell(p, all) &&
	    (n = chunk_memory_take(p->memory, items, BATCH)) > 0)
		tell_items(p, items, n);
}

void
port_commit_flush(struct port *p, uint64_t request)
{
	struct pb_writer w;

	port_commit(p, true);
	pb_writer_init(&w);
	pb_put_uint(&w, CommitDataRequest_flush_request_id, request);
	port_call(p, PORT_COMMIT, &w);
	pb_writer_done(&w);
}
