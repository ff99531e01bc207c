/*
 * model: the object graph of the collector, and who owns whom.
 *
 *   service -> machine*            (machine.h; counted references)
 *   service -> links -> link*      (link.h: of relays; ends its producers)
 *   service -> producer*           (made and ended by a port or link)
 *     producer -> data_source*     (registered by the producer)
 *     producer -> ds_instance*     (linked; owned by the session)
 *     producer -> shm
 *   service -> session*            (made by a consumer's EnableTracing)
 *     session -> config, session_buffer* -> trace_buffer
 *     session -> ds_instance*      (a data source of a producer, switched on)
 *     session -> flush*            (waiting for producers)
 *     session -> file_writer       (write_into_file)
 *     session -> sequence_map
 *   consumer (port) <-> session    (back-pointers, either side may go first)
 *
 * Everything here belongs to the loop's thread.  The rooms session, ingest,
 * output, onlookers and link use the members of these structs; ports call the
 * functions of those rooms' headers.
 */
#ifndef SERVICE_MODEL_MODEL_H
#define SERVICE_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "service/access/per_peer_count.h"
#include "service/access/principal.h"
#include "service/limits/fair_queue.h"
#include "service/limits/overload.h"
#include "service/limits/refusals.h"
#include "service/machine/machine.h"
#include "service/model/producer_walk.h"
#include "service/model/session_state.h"
#include "service/model/source_order.h"
#include "service/ring_memory/ring_ahead.h"
#include "transport/base/heap_rest.h"
#include "transport/base/log.h"
#include "transport/base/tailq.h"
#include "transport/loop/loop.h"
#include "transport/packet/packet_stats.h"
#include "transport/packet/service_packets.h"
#include "transport/producer_port/producer_memory.h"
#include "transport/producer_port/source_descriptor.h"

struct arrivals;
struct budget;
struct buffer_vms;
struct clone_op;
struct config;
struct config_data_source;
struct consumer;
struct consumer_ops;
struct cut;
struct delayed_clone;
struct event_log;
struct file_writer;
struct flush;
struct former_ids;
struct guard_book;
struct links;
struct name_filter;
struct pb_writer;
struct producer;
struct producer_losses;
struct producer_ops;
struct producer_quota;
struct readback;
struct recordings;
struct sequence_map;
struct service;
struct session;
struct session_command;
struct session_filter;
struct session_losses;
struct session_observer;
struct settings;
struct shm;
struct shutdown;
struct thread_priority;
struct trace_buffer;
struct trigger_state;
struct trust;

/* A data source that a producer registered; owned by the producer. */
struct data_source {
	TAILQ_ENTRY(data_source) link;
	TAILQ_ENTRY(data_source) by_name; /* source_order.c's, as of_name */
	struct source_name *of_name;
	struct producer *producer;
	struct source_descriptor descriptor;
};

enum instance_state {
	INSTANCE_CONFIGURED, /* SetupDataSource sent */
	INSTANCE_STARTING,   /* StartDataSource sent, acknowledgement awaited */
	INSTANCE_STARTED,
	INSTANCE_STOPPING,   /* StopDataSource sent, acknowledgement awaited */
	INSTANCE_STOPPED,
};
#define INSTANCE_STATES (INSTANCE_STOPPED + 1)

/* A data source that a session has switched on; owned by the session. */
struct ds_instance {
	TAILQ_ENTRY(ds_instance) of_session;
	TAILQ_ENTRY(ds_instance) of_producer;
	struct session *session;
	struct producer *producer;
	uint64_t id;
	enum instance_state state;
	/*
	 * The data source of the config that asked for it, and the registered
	 * one that it was made of.  source is only compared: it may be freed.
	 */
	const struct config_data_source *want;
	const struct data_source *source;
	const char *name;    /* of the data source; borrowed of want */
	bool will_notify_on_start;
	bool will_notify_on_stop;
	bool handles_incremental_state_clear;
	bool no_flush;
	/* How far a former collector had it: set up at least, or not at all. */
	enum {
		BEFORE_NOTHING,
		BEFORE_SET_UP,
		BEFORE_STARTED,
		BEFORE_ACKED, /* its start was acknowledged, too */
	} before;
};

TAILQ_HEAD(data_source_list, data_source);
TAILQ_HEAD(instance_list, ds_instance);

/*
 * Calls to a producer, implemented by its port or link.  All are asynchronous,
 * and none may fail; arguments are borrowed for the call.
 */
