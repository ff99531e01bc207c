/*
 * load_conn: one connection to the daemon that calls methods and waits for
 * their replies, for tests and benchmarks that need speed.
 *
 * Blocking, single-threaded, and of its own making: it shares nothing with
 * transport/rpc/rpc_client but the protobuf reader and writer.  Any failure
 * ends the process with a sentence, as a load generator has nobody to report
 * to.
 */
#ifndef TESTS_LOAD_LOAD_CONN_H
#define TESTS_LOAD_LOAD_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_FRAME_MAX (128u * 1024u)
#define LOAD_METHODS 24
#define LOAD_HOST_SIZE 64

struct tls_conn;

struct load_method {
	char name[32];
	uint32_t id;
};

struct load_reply {
	uint64_t request_id;
	bool success;
	bool has_more;
	const uint8_t *msg; /* borrowed until the next receive */
	size_t len;
};

struct load_conn {
	int fd;
	struct tls_conn *tls; /* owned; NULL: plain */
	uint32_t service_id;
	uint64_t next_id;
	struct load_method methods[LOAD_METHODS];
	size_t n_methods;
	uint8_t *in; /* owned; LOAD_FRAME_MAX * 2 bytes */
	size_t in_len;
	size_t in_used;
	int received_fd; /* -1: none; taken by load_conn_take_fd() */
};

/* Prints the sentence and exits with status 1. */
void load_die(const char *fmt, ...)
    __attribute__((__noreturn__, __format__(__printf__, 1, 2)));

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t load_now_ns(void);

/*
 * A connected socket.  address: "/path", "@name", "host:port" (numeric),
 * "vsock:CID:PORT", "tls://host:port" (whose handshake is still to come).
 */
int load_conn_connect(const char *address);
/* The host of "host:port" or "tls://host:port". */
void load_conn_host(const char *address, char host[LOAD_HOST_SIZE]);
/* Connects, with the handshake of load_tls_use(), and binds the service. */
void load_conn_open(struct load_conn *c, const char *address,
    const char *service);
/*
 * The same in steps, for whoever has many connections under way: takes a
 * connected socket and the tls_conn whose handshake is done; asks; and looks
 * whether the answer is there, never blocking.
 */
void load_conn_adopt(struct load_conn *c, int fd, struct tls_conn *tls);
void load_conn_ask_bind(struct load_conn *c, const char *service);
bool load_conn_try_bound(struct load_conn *c);
void load_conn_close(struct load_conn *c);

uint32_t load_conn_method(const struct load_conn *c, const char *name);

/* Sends; returns the request id.  fd -1: none. */
uint64_t load_conn_call(struct load_conn *c, const char *method,
    const void *args, size_t len, bool drop_reply, int fd);

/* The next reply, whichever call it belongs to; blocks. */
void load_conn_receive(struct load_conn *c, struct load_reply *out);
/* The same, but false when none is complete after one read that may not block.
 */
bool load_conn_try_receive(struct load_conn *c, struct load_reply *out);
/*
 * Waits for the reply to one call; others that come before it go to other(),
 * or nowhere when it is NULL.  Dies when the call was rejected.
 */
typedef void (*load_reply_fn)(void *arg, const struct load_reply *r);
void load_conn_wait(struct load_conn *c, uint64_t request_id,
    load_reply_fn other, void *arg, struct load_reply *out);

/* The last descriptor that came, or -1; the caller owns it. */
int load_conn_take_fd(struct load_conn *c);

/* Writes all of it, blocking. */
void load_conn_write(struct load_conn *c, const void *data, size_t len);

#endif /* TESTS_LOAD_LOAD_CONN_H */
