/*
 * packet_facts: the fields of one TracePacket that describe it (sequence,
 * machine, time, type, losses), read in place in one pass.  Untrusted input.
 * Pure.
 */
#ifndef CLIENT_TRACE_PACKET_FACTS_H
#define CLIENT_TRACE_PACKET_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/wire/pb_reader.h"

/* Types of packets are their field numbers; larger ones are unknown. */
#define PACKET_TYPE_SLOTS 1024

/* TracePacket.sequence_flags */
#define PACKET_STATE_CLEARED 1u
#define PACKET_NEEDS_STATE   2u

/*
 * Sequence id of the service's own packets, as which 0 counts, too; greater ids
 * are producers'.
 */
#define PACKET_SERVICE_SEQUENCE 1

struct packet_facts {
	uint32_t sequence_id; /* 0: none is given */
	uint32_t machine_id;
	int32_t uid;
	int32_t pid;
	uint32_t type;
	uint32_t dropped; /* DataLossReason mask */
	uint32_t flags;   /* PACKET_*; state_cleared, the old field, included */
	uint32_t clock_id; /* 0: the sequence's default */
	bool first_on_sequence;
	bool repeated; /* the packet is in the segment before, too */
	bool divided;  /* dropped is the mark of a cut: nothing was lost there */
	bool has_timestamp;
	uint64_t timestamp;
	struct pb_field payload;  /* of the type; valid when type is set */
	struct pb_field segment;  /* tributary_segment; len 0: none */
	struct pb_field defaults; /* trace_packet_defaults; len 0: none */
};

/* Fields of TracePacket that are members of its `data` oneof. */
struct packet_types {
	uint8_t is_type[PACKET_TYPE_SLOTS];
};

void packet_types_init(struct packet_types *t);
/* Name of the field in TracePacket; static, "" for an unknown type. */
const char *packet_type_name(uint32_t type);

/* false: malformed.  payload and defaults point into data. */
bool packet_facts_read(struct packet_facts *f, const struct packet_types *t,
    const uint8_t *data, size_t len) MUST_CHECK;

#endif /* CLIENT_TRACE_PACKET_FACTS_H */
