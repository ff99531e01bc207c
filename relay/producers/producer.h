/*
 * producer: one producer of this machine (struct local), for the files of this
 * room alone.
 *
 *	producer_port    calls of the producer; initialize: the first of them
 *	commands         commands of the collector, passed on to the producer
 *	announce         announces the producer upward
 *	settle           flushes that the relay asks for
 *	flush_and_stop   flushes, stops and the end, each of which scrapes first
 *	commit           copies chunks from memory and requests upward
 *	shm_setup        shared memory; shm_keeping: hands it to the keeper
 *	data_sources     data sources that the producer has registered
 *	move             what the next collector has to know of producers
 *	id_map           our ids and the collector's of instances and buffers
 *	control_rate     sends control messages upward, and limits their rate
 *
 * Each file calls only files below it.
 *
 * A producer whose connection has ended lives on until the chunks in its shared
 * memory have found room upward.  Everything here belongs to the loop's thread.
 */
#ifndef RELAY_PRODUCERS_PRODUCER_H
#define RELAY_PRODUCERS_PRODUCER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "relay/producers/upstream.h"
#include "transport/base/compiler.h"
#include "transport/base/hash_map.h"
#include "transport/base/tailq.h"
#include "transport/link/link_wire.h"
#include "transport/producer_port/producer_memory.h"
#include "transport/producer_port/producer_server.h"
#include "transport/producer_port/source_descriptor.h"
#include "transport/rpc/rpc_host.h"
#include "transport/shm/shm.h"

struct loop_timer;
struct pb_writer;
struct producers;

/* Instances of a producer; beyond that one which is stopping is forgotten. */
#define LOCAL_INSTANCES_MAX 4096u
/* Buffers of a producer; beyond that the oldest unused one is forgotten. */
#define LOCAL_BUFFERS_MAX 256u
/* Flushes under way; beyond that the oldest is forgotten. */
#define LOCAL_FLUSHES_MAX 64u
/* Time after which memory is scraped without the flush's acknowledgement. */
#define LOCAL_FLUSH_PATIENCE_MS 1000u
/*
 * Token bucket of a producer's patches, which are never dropped, in bytes: its
 * size.  Every chunk adds half of its bytes.
 */
#define LOCAL_PATCH_CREDIT (64 * 1024)

struct local_source {
	TAILQ_ENTRY(local_source) link;
	struct source_descriptor descriptor;
};

/* local_instance_advance(); a state may be left out, none comes again. */
enum local_instance_state {
	LOCAL_INSTANCE_SET_UP,   /* the producer has acknowledged nothing */
	LOCAL_INSTANCE_STARTED,  /* LINK_UP_STARTED was put */
	LOCAL_INSTANCE_STOPPING, /* StopDataSource was sent to the producer */
	LOCAL_INSTANCE_STOPPED,  /* LINK_UP_STOPPED waits for a scrape */
};

/* A data source switched on by the collector. */
struct local_instance {
	TAILQ_ENTRY(local_instance) link;
	uint64_t id;     /* ours, which the producer knows */
	uint64_t remote; /* the collector's */
	uint64_t session; /* the collector's id */
	uint16_t buffer; /* local_buffer.id; 0: none */
	uint32_t source; /* LinkOrigin.source, if its buffer has_origin */
	enum local_instance_state state;
	bool runs;       /* StartDataSource came */
	bool notifies_stop; /* as its data source says, as no_flush */
	bool no_flush;
	char name[];   /* of its data source */
};

/* A buffer of the collector that instances of the producer write to. */
struct local_buffer {
	uint16_t id;     /* ours, which the producer knows */
	/* The collector's, and producers.buffer_tag above it. */
	uint32_t remote;
	uint64_t session; /* the collector's id */
	uint32_t instances; /* that write to it; 0: unused */
	bool has_origin;  /* the collector told it, as the next two */
	uint8_t config[LINK_ORIGIN_BYTES]; /* LinkOrigin.session */
	uint32_t index;                    /* LinkOrigin.buffer */
};

