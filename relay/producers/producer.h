/*
 * producer: one producer of this machine, as relay/producers/producers.c and
 * the files of this room share it.
 *
 *	producer_port    calls of the producer; initialize: the first of them
 *	commands         what the collector asks of it
 *	announce         saying upward that it is there
 *	flush_and_stop   flushes, stops and the end, each of which scrapes first
 *	commit           from its memory and its requests upward
 *	shm_setup        shared memory; shm_keeping: what outlives the relay
 *	data_sources     its data sources
 *	id_map           our ids and the collector's: instances, buffers, writers
 *	control_rate     what is said upward, and how much of it
 *
 * Each calls those below it only.
 *
 * A producer whose connection has ended lives on until what stands in its
 * memory has found room upward.
 */
#ifndef RELAY_PRODUCERS_PRODUCER_H
#define RELAY_PRODUCERS_PRODUCER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "relay/producers/upstream.h"
#include "transport/base/compiler.h"
#include "transport/base/log.h"
#include "transport/base/tailq.h"
#include "transport/link/link_wire.h"
#include "transport/producer_port/producer_server.h"
#include "transport/producer_port/source_descriptor.h"
#include "transport/rpc/rpc_host.h"
#include "transport/shm/shm.h"

struct loop;
struct loop_timer;
struct pb_writer;
struct producers;

/* Live instances of a producer; above it the longest stopping is forgotten. */
#define LOCAL_INSTANCES_MAX 4096u
/* Buffers that a producer may write to; the oldest unused one is forgotten. */
#define LOCAL_BUFFERS_MAX 256u
/* Flushes under way; the oldest is forgotten. */
#define LOCAL_FLUSHES_MAX 64u
/* After this a producer's memory is scraped without its acknowledgement. */
#define LOCAL_FLUSH_PATIENCE_MS 1000u
/*
 * Patches cannot be dropped either: a producer may send this many bytes of them
 * at once, and half of what it has sent in chunks.
 */
#define LOCAL_PATCH_CREDIT (64 * 1024)

struct local_source {
	TAILQ_ENTRY(local_source) link;
	struct source_descriptor descriptor;
};

/* A data source switched on by the collector. */
struct local_instance {
	TAILQ_ENTRY(local_instance) link;
	uint64_t id;     /* the producer's */
	uint64_t remote; /* the collector's */
	uint64_t session;
	uint16_t buffer; /* the producer's; 0: none */
	bool notifies_stop;
	bool no_flush;
	bool started;  /* told upward */
	bool stopping; /* the producer was told */
	bool stopped;  /* by the producer; upward is told once scraped */
	char name[];   /* of its data source */
};

struct local_buffer {
	uint16_t id;     /* the producer's */
	uint16_t remote; /* the collector's */
	uint64_t session;
	uint32_t instances;
};

struct local_flush {
	TAILQ_ENTRY(local_flush) link;
	uint64_t id;
	uint64_t remote;
	uint64_t session;
	uint64_t since_ms;
	enum {
		FLUSH_ASKED,   /* flush_timer, until LOCAL_FLUSH_PATIENCE_MS */
		FLUSH_SCRAPED, /* without an answer */
		FLUSH_ACKED,   /* upward is told once the memory is scraped */
	} state;
};

enum local_state {
	/* InitializeConnection has not come or waits: talk_timer; in no list. */
	LOCAL_BOUND,
	/* Upward does not know it, yet or any more; talk_timer. */
	LOCAL_SILENT,
	/* LINK_UP_OPEN was put; talk_timer, flush_timer. */
	LOCAL_ANNOUNCED,
	/* LINK_UP_OPEN was put, and its end is all that upward wants. */
	LOCAL_REFUSED,
	/*
	 * Was announced, and its connection has ended.  Freed when what stands
	 * in its memory has found room upward; flush_timer.
	 */
	LOCAL_ENDED,
};

/* Memory in which chunks come, by who made it. */
enum local_memory {
	LOCAL_MEMORY_OURS,     /* made and handed over with SetupTracing */
	LOCAL_MEMORY_PROVIDED, /* handed over by the producer */
	LOCAL_MEMORY_EMULATED, /* none: chunks come as data */
};

TAILQ_HEAD(local_list, local);

/* Debt of a token bucket for control messages (control_rate.c). */
struct talk {
	int64_t bytes;
	uint64_t since_ms; /* when that was true */
};
struct talker;

struct local {
	TAILQ_ENTRY(local) link;
	struct producers *owner;
	struct producer_server server; /* its conn: NULL when that has ended */
	uint32_t channel;      /* 0: BOUND */
	enum local_state state;
	char *name;
	char *sdk_version;
	int32_t uid;
	int32_t pid;
	bool scrape;        /* its memory may be scraped */

	bool tracing_set_up; /* SetupTracing was sent */
	enum local_memory memory;
	uint32_t shm_size_hint;
	uint32_t page_size_hint;
	struct shm *shm;    /* NULL: EMULATED, or OURS before it is set up */

	TAILQ_HEAD(local_source_list, local_source) sources;
	size_t n_sources;
	size_t descriptor_bytes;

	TAILQ_HEAD(, local_instance) instances;
	size_t n_instances;
	struct local_buffer *buffers; /* oldest first */
	size_t n_buffers;
	size_t buffers_cap;
	uint16_t last_buffer;
	bool buffers_wrapped; /* every id has been used */
	/* Writer id -> buffer (ours), in pages made on demand. */
	uint16_t **writer_pages;
	size_t n_writers;