struct producer_ops {
	/* shm NULL under emulation. */
	void (*setup_tracing)(void *port, struct shm *shm, size_t page_size);
	void (*setup_data_source)(void *port, uint64_t id,
	    const uint8_t *config, size_t len);
	void (*start_data_source)(void *port, uint64_t id,
	    const uint8_t *config, size_t len);
	void (*stop_data_source)(void *port, uint64_t id);
	void (*flush)(void *port, uint64_t request_id, const uint64_t *ids,
	    size_t n, uint64_t flags);
	void (*clear_incremental_state)(void *port, const uint64_t *ids,
	    size_t n);
	/* A commit that had to wait (COMMIT_AGAIN) may be tried again. */
	void (*resume)(void *port);
};

enum producer_state {
	PRODUCER_CONNECTED,
	/* Its link is cut, in its grace period: flushes do not fail for it. */
	PRODUCER_CUT,
	/*
	 * Its connection ended: ops do nothing.  Freed when files have caught
	 * up enough to take the rest of its shared memory (producers_reap()).
	 */
	PRODUCER_GONE,
};

struct producer {
	TAILQ_ENTRY(producer) link;
	struct fair_place at_gate; /* in a write_gate's queue; resumes it */
	const struct session_buffer *waits_for; /* while it waits there */
	size_t moves_done;  /* of the commit that waits */
	struct service *service;
	const struct producer_ops *ops;
	void *port;
	struct machine *machine; /* referred to */
	uint64_t peer;           /* key in service->data_sources */
	uint32_t id;
	int32_t uid;
	int32_t pid;
	char *name;
	char *sdk_version;
	char *machine_name; /* its own for the machine, or NULL */
	bool own;           /* of the daemon's own user, as the kernel says */
	bool scrape;        /* its memory may be scraped */
	bool linked;        /* by a link: commits may leave out the buffer */
	struct former_ids *former; /* former_ids.h; NULL: its link began here */
	enum producer_state state; /* producer_set_state() */
	struct producer_losses *losses; /* losses.c's; NULL: none */
	struct producer_quota *quota;   /* quota.h; NULL: none */
	struct arrival_watch *arrivals; /* arrivals.h; NULL: on our clocks */
	/*
	 * loop_now_ms() when CUT was over last, or when a flush found its link
	 * silent; 0: never.
	 */
	uint64_t back_ms;
	/*
	 * last_flush_id up to which its relay has acknowledged all that it was
	 * told, the link's; NULL: no link.
	 */
	const uint64_t *heard;
	/* The last flush that it was asked for. */
	uint64_t asked_flush;
	uint64_t asked_ms;  /* since when it owes an answer; 0: it owes none */
	bool tracing_set_up; /* SetupTracing was sent */
	enum producer_memory memory;
	uint32_t shm_size_hint;
	uint32_t page_size_hint;
	struct shm *shm;    /* NULL: EMULATED, or OURS before it is set up */
	bool lacks_patches; /* has committed chunks that await patches */
	struct data_source_list data_sources;
	size_t n_data_sources;
	struct instance_list instances;
	size_t n_instances;
	/* Writer id -> global buffer id, in pages made on demand. */
	uint16_t **writer_pages;
	size_t n_writer_pages; /* entries of writer_pages */
	size_t n_writers;
	/* Global ids of the buffers it may write to. */
	uint16_t *allowed;
	size_t n_allowed;
	size_t allowed_cap;
	/* Counters for people: its data that buffers took, and its losses. */
	struct {
		uint64_t bytes;
		uint64_t packets; /* estimated */
		uint64_t lost;    /* chunks refused, and packets it dropped */
	} wrote;
	/*
	 * Refusals of the commit that is being applied, which sessions count at
	 * its end.
	 */
	struct {
		uint64_t chunks;
		uint64_t patches;
	} refused;
};

/*
 * Back-pressure: holds back producers that would overwrite data that a reader
 * of the buffer, such as a file, has not got yet.  must_wait() and wrote() are
 * called for every chunk.
 */
struct write_gate {
	/* Whether a chunk of len payload bytes has to wait; changes nothing. */
	bool (*must_wait)(const struct session_buffer *b, size_t len);
	/*
	 * Queues p, which has to wait: room is made on a later turn, and p is
	 * resumed then (producer_ops).  NULL: a scrape, which its session tries
	 * again.
	 */
	void (*wait)(struct session_buffer *b, struct producer *p, size_t len);
	/* A chunk was written. */
	void (*wrote)(struct session_buffer *b);
};

struct session_buffer {
	uint16_t id;        /* global, 1..65535 */
	struct session *session;
	struct trace_buffer *tb;
	char *name;         /* NULL: none */
	struct ring_ahead ahead; /* of tb's ring */
	uint64_t size;
	bool ring;          /* else DISCARD */
	bool transfer_on_clone;
	bool clear_before_clone;
	bool closing;       /* the session takes no more than there is now */
	struct buffer_vms *vms; /* buffer_vms.h; NULL: no program */
	uint64_t vm_bytes;  /* that its programs' states may take, as size */
	const struct write_gate *gate; /* NULL: no producer has to wait */
	void *gate_arg;                /* the gate's own */
};

