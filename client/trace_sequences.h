/*
 * trace_sequences: the sequences of packets in a trace, and the producers that
 * wrote them.
 *
 * A hash by sequence id.  Producers are put together from their sequences when
 * they are asked for: one for each connection where TraceProvenance told which
 * sequence came over which, else one for each process.
 */
#ifndef CLIENT_TRACE_SEQUENCES_H
#define CLIENT_TRACE_SEQUENCES_H

#include <stddef.h>
#include <stdint.h>

#include "transport/compiler.h"

/* More of them are not kept apart. */
#define TRACE_SEQUENCES_MAX       (1u << 20)
#define TRACE_SEQUENCES_MAX_NAMES 16384u

struct trace_sequence {
	uint32_t id; /* not 0 */
	uint32_t machine_id;
	int32_t pid;
	int32_t uid;
	int32_t producer_id; /* 0: not told */
	uint64_t packets;    /* 0: only TraceProvenance knows it so far */
	uint64_t bytes;
};

struct trace_producer {
	int32_t id;          /* the collector's; 0: the trace does not say */
	uint32_t machine_id; /* 0: the collector's own */
	int32_t pid;         /* 0: unknown */
	int32_t uid;
	uint64_t packets;
	uint64_t bytes;
	uint64_t sequences;
	const char *name; /* or NULL */
};

struct trace_sequences;

struct trace_sequences *trace_sequences_new(void) MUST_CHECK;
void trace_sequences_free(struct trace_sequences *t);

/*
 * Finds or makes the one of this id (not 0); it stays where it is until the
 * next call of this.  NULL: too many, or no memory.
 */
struct trace_sequence *trace_sequences_find(struct trace_sequences *t,
    uint32_t id);

/*
 * What a producer is called: the one of this id, or where the trace knows no
 * ids, of this process.  Copied.  The last name of an id wins.
 */
void trace_sequences_name(struct trace_sequences *t, int32_t id,
    uint32_t machine_id, int32_t pid, const char *name);

/* Those that wrote packets, most bytes first; valid until the next call. */
size_t trace_sequences_producers(struct trace_sequences *t,
    const struct trace_producer **out);

#endif /* CLIENT_TRACE_SEQUENCES_H */
