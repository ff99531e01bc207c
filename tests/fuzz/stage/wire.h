/*
 * wire: one client's end of a connection to the service in this process:
 * frames out, replies in, a descriptor that came along.  What does not fit into
 * the socket now is cut off, and the service sees a broken frame.
 */
#ifndef TESTS_FUZZ_STAGE_WIRE_H
#define TESTS_FUZZ_STAGE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct peer;
struct pb_writer;
struct rpc_guard;
struct rpc_service;
struct rpc_stats;

/* Where one connects to: what is offered there.  All borrowed. */
struct wire_entry {
	struct loop *loop;
	const struct rpc_service *const *services;
	size_t n_services;
	struct rpc_stats *stats;
	const struct rpc_guard *guard; /* NULL: none */
};

/* One InvokeMethodReply; fd >= 0 is the callee's. */
typedef void (*wire_reply_fn)(void *arg, uint64_t request, bool ok, bool more,
    const uint8_t *msg, size_t len, int fd);

struct wire {
	int fd; /* -1: not connected */
	bool deaf;
	/* Sent before it binds; borrowed; NULL: nothing. */
	const struct pb_writer *hello;
	uint32_t service; /* as it is bound: its place in the list, plus 1 */
	uint64_t request; /* the last */
	uint8_t *in;
	size_t in_len;
	wire_reply_fn reply; /* NULL: nobody listens, bytes are thrown away */
	void *arg;
};

void wire_init(struct wire *w);
/* Connects and binds the which-th service; peer NULL: whoever we are. */
void wire_open(struct wire *w, const struct wire_entry *e, size_t which,
    const struct peer *peer);
void wire_close(struct wire *w);

/* Bytes as they are; fd >= 0 goes along. */
void wire_send(struct wire *w, const void *data, size_t len, int fd);
/* Returns the request's id; args NULL: none. */
uint64_t wire_call(struct wire *w, uint32_t method, const struct pb_writer *args,
    int fd, bool drop_reply);
/* Reads what is there. */
void wire_read(struct wire *w);

#endif /* TESTS_FUZZ_STAGE_WIRE_H */