/* The LinkOrigin that came last, for the data source that comes next. */
struct local_origin {
	uint64_t instance; /* 0: none came */
	uint8_t config[LINK_ORIGIN_BYTES];
	uint32_t source;
	uint32_t buffer;
};

struct local_flush {
	TAILQ_ENTRY(local_flush) link;
	uint64_t id;     /* ours, which the producer knows */
	uint64_t remote; /* the collector's; 0: producers_settle() asked */
	uint64_t session; /* of one of its instances; 0: none is known */
	uint64_t since_ms; /* loop_now_ms() when it was asked for */
	enum {
		FLUSH_ASKED,   /* flush_timer, until LOCAL_FLUSH_PATIENCE_MS */
		FLUSH_SCRAPED, /* without an acknowledgement by then */
		FLUSH_ACKED,   /* passed on once the memory is scraped */
	} state;
};

enum local_state {
	/* InitializeConnection is missing or waits: talk_timer; in no list. */
	LOCAL_BOUND,
	/* Not announced, or the collector's side forgot it; talk_timer. */
	LOCAL_SILENT,
	/* LINK_UP_OPEN was put; talk_timer, flush_timer. */
	LOCAL_ANNOUNCED,
	/* The collector refused it: only LINK_UP_CLOSE is still put. */
	LOCAL_REFUSED,
	/*
	 * Was announced, and its connection has ended.  Freed when the chunks
	 * in its memory have found room upward; flush_timer.
	 */
	LOCAL_ENDED,
};

TAILQ_HEAD(local_list, local);

/* Debt of a token bucket for control messages (control_rate.c). */
struct talk {
	int64_t bytes;     /* used of the bucket; falls with time */
	uint64_t since_ms; /* loop_now_ms() when bytes was computed */
};
struct talker;

struct local {
	TAILQ_ENTRY(local) link;
	struct producers *owner; /* back-pointer */
	struct producer_server server; /* its conn: NULL when that has ended */
	uint32_t channel;      /* 0: BOUND */
	enum local_state state;
	char *name;            /* owned, as sdk_version */
	char *sdk_version;
	int32_t uid;
	int32_t pid;
	bool scrape;        /* its memory may be scraped */

	bool tracing_set_up; /* SetupTracing was sent */
	enum producer_memory memory;
	uint32_t shm_size_hint;  /* bytes; 0: none, as the next */
	uint32_t page_size_hint;
	struct shm *shm;    /* owned; NULL: EMULATED, or OURS before set-up */

	TAILQ_HEAD(local_source_list, local_source) sources;
	size_t n_sources;
	size_t descriptor_bytes; /* of all sources, encoded */

	TAILQ_HEAD(, local_instance) instances;
	size_t n_instances;
	struct local_buffer *buffers; /* owned; oldest first */
	size_t n_buffers;
	size_t buffers_cap;
	uint16_t last_buffer; /* id that was given last */
	bool buffers_wrapped; /* every id has been used */
	struct local_origin origin;
	/* Writer id -> local_buffer.id, in pages made on demand. */
	uint16_t **writer_pages;
	size_t n_writers;
	/* Chunks that went upward before they were complete: move.c's. */
	struct hash_map parts;
	size_t parts_sweep; /* number at which move.c looks for old ones */

	size_t moves_done; /* chunks taken of the CommitData that waits */
	TAILQ_HEAD(, local_flush) flushes;
	size_t n_flushes;
	struct loop_timer *flush_timer; /* NULL: no flush yet */
	bool settling; /* local_settle() found no room: to be tried again */

	struct talk talk;
	struct talker *talker; /* its user's; NULL: not initialized */
	struct loop_timer *talk_timer; /* NULL: it never had to wait */
	int64_t patch_credit; /* bytes in the bucket of LOCAL_PATCH_CREDIT */

	/* As in producers_view. */
	uint64_t chunks;
	uint64_t bytes;
	uint64_t late;
	uint64_t discarded;
};

/* ---- producer_port.c, initialize.c ---- */

void local_port_init(struct rpc_service *out, struct producers *ps);
/* producer_verbs.initialize */
enum rpc_verdict local_initialize(void *owner, struct rpc_call call,
    const struct producer_init *q);
