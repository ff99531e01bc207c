/*
 * asked_sources: the data sources that a trace's config asks for, and whether
 * their packets are in the trace.
 *
 * A trace does not say which data source wrote a packet.  This is inferred from
 * the buffer of the source, when it stayed empty or no other source has it;
 * else from the types of packets that well-known sources write.
 */
#ifndef CLIENT_INSPECT_REPORT_ASKED_SOURCES_H
#define CLIENT_INSPECT_REPORT_ASKED_SOURCES_H

#include <stddef.h>
#include <stdint.h>

struct Perfetto__Protos__TraceConfig;
struct Perfetto__Protos__TraceStats;
struct trace_packet_type;

/* Most sources; more are not listed. */
#define ASKED_SOURCES_MAX 1024u

enum asked_wrote {
	ASKED_WROTE,
	ASKED_NOTHING, /* none of its packets is in the trace */
	ASKED_UNKNOWN,
};

struct asked_source {
	const char *name;        /* borrowed from the config */
	uint32_t buffer;         /* index */
	enum asked_wrote wrote;
};

struct asked_sources {
	struct asked_source all[ASKED_SOURCES_MAX]; /* each once a buffer */
	size_t n;
	uint64_t left_out;
};

/* config and stats: NULL where the trace has none. */
void asked_sources_make(struct asked_sources *out,
    const struct Perfetto__Protos__TraceConfig *config,
    const struct Perfetto__Protos__TraceStats *stats,
    const struct trace_packet_type *types, size_t n_types);

#endif /* CLIENT_INSPECT_REPORT_ASKED_SOURCES_H */
