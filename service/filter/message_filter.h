/*
 * message_filter: lets through of each packet only what a consumer's
 * TraceFilter allows (TraceConfig.trace_filter).
 *
 * Pure: knows neither sessions nor buffers.  The rules come from a consumer,
 * the packets from producers: neither is trusted.  Bytecode is checked when it
 * is loaded; a packet that does not parse, or nests too deep (100 messages), is
 * dropped whole and counted, never passed through.  Fail closed: fields that no
 * rule allows are dropped.
 */
#ifndef SERVICE_FILTER_MESSAGE_FILTER_H
#define SERVICE_FILTER_MESSAGE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct Perfetto__Protos__TraceConfig__TraceFilter;
struct message_filter;

struct message_filter_stats {
	uint64_t input_packets;
	uint64_t input_bytes;
	uint64_t output_bytes;
	uint64_t errors; /* packets dropped: malformed, or memory was short */
	uint64_t time_taken_ns;
};

/*
 * Loads the bytecode (v2 where present, else v1; with its overlay) and the
 * string rules, none of which are kept.  NULL with a sentence in err.
 */
struct message_filter *message_filter_new(
    const struct Perfetto__Protos__TraceConfig__TraceFilter *rules, char *err,
    size_t err_size) MUST_CHECK;
void message_filter_free(struct message_filter *f);

/*
 * Filters one TracePacket (without tag and length).  *out is borrowed until the
 * next call.  False: the packet is malformed, or memory is short; counted.  A
 * packet that loses all its fields gives true and *out_len 0.
 */
bool message_filter_packet(struct message_filter *f, const uint8_t *data,
    size_t len, const uint8_t **out, size_t *out_len) MUST_CHECK;

const struct message_filter_stats *message_filter_stats(
    const struct message_filter *f);

#endif /* SERVICE_FILTER_MESSAGE_FILTER_H */
