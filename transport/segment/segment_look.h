/*
 * segment_look: the little of a packet by which a splitter knows where it
 * belongs, in one pass over its top level.
 *
 * Pure.  Input is hostile.
 */
#ifndef TRANSPORT_SEGMENT_SEGMENT_LOOK_H
#define TRANSPORT_SEGMENT_SEGMENT_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* Contents that are not only handed on, by who wrote them. */
enum segment_kind {
	SEGMENT_PLAIN = 0,
	/* The service's, the last of which readers of any file need. */
	SEGMENT_NEEDED,
	/* The service's, for all files at the time. */
	SEGMENT_SHARED,
	SEGMENT_STATS,
	SEGMENT_UUID,
	/* A producer's, given once. */
	SEGMENT_ONCE,
	/* As ONCE, but for sequences with incremental state. */
	SEGMENT_ONCE_IF_STATELESS,
};

/* All pointers are borrowed from the bytes that were looked at. */
struct segment_look {
	const uint8_t *field; /* Trace.packet with its tag and length */
	size_t field_len;
	const uint8_t *body; /* the TracePacket */
	size_t len;
	uint32_t sequence; /* 0: none */
	uint32_t machine;
	bool clears; /* incremental state */
	bool needs;
	bool has_flags; /* about incremental state */
	bool has_loss;
	bool repeated;
	enum segment_kind kind;
	uint32_t payload; /* field number, where the kind is not PLAIN */
	const uint8_t *content;
	size_t content_len;
	const uint8_t *mark; /* SegmentCut; NULL: none */
	size_t mark_len;
};

/*
 * Looks at the first packet of some whole Trace.packet fields; *k is filled in.
 * A malformed TracePacket counts up to its first bad byte.  False: no whole
 * field.
 */
bool segment_look(struct segment_look *k, const uint8_t *packets,
    size_t len) MUST_CHECK;

#endif /* TRANSPORT_SEGMENT_SEGMENT_LOOK_H */
