/*
 * producer: one producer's connection to the service.
 *
 * Registers data sources, gives each instance that the service sets up to its
 * source, and carries the packets of their trace writers: through shared memory
 * where the transport can pass it, else inside the commits (emulation).  When
 * the connection ends, all instances end with it, and the producer connects
 * again, with exponential backoff and jitter.  All calls and callbacks belong
 * to the loop's thread.
 *
 *	producer -> rpc_client
 *	         -> shm, commit_batch    while tracing is set up
 *	         -> producer_instance*   one per data source and session
 *	                -> trace_writer*
 */
#ifndef CLIENT_LIBRARY_PRODUCER_H
#define CLIENT_LIBRARY_PRODUCER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/library/trace_writer.h"
#include "transport/base/compiler.h"

struct addr;
struct loop;
struct producer;
struct producer_instance;

#define PRODUCER_SOURCES_MAX   64
#define PRODUCER_INSTANCES_MAX 1024
/* Backoff between attempts to connect, before jitter takes up to a quarter. */
#define PRODUCER_RETRY_FIRST_MS 100
#define PRODUCER_RETRY_LAST_MS  10000

/*
 * A data source.  setup makes the instance's context from the encoded
 * DataSourceConfig (borrowed for the call); NULL refuses the instance: it still
 * counts as started, writes nothing and gets no further callback.  Otherwise
 * exactly one destroy follows: after stop, or without stop when the instance
 * was never started or the connection ended.  The other pointers may be NULL.
 * Callbacks may write packets; they must not free the producer.
 */
struct producer_source {
	const char *name;
	bool handles_incremental_state_clear;
	bool no_flush;
	void *(*setup)(void *arg, struct producer_instance *i,
	    const uint8_t *config, size_t len);
	void (*start)(void *ctx);
	/*
	 * Writes packets that the source still holds; the instance's writers
	 * are flushed afterwards.
	 */
	void (*flush)(void *ctx);
	void (*clear_incremental_state)(void *ctx);
	/* As flush, for the last time; only of a started instance. */
	void (*stop)(void *ctx);
	/* Frees ctx.  The instance's writers are freed afterwards. */
	void (*destroy)(void *ctx);
	void *arg; /* of setup */
};

enum producer_state {
	PRODUCER_CONNECTING, /* connecting, or waiting for the next attempt */
	PRODUCER_READY,      /* the service answered all registrations */
};

struct producer_options {
	const struct addr *address; /* copied */
	/*
	 * How to dial (transport/connect/dial.h); borrowed until
	 * producer_free(); NULL: defaults.
	 */
	const struct dial_options *how;
	const char *name;           /* copied */
	/* Hints for the shared memory, in bytes; 0: the service's default. */
	uint32_t shm_bytes;
	uint32_t page_bytes;
	/*
	 * Machine name that the producer introduces itself with where the
	 * kernel cannot tell its uid and pid (all but direct UNIX sockets).
	 * NULL: the host name, and a service on the same clocks then counts the
	 * producer to its own machine.  Copied.
	 */
	const char *machine_name;
	/*
	 * Called when the state changes; text, borrowed for the call, is a
	 * sentence or NULL.  May be NULL.
	 */
	void (*changed)(void *arg, enum producer_state state, const char *text);
	void *arg;
};

/* Starts to connect.  NULL: no memory. */
struct producer *producer_new(struct loop *l,
    const struct producer_options *options) MUST_CHECK;
/* Ends all instances and the connection.  NULL is fine. */
void producer_free(struct producer *p);

/*
 * Registers a source, now and after every reconnect.  src is borrowed until
 * producer_free().  -1: there are PRODUCER_SOURCES_MAX already.
 */
int producer_add_source(struct producer *p, const struct producer_source *src)
    MUST_CHECK;

/* Activates triggers by name.  While not connected the call does nothing. */
void producer_activate_triggers(struct producer *p, const char *const *names,
    size_t n);

/*
 * Stops all instances, commits their packets and calls done(arg) once, from the
 * loop: when the service has handled the commits, the connection is gone, or
 * after PRODUCER_SHUTDOWN_MS.  The producer does not connect again; the owner
 * then calls producer_free(), also inside done.
 */
#define PRODUCER_SHUTDOWN_MS 1000
void producer_shutdown(struct producer *p, void (*done)(void *arg), void *arg);

/* ---- Instances ---- */

uint64_t producer_instance_id(const struct producer_instance *i);
uint64_t producer_instance_session(const struct producer_instance *i);
/*
 * Makes a writer into the instance's buffer, a sequence of its own; owned by
 * the instance, which frees it after destroy.  NULL: no memory, tracing is not
 * set up, or all writer ids are in use.
 */
struct trace_writer *producer_instance_writer(struct producer_instance *i,
    enum trace_writer_policy policy) MUST_CHECK;

#endif /* CLIENT_LIBRARY_PRODUCER_H */
