/*
 * packet_check: whether a producer's packet may go into a trace (reference
 * behaviour.md, "What the service writes into a trace").
 *
 * Pure.  Looks at the top level only: fields must be complete, of a known wire
 * type, and none of those that only the service may write.  The inside of a
 * nested message is not checked.
 */
#ifndef TRANSPORT_PACKET_PACKET_CHECK_H
#define TRANSPORT_PACKET_PACKET_CHECK_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct tb_slice;

enum packet_verdict {
	PACKET_INVALID = 0, /* malformed, or forges a trusted field */
	PACKET_OK = 1,
	PACKET_EMPTY = 2,   /* well-formed, but without a single field */
};

/*
 * The packet is the concatenation of n slices; size is the sum of their
 * lengths, as in struct tb_packet.  A field may straddle any number of slices.
 * Linear in the number of fields and slices, never in the bytes of a payload.
 */
enum packet_verdict packet_check(const struct tb_slice *slices, size_t n,
    size_t size) MUST_CHECK;

#endif /* TRANSPORT_PACKET_PACKET_CHECK_H */