/* Logs a refusal, within a rate limit for all producers together. */
static inline void
local_log(const struct local *l, const char *what, const char *why)
{
	producer_server_log(&l->server, what, why);
}

/* ---- shm_setup.c ---- */

/* Makes shared memory, sends SetupTracing, once.  -1: the connection ends. */
int local_set_up_tracing(struct local *l, uint32_t page_kb) MUST_CHECK;
/*
 * Adopts the memory that came with the call, as MEMORY_PROVIDED; leaves
 * the producer as it was, and logs why, where it is not fit or too large.
 */
void local_adopt(struct local *l, struct rpc_call call,
    const struct producer_init *q);

/* ---- data_sources.c ---- */

/* producer_verbs: register_source, update_source, unregister_source. */
const char *local_register(void *owner, const uint8_t *descriptor,
    size_t len) MUST_CHECK;
void local_update(void *owner, const uint8_t *descriptor, size_t len);
void local_unregister(void *owner, const char *name, size_t len);
struct local_source *local_find_source(struct local *l, const char *name,
    size_t len);
void local_free_sources(struct local *l);

/* ---- id_map.c ---- */

struct local_instance *local_instance_new(struct local *l, uint64_t remote,
    const struct local_source *ds, uint64_t session, uint16_t buffer)
    MUST_CHECK;
void local_instance_free(struct local *l, struct local_instance *i);
/* False: it was in this state, or in a later one, already. */
bool local_instance_advance(struct local_instance *i,
    enum local_instance_state to) MUST_CHECK;
struct local_instance *local_find_instance(struct local *l, uint64_t id);
struct local_instance *local_find_remote(struct local *l, uint64_t remote);
/*
 * Finds or makes our id for a buffer of the collector's in this session.  0:
 * too many, or no memory.
 */
uint16_t local_buffer_for(struct local *l, uint64_t session, uint32_t remote)
    MUST_CHECK;
/*
 * By our id.  The pointer lives until a buffer is made or forgotten.  NULL: no
 * buffer has this id now.
 */
struct local_buffer *local_find_buffer(const struct local *l, uint32_t id);
/* Whether a buffer has, or once had, this id of ours. */
bool local_buffer_was(const struct local *l, uint32_t id);
/*
 * Binds a writer to a buffer, by our id; 0 unbinds it.  False: the writer is
 * out of range, it is bound so already, or no memory.
 */
bool local_bind_writer(struct local *l, uint32_t writer, uint16_t buffer)
    MUST_CHECK;
/* Calls fn with each writer that is bound to a buffer, by our id. */
void local_each_writer(const struct local *l, void (*fn)(void *arg,
    uint32_t writer, uint16_t buffer), void *arg);
/* Our id of the buffer that the writer is bound to; 0: to none. */
uint16_t local_writer_buffer(const struct local *l, uint32_t writer);
/* Forgets all instances, buffers and bindings. */
void local_forget_ids(struct local *l);
void local_free_ids(struct local *l);

/* ---- move.c ---- */

/*
 * Notes that a chunk went upward that is still being written, with the first
 * bytes of its payload whole; it comes again.
 */
void local_note_part(struct local *l, const struct shm_chunk *c, size_t bytes);
/* Notes that the complete chunk has gone upward behind it. */
void local_part_done(struct local *l, const struct shm_chunk *c);
void local_forget_parts(struct local *l);

/*
 * Keeps, of a producer that is being freed, what producers_tell_moves() tells of
 * it for as long as its channel has blocks in the outbox.
 */
void local_keep_for_move(const struct local *l);

/* ---- commands.c ---- */

/* Passes a GetAsyncCommandResponse of the collector on to the producer. */
void local_command(struct local *l, const uint8_t *command, size_t len);
/* Notes a LinkOrigin, for the command behind it. */
void local_note_origin(struct local *l, const uint8_t *origin, size_t len);
/* Sends StopDataSource; instance: our id. */
void local_send_stop(struct local *l, uint64_t instance);

/* ---- commit.c ---- */

