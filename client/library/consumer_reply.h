/*
 * consumer_reply: decodes replies of the ConsumerPort and calls the callbacks
 * of the consumer's owner.  Private to consumer.c, with its structs.
 */
#ifndef CLIENT_LIBRARY_CONSUMER_REPLY_H
#define CLIENT_LIBRARY_CONSUMER_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "client/library/consumer.h"
#include "client/trace/slice_joiner.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_writer.h"

struct rpc_client;

/* The method called, which decides how its reply is decoded. */
enum consumer_call_kind {
	CALL_ENABLE,  /* EnableTracing: answered when the session ends */
	CALL_DONE,    /* an empty reply */
	CALL_READ,    /* ReadBuffers: a stream */
	CALL_STATS,
	CALL_STATE,   /* QueryServiceState: parts of one message */
	CALL_RAW_STATE, /* the same, not decoded */
	CALL_OBSERVE, /* ObserveEvents: a stream without end */
	CALL_ATTACH,
	CALL_CLONE,
};

struct consumer_call {
	LIST_ENTRY(consumer_call) link;
	struct consumer *c; /* back-pointer */
	enum consumer_call_kind kind;
	union {
		consumer_done_fn done;
		consumer_stats_fn stats;
		consumer_state_fn state;
		consumer_raw_state_fn raw_state;
		consumer_attach_fn attach;
		consumer_clone_fn clone;
	} fn;
	void *arg;
	struct pb_writer parts; /* CALL_STATE, CALL_RAW_STATE: reply so far */
	bool failed;            /* consumer.c's report_failed() tells fn */
};

/*
 * While busy is not 0 a callback of ours is on the stack, and consumer_free()
 * only marks the consumer closed; the outermost leave() frees it.
 */
struct consumer {
	struct loop *loop;
	struct rpc_client *rpc; /* owned */
	const struct consumer_ops *ops;
	void *arg;
	LIST_HEAD(, consumer_call) calls;
	struct slice_joiner joiner; /* CALL_READ */
	bool fds;                   /* the connection passes descriptors */
	bool closed;
	unsigned busy;              /* depth of callbacks on the stack */
	struct loop_call failed_call, no_memory_call;
};

/* Takes a message of the reply; more: further ones follow. */
void consumer_reply_good(struct consumer_call *k, const uint8_t *msg,
    size_t len, bool more);
/* Tells the owner that a call was refused or its method is unknown. */
void consumer_reply_bad(struct consumer_call *k);

#endif /* CLIENT_LIBRARY_CONSUMER_REPLY_H */
