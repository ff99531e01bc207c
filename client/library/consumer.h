/*
 * consumer: the consumer half of libtributary, one connection to a collector's
 * consumer port.
 *
 * Turns calls and replies of the ConsumerPort into C: packets come whole,
 * service states in one piece, failures as sentences.  Memory is bounded: at
 * most one incomplete packet is kept.  Knows no files and no policy;
 * `tributary record` is built on it.  All calls and callbacks belong to the
 * loop's thread.
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
	/* The connection is up: calls may be made from here on. */
	void (*connected)(void *arg);
	/*
	 * Dialling failed, the connection ended, or memory ran out; why is a
	 * sentence.  The last callback of any kind: outstanding calls get no
	 * reply.
	 */
	void (*disconnected)(void *arg, const char *why);
	/*
	 * A warning of the collector's, before tracing_disabled: a sentence,
	 * borrowed for the call, for each part of the config that the session
	 * did not get.  This callback may not free the consumer.
	 */
	void (*warned)(void *arg, const char *sentence);
	/*
	 * The session ended.  error is NULL when it ended well, else a sentence
	 * that is borrowed for the call.
	 */
	void (*tracing_disabled)(void *arg, const char *error);
	/* A whole packet of consumer_read_buffers(); borrowed for the call. */
	void (*packet)(void *arg, const uint8_t *data, size_t len);
	/* The reading is over; error is NULL when all packets came. */
	void (*read_done)(void *arg, const char *error);
	/* Events that consumer_observe_events() asked for; borrowed. */
	void (*observed)(void *arg,
	    const struct Perfetto__Protos__ObservableEvents *events);
};

/*
 * Replies of single calls.  ok false: refused, the method is unknown to the
 * service, or no memory for the request.
 */
typedef void (*consumer_done_fn)(void *arg, bool ok);
/* stats, state: borrowed for the call; NULL when refused or malformed. */
typedef void (*consumer_stats_fn)(void *arg,
    const struct Perfetto__Protos__TraceStats *stats);
typedef void (*consumer_state_fn)(void *arg,
    const struct Perfetto__Protos__TracingServiceState *state);
/*
 * config: the session's encoded TraceConfig, borrowed for the call; NULL when
 * refused.
 */
typedef void (*consumer_attach_fn)(void *arg, const uint8_t *config,
    size_t len);
/*
 * The encoded TracingServiceState, borrowed for the call; NULL when refused,
 * malformed or longer than CONSUMER_MAX_STATE.
 */
typedef void (*consumer_raw_state_fn)(void *arg, const uint8_t *state,
    size_t len);

/* A session to be copied, and how. */
struct consumer_clone {
	uint64_t session_id;
	const char *name; /* unique_session_name, in place of the id; or NULL */
	bool skip_trace_filter;
	bool for_bugreport;
	/*
	 * The trigger that caused the snapshot, for the trace; borrowed for the
	 * call.  NULL: no trigger.
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

/* r: borrowed for the call. */
typedef void (*consumer_clone_fn)(void *arg, const struct consumer_cloned *r);

struct consumer_setup {
	const struct addr *address;     /* copied */
	const struct dial_options *how; /* copied; NULL: defaults */
	const struct consumer_ops *ops; /* borrowed; outlives the consumer */
	void *arg;                      /* of ops */
};

/*
 * Begins to connect: connected or disconnected follows.  NULL with a sentence
 * in err, and no callback.
 */
struct consumer *consumer_new(struct loop *l,
    const struct consumer_setup *setup, char *err, size_t err_size) MUST_CHECK;
/*
 * Closes the connection, and with it the session if it is not detached.  Legal
 * inside callbacks, but for `warned`.  NULL is fine.
 */
void consumer_free(struct consumer *c);

/*
 * Whether the connection, a UNIX socket, passes descriptors; false before
 * connected.
 */
bool consumer_can_pass_fds(const struct consumer *c);

/*
 * Starts a session with an encoded TraceConfig.  fd >= 0, the file that the
 * service writes into, stays the caller's; -1: none.  Answered by
 * tracing_disabled, when the session ends.
 */
void consumer_enable_tracing(struct consumer *c, const uint8_t *config,
    size_t len, int fd);
/* Asks for tracing_disabled again, after consumer_attach(). */
void consumer_watch_tracing(struct consumer *c);
/*
 * Starts a session with deferred_start.  A consumer_done_fn may be NULL, here
 * and below; callbacks of other types may not.
 */
void consumer_start_tracing(struct consumer *c, consumer_done_fn fn,
    void *arg);
/*
 * Flushes the session.  ok false: a producer did not answer within timeout_ms
 * (0: the service's default).
 */
void consumer_flush(struct consumer *c, uint32_t timeout_ms, uint64_t flags,
    consumer_done_fn fn, void *arg);
void consumer_disable_tracing(struct consumer *c, consumer_done_fn fn,
    void *arg);
void consumer_free_buffers(struct consumer *c, consumer_done_fn fn, void *arg);

/* Flush flags of `tributary record` at the end of a recording. */
#define CONSUMER_FLUSH_AT_STOP 0x22u

/*
 * Reads the buffers out: a packet() for each packet, then read_done().  One
 * reading at a time.
 */
void consumer_read_buffers(struct consumer *c);
/*
 * Stops, and resumes, reading from the connection.  Back-pressure: while
 * paused, packets wait in the service.
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
 * Clones a session.  The clone becomes the session of this connection, to be
 * read by consumer_read_buffers() unless the service wrote it into which->fd.
 */
void consumer_clone_session(struct consumer *c,
    const struct consumer_clone *which, consumer_clone_fn fn, void *arg);

#endif /* CLIENT_LIBRARY_CONSUMER_H */
