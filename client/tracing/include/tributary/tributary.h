/*
 * tributary: the connection of this program to a tracing service.
 *
 * The program calls tributary_start() once; a thread of the library (or the
 * program's own event loop) connects to the service (tributaryd,
 * tributary-relay or Perfetto's traced), waits for one that is not there, and
 * connects again after it restarts.  What is traced is in
 * <tributary/track_event.h> and <tributary/data_source.h>.
 *
 * Every function may be called from any thread, also before tributary_start().
 * No function changes errno, and none but tributary_stop() and
 * tributary_flush() waits for the service, unless a data source's policy says
 * so.  C11, and C++17.
 */
#ifndef TRIBUTARY_TRIBUTARY_H
#define TRIBUTARY_TRIBUTARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRIBUTARY_API __attribute__((visibility("default")))

enum tributary_log_level {
	TRIBUTARY_LOG_INFO = 0,
	TRIBUTARY_LOG_WARNING = 1,
	TRIBUTARY_LOG_ERROR = 2,
};

enum tributary_children {
	/*
	 * A child of fork() connects as a producer of its own; not if the loop
	 * is the program's, as there is none in the child.
	 */
	TRIBUTARY_CHILDREN_TRACE = 0,
	/* A child of fork() does not trace. */
	TRIBUTARY_CHILDREN_DO_NOT_TRACE = 1,
};

/* The other end of a connection that the program makes. */
enum tributary_reach {
	/* As the kernel says of the socket. */
	TRIBUTARY_REACH_SOCKET = 0,
	/* Through a network (TLS, say): it sees where the bytes come from. */
	TRIBUTARY_REACH_NETWORK = 1,
	/* Through a tunnel (ssh, say): it sees the tunnel in our place. */
	TRIBUTARY_REACH_TUNNEL = 2,
};

/* The thread that does the library's work. */
enum tributary_loop {
	/* One of its own, as "the library's thread" everywhere below. */
	TRIBUTARY_LOOP_THREAD = 0,
	/*
	 * The program's, which called tributary_start(): it waits for
	 * tributary_fd() and calls tributary_turn().  The library makes no
	 * thread, and all callbacks come from inside tributary_turn().
	 */
	TRIBUTARY_LOOP_PROGRAM = 1,
};

/*
 * Begin with TRIBUTARY_OPTIONS; 0 and NULL are the defaults.  Strings are
 * copied.
 */
struct tributary_options {
	size_t size; /* of this struct; set by TRIBUTARY_OPTIONS */
	/* The producer's name; default: the program's. */
	const char *name;
	/*
	 * The service's producer port: /path, @abstract, host:port,
	 * vsock://CID:PORT.  Default: PERFETTO_PRODUCER_SOCK_NAME of the
	 * environment, else /run/perfetto/traced-producer.sock, else
	 * /tmp/perfetto-producer.
	 */
	const char *address;
	/*
	 * Makes the connection instead of address: returns a connected stream
	 * socket, which the library closes, or -1.  Called by the library's
	 * thread before each attempt to connect.
	 */
	int (*connect)(void *arg);
	void *arg; /* of connect, log and state */
	/*
	 * Hints for the memory shared with the service, in bytes; default:
	 * 256 KiB in pages of 4 KiB.
	 */
	uint32_t memory_bytes;
	uint32_t page_bytes;
	/* Name of this machine for a remote service; default: its host name. */
	const char *machine_name;
	enum tributary_children children;
	/* Called by any thread with a sentence about the connection. */
	void (*log)(void *arg, enum tributary_log_level level,
	    const char *sentence);
	enum tributary_reach reach; /* of what connect returns */
	enum tributary_loop loop;
	/*
	 * Called by the library's thread: the service has taken the program's
	 * data sources (connected), or the connection has ended or was not
	 * made.  why: a clause, borrowed for the call, NULL if connected; error:
	 * the errno, where the socket could not be connected, else 0.  Comes
	 * with each attempt to connect, of which the library makes the next by
	 * itself; log then hears nothing of the connection.
	 */
	void (*state)(void *arg, bool connected, int error, const char *why);
};

