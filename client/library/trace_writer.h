/*
 * trace_writer: turns the packets of one sequence into chunks.
 *
 * Packets are whole, encoded TracePackets; a packet that does not fit into a
 * chunk is fragmented.  The writer appends first_packet_on_sequence to its
 * first packet, and previous_packet_dropped after a loss.  It knows the shared
 * memory and the batch that its chunks go to, nothing of the connection.
 * Belongs to the loop's thread.
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
/* Longest wait of a stalling writer for a free chunk. */
#define TRACE_WRITER_STALL_MS 1000

/* Behaviour of a writer when no chunk of the memory is free. */
enum trace_writer_policy {
	TRACE_WRITER_DROP, /* drops the packet at once */
	/*
	 * Blocks the calling thread, the loop's, until a chunk is free: the
	 * service frees chunks by itself, and under emulation the wait writes
	 * to the socket.  After TRACE_WRITER_STALL_MS in vain the writer drops
	 * the packet, and drops at once until it finds a free chunk again.
	 */
	TRACE_WRITER_STALL,
};

/*
 * b is borrowed until trace_writer_free() or _detach().  id is 1..32767 and
 * not in use, buffer the global id of the service's buffer.  NULL: no memory.
 */
struct trace_writer *trace_writer_new(struct commit_batch *b, uint16_t id,
    uint32_t buffer, enum trace_writer_policy policy) MUST_CHECK;
/* Flushes, unless detached, and frees the writer.  NULL is fine. */
void trace_writer_free(struct trace_writer *w);

/*
 * Copies the packet, which may be NULL when it is empty.  false: the packet was
 * dropped; the next packet written is marked with previous_packet_dropped.
 */
bool trace_writer_write(struct trace_writer *w, const void *packet, size_t len);

/*
 * Completes the current chunk, if any: all packets so far go out with the
 * batch's next request.
 */
void trace_writer_flush(struct trace_writer *w);

/*
 * Called before the batch and its memory are freed: later packets are dropped,
 * and a chunk that was not flushed stays incomplete.
 */
void trace_writer_detach(struct trace_writer *w);

uint16_t trace_writer_id(const struct trace_writer *w);
/* Packets dropped so far. */
uint64_t trace_writer_dropped(const struct trace_writer *w);

#endif /* CLIENT_LIBRARY_TRACE_WRITER_H */
