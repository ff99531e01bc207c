/*
 * service_packets: encoders of the packets that the service itself writes into
 * a trace (reference behaviour.md, "What the service writes into a trace").
 *
 * Pure: each appends the body of one TracePacket to w, with the trusted fields
 * that producers' packets get; packet_out_put() without a trailer puts it into
 * an output.  Memory failure shows in w->failed.  Which packets a session
 * writes, and when, is decided elsewhere (event_log.h, readback.h).
 */
#ifndef TRANSPORT_PACKET_SERVICE_PACKETS_H
#define TRANSPORT_PACKET_SERVICE_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protos/fields.h"

struct clock_reading;
struct packet_stats;
struct pb_writer;

/* trusted_packet_sequence_id of the service; those of producers begin at 2. */
#define SERVICE_PACKETS_SEQUENCE 1u

/* BuiltinClock: the clock of every timestamp the service writes. */
#define SERVICE_PACKETS_CLOCK_BOOTTIME 6u

/*
 * Arguments of all encoders: uid: of this process.  ts: CLOCK_BOOTTIME,
 * nanoseconds.  primary_clock: BuiltinDataSource.primary_trace_clock, or
 * BOOTTIME.
 */
void service_packets_clock_snapshot(struct pb_writer *w, int32_t uid,
    const struct clock_reading *clocks, size_t n, uint32_t primary_clock);
void service_packets_sync_marker(struct pb_writer *w, int32_t uid);
/* config: the encoded TraceConfig, passed through byte for byte. */
void service_packets_trace_config(struct pb_writer *w, int32_t uid,
    const uint8_t *config, size_t len);
/* Writes the trace_attributes of an encoded TraceConfig, byte for byte. */
void service_packets_trace_attributes(struct pb_writer *w, int32_t uid,
    const uint8_t *config, size_t len);
void service_packets_trace_uuid(struct pb_writer *w, int32_t uid, int64_t msb,
    int64_t lsb);
/*
 * info: an encoded SystemInfo, such as that of InitRelay, passed through byte
 * for byte.  machine: an id; 0: the collector's own.
 */
void service_packets_remote_system_info(struct pb_writer *w, int32_t uid,
    uint32_t machine, const uint8_t *info, size_t len);

/* The kinds of TracingServiceEvent that are a bool. */
enum service_event {
	SERVICE_EVENT_ALL_DATA_SOURCES_STARTED =
	    TracingServiceEvent_all_data_sources_started,
	SERVICE_EVENT_TRACING_STARTED = TracingServiceEvent_tracing_started,
	SERVICE_EVENT_ALL_DATA_SOURCES_FLUSHED =
	    TracingServiceEvent_all_data_sources_flushed,
	SERVICE_EVENT_READ_TRACING_BUFFERS_COMPLETED =
	    TracingServiceEvent_read_tracing_buffers_completed,
	SERVICE_EVENT_TRACING_DISABLED = TracingServiceEvent_tracing_disabled,
	SERVICE_EVENT_SEIZED_FOR_BUGREPORT =
	    TracingServiceEvent_seized_for_bugreport,
	SERVICE_EVENT_FLUSH_STARTED = TracingServiceEvent_flush_started,
	SERVICE_EVENT_CLONE_STARTED = TracingServiceEvent_clone_started,
};
void service_packets_event(struct pb_writer *w, int32_t uid, uint64_t ts,
    enum service_event event);

/* The kinds of TracingServiceEvent that name data sources. */
enum service_slow_event {
	SERVICE_EVENT_SLOW_STARTING_DATA_SOURCES =
	    TracingServiceEvent_slow_starting_data_sources,
	SERVICE_EVENT_LAST_FLUSH_SLOW_DATA_SOURCES =
	    TracingServiceEvent_last_flush_slow_data_sources,
};
/* At most this many are named; the rest is left out. */
#define SERVICE_PACKETS_SLOW_MAX 32u
struct service_slow_source {
	const char *producer;
	const char *data_source;
};
void service_packets_slow_sources(struct pb_writer *w, int32_t uid, uint64_t ts,
    enum service_slow_event event, const struct service_slow_source *sources,
    size_t n);
/* Event that a buffer was cloned; buffer: index in the config. */
void service_packets_buffer_cloned(struct pb_writer *w, int32_t uid,
    uint64_t ts, uint32_t buffer);

void service_packets_trace_stats(struct pb_writer *w, int32_t uid,
    const struct packet_stats *st);

