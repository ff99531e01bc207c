/*
 * tributary: the connection of this program to a tracing service.
 *
 * The program calls tributary_start() once; a thread of the library connects
 * to the service (tributaryd, tributary-relay or Perfetto's traced), waits for
 * one that is not there, and connects again after it restarts.  What is traced
 * is in <tributary/track_event.h> and <tributary/data_source.h>.
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
	/* A child of fork() connects as a producer of its own. */
	TRIBUTARY_CHILDREN_TRACE = 0,
	/* A child of fork() does not trace. */
	TRIBUTARY_CHILDREN_DO_NOT_TRACE = 1,
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
	void *arg; /* of connect and log */
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
};

#define TRIBUTARY_OPTIONS { sizeof(struct tributary_options), NULL, NULL,      \
	NULL, NULL, 0, 0, NULL, TRIBUTARY_CHILDREN_TRACE, NULL }

/*
 * Starts the library's thread.  NULL: the defaults.  0, also when it runs
 * already (with the options of the first call); -1: no memory, no thread, or
 * an address that is none (log says which).
 */
TRIBUTARY_API int tributary_start(const struct tributary_options *options);

/*
 * Ends all tracing of this program: what was written reaches the service, up
 * to timeout_ms (0: one second); then the thread ends.  tributary_start() may
 * follow.
 */
TRIBUTARY_API void tributary_stop(unsigned timeout_ms);

/*
 * Hands all that was written so far to the service.  True: it has it; false:
 * not within timeout_ms, or there is none.
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