#define TRIBUTARY_OPTIONS { sizeof(struct tributary_options), NULL, NULL,      \
	NULL, NULL, 0, 0, NULL, TRIBUTARY_CHILDREN_TRACE, NULL,                \
	TRIBUTARY_REACH_SOCKET, TRIBUTARY_LOOP_THREAD, NULL }

/*
 * Starts the library's thread.  NULL: the defaults.  0, also when it runs
 * already (with the options of the first call); -1: no memory, no thread, an
 * address that is none (log says which), or a size of 0: the struct did not
 * begin as TRIBUTARY_OPTIONS.
 *
 * With TRIBUTARY_LOOP_PROGRAM: the calling thread is the loop's.  -1 also when
 * a session inside of the program (<tributary/session.h>) has begun before, for
 * which the library has a thread; none can be begun until tributary_stop().
 */
TRIBUTARY_API int tributary_start(const struct tributary_options *options);

/*
 * TRIBUTARY_LOOP_PROGRAM: the descriptor that is readable when
 * tributary_turn() is due; the library's, from tributary_start() until
 * tributary_stop(), and not in a child of fork().  -1: there is none.
 */
TRIBUTARY_API int tributary_fd(void);
/*
 * Does what is due, without waiting but for what a data source's policy says.
 * To be called by the loop's thread, and not from inside a callback.
 */
TRIBUTARY_API void tributary_turn(void);

/*
 * Begin with TRIBUTARY_STARTUP_OPTIONS; 0 and NULL are the defaults.  All is
 * copied.
 */
struct tributary_startup_options {
	size_t size; /* of this struct; set by TRIBUTARY_STARTUP_OPTIONS */
	/* Names or patterns, then NULL; default: as of a session without any. */
	const char *const *categories;
	/* A data source of the program's own; default: track events. */
	const char *source;
	/* More fields of its DataSourceConfig, encoded. */
	const void *config;
	size_t config_len;
	/* Most that is recorded; default: 1 MiB.  More is dropped. */
	uint32_t memory_kb;
	/* For so long; default: 10 seconds.  UINT32_MAX: for ever. */
	uint32_t timeout_ms;
	/*
	 * Called at the end, by the library's thread or in tributary_stop(),
	 * which it must not call.  adopted: a session has what was recorded;
	 * lost: packets that it has not.
	 */
	void (*ended)(void *arg, bool adopted, uint64_t lost);
	void *arg;
};

#define TRIBUTARY_STARTUP_OPTIONS { sizeof(struct tributary_startup_options),  \
	NULL, NULL, NULL, 0, 0, 0, NULL, NULL }

/*
 * Records from now on, before a service asks for it: the first session of a
 * service that asks for the data source has what was recorded, and goes on with
 * it; of each event either the one or the other has it.  May be called before
 * tributary_start(), at the very beginning of a program.  A data source has its
 * callbacks for the recording as for a session; set-up and start are called by
 * the caller's thread, and it has stopped when stop() returns.
 *
 * 0; -1: no memory, no such data source, or one that is recorded already.
 */
TRIBUTARY_API int tributary_startup(
    const struct tributary_startup_options *options);

/*
 * Ends all tracing of this program: what was written reaches the service, up
 * to timeout_ms (0: one second); then the thread ends.  tributary_start() may
 * follow.  With TRIBUTARY_LOOP_PROGRAM it is the loop's thread that calls it,
 * and that turns meanwhile; other threads' calls do nothing.
 */
TRIBUTARY_API void tributary_stop(unsigned timeout_ms);

/*
 * Hands all that was written so far to the service.  True: it has it; false:
 * not within timeout_ms, or there is none, or the caller is a callback.
 */
TRIBUTARY_API bool tributary_flush(unsigned timeout_ms);

/* Waits until the service has answered.  False: not within timeout_ms. */
TRIBUTARY_API bool tributary_wait_connected(unsigned timeout_ms);

/* Tells the service's sessions that wait for this trigger that it happened. */
TRIBUTARY_API void tributary_trigger(const char *name);

/* Nanoseconds of the clock of all timestamps: CLOCK_BOOTTIME. */
TRIBUTARY_API uint64_t tributary_now_ns(void);

/* "0.1.0" */
TRIBUTARY_API const char *tributary_version(void);

#ifdef __cplusplus
}
#endif

#endif /* TRIBUTARY_TRIBUTARY_H */
