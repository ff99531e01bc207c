/*
 * producer_internal: what the parts of a producer share: producer.c (the
 * connection), producer_machine.c (what it says of this machine),
 * producer_command.c (what the service asks for) and producer_instance.c (data
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

/* Between measurements of the clocks. */
#define PRODUCER_CLOCKS_MS 30000u
/*
 * Emulation: while this many bytes wait in the connection, further commits
 * wait in the memory, until the writers have to drop.
 */
#define PRODUCER_QUEUED_PAUSE (256u * 1024u)
#define PRODUCER_QUEUED_LOW   (64u * 1024u)
/* A flush sends all of the memory on top. */
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
	void *ctx; /* the source's; NULL: refused */
	uint64_t id;
	uint64_t session;
	uint32_t buffer;
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
	unsigned failures;      /* attempts in a row */
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

	void (*shutdown_done)(void *arg);
	void *shutdown_arg;
	struct loop_call done_call, commit_call;
	struct loop_timer *shutdown_timer; /* not NULL: shutting down */
};

/* ---- producer.c ---- */

/*
 * The connection is of no use: end it and try again later.  All instances are
 * gone when it returns.
 */
void producer_reconnect(struct producer *p, const char *text);
/* Calls a method with p->scratch as its arguments; asks for no reply. */
void producer_tell(struct producer *p, const char *method);
/* Calls a method with one number, field 1. */
void producer_tell_id(struct producer *p, const char *method, uint64_t id);

/* ---- producer_machine.c ---- */

/*
 * Connected.  Tells of this machine, and has its clocks measured, from before
 * any data on, where the service wants that: it is another than the service's.
 */
void producer_machine_begin(struct producer *p);
/* Called after p->rpc was freed. */
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
/* Ends the chunks that its writers are filling. */
void producer_instance_flush_writers(struct producer_instance *i);
/* Ends it with a final commit, and tells the service. */
void producer_instance_stop(struct producer_instance *i);
/* Ends all, without (the connection is gone) or with a final commit. */
void producer_instance_drop_all(struct producer *p);
void producer_instance_stop_all(struct producer *p);

#endif /* CLIENT_LIBRARY_PRODUCER_INTERNAL_H */
