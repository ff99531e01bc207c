/*
 * trace_writer: turns the packets of one sequence into chunks.
 *
 * Packets are whole, encoded TracePackets; one that does not fit into a chunk
 * is fragmented.  The writer adds the fields that only it knows:
 * first_packet_on_sequence, and previous_packet_dropped after a loss.  It knows
 * the memory and the batch its chunks go to, nothing of the connection.  One
 * thread only: the loop's.
 */
#ifndef CLIENT_LIBRARY_TRACE_WRITER_H
#define CLIENT_LIBRARY_TRACE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct commit_batch;
struct trace_writer;

/* A longer packet is dropped and counted. */
#define TRACE_WRITER_PACKET_MAX (64u * 1024u * 1024u)
/* Longest wait of a stalling writer for one chunk's memory. */
#define TRACE_WRITER_STALL_MS 1000

/* Behaviour of a writer when all memory is taken. */
enum trace_writer_policy {
	TRACE_WRITER_DROP,
	/*
	 * Blocks the calling thread, the loop's, until a chunk is free: the
	 * service frees chunks by itself, and under emulation the socket is
	 * written here.  After TRACE_WRITER_STALL_MS in vain it drops, and
	 * does not wait again before memory was free.
	 */
	TRACE_WRITER_STALL,
};

/*
 * b is borrowed until trace_writer_free() or _detach().  id is 1..32767 and
 * not in use, buffer the global id of the service's buffer.  NULL: no memory.
 */
struct trace_writer *trace_writer_new(struct commit_batch *b, uint16_t id,
    uint32_t buffer, enum trace_writer_policy policy) MUST_CHECK;
/* Flushes.  NULL is fine. */
void trace_writer_free(struct trace_writer *w);

/*
 * Copies the packet, which may be NULL when it is empty.  false: it was
 * dropped, and the loss will be marked.
 */
bool trace_writer_write(struct trace_writer *w, const void *packet, size_t len);

/* Ends the current chunk: all packets go with the batch's next request. */
void trace_writer_flush(struct trace_writer *w);

/* The batch and its memory go away: every later write is dropped. */
void trace_writer_detach(struct trace_writer *w);

uint16_t trace_writer_id(const struct trace_writer *w);
/* Packets dropped so far. */
uint64_t trace_writer_dropped(const struct trace_writer *w);

#endif /* CLIENT_LIBRARY_TRACE_WRITER_H */
