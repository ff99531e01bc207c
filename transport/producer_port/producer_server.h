/*
 * producer_server: one producer's connection to its ProducerPort (reference
 * wire-format.md, ipc/producer_port.proto), as collector and relay both serve
 * it: the methods, the checks of their arguments, and the queue of commands to
 * the producer.  Collector and relay each implement producer_verbs, which
 * carry the calls out.  Knows nothing of sessions, buffers or links.
 */
#ifndef TRANSPORT_PRODUCER_PORT_PRODUCER_SERVER_H
#define TRANSPORT_PRODUCER_PORT_PRODUCER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "transport/base/compiler.h"
#include "transport/rpc/rpc_host.h"

struct log_limit;
struct pb_writer;
struct shm;

#define PRODUCER_TRIGGERS_PER_CALL 64u

struct producer_server;

/* The arguments of InitializeConnection; borrowed for the call. */
struct producer_init {
	char *name;        /* "" when there is none, as sdk_version */
	char *sdk_version;
	uint32_t shm_size_hint;  /* bytes; 0: none */
	uint32_t page_size_hint; /* bytes; 0: none */
	bool scrape;       /* its memory may be scraped */
	bool emulated;     /* no descriptors reach it: chunks come as data */
	bool provides_shm; /* see producer_init_shm() */
};

/* A name of ActivateTriggers; borrowed for the call. */
struct producer_trigger {
	const char *name;
	size_t len;
};

/*
 * The calls of a producer, as collector or relay carries them out.  owner is
 * that of producer_server_init().  initialize comes first, and until it has
 * returned RPC_OK, no other verb but gone.
 */
struct producer_verbs {
	/* The connection has ended: the owner, and the server in it, may go. */
	void (*gone)(void *owner);
	/*
	 * RPC_OK: producer_init_reply() was called.  RPC_AGAIN: legal before
	 * producer_init_shm().
	 */
	enum rpc_verdict (*initialize)(void *owner, struct rpc_call call,
	    const struct producer_init *init);
	/*
	 * Rate limit on calls about data sources, writers and triggers: RPC_OK,
	 * or RPC_AGAIN, and then the owner resumes the connection.  NULL: none.
	 */
	enum rpc_verdict (*rate_limit)(void *owner);
	/* NULL on success, else the sentence for the producer. */
	const char *(*register_source)(void *owner, const uint8_t *descriptor,
	    size_t len);
	void (*update_source)(void *owner, const uint8_t *descriptor,
	    size_t len);
	void (*unregister_source)(void *owner, const char *name, size_t len);
	/* RPC_OK is replied to by the server. */
	enum rpc_verdict (*commit)(void *owner, const uint8_t *request,
	    size_t len);
	void (*register_writer)(void *owner, uint32_t writer, uint32_t buffer);
	void (*unregister_writer)(void *owner, uint32_t writer);
	void (*started)(void *owner, uint64_t instance);
	void (*stopped)(void *owner, uint64_t instance);
	/* n is 1 to PRODUCER_TRIGGERS_PER_CALL. */
	void (*triggers)(void *owner, const struct producer_trigger *t,
	    size_t n);
	/*
	 * PRODUCER_INIT_MACHINE and PRODUCER_SYNC_CLOCK (service_names.h): they
	 * reply themselves.  NULL where the port does not measure clocks.
	 */
	rpc_method_fn init_machine;
	rpc_method_fn sync_clock;
};

struct producer_server_setup {
	const struct producer_verbs *verbs; /* borrowed */
	void *owner;
	struct rpc_conn *conn;
	struct log_limit *refusals; /* borrowed: of all producers together */
	size_t max_queue; /* bytes of output, and of memory for commands that wait */
};

struct producer_queued;

/* Public only so that it can be embedded; the fields but conn are private. */
struct producer_server {
	const struct producer_verbs *verbs;
	void *owner;
	struct rpc_conn *conn; /* NULL: the connection has ended */
	struct log_limit *refusals;
	size_t max_queue;
	bool initialized;
	struct rpc_call commands; /* GetAsyncCommand; conn NULL: not yet */
	TAILQ_HEAD(, producer_queued) queue;
	size_t queued_bytes;
};

/*
 * Fills *out.  bind makes the owner of a connection's server, calls
 * producer_server_init() and returns the server, which the owner embeds; NULL:
 * refused.  measures_clocks: offers the methods for clocks (init_machine,
 * sync_clock), for producers that have no relay.
 */
void producer_server_service(struct rpc_service *out, bool measures_clocks,
    void *(*bind)(struct rpc_conn *c, void *arg), void *arg);

void producer_server_init(struct producer_server *s,
    const struct producer_server_setup *setup);

/*
 * Inside initialize: the shared memory that the producer handed over; the
 * caller frees it.  NULL: there is none, and err is ""; or it is not fit for
 * use, and err says why.
 */
struct shm *producer_init_shm(struct rpc_call call,
    const struct producer_init *init, char *err, size_t err_size) MUST_CHECK;
/*
 * Replies to InitializeConnection.  uses_shm: the memory that the producer
 * handed over is used.
 */
void producer_init_reply(struct rpc_call call,
    const struct producer_init *init, bool uses_shm);

/*
 * Sends a GetAsyncCommandResponse (copied), or keeps it until the producer
 * asks.  shm_fd travels with it (-1: none); the caller owns it, and keeps it
 * open as long as the connection lasts.  Out of memory, or over max_queue: ends
 * the connection.
 */
void producer_server_send(struct producer_server *s,
    const struct pb_writer *command, int shm_fd);

/* Logs that something (what) was refused, and why. */
void producer_server_log(const struct producer_server *s, const char *what,
    const char *why);

#endif /* TRANSPORT_PRODUCER_PORT_PRODUCER_SERVER_H */
