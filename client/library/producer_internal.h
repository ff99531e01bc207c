/*
 * producer_internal: state shared by the parts of a producer: producer.c (the
 * connection), producer_machine.c (description of this machine),
 * producer_command.c (commands of the service) and producer_instance.c (data
 * source instances and their writers).
 */
#ifndef CLIENT_LIBRARY_PRODUCER_INTERNAL_H
#define CLIENT_LIBRARY_PRODUCER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "client/library/producer.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"
#include "transport/socket/addr.h"
#include "transport/wire/pb_writer.h"

struct commit_batch;
struct loop_timer;
struct rpc_client;
struct sync_clock;

/* Period of the measurements of the service's clocks. */
#define PRODUCER_CLOCKS_MS 30000u
/*
 * Back-pressure under emulation, in bytes queued in the connection: from the
 * high-water mark PAUSE on, completed chunks stay in the memory until the
 * queue has drained to LOW; writers drop when the memory is full.
 */
#define PRODUCER_QUEUED_PAUSE (256u * 1024u)
#define PRODUCER_QUEUED_LOW   (64u * 1024u)
/* Limit of the connection's queue: a flush sends all of the memory on top. */
#define PRODUCER_QUEUED_HARD \
	(PRODUCER_QUEUED_PAUSE + SHM_SIZE_MAX + 1024u * 1024u)

struct producer_writer {
	LIST_ENTRY(producer_writer) link;
	struct trace_writer *writer; /* owned */
};

struct producer_instance {
	LIST_ENTRY(producer_instance) link;
	struct producer *producer; /* back-pointer */
	const struct producer_source *source; /* borrowed */
	void *ctx; /* owned by the source; NULL: refused by its setup */
	uint64_t id;
	uint64_t session;
	uint32_t buffer; /* global id, of the service */
	bool started;
	LIST_HEAD(, producer_writer) writers;
};

struct producer {
	struct loop *loop;
	struct addr address;
	const struct dial_options *how; /* borrowed, may be NULL */
	char *name;
	char *machine_name; /* or NULL */
	uint32_t shm_bytes;
	uint32_t page_bytes;
	void (*changed)(void *arg, enum producer_state state, const char *text);
	void *arg;

	struct rpc_client *rpc; /* NULL: waiting for the next attempt */
	bool ready;             /* InitializeConnection was answered */
	bool emulated;
	struct sync_clock *clocks; /* NULL: not to be measured */
	size_t registering;     /* RegisterDataSource calls not answered yet */
	unsigned failures;      /* in a row: exponent of the backoff */
	struct loop_timer *retry;

	const struct producer_source *sources[PRODUCER_SOURCES_MAX];
	size_t n_sources;

	/* Shared memory, from SetupTracing until the connection ends. */
	struct shm *shm;
	struct commit_batch *batch;

	LIST_HEAD(, producer_instance) instances;
	size_t n_instances;
	/* One bit per writer id in use. */
	uint8_t writer_ids[SHM_MAX_WRITER_ID / 8 + 1];
	uint16_t last_writer_id;

	struct pb_writer scratch; /* for small requests */

	bool shutting_down;
	void (*shutdown_done)(void *arg);
	void *shutdown_arg;
	struct loop_timer *shutdown_timer; /* armed while shutting down */
	struct loop_call commit_call;
};

/* ---- producer.c ---- */

/*
 * Ends the connection and, unless shutting down, starts the backoff for the
 * next one.  Frees all instances; text, a sentence, goes to changed().
 */
void producer_reconnect(struct producer *p, const char *text);
/* Calls a method with p->scratch as its arguments; asks for no reply. */
void producer_tell(struct producer *p, const char *method);
/* Calls a method with one number, field 1. */
void producer_tell_id(struct producer *p, const char *method, uint64_t id);

/* ---- producer_machine.c ---- */

/*
 * Called before data sources are registered: describes this machine, and begins
 * to measure the service's clocks where the service asks for that, as for a
 * machine other than its own.
 */
void producer_machine_begin(struct producer *p);
/* Ends the measurements; called after p->rpc was freed. */
void producer_machine_end(struct producer *p);

/* ---- producer_command.c ---- */

/*
 * Handles one GetAsyncCommandResponse.  fd came with it (-1: none) and is
 * taken over.
 */
void producer_command(struct producer *p, const uint8_t *msg, size_t len,
    int fd);

/* ---- producer_instance.c ---- */

struct producer_instance *producer_instance_find(struct producer *p,
    uint64_t id);
/* Queues the partly filled chunks of the instance's writers in the batch. */
void producer_instance_flush_writers(struct producer_instance *i);
/* Stops the instance, commits its data, tells the service, and frees it. */
void producer_instance_stop(struct producer_instance *i);
/*
 * Free all instances: drop without a commit, as the connection is gone; stop
 * as producer_instance_stop().
 */
void producer_instance_drop_all(struct producer *p);
void producer_instance_stop_all(struct producer *p);

#endif /* CLIENT_LIBRARY_PRODUCER_INTERNAL_H */
