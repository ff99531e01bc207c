/*
 * consumer: the consumer half of libtributary, one connection to a collector's
 * consumer port.
 *
 * Turns calls and replies of the ConsumerPort into C: packets come whole,
 * service states in one piece, failures as sentences.  Memory is bounded: a
 * packet is collected up to its end and no further.  Knows no files and no
 * policy; `tributary record` is built on it.
 */
#ifndef CLIENT_LIBRARY_CONSUMER_H
#define CLIENT_LIBRARY_CONSUMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/socket/addr.h"

struct Perfetto__Protos__ObservableEvents;
struct Perfetto__Protos__ObservableEvents__CloneTriggerHit;
struct Perfetto__Protos__TraceStats;
struct Perfetto__Protos__TracingServiceState;
struct consumer;
struct dial_options;
struct loop;

/* The largest service state, in bytes. */
#define CONSUMER_MAX_STATE (64u << 20)

/*
 * Callbacks of a connection, always from the loop and never from inside a call.
 * Any may call consumer_free(); none is called after it.  Only connected and
 * disconnected must be set.
 */
struct consumer_ops {
	/* Calls may be made. */
	void (*connected)(void *arg);
	/*
	 * The connection could not be made or ended; why is a sentence.  The
	 * last callback of any kind: replies still owed do not come any more.
	 */
	void (*disconnected)(void *arg, const char *why);
	/*
	 * Before tracing_disabled, once for each thing that the config asked
	 * for and did not get: a sentence of the collector's.  This one may not
	 * free the consumer.
	 */
	void (*warned)(void *arg, const char *sentence);
	/* The session ended.  error is NULL when it ended well. */
	void (*tracing_disabled)(void *arg, const char *error);
	/* A packet of consumer_read_buffers(); borrowed. */
	void (*packet)(void *arg, const uint8_t *data, size_t len);
	/* No more packets; error is NULL when all came. */
	void (*read_done)(void *arg, const char *error);
	/* Events that consumer_observe_events() asked for; borrowed. */
	void (*observed)(void *arg,
	    const struct Perfetto__Protos__ObservableEvents *events);
};

/* Replies of single calls.  ok false: refused, or not known to the service. */
typedef void (*consumer_done_fn)(void *arg, bool ok);
/* stats, state: borrowed; NULL when refused. */
typedef void (*consumer_stats_fn)(void *arg,
    const struct Perfetto__Protos__TraceStats *stats);
typedef void (*consumer_state_fn)(void *arg,
    const struct Perfetto__Protos__TracingServiceState *state);
/* config: the session's encoded TraceConfig, borrowed; NULL when refused. */
typedef void (*consumer_attach_fn)(void *arg, const uint8_t *config,
    size_t len);
/* Like consumer_state_fn, but encoded; NULL when refused. */
typedef void (*consumer_raw_state_fn)(void *arg, const uint8_t *state,
    size_t len);

/* A session to be copied, and how. */
struct consumer_clone {
	uint64_t session_id;
	const char *name; /* unique_session_name, in place of the id; or NULL */
	bool skip_trace_filter;
	bool for_bugreport;
	/*
	 * The trigger that caused the snapshot: goes into the trace.  NULL:
	 * none did.
	 */
	const struct Perfetto__Protos__ObservableEvents__CloneTriggerHit *hit;
	int fd; /* as in consumer_enable_tracing(); -1: none */
};

struct consumer_cloned {
	const char *error; /* NULL: cloned; else a sentence */
	bool written;      /* all of it went into fd: nothing is left to read */
	uint64_t uuid_msb; /* of the clone; 0: not told */
	uint64_t uuid_lsb;
};

/* r: borrowed. */
typedef void (*consumer_clone_fn)(void *arg, const struct consumer_cloned *r);

struct consumer_setup {
	const struct addr *address;     /* copied */
	const struct dial_options *how; /* copied; NULL: defaults */
	const struct consumer_ops *ops; /* borrowed; outlives the consumer */
	void *arg;                      /* of ops */
};

/* NULL with a sentence in err; otherwise connected or disconnected follows. */
struct consumer *consumer_new(struct loop *l,
    const struct consumer_setup *setup, char *err, size_t err_size) MUST_CHECK;
/* Closes the connection, and with it the session if it is not detached. */
void consumer_free(struct consumer *c);

/* Whether a descriptor can go with a call (a UNIX socket). */
bool consumer_can_pass_fds(const struct consumer *c);

/*
 * Starts a session with an encoded TraceConfig.  fd >= 0, the file to write
 * into, stays the caller's.  The answer is tracing_disabled, at its end.
 */
void consumer_enable_tracing(struct consumer *c, const uint8_t *config,
    size_t len, int fd);
/* Asks for tracing_disabled again, after consumer_attach(). */
void consumer_watch_tracing(struct consumer *c);
/* Starts a session with deferred_start. fn may be NULL, here and below. */
void consumer_start_tracing(struct consumer *c, consumer_done_fn fn,
    void *arg);
/* ok false: some producer did not answer within timeout_ms (0: default). */
void consumer_flush(struct consumer *c, uint32_t timeout_ms, uint64_t flags,
    consumer_done_fn fn, void *arg);
void consumer_disable_tracing(struct consumer *c, consumer_done_fn fn,
    void *arg);
void consumer_free_buffers(struct consumer *c, consumer_done_fn fn, void *arg);

/* Flags of a flush that the command asks for at the end of a recording. */
#define CONSUMER_FLUSH_AT_STOP 0x22u

/*
 * Reads the buffers out: a packet() for each packet, then read_done().  One
 * reading at a time.
 */
void consumer_read_buffers(struct consumer *c);
/*
 * Stops and goes on reading from the connection.  Back-pressure: packets then
 * wait in the service.
 */
void consumer_pause(struct consumer *c);
void consumer_resume(struct consumer *c);

void consumer_get_trace_stats(struct consumer *c, consumer_stats_fn fn,
    void *arg);
void consumer_query_service_state(struct consumer *c, bool sessions_only,
    consumer_state_fn fn, void *arg);
void consumer_query_raw_state(struct consumer *c, consumer_raw_state_fn fn,
    void *arg);
/* mask of ObservableEvents.Type; 0 ends the observation. */
void consumer_observe_events(struct consumer *c, uint32_t mask);

void consumer_detach(struct consumer *c, const char *key, consumer_done_fn fn,
    void *arg);
void consumer_attach(struct consumer *c, const char *key,
    consumer_attach_fn fn, void *arg);
/*
 * Makes a read-only copy of a session this connection's own, to be read by
 * consumer_read_buffers() where it was not written.
 */
void consumer_clone_session(struct consumer *c,
    const struct consumer_clone *which, consumer_clone_fn fn, void *arg);

#endif /* CLIENT_LIBRARY_CONSUMER_H */
