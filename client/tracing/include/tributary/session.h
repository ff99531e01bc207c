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

/*
 * The usual session: track events into one buffer.  Begin with
 * TRIBUTARY_SESSION_OPTIONS; 0 and NULL are the defaults.
 */
struct tributary_session_options {
	size_t size; /* of this struct; set by TRIBUTARY_SESSION_OPTIONS */
	uint32_t buffer_kb; /* default: 4096 */
	bool discard; /* keep the oldest data, not the newest */
	/*
	 * Names or patterns ("net*"), NULL behind the last; NULL: all but those
	 * with the tags "slow" and "debug".
	 */
	const char *const *categories;
	uint32_t seconds; /* then it stops by itself; 0: not */
	/* Name of a service's session; NULL: none. */
	const char *unique_name;
	/* Threads wait up to TRIBUTARY_STALL_MS, and drop only then. */
	bool stall;
};
#define TRIBUTARY_SESSION_OPTIONS { sizeof(struct tributary_session_options),  \
	0, false, NULL, 0, NULL, false }
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

/*
 * ---- Sessions inside of this program ----
 *
 * A local session records this program's own data sources, track events among
 * them, into buffers in its own memory: no service is needed, and
 * tributary_start() neither.  It records beside the sessions of a service, and
 * beside other local ones.  In a ring the newest data replaces the oldest: a
 * flight recorder, of which tributary_local_snapshot() writes a copy at any
 * time.
 *
 * The functions may be called from any thread, but not from callbacks of data
 * sources and not from signal handlers; one session is read by one thread at a
 * time, others wait.  In a child of fork() a session of the parent is gone:
 * functions fail, tributary_local_why() says so, and tributary_local_free() is
 * all that is left to do.
 */
struct tributary_local;

/*
 * config: an encoded TraceConfig (buffers with size_kb, fill_policy and name;
 * data_sources; duration_ms; flush_period_ms; incremental_state_config;
 * builtin_data_sources; timeouts).  A data source that the program registers
 * later is started then.  NULL, with a sentence in why: a field that is not
 * known, or that a session inside of a program cannot do, or no memory.
 */
TRIBUTARY_API struct tributary_local *tributary_session_local(
    const void *config, size_t len, char *why, size_t why_len);

/* The usual session: track events into one buffer. */
TRIBUTARY_API struct tributary_local *tributary_session_local_simple(
    const struct tributary_session_options *options, char *why, size_t why_len);

/*
 * Ends the session, if it runs, and forgets what it holds.  NULL is fine.
 */
TRIBUTARY_API void tributary_local_free(struct tributary_local *l);

/*
 * Returns when the data sources have started.  False: a data source refused, or
 * the session has been started before; tributary_local_why() says which.
 */
TRIBUTARY_API bool tributary_local_start(struct tributary_local *l);
/*
 * Takes what threads have written so far into the buffers.  False: not within
 * timeout_ms, or the session does not run.
 */
TRIBUTARY_API bool tributary_local_flush(struct tributary_local *l,
    unsigned timeout_ms);
/*
 * Ends the recording, with a flush; the data stays.  False: not within
 * timeout_ms (it goes on ending), or it does not run.
 */
TRIBUTARY_API bool tributary_local_stop(struct tributary_local *l,
    unsigned timeout_ms);
/*
 * Waits until the recording has ended: by tributary_local_stop(), or by the
 * duration of its config.  False: not within timeout_ms.
 */
TRIBUTARY_API bool tributary_local_wait(struct tributary_local *l,
    unsigned timeout_ms);
/* Why the last function that failed did so: a sentence; "": none has. */
TRIBUTARY_API const char *tributary_local_why(const struct tributary_local *l);

/*
 * A copy of what the session holds, to be read (and freed) while the session
 * goes on; flushes first, for at most timeout_ms, and copies also what came
 * later than that.  NULL: no memory, or it is gone.
 */
TRIBUTARY_API struct tributary_local *tributary_local_clone(
    struct tributary_local *l, unsigned timeout_ms);

/*
 * Reads the trace: calls packet for each TracePacket, on the calling thread;
 * data is borrowed for the call.  Packets are read once; more may come while the
 * session runs, for a further call.  packet returns false to end the reading;
 * what was to follow, up to 256 KiB, is then lost.  False: ended so, or no
 * memory.
 */
TRIBUTARY_API bool tributary_local_read(struct tributary_local *l,
    tributary_packet_fn packet, void *arg);
/*
 * As tributary_local_read(), as a trace file at the descriptor's offset, or in a
 * new file (mode 0600, or as the file is that it replaces).  False, with errno
 * and tributary_local_why(): it could not be written.
 */
TRIBUTARY_API bool tributary_local_write(struct tributary_local *l, int fd);
TRIBUTARY_API bool tributary_local_write_path(struct tributary_local *l,
    const char *path);
/* Clones the session, and writes the clone. */
TRIBUTARY_API bool tributary_local_snapshot(struct tributary_local *l,
    const char *path, unsigned timeout_ms);

/*
 * Whole packets.  After the session has ended and was read to its end, nothing
 * is uncounted: written = read + overwritten + discarded + invalid.
 */
struct tributary_local_stats {
	size_t size; /* of this struct; set it before the call */
	uint64_t written;     /* that reached the session */
	uint64_t read;
	uint64_t overwritten; /* in a ring, unread; before the end: 0 */
	uint64_t discarded;   /* as the buffer was full */
	uint64_t dropped;     /* by threads: they found no memory for them */
	uint64_t invalid;     /* not a message, or with fields of a service */
};
TRIBUTARY_API void tributary_local_stats(struct tributary_local *l,
    struct tributary_local_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* TRIBUTARY_SESSION_H */