/* A folder that sessions create files in; path is borrowed. */
struct trace_folder {
	const char *path; /* NULL: none */
	int fd;           /* borrowed; -1: none */
};

TAILQ_HEAD(flush_list, flush);
TAILQ_HEAD(session_command_list, session_command);

struct session {
	TAILQ_ENTRY(session) link;
	struct service *service;
	const struct consumer_ops *ops; /* NULL: detached */
	void *port;
	uint64_t id;
	struct principal owner;
	int32_t uid;              /* for the trace: the owner's, or unknown */
	enum session_state state;
	struct config *config;
	char *detach_key;         /* NULL: not detached */
	const char *end_error;    /* why it failed; NULL: it did not */
	char *end_error_owned;    /* the same, unless that is a constant */
	char **warnings;          /* session_warnings.h */
	size_t n_warnings;
	struct session_buffer *buffers;
	size_t n_buffers;
	struct instance_list instances;
	size_t n_instances;
	size_t n_in_state[INSTANCE_STATES]; /* of the instances */
	struct flush_list flushes;
	struct session_command_list commands; /* session_command.c's */
	struct sequence_map *sequences;
	struct session_losses *losses; /* of relays; NULL: none */
	struct arrivals *arrivals; /* of producers elsewhere; NULL: none */
	struct cut *cut; /* cut.h; NULL: a clone */
	struct event_log *events; /* the service's own packets for the trace */
	struct file_writer *file; /* NULL: none, or closed by now */
	struct readback *readback;
	struct session_filter *filter; /* trace_filter; NULL: none */
	struct loop_timer *duration_timer;
	struct loop_timer *flush_timer;
	struct loop_timer *snapshot_timer;
	struct loop_timer *clear_timer;
	struct loop_timer *start_timer;  /* slow starters */
	struct loop_timer *stop_timer;   /* stop acknowledgements */
	struct loop_timer *trigger_timer;
	struct loop_timer *trigger_stop_timer;
	size_t n_triggers_hit;
	/*
	 * Producers that may pull each trigger of the config; NULL: no
	 * triggers.
	 */
	struct name_filter **trigger_producers;
	struct delayed_clone *delayed_clones;
	size_t n_delayed_clones;
	struct clone_op *clone_ops; /* clones of this session, not copied yet */
	struct clone_op *cloning;   /* this session is its clone, not ready */
	enum {
		BOOST_NONE,
		BOOST_WANTED,     /* priority_boost */
		BOOST_REFUSED,    /* by the system: it was warned of */
	} boost;
	/*
	 * Sources may go on starting while the session ends, so that this is
	 * no state of it.
	 */
	bool all_started_said;
	/* Each may be set in any state, and several together. */
	bool shutting_down;       /* the daemon ends: short time-outs */
	bool discarding;          /* its data is not wanted: ends soon */
	bool freeing;             /* its consumer is gone: freed when it ends */
	/*
	 * Instances are changing one after the other, in any state: the session
	 * does not end inside, as that frees them.
	 */
	bool holds_end;
	bool stopped_on_command;  /* by another than its consumer */
	bool standing;            /* of a recording: trigger_timeout_ms is none */
	bool wrote_file;          /* its file is closed */
	uint64_t file_bytes;      /* size of the file when it was closed */
	char *file_path;          /* for people; NULL: no file */
	/* SegmentCut that its first segment began by; NULL: none */
	uint8_t *begun_by;
	size_t begun_by_len;
	struct trace_folder folder; /* that output_path is below */
	uint64_t cloned_from;     /* id; 0: no clone */
	/* Set when the instances are freed; use session_crowd(). */
	struct session_crowd {
		uint32_t producers;
		uint32_t data_sources;
		bool host;        /* a producer of the host was among them */
	} crowd;
	int64_t created_realtime_ns;
	int64_t start_realtime_ns;
	uint64_t start_boottime_ns;
	int64_t end_realtime_ns;  /* when all instances had stopped */
	uint64_t uuid_msb;
	uint64_t uuid_lsb;
	uint64_t flushes_requested;
	uint64_t flushes_succeeded;
	uint64_t flushes_failed;
	uint64_t invalid_packets;
	/*
	 * Chunks and patches that its producers committed and that no buffer
	 * took: for a buffer that is not theirs, or not to be read at all.
	 */
	struct {
		uint64_t chunks;
		uint64_t patches;
		uint64_t last; /* service_counters.refusals, to count once */
	} refused;
	uint64_t packets_stored; /* in all buffers, estimated */
	enum packet_final_flush final_flush;
	struct loop_call discard_call;
	/* All producers are being set up, started or stopped: one of these. */
	struct producer_walk walk;
	struct producer_walk change_walk; /* set up after ChangeTraceConfig */
};

