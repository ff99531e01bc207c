/*
 * session: what records the traces of programs.
 */
#ifndef TRIBUTARY_SESSION_H
#define TRIBUTARY_SESSION_H

#include <tributary/tributary.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A whole TracePacket, borrowed for the call.  False: no more are wanted. */
typedef bool (*tributary_packet_fn)(const void *data, size_t len, void *arg);

/*
 * ---- Sessions of a service ----
 *
 * A connection to the consumer port of tributaryd or of Perfetto's traced, with
 * at most one session.  Needs no tributary_start(), and records all programs,
 * also this one.
 *
 * The functions wait for the service, up to timeout_ms, and block the calling
 * thread, not the library's.  One thread at a time uses a connection, and no
 * callback calls its functions.  Where a function fails, tributary_session_why()
 * has a sentence.  After the connection is lost all further ones fail with the
 * same sentence; what was read before stays whole.  Their use of errno is free.
 */
struct tributary_session;

/*
 * address: /path, @abstract, host:port, vsock://CID:PORT; NULL:
 * PERFETTO_CONSUMER_SOCK_NAME of the environment, else
 * /run/perfetto/traced-consumer.sock, else /tmp/perfetto-consumer.  NULL: why
 * (why_len bytes) holds a sentence.
 */
TRIBUTARY_API struct tributary_session *tributary_session_connect(
    const char *address, unsigned timeout_ms, char *why, size_t why_len);
/*
 * Closes the connection, and with it ends the session, unless it is detached.
 * NULL is fine.
 */
TRIBUTARY_API void tributary_session_free(struct tributary_session *s);
/* Why the last function that failed did so; "": none has. */
TRIBUTARY_API const char *tributary_session_why(
    const struct tributary_session *s);

/*
 * Starts a session with an encoded TraceConfig, and returns when all data
 * sources have started, so that what a program writes next is recorded; of a
 * config with deferred_start or triggers, when the service has taken it.  False:
 * refused, or not within timeout_ms: then the session runs nevertheless.
 *
 * fd: the file of a config with write_into_file, which the service writes; stays
 * the caller's.  -1: none.
 */
TRIBUTARY_API bool tributary_session_start(struct tributary_session *s,
    const void *config, size_t len, int fd, unsigned timeout_ms);

/* The usual session: track events into one buffer. */
struct tributary_session_options {
	size_t size; /* of this struct; set by TRIBUTARY_SESSION_OPTIONS */
	uint32_t buffer_kb; /* default: 4096 */
	bool discard; /* keep the oldest data, not the newest */
	/* Names or patterns ("net*"), NULL behind the last; NULL: all. */
	const char *const *categories;
	uint32_t seconds; /* then it stops by itself; 0: not */
	const char *unique_name; /* of the session; NULL: none */
};
#define TRIBUTARY_SESSION_OPTIONS { sizeof(struct tributary_session_options),  \
	0, false, NULL, 0, NULL }
TRIBUTARY_API bool tributary_session_start_simple(struct tributary_session *s,
    const struct tributary_session_options *options, unsigned timeout_ms);

/* Starts the data sources of a session with deferred_start. */
TRIBUTARY_API bool tributary_session_begin(struct tributary_session *s,
    unsigned timeout_ms);
/*
 * Takes what programs have written so far into the buffers.  False: a data
 * source did not answer within timeout_ms.
 */
TRIBUTARY_API bool tributary_session_flush(struct tributary_session *s,
    unsigned timeout_ms);
/* Ends the recording, with a flush; its data stays, to be read. */
TRIBUTARY_API bool tributary_session_stop(struct tributary_session *s,
    unsigned timeout_ms);
/*
 * Waits until the recording has ended: by tributary_session_stop(), its
 * duration, its triggers.  False: not within timeout_ms, or it ended with an
 * error.
 */
TRIBUTARY_API bool tributary_session_wait(struct tributary_session *s,
    unsigned timeout_ms);

/*
 * A copy of a running session of the service, by its number, or by its
 * unique_session_name: becomes the session of this connection, to be read.
 */
TRIBUTARY_API bool tributary_session_clone(struct tributary_session *s,
    uint64_t id, unsigned timeout_ms);
TRIBUTARY_API bool tributary_session_clone_named(struct tributary_session *s,
    const char *name, unsigned timeout_ms);

/*
 * Reads the trace, each packet once, also while the session runs.  After packet
 * has returned false the rest of what the buffers held is passed over.
 * timeout_ms is for each answer of the service, of which a trace has many.
 * True: all packets came.
 */
TRIBUTARY_API bool tributary_session_read(struct tributary_session *s,
    tributary_packet_fn packet, void *arg, unsigned timeout_ms);
/*
 * As tributary_session_read(), as a trace file, from the descriptor's offset on.
 * On failure it ends with a whole packet where the file system had room.
 */
TRIBUTARY_API bool tributary_session_write(struct tributary_session *s, int fd,
    unsigned timeout_ms);

/*
 * Leaves the session to the service, under a key; a connection that attaches
 * with the key has it from then on.
 */
TRIBUTARY_API bool tributary_session_detach(struct tributary_session *s,
    const char *key, unsigned timeout_ms);
TRIBUTARY_API bool tributary_session_attach(struct tributary_session *s,
    const char *key, unsigned timeout_ms);

/*
 * The service's producers, data sources and sessions, as an encoded
 * TracingServiceState; the session's statistics, as an encoded TraceStats.
 * message is called once, and borrows.
 */
typedef void (*tributary_message_fn)(const void *data, size_t len, void *arg);
TRIBUTARY_API bool tributary_session_query(struct tributary_session *s,
    tributary_message_fn message, void *arg, unsigned timeout_ms);
TRIBUTARY_API bool tributary_session_stats(struct tributary_session *s,
    tributary_message_fn message, void *arg, unsigned timeout_ms);

#ifdef __cplusplus
}
#endif

#endif /* TRIBUTARY_SESSION_H */