enum local_commit {
	LOCAL_COMMIT_OK,
	LOCAL_COMMIT_BAD,   /* does not parse; nothing was applied */
	LOCAL_COMMIT_AGAIN, /* the same again, after producers_resume() */
};
/*
 * Puts the chunks and patches of a CommitDataRequest.  OK: *flush_id is the
 * flush that it acknowledges, by our id; 0: none.
 */
enum local_commit local_commit(struct local *l, const uint8_t *request,
    size_t len, uint64_t *flush_id) MUST_CHECK;
enum local_rest {
	LOCAL_REST_COMES,   /* commits bring the chunks that are left now */
	LOCAL_REST_UNKNOWN, /* flush not answered: perhaps no commits come */
	LOCAL_REST_NONE,    /* the last scrape: a drop is counted */
};
/*
 * Puts the chunks in the producer's memory for buffers of this session (0: of
 * all).  False: upward has no room for all of them now; call it again.
 */
bool local_scrape(struct local *l, uint64_t session, enum local_rest rest)
    MUST_CHECK;
/* Puts a chunk of a relay that was killed: see producers_recover(). */
enum upstream_room local_put_orphan(struct producers *ps, uint32_t channel,
    const struct shm_chunk *c, bool complete) MUST_CHECK;

/* ---- flush_and_stop.c ---- */

void local_set_state(struct local *l, enum local_state state);
/* Whether messages may be put on the producer's channel. */
static inline bool
local_is_known(const struct local *l)
{
	return l->state == LOCAL_ANNOUNCED || l->state == LOCAL_ENDED;
}

/*
 * Notes a flush that was sent to the producer; acked: it had nothing to flush.
 */
void local_flush_begin(struct local *l, uint64_t id, uint64_t remote,
    uint64_t session, bool acked);
/* Notes that the producer acknowledged all flushes up to this id of ours. */
void local_flush_acked(struct local *l, uint64_t id);
/* Frees all flushes, without a word upward, and the timer. */
void local_forget_flushes(struct local *l);
/*
 * Scrapes, then puts the acknowledgements of flushes and LINK_UP_STOPPED, and
 * frees a producer that is LOCAL_ENDED.  Without room for the chunks all of it
 * waits for producers_resume().
 */
void local_settle(struct local *l);
/*
 * Tells who asked for it (producers_settle()) that the producer has flushed, or
 * has ended, and clears its incremental state.
 */
void local_settled(struct local *l);
/* Puts LINK_UP_CLOSE unless the producer is LOCAL_SILENT, and frees it. */
void local_free(struct local *l);

/* ---- control_rate.c ---- */

/*
 * Puts a control message on the producer's channel, and charges it to the rate
 * limits; does nothing unless local_is_known().
 */
void local_put(struct local *l, enum link_up kind, const void *data,
    size_t len);
/* As local_put(), for a kind that is a varint. */
void local_put_value(struct local *l, enum link_up kind, uint64_t value);
/* producer_verbs.rate_limit */
enum rpc_verdict local_rate_limit(void *owner);
/*
 * Whether the rate limit of this user's producers allows one more to be
 * announced.  False: the connection is resumed when it does.
 */
bool local_may_begin(struct local *l) MUST_CHECK;
/* Counts it with the other producers of its user; -1: no memory. */
int local_join_talker(struct local *l) MUST_CHECK;
/* Undoes that, and charges the producer's LINK_UP_CLOSE to the user. */
void local_leave_talker(struct local *l);
/* Resumes, on a later turn, a producer that waits for the rate limit. */
void local_may_talk_again(struct local *l);

/* ---- announce.c ---- */

/* Appends the members of the producer's LinkProducer. */
void local_put_producer(struct pb_writer *w, const struct local *l);
/* Puts LINK_UP_OPEN and the producer's data sources. */
void local_announce(struct local *l);
/*
 * Announces a producer while the collector is away, as its trigger must not
 * wait; logged instead when too many were (announce.c).
 */
void local_announce_for_trigger(struct local *l);

#endif /* RELAY_PRODUCERS_PRODUCER_H */