TAILQ_HEAD(session_list, session);
TAILQ_HEAD(producer_list, producer);

/* Counts since the start of the service: QueryMetrics, statistics, tests. */
struct service_counters {
	uint64_t producers_seen;
	uint64_t data_sources_seen;
	uint64_t refusals; /* commits with refused parts: session.refused */
	uint64_t unparsable_commits;
	/* Chunks outside of their producer's memory, or not complete there. */
	uint64_t bad_chunk_index;
	uint64_t wrong_buffer;
	/*
	 * Chunks for a buffer that is gone: their writer outlived its session.
	 */
	uint64_t chunks_late;
	uint64_t instances_refused;
	uint64_t sequences_refused;
	/* Trace data that buffers took, and chunks that were too much for one. */
	uint64_t chunks_written;
	uint64_t bytes_received;
	uint64_t chunks_discarded;
	uint64_t packets_lost_by_producers; /* as they said themselves */
	struct machine_loss lost[LINK_LOSS_CAUSES]; /* of all machines */
	uint64_t file_bytes; /* of files that were closed */
	uint64_t segments[SERVICE_CUT_CAUSES]; /* begun, by the cut's cause */
	uint64_t flight_segments; /* written by flight recorders */
};

/*
 * The highest producer id to count up to.  Traces have 31 bits for it, and ids
 * in use, which are skipped, may lie above it; 0 is none.
 */
#define SERVICE_PRODUCER_IDS                                                   \
	((uint32_t)INT32_MAX - 2u * SETTINGS_PRODUCERS_MOST)
/* Global buffer ids are 1..65535; 0 is none. */
#define TRANSPORT_BUFFER_IDS 65536u

struct service {
	struct loop *loop;
	const struct session_observer *const *observers; /* session_events.h */
	const struct settings *settings; /* borrowed */
	const struct trust *trust; /* borrowed, for ports; NULL: no rules */
	int trace_dirfd;                 /* -1: output_path is refused */
	struct machine host;
	struct machine_table *machines;  /* remote ones */
	struct links *links;             /* of relays */
	/*
	 * Budget of all connections; memory of links counts there, too.
	 * Borrowed; NULL: no limit.
	 */
	struct budget *connection_memory;
	struct producer_list producers;
	size_t n_producers;
	size_t n_gone;                   /* producers without a connection */
	struct session_list sessions;
	size_t n_sessions;
	LIST_HEAD(, query) queries;      /* that are being answered */
	LIST_HEAD(, producer_walk) walks; /* that are under way */
	struct per_peer_count consumers;     /* connected ones */
	struct per_peer_count data_sources;  /* registered ones */
	size_t n_data_sources;
	struct source_order sources;
	struct session_buffer **buffers; /* TRANSPORT_BUFFER_IDS, by global id */
	uint16_t last_buffer_id;
	uint16_t highest_buffer_id;      /* ever handed out */
	size_t n_buffers;
	uint64_t total_buffer_bytes;
	size_t n_lossless; /* sessions whose gates hold producers back */
	uint32_t last_producer_id;
	uint64_t last_session_id;
	uint64_t last_instance_id;
	uint64_t last_flush_id;
	struct service_counters counters;
	struct trigger_state *triggers;
	struct recordings *recordings;   /* the daemon's; NULL: none */
	struct guard_book *guard_book;   /* config_guard.h */
	struct thread_priority *priority;
	struct populator *populator;     /* for rings */
	bool lockdown;                   /* lockdown.h */
	struct overload overload;        /* overload.h; zero: none */
	struct refusals refusals;        /* refusals.h */
	/*
	 * Appends fields of QueryMetricsReply about what the service does not
	 * know: connections, certificates, folders.  NULL: there are none.
	 */
	void (*report_front)(void *arg, struct pb_writer *w);
	void *report_front_arg;
	struct heap_rest heap; /* told of connections and sessions that end */
	char clocks[96];         /* this_machine_clocks() */
	uint8_t *system_info; /* of the host, encoded */
	size_t system_info_len;
	void (*idle)(void *arg); /* told when the last session goes; or NULL */
	void *idle_arg;
	struct loop_call idle_call;
	struct shutdown *shutdown; /* NULL until service_shutdown() */
	/*
	 * Rate limits of log lines that peers can cause at will, for
	 * log_limited().
	 */
	struct log_limit session_log; /* sessions come, go, wait in vain */
	struct log_limit file_log;    /* trace files that failed */
	struct log_limit refused_log; /* configs refused */
	struct log_limit discard_log; /* chunks and patches refused */
	struct log_limit memory_log;  /* none left for something small */
};

#endif /* SERVICE_MODEL_MODEL_H */
