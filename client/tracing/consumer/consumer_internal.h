/*
 * consumer_internal: state of a consumer, shared by consumer.c (requests) and
 * consumer_reply.c (replies).
 */
#ifndef CLIENT_TRACING_CONSUMER_CONSUMER_INTERNAL_H
#define CLIENT_TRACING_CONSUMER_CONSUMER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "client/tracing/consumer/consumer.h"
#include "client/tracing/consumer/slice_joiner.h"
#include "transport/wire/pb_writer.h"

struct consumer_call {
	LIST_ENTRY(consumer_call) link;
	struct consumer *c; /* back-pointer */
	/* Decides how the reply is decoded, and which of fn is set. */
	enum consumer_method method;
	union {
		consumer_done_fn done;
		consumer_message_fn message;
		consumer_clone_fn clone;
	} fn;
	void *arg;
	struct pb_writer parts; /* of a message, so far */
	bool failed;            /* consumer_wire_failed() tells */
};

/*
 * While busy is not 0 a callback of ours is on the stack, and consumer_free()
 * only marks the consumer closed; the outermost leave() frees it.
 */
struct consumer {
	const struct consumer_ops *ops;
	void *arg;
	const struct consumer_wire *wire_ops;
	void *wire;
	LIST_HEAD(, consumer_call) calls;
	struct slice_joiner joiner; /* of CONSUMER_READ_BUFFERS */
	bool fds;                   /* the connection passes descriptors */
	bool no_memory;             /* consumer_wire_failed() tells */
	bool closed;
	unsigned busy;              /* depth of callbacks on the stack */
};

/* Takes a message of the reply; more: further ones follow. */
void consumer_reply_good(struct consumer_call *k, const uint8_t *msg,
    size_t len, bool more);
/* Tells the owner that a call was refused or its method is unknown. */
void consumer_reply_bad(struct consumer_call *k);

#endif /* CLIENT_TRACING_CONSUMER_CONSUMER_INTERNAL_H */