	size_t moves_done; /* of the request that waits */
	TAILQ_HEAD(, local_flush) flushes;
	size_t n_flushes;
	struct loop_timer *flush_timer;
	bool settling; /* something waits for local_settle() */

	struct talk talk;
	struct talker *talker; /* its user's; NULL: not initialized */
	struct loop_timer *talk_timer; /* NULL: it never had to wait */
	int64_t patch_credit;

	uint64_t chunks;
	uint64_t bytes;
	uint64_t late;      /* chunks for what is over, or was void */
	uint64_t discarded; /* chunks and patches that broke the rules */
};

/* ---- producer_port.c, initialize.c ---- */

void local_port_init(struct rpc_service *out, struct producers *ps);
/* producer_verbs.initialize */
enum rpc_verdict local_initialize(void *owner, struct rpc_call call,
    const struct producer_init *q);
/* Refusals and the like; of all producers together. */
static inline void
local_log(const struct local *l, const char *what, const char *why)
{
	producer_server_log(&l->server, what, why);
}

/* ---- shm_setup.c ---- */

/* Makes shared memory and sends SetupTracing, once.  -1: the connection ends. */
int local_set_up_tracing(struct local *l, uint32_t page_kb) MUST_CHECK;
/* Takes the memory that came with the call, if it is fit for use. */
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
struct local_instance *local_find_instance(struct local *l, uint64_t id);
struct local_instance *local_find_remote(struct local *l, uint64_t remote);
/*
 * Our id for a buffer of the collector's in this session.  0: too many, or no
 * memory.
 */
uint16_t local_buffer_for(struct local *l, uint64_t session, uint16_t remote)
    MUST_CHECK;
/* NULL: it is none, or over. */
struct local_buffer *local_find_buffer(struct local *l, uint32_t id);
/* Whether it was one once. */
bool local_buffer_was(const struct local *l, uint32_t id);
/* buffer: ours; 0 unbinds it.  False: out of range, no memory, no change. */
bool local_bind_writer(struct local *l, uint32_t writer, uint16_t buffer)
    MUST_CHECK;
uint16_t local_writer_buffer(const struct local *l, uint32_t writer);
/* Forgets all instances, buffers and bindings. */
void local_forget_ids(struct local *l);
void local_free_ids(struct local *l);

/* ---- commands.c ---- */

void local_command(struct local *l, const uint8_t *command, size_t len);
/* StopDataSource. */
void local_send_stop(struct local *l, uint64_t instance);

/* ---- commit.c ---- */

enum local_commit {
	LOCAL_COMMIT_OK,
	LOCAL_COMMIT_BAD,   /* does not parse; nothing was applied */
	LOCAL_COMMIT_AGAIN, /* the same request again, after producers_resume() */
};
/* *flush_id: of a commit that was taken, what it acknowledges; 0: no flush. */
enum local_commit local_commit(struct local *l, const uint8_t *request,
    size_t len, uint64_t *flush_id) MUST_CHECK;
enum local_rest {
	LOCAL_REST_COMES,   /* commits bring what is not taken now */
	LOCAL_REST_UNKNOWN, /* no answer: perhaps no commits come */
	LOCAL_REST_NONE,    /* the last scrape */
};
/*
 * Puts the chunks in its memory for buffers of this session (0: of all).
 * False: upward has no room for all of them now.
 */
bool local_scrape(struct local *l, uint64_t session, enum local_rest rest)
    MUST_CHECK;
/* A chunk without a producer: see producers_recover(). */
enum upstream_room local_put_orphan(struct producers *ps, uint32_t channel,
    const struct shm_chunk *c, bool complete) MUST_CHECK;

/* ---- flush_and_stop.c ---- */

void local_set_state(struct local *l, enum local_state state);
/* Whether upward takes what is put for it. */
static inline bool
local_is_known(const struct local *l)
{
	return l->state == LOCAL_ANNOUNCED || l->state == LOCAL_ENDED;
}

/* Flush: the producer was asked, or has nothing to say to it (acked). */
void local_flush_begin(struct local *l, uint64_t id, uint64_t remote,
    uint64_t session, bool acked);
/* The producer acknowledged all up to this id. */
void local_flush_acked(struct local *l, uint64_t id);
void local_forget_flushes(struct local *l);
/*
 * Scrapes, then tells upward of what was acknowledged and stopped, and of the
 * end; what finds no room waits for producers_resume().  Frees a producer whose
 * connection has ended.
 */
void local_settle(struct local *l);
/* Tells upward of its end, when upward knows it, and nothing more. */
void local_free(struct local *l);

/* ---- control_rate.c ---- */

void local_put(struct local *l, enum link_up kind, const void *data,
    size_t len);
void local_put_value(struct local *l, enum link_up kind, uint64_t value);
/* producer_verbs.rate_limit */
enum rpc_verdict local_rate_limit(void *owner);
/*
 * False: producers of this user have said too much to say that there is one
 * more; the connection is resumed when they may.
 */
bool local_may_begin(struct local *l) MUST_CHECK;
/* Counts it with the other producers of its user; -1: no memory. */
int local_join_talker(struct local *l) MUST_CHECK;
void local_leave_talker(struct local *l);
/* Upward is there again: who had to wait may say more. */
void local_may_talk_again(struct local *l);

/* ---- announce.c ---- */

/* Puts LINK_UP_OPEN and all that upward must know. */
void local_announce(struct local *l);
/* While the collector is away: a trigger may not wait for it. */
void local_announce_for_trigger(struct local *l);

#endif /* RELAY_PRODUCERS_PRODUCER_H */