/* An exchange with a remote machine: its clocks and ours at the same time. */
struct service_clock_pair {
	const struct clock_reading *client;
	size_t n_client;
	const struct clock_reading *host;
	size_t n_host;
};
void service_packets_remote_clock_sync(struct pb_writer *w, int32_t uid,
    uint32_t machine, const struct service_clock_pair *pairs, size_t n);

struct service_trigger {
	const char *name;
	const char *producer_name;
	int32_t producer_uid;
	uint64_t ts; /* when it was received */
	uint64_t stop_delay_ms;
};
void service_packets_trigger(struct pb_writer *w, int32_t uid,
    const struct service_trigger *t);
/* The trigger that made a clone; goes before all other events of the clone. */
void service_packets_clone_trigger(struct pb_writer *w, int32_t uid,
    const struct service_trigger *t);

/* A sequence, its producer, and its buffer, an index in the config. */
struct service_sequence {
	uint32_t buffer;
	uint32_t sequence;
	int32_t producer;
};
/* TraceProvenance: an entry a buffer, with its sequences in any order. */
void service_packets_provenance(struct pb_writer *w, int32_t uid, uint64_t ts,
    size_t n_buffers, const struct service_sequence *sequences, size_t n);

/* A producer's program, and what it made of overwritten packets. */
struct service_protovm {
	const uint8_t *program; /* encoded VmProgram */
	size_t program_len;
	const uint8_t *state; /* fields of a TracePacket */
	size_t state_len;
	uint32_t memory_limit_kb;
	const int32_t *producers; /* as in TraceProvenance, which comes before */
	size_t n_producers;
};
/* TracePacket.protovms with one instance. */
void service_packets_protovm(struct pb_writer *w, int32_t uid,
    const struct service_protovm *p);

/* ConcurrentSessionEvent.State */
enum service_session_state {
	SERVICE_SESSION_DISABLED = ConcurrentSessionEvent_STATE_DISABLED,
	SERVICE_SESSION_CONFIGURED = ConcurrentSessionEvent_STATE_CONFIGURED,
	SERVICE_SESSION_STARTED = ConcurrentSessionEvent_STATE_STARTED,
	/* waits for stop acknowledgements */
	SERVICE_SESSION_STOPPING =
	    ConcurrentSessionEvent_STATE_DISABLING_WAITING_STOP_ACKS,
	SERVICE_SESSION_CLONED =
	    ConcurrentSessionEvent_STATE_CLONED_READ_ONLY,
};
struct service_session_event {
	enum service_session_state state;
	const char *name; /* unique_session_name; NULL or "": left out */
	uint64_t id;
	int32_t consumer_uid;
	uint32_t num_data_sources;
};
void service_packets_session_event(struct pb_writer *w, int32_t uid,
    uint64_t ts, const struct service_session_event *e);

/* SegmentCut.Cause */
enum service_cut_cause {
	SERVICE_CUT_TIME = SegmentCut_TIME,
	SERVICE_CUT_SIZE = SegmentCut_SIZE,
	SERVICE_CUT_TRIGGER = SegmentCut_TRIGGER,
	SERVICE_CUT_REQUEST = SegmentCut_REQUEST,
};
#define SERVICE_CUT_CAUSES (SERVICE_CUT_REQUEST + 1)
/* A producer that did not answer a cut in time. */
struct service_unanswered {
	const char *producer;
	int32_t producer_id;
	uint32_t machine; /* 0: the collector's own */
};
struct service_cut {
	uint32_t number; /* of the segment that begins */
	enum service_cut_cause cause;
	uint64_t realtime_ns; /* at its begin */
	const char *trigger;  /* SERVICE_CUT_TRIGGER; else NULL */
	const char *trigger_producer;
	uint32_t trigger_machine;
	const struct service_unanswered *unanswered; /* at its end */
	size_t n_unanswered;
};
/* The marks of a cut; protos/segment.proto says what lies between them. */
void service_packets_cut_begin(struct pb_writer *w, int32_t uid, uint64_t ts,
    const struct service_cut *c);
void service_packets_cut_end(struct pb_writer *w, int32_t uid, uint64_t ts,
    const struct service_cut *c);
/* Appends what Segment.begun_by says of a cut. */
void service_packets_begun_by(struct pb_writer *w,
    const struct service_cut *c);
/* Flags the packet in w as one that the recording has before, too. */
void service_packets_flag_repeated(struct pb_writer *w);

#endif /* TRANSPORT_PACKET_SERVICE_PACKETS_H */
