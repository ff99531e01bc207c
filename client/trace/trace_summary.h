/*
 * trace_summary: counts the contents of a trace, in one pass and bounded
 * memory.
 *
 * Takes packets one by one, or the bytes of a trace file in any cut, and
 * counts: packets, bytes, sequences, producers, types of packets, losses.
 * Packets inside of compressed ones count as if they were not compressed.
 * Input is untrusted: a file may come from anywhere.  Pure: no files.
 */
#ifndef CLIENT_TRACE_TRACE_SUMMARY_H
#define CLIENT_TRACE_TRACE_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/trace/trace_sequences.h"
#include "transport/base/compiler.h"

struct Perfetto__Protos__TraceStats;
struct machine_name;
struct packet_facts;
struct trace_loss;
struct trace_summary;
struct wall_clock;

/* Most names of data sources; more are not kept. */
#define TRACE_SUMMARY_MAX_DATA_SOURCES 1024u

/*
 * Number of known bits of TracePacket.DataLossReason; from bit 16 on
 * Tributary's own (docs/link-protocol.md).
 */
#define TRACE_SUMMARY_LOSS_BITS 25

struct trace_totals {
	/*
	 * All packets, with the service's own, malformed ones, and those inside
	 * compressed packets.
	 */
	uint64_t packets;
	uint64_t bytes;             /* as in the file, framing included */
	uint64_t expanded_bytes;    /* as if nothing were compressed */
	uint64_t service_packets;   /* written by the collector itself */
	uint64_t malformed;         /* no well-formed message, or damaged */
	uint64_t compressed;        /* hold others; not counted in packets */
	uint64_t sequences;         /* of producers */
	uint64_t duration_ns;       /* tracing started to disabled; 0: unknown */
	/*
	 * Packets of producers since the last TraceStats; and since the last
	 * TraceStats or read_tracing_buffers_completed event.
	 */
	uint64_t after_stats;
	uint64_t after_read;
	uint64_t gaps;              /* packets marked as following a loss */
	/*
	 * By bit of DataLossReason.  Bit 0 counts where it is alone; bits that
	 * name an effect count where no bit names a cause.
	 */
	uint64_t gaps_by_reason[TRACE_SUMMARY_LOSS_BITS];
};

struct trace_packet_type {
	const char *name; /* field of TracePacket; static, "": unknown */
	uint32_t type;    /* its field number */
	uint64_t packets;
	uint64_t bytes;
};

struct trace_summary *trace_summary_new(void) MUST_CHECK;
void trace_summary_free(struct trace_summary *s);

/*
 * Takes one TracePacket, without the tag and length that a file puts before it;
 * a compressed one is expanded.
 */
void trace_summary_packet(struct trace_summary *s, const uint8_t *data,
    size_t len);
/*
 * Takes a packet that the caller has read already; bytes: with its framing.
 * Returns its sequence, valid until the next packet is taken; NULL: a packet of
 * the service, or the sequence is not kept (TRACE_SEQUENCES_MAX, no memory).
 */
const struct trace_sequence *trace_summary_take(struct trace_summary *s,
    const struct packet_facts *f, uint64_t bytes);
void trace_summary_take_malformed(struct trace_summary *s, uint64_t bytes);
/*
 * Accounts for a compressed packet after its inner packets were taken: bytes
 * are its own, expanded those of the inner packets, all with framing.  whole:
 * it was not damaged.
 */
void trace_summary_take_compressed(struct trace_summary *s, uint64_t bytes,
    uint64_t expanded, bool whole);

/*
 * Takes the next bytes of a trace file, cut anywhere.  -1, with a sentence in
 * err, when they are no trace (other fields than Trace.packet, a packet that is
 * too large) or memory is short; all packets before that are counted, and
 * trace_summary_feed() must not be called again.
 */
int trace_summary_feed(struct trace_summary *s, const uint8_t *data, size_t len,
    char *err, size_t err_size) MUST_CHECK;
/* Bytes fed up to the end of the last whole packet. */
uint64_t trace_summary_whole_bytes(const struct trace_summary *s);
/* Bytes fed after that: not 0 means that the file ends within a packet. */
uint64_t trace_summary_loose_bytes(const struct trace_summary *s);

/*
 * Names a producer, from the service's state, as a trace has no names: as
 * trace_sequences_name().  May come before or after the producer's packets.
 */
void trace_summary_name(struct trace_summary *s, int32_t id,
    uint32_t machine_id, int32_t pid, const char *name);

/*
 * Names a machine, from the collector's state; the last SystemInfo of the
 * machine in the trace takes precedence.  The name is copied.
 */
void trace_summary_machine(struct trace_summary *s, uint32_t id,
    const char *name);
/* NULL: not known. */
const char *trace_summary_machine_name(const struct trace_summary *s,
    uint32_t id);

/* Machines by ascending id; those that are `seen` have packets in the trace. */
size_t trace_summary_machines(const struct trace_summary *s,
    const struct machine_name **out);

/* The collector's first reading of both clocks.  False: the trace has none. */
bool trace_summary_wall_clock(const struct trace_summary *s,
    struct wall_clock *out);

/* The results; valid until the next call that is not one of these. */
const struct trace_totals *trace_summary_totals(const struct trace_summary *s);
const struct trace_sequences *trace_summary_sequences(
    const struct trace_summary *s);
/* Most bytes first. */
size_t trace_summary_producers(struct trace_summary *s,
    const struct trace_producer **out);
/* Most packets first; one entry for each type that occurs. */
size_t trace_summary_types(struct trace_summary *s,
    const struct trace_packet_type **out);
/* Names of data sources in the trace's TraceConfig, each once, in order. */
size_t trace_summary_data_sources(const struct trace_summary *s,
    const char *const **out);
/* The last TraceStats, or NULL. */
const struct Perfetto__Protos__TraceStats *trace_summary_stats(
    const struct trace_summary *s);

/*
 * Lists losses by cause, from the last TraceStats and ftrace's own packets; as
 * trace_losses_list().  Without TraceStats many losses may be missing.
 */
size_t trace_summary_losses(const struct trace_summary *s,
    struct trace_loss *out, size_t max);

/*
 * Whether the trace tells of something that was asked for and could not be
 * recorded: events of the kernel.
 */
bool trace_summary_not_recorded(const struct trace_summary *s);

/* "overwritten in the ring buffer", for a bit of gaps_by_reason. */
const char *trace_summary_reason(unsigned bit);

#endif /* CLIENT_TRACE_TRACE_SUMMARY_H */
