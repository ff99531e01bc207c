/*
 * packet_stats: TraceStats from plain counters (reference wire-format.md,
 * "common/trace_stats.proto"), and the histogram of chunk payloads that goes
 * with it.
 *
 * Pure.  Used for the packet in a trace and for the GetTraceStats reply.
 */
#ifndef TRANSPORT_PACKET_PACKET_STATS_H
#define TRANSPORT_PACKET_PACKET_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protos/fields.h"
#include "transport/base/compiler.h"

struct pb_writer;
struct tb_stats;

/*
 * Upper bounds of the buckets, inclusive: 8 32 128 512 1024 2048 4096 8192
 * 12288 16384; the last bucket takes what is larger.
 */
#define CHUNK_HISTOGRAM_BOUNDS 10u
#define CHUNK_HISTOGRAM_BUCKETS (CHUNK_HISTOGRAM_BOUNDS + 1u)

struct chunk_histogram {
	uint64_t count[CHUNK_HISTOGRAM_BUCKETS];
	uint64_t sum[CHUNK_HISTOGRAM_BUCKETS]; /* bytes */
};

/* Counts one committed chunk of payload bytes.  Start from all zeroes. */
void chunk_histogram_add(struct chunk_histogram *h, size_t payload);

/* Counters of one writer of the session in one buffer. */
struct packet_writer_stats {
	uint64_t sequence; /* trusted_packet_sequence_id */
	uint32_t buffer;   /* index in the config */
	struct chunk_histogram histogram;
};

/* Losses outside of the buffers, of one sequence and cause (LinkLossStats). */
struct packet_link_loss {
	uint32_t machine;
	uint32_t sequence;    /* 0: only the machine is known */
	const char *producer; /* NULL: not known */
	uint32_t cause;       /* LinkLossCause */
	uint64_t chunks;
	uint64_t packets;
	uint64_t bytes;
};

/*
 * A producer whose timestamps cannot be on the collector's clocks
 * (ForeignClock).
 */
struct packet_foreign_clock {
	uint32_t producer;
	const char *name;
	uint32_t machine;
	int64_t offset_ns; /* newest odd timestamp minus its arrival */
	uint64_t packets;  /* with such timestamps */
};

/* TraceStats.FinalFlushOutcome */
enum packet_final_flush {
	FINAL_FLUSH_UNSPECIFIED = 0, /* left out */
	FINAL_FLUSH_SUCCEEDED = TraceStats_FINAL_FLUSH_SUCCEEDED,
	FINAL_FLUSH_FAILED = TraceStats_FINAL_FLUSH_FAILED,
};

/* Counters of a session with a trace_filter. */
struct packet_filter_stats {
	uint64_t input_packets;
	uint64_t input_bytes;
	uint64_t output_bytes;
	uint64_t errors;
	uint64_t time_taken_ns;
	const uint64_t *discarded; /* bytes, of each buffer */
	size_t n_buffers;
};

/* All pointers are borrowed. */
struct packet_stats {
	const struct tb_stats *const *buffers; /* in the order of the config */
	size_t n_buffers;
	const struct packet_writer_stats *writers;
	size_t n_writers; /* 0: no histogram at all */
	const struct packet_link_loss *link_losses;
	size_t n_link_losses;
	const struct packet_foreign_clock *foreign_clocks;
	size_t n_foreign_clocks;
	const struct packet_filter_stats *filter; /* NULL: no filter */
	uint32_t producers_connected;
	uint64_t producers_seen;
	uint32_t data_sources_registered;
	uint64_t data_sources_seen;
	uint32_t tracing_sessions;
	uint32_t total_buffers;
	uint64_t chunks_discarded; /* session.refused, as patches_discarded */
	uint64_t patches_discarded;
	uint64_t invalid_packets;
	uint64_t flushes_requested;
	uint64_t flushes_succeeded;
	uint64_t flushes_failed;
	enum packet_final_flush final_flush_outcome;
};

/* Appends the fields of a TraceStats message (no tag, no length). */
void packet_stats_encode(struct pb_writer *w, const struct packet_stats *st);

#endif /* TRANSPORT_PACKET_PACKET_STATS_H */
