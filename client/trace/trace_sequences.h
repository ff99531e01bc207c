/*
 * trace_sequences: the sequences of packets in a trace, and the producers that
 * wrote them.
 *
 * A hash table by sequence id.  trace_sequences_producers() puts producers
 * together from their sequences: one for each producer id where TraceProvenance
 * told it, else one for each {machine, pid, uid}.
 */
#ifndef CLIENT_TRACE_TRACE_SEQUENCES_H
#define CLIENT_TRACE_TRACE_SEQUENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/trace/ftrace_losses.h"
#include "transport/base/compiler.h"

/* Most sequences and names; further ones are not kept. */
#define TRACE_SEQUENCES_MAX       (1u << 18)
#define TRACE_SEQUENCES_MAX_NAMES 16384u

struct trace_sequence {
	uint32_t id; /* not 0 */
	uint32_t machine_id;
	int32_t pid;
	int32_t uid;
	int32_t producer_id; /* 0: not told */
	uint64_t packets;    /* 0: only TraceProvenance knows it so far */
	uint64_t bytes;
	/* Packets before which data is missing; union of their reason bits. */
	uint64_t gaps;
	uint32_t reasons; /* DataLossReason mask */
	uint32_t buffer; /* index of its buffer, counted from 1; 0: unknown */
	/*
	 * Packets that need incremental state (interned names, defaults) that
	 * is lost or was never written: no importer can use them.
	 */
	uint64_t without_state;
	bool state_valid; /* incremental state, after the last packet taken */
	struct ftrace_losses ftrace;
};

struct trace_producer {
	int32_t id;          /* the collector's; 0: the trace does not say */
	uint32_t machine_id; /* 0: the collector's own */
	int32_t pid;         /* 0: unknown */
	int32_t uid;
	uint64_t packets;
	uint64_t bytes;
	uint64_t sequences;
	uint64_t gaps;
	const char *name; /* or NULL */
};

struct packet_facts;
struct trace_sequences;

struct trace_sequences *trace_sequences_new(void) MUST_CHECK;
void trace_sequences_free(struct trace_sequences *t);

/*
 * Finds or makes the sequence of this id (not 0); the pointer is valid until
 * the next call of trace_sequences_find().  NULL: too many, or no memory;
 * counted by trace_sequences_overflow().
 */
struct trace_sequence *trace_sequences_find(struct trace_sequences *t,
    uint32_t id);

/*
 * Counts a packet of this sequence; bytes: with its framing.  Returns whether
 * the packet is marked as following a loss; the mark that Perfetto's service
 * puts on each sequence's first packet does not count.
 */
bool trace_sequence_take(struct trace_sequence *q, const struct packet_facts *f,
    uint64_t bytes);

/*
 * Goes through all sequences that have packets, in no order: returns the next
 * one behind *at, which begins as 0.  NULL: there are no more.
 */
const struct trace_sequence *trace_sequences_next(
    const struct trace_sequences *t, size_t *at);
/* Calls of trace_sequences_find() that returned NULL. */
uint64_t trace_sequences_overflow(const struct trace_sequences *t);

/*
 * Names the producer of this id; where the trace has no producer ids, the name
 * goes to the process {machine_id, pid}.  The name is copied; the last name of
 * an id wins.
 */
void trace_sequences_name(struct trace_sequences *t, int32_t id,
    uint32_t machine_id, int32_t pid, const char *name);

/*
 * Lists producers that wrote packets, most bytes first; owned by t and valid
 * until the next call.  Returns their number; 0 without memory.
 */
size_t trace_sequences_producers(struct trace_sequences *t,
    const struct trace_producer **out);

#endif /* CLIENT_TRACE_TRACE_SEQUENCES_H */
