#include "tests/bench/ingest/shared.h"

#include <stdlib.h>
#include <string.h>

#include "tests/bench/ingest/commits.h"
#include "tests/bench/ingest/process.h"
#include "tests/load/load_producer.h"
#include "tests/load/load_session.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_writer.h"

#define MEMORY (2u * 1024u * 1024u)
#define PER_COMMIT 32u   /* chunks */
#define IN_FLIGHT 8u     /* commits not yet answered */

/* What a page holds: packets of 100 bytes, written once and committed often. */
static void
put_payload(struct pb_writer *w, size_t room)
{
	static const uint8_t filler[COMMITS_PACKET_BYTES];

	while (w->len + COMMITS_PACKET_BYTES + 1 <= room) {
		pb_put_varint(w, COMMITS_PACKET_BYTES);
		/* One field of bytes makes a valid packet: tag, length. */
		pb_put_bytes(w, 900, filler, COMMITS_PACKET_BYTES - 3);
	}
	if (w->failed)
		load_die("no memory");
}

static double
measure_memcpy(uint64_t bytes, size_t ring)
{
	uint8_t *from, *to;
	uint64_t began, done;

	from = malloc(MEMORY);
	to = malloc(ring);
	if (from == NULL || to == NULL)
		load_die("no memory");
	memset(from, 1, MEMORY);
	memset(to, 2, ring);
	began = load_now_ns();
	for (done = 0; done < bytes; done += COMMITS_CHUNK_BYTES) {
		memcpy(to + done % ring, from + done % MEMORY,
		    COMMITS_CHUNK_BYTES);
		/* Keep it a copy. */
		__asm__ volatile("" : : "r"(to) : "memory");
	}
	began = load_now_ns() - began;
	free(from);
	free(to);
	return (double)bytes / 1e6 / ((double)began / 1e9);
}

struct writer {
	struct load_producer *p;
	uint32_t buffer;
	uint32_t next_chunk;
	uint64_t in_flight;
	struct pb_writer payload;
	unsigned fragments;
};

static void
take_reply(struct writer *w)
{
	struct load_reply reply;

	load_conn_receive(&w->p->conn, &reply);
	if (reply.request_id == w->p->commands)
		load_producer_handle(w->p, &reply);
	else
		w->in_flight--;
}

static void
put_chunk(struct writer *w, struct pb_writer *request)
{
	struct shm_slot slot;
	unsigned i;
	size_t mark;

	while (!shm_acquire(w->p->shm, SHM_DIV1, 1, w->next_chunk, 0, &slot))
		take_reply(w);
	/* The first time round only: what is there stays there. */
	if (slot.payload[0] != COMMITS_PACKET_BYTES)
		memcpy(slot.payload, w->payload.data, w->payload.len);
	for (i = 0; i < w->fragments; i++)
		shm_add_fragment(w->p->shm, &slot);
	shm_complete(w->p->shm, &slot);
	w->next_chunk++;
	mark = pb_nest_begin(request, 1);
	pb_put_uint(request, 1, slot.page);
	pb_put_uint(request, 2, slot.index);
	pb_put_uint(request, 3, w->buffer);
	pb_nest_end(request, mark);
}

static void
commit_all(struct writer *w, uint64_t chunks)
{
	struct pb_writer request;
	unsigned i;

	pb_writer_init(&request);
	while (w->next_chunk < chunks) {
		pb_writer_reset(&request);
		for (i = 0; i < PER_COMMIT; i++)
			put_chunk(w, &request);
		load_conn_call(&w->p->conn, "CommitData", request.data,
		    request.len, false, -1);
		w->in_flight++;
		while (w->in_flight > IN_FLIGHT)
			take_reply(w);
	}
	while (w->in_flight > 0)
		take_reply(w);
	pb_writer_done(&request);
}

void
shared_run(const struct process_daemon *d, uint64_t bytes, uint32_t buffer_kb,
    struct shared_result *out)
{
	struct load_producer producer;
	struct load_session session;
	struct load_stats stats;
	struct writer w = { .p = &producer };
	uint64_t chunks = bytes / COMMITS_CHUNK_BYTES / PER_COMMIT * PER_COMMIT;
	uint64_t began;
	double seconds, cpu;

	load_producer_open(&producer, d->producers_unix, "shared", "shared",
	    MEMORY);
	load_session_open(&session, d->consumers, "shared", buffer_kb, -1);
	load_producers_wait_started(&producer, 1, 1);
	if (producer.shm == NULL)
		load_die("no shared memory on a UNIX socket");
	w.buffer = producer.instances[0].buffer;
	pb_writer_init(&w.payload);
	put_payload(&w.payload, 4096 - SHM_PAGE_HEADER_BYTES -
	    SHM_CHUNK_HEADER_BYTES);
	w.fragments = (unsigned)(w.payload.len / (COMMITS_PACKET_BYTES + 1));

	cpu = process_cpu(d->pid);
	began = load_now_ns();
	commit_all(&w, chunks);
	seconds = (double)(load_now_ns() - began) / 1e9;
	cpu = process_cpu(d->pid) - cpu;

	load_session_stats(&session, &stats);
	out->lost = chunks - stats.chunks_written + stats.chunks_lost;
	out->mb_per_s = (double)(chunks * COMMITS_CHUNK_BYTES) / 1e6 / seconds;
	out->cpu_per_gb = cpu / ((double)(chunks * COMMITS_CHUNK_BYTES) / 1e9);
	out->memcpy_mb_per_s = measure_memcpy(bytes,
	    (size_t)buffer_kb * 1024);

	load_session_request_stop(&session);
	load_producers_wait_stopped(&producer, 1);
	load_session_wait_ended(&session);
	load_session_close(&session);
	load_producer_close(&producer);
	pb_writer_done(&w.payload);
}
