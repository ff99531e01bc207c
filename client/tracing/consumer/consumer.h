/*
 * consumer: one connection to a service's consumer port.
 *
 * Turns calls and replies of the ConsumerPort into C: packets come whole,
 * service states in one piece, failures as sentences.  Memory is bounded: at
 * most one incomplete packet is kept.  Knows no files, no policy and no socket:
 * a wire, which the owner brings, carries the requests and brings the replies.
 * `tributary record` is built on it, with a wire on the event loop, and the
 * sessions of libtributary with one that blocks.  All calls and callbacks
 * belong to one thread.
 */
#ifndef CLIENT_TRACING_CONSUMER_CONSUMER_H
#define CLIENT_TRACING_CONSUMER_CONSUMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct consumer;
struct consumer_call;

/* Methods of the ConsumerPort. */
enum consumer_method {
	CONSUMER_ENABLE_TRACING,
	CONSUMER_START_TRACING,
	CONSUMER_FLUSH,
	CONSUMER_DISABLE_TRACING,
	CONSUMER_READ_BUFFERS,
	CONSUMER_FREE_BUFFERS,
	CONSUMER_GET_TRACE_STATS,
	CONSUMER_QUERY_SERVICE_STATE,
	CONSUMER_OBSERVE_EVENTS,
	CONSUMER_DETACH,
	CONSUMER_ATTACH,
	CONSUMER_CLONE_SESSION,
	CONSUMER_METHODS,
};
/* "EnableTracing" */
const char *consumer_method_name(enum consumer_method m);

/* The largest service state, in bytes. */
#define CONSUMER_MAX_STATE (64u << 20)

/*
 * Callbacks of a connection, never from inside a call.  Any may call
 * consumer_free(); none is called after it.  Only connected and disconnected
 * must be set.
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
	/* Encoded ObservableEvents that consumer_observe_events() asked for. */
	void (*observed)(void *arg, const uint8_t *events, size_t len);
};

/*
 * Replies of single calls.  ok false: refused, the method is unknown to the
 * service, or no memory for the request.
 */
typedef void (*consumer_done_fn)(void *arg, bool ok);
/*
 * An encoded message, borrowed for the call; NULL when refused, malformed or
 * longer than CONSUMER_MAX_STATE.
 */
typedef void (*consumer_message_fn)(void *arg, const uint8_t *data,
    size_t len);

/* The trigger that caused a snapshot, as ObservableEvents told of it. */
struct consumer_hit {
	const char *trigger;  /* NULL: not told */
	const char *producer; /* NULL: not told */
	int32_t uid;
	uint64_t boot_time_ns;
	uint64_t delay_ms;
};

/* A session to be copied, and how. */
struct consumer_clone {
	uint64_t session_id;
	const char *name; /* unique_session_name, in place of the id; or NULL */
	bool skip_trace_filter;
	bool for_bugreport;
	const struct consumer_hit *hit; /* for the trace; NULL: no trigger */
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

/* A call that a wire is to make; borrowed, but for the call. */
struct consumer_request {
	enum consumer_method method;
	const uint8_t *args; /* NULL: none */
	size_t len;
	int fd; /* travels with the request, and stays the caller's; -1: none */
	struct consumer_call *call; /* of the replies */
};

/* The owner's connection.  Its functions call none of the consumer's. */
struct consumer_wire {
	/*
	 * Calls a method: consumer_wire_reply() follows, later.  False: the
	 * service does not offer it, or takes nothing of that length.
	 */
	bool (*invoke)(void *wire, const struct consumer_request *r);
	/* Back-pressure: stops, or resumes, reading.  May be NULL. */
	void (*pause)(void *wire, bool paused);
	/*
	 * Something failed: call consumer_wire_failed() before long, from no
	 * call of the consumer's owner, unless consumer_wire_down() comes first.
	 */
	void (*failed)(void *wire);
	/* The consumer is no more, and calls nothing of the wire again. */
	void (*close)(void *wire);
};

struct consumer_setup {
	const struct consumer_ops *ops; /* borrowed; outlives the consumer */
	void *arg;                      /* of ops */
	const struct consumer_wire *wire_ops; /* borrowed, too */
	void *wire;
};

/* NULL: no memory. */
struct consumer *consumer_new(const struct consumer_setup *setup) MUST_CHECK;
/*
 * Closes the connection, and with it the session if it is not detached.  Legal
 * inside callbacks, but for `warned`.  NULL is fine.
 */
void consumer_free(struct consumer *c);

/* ---- For the wire ---- */

/* Calls may be made; fds: the connection passes descriptors. */
void consumer_wire_up(struct consumer *c, bool fds);
/* The connection ended, or was never there; why: a sentence. */
void consumer_wire_down(struct consumer *c, const char *why);
/*
 * A reply to r->call, which is gone after one that is the last (more is false).
 * msg is borrowed.  After ok false, consumer_wire::failed is called.
 */
void consumer_wire_reply(struct consumer_call *k, bool ok, bool more,
    const uint8_t *msg, size_t len);
/* Tells the owner what failed. */
void consumer_wire_failed(struct consumer *c);

/* ---- For the owner ---- */

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

/* fn gets TraceStats. */
void consumer_get_trace_stats(struct consumer *c, consumer_message_fn fn,
    void *arg);
/* fn gets TracingServiceState. */
void consumer_query_service_state(struct consumer *c, bool sessions_only,
    consumer_message_fn fn, void *arg);
/* mask of ObservableEvents.Type; 0 ends the observation. */
void consumer_observe_events(struct consumer *c, uint32_t mask);

void consumer_detach(struct consumer *c, const char *key, consumer_done_fn fn,
    void *arg);
/* fn gets the session's TraceConfig. */
void consumer_attach(struct consumer *c, const char *key,
    consumer_message_fn fn, void *arg);
/*
 * Clones a session.  The clone becomes the session of this connection, to be
 * read by consumer_read_buffers() unless the service wrote it into which->fd.
 */
void consumer_clone_session(struct consumer *c,
    const struct consumer_clone *which, consumer_clone_fn fn, void *arg);

#endif /* CLIENT_TRACING_CONSUMER_CONSUMER_H */
