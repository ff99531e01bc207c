/*
 * session_log: the session of a trace, from the service's own packets: config,
 * uuid, machines, events, triggers, programs of producers.
 *
 * Every list is bounded; entries that do not fit are counted.  Untrusted input.
 * Pure.
 */
#ifndef CLIENT_INSPECT_REPORT_SESSION_LOG_H
#define CLIENT_INSPECT_REPORT_SESSION_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/inspect/report/programs.h"
#include "protos/fields.h"
#include "transport/base/hash_map.h"

struct Perfetto__Protos__TraceConfig;
struct packet_facts;

#define SESSION_LOG_MAX_MACHINES 4096u
#define SESSION_LOG_MAX_SLOW     64u
#define SESSION_LOG_MAX_TRIGGERS 64u
#define SESSION_LOG_MAX_CLONED   64u
/* Longer names are cut. */
#define SESSION_LOG_NAME 96

/* The kinds of TracingServiceEvent. */
enum session_event {
	SESSION_SOURCES_STARTED = TracingServiceEvent_all_data_sources_started,
	SESSION_STARTED = TracingServiceEvent_tracing_started,
	SESSION_FLUSHED = TracingServiceEvent_all_data_sources_flushed,
	SESSION_READ = TracingServiceEvent_read_tracing_buffers_completed,
	SESSION_DISABLED = TracingServiceEvent_tracing_disabled,
	SESSION_SEIZED = TracingServiceEvent_seized_for_bugreport,
	SESSION_SLOW_START = TracingServiceEvent_slow_starting_data_sources,
	SESSION_SLOW_FLUSH = TracingServiceEvent_last_flush_slow_data_sources,
	SESSION_FLUSH_STARTED = TracingServiceEvent_flush_started,
	SESSION_CLONE_STARTED = TracingServiceEvent_clone_started,
	SESSION_BUFFER_CLONED = TracingServiceEvent_buffer_cloned,
	SESSION_EVENTS
};

struct session_event_count {
	uint64_t n;
	uint64_t first_ns, last_ns; /* BOOTTIME of the service */
};

struct session_slow {
	char producer[SESSION_LOG_NAME];
	char data_source[SESSION_LOG_NAME];
	uint64_t starts;  /* starts not acknowledged in time */
	uint64_t flushes; /* flushes not answered in time */
};

struct session_trigger {
	char name[SESSION_LOG_NAME];
	char producer[SESSION_LOG_NAME];
	int32_t uid;
	uint64_t ns;
	bool clone; /* the trigger caused this trace, a snapshot */
};

struct session_machine {
	struct hash_link link;
	uint32_t id; /* 0: the service's own */
	char name[SESSION_LOG_NAME];
	char system[SESSION_LOG_NAME];  /* "Linux 6.1.0 x86_64" */
	char service[SESSION_LOG_NAME]; /* version of the tracing service */
	uint32_t cpus;
};

struct session_log {
	/* The first: concatenated traces have several. */
	struct Perfetto__Protos__TraceConfig *config; /* owned, or NULL */
	uint64_t n_configs;
	bool has_uuid;
	uint64_t uuid_msb, uuid_lsb; /* the first */
	uint64_t n_uuids;            /* UUIDs that differ from the one before */
	struct session_event_count events[SESSION_EVENTS];
	struct session_slow *slow; /* owned, like the lists below */
	size_t n_slow;
	struct session_trigger *triggers;
	size_t n_triggers;
	struct hash_map machines; /* struct session_machine, by id; owned */
	uint32_t cloned[SESSION_LOG_MAX_CLONED]; /* buffers */
	size_t n_cloned;
	struct session_programs programs;
	bool segment_ended; /* the end of a segment is there (Segment.end) */
	uint64_t overflow; /* entries that did not fit, of all lists */
	bool no_memory;    /* entries are missing for lack of memory */
};

/* Zero-initialised is ready to use. */
void session_log_done(struct session_log *l);

/* Takes a packet of any kind; looks only at packets that the service wrote. */
void session_log_take(struct session_log *l, const struct packet_facts *f);

/* The machine of this id, until the log changes; NULL: the log has none. */
const struct session_machine *session_log_machine(const struct session_log *l,
    uint32_t id);

#endif /* CLIENT_INSPECT_REPORT_SESSION_LOG_H */
