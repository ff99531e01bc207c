/*
 * consumer_internal: declarations that the files of the ConsumerPort share:
 * consumer_port.c (the connection, and the calls of its session),
 * consumer_session.c (the life of its session), consumer_flush.c,
 * consumer_read.c (replies in many parts), consumer_query.c (questions) and
 * consumer_clone.c.  For them only.
 */
#ifndef SERVICE_PORT_CONSUMER_INTERNAL_H
#define SERVICE_PORT_CONSUMER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "service/access/principal.h"
#include "service/port/observer.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"

struct consumer_ops;
struct flush_call;
struct query;
struct read_reply;
struct service;
struct session;

struct consumer_port {
	struct service *service;
	struct rpc_conn *conn;
	struct principal who;
	struct session *session; /* NULL: none, or detached */
	bool discarded;          /* a command freed the last session */
	struct rpc_call enable;  /* EnableTracing; conn NULL: none is open */
	struct rpc_call clone;   /* CloneSession in progress */
	struct read_reply *out;    /* ReadBuffers in progress, else NULL */
	struct rpc_call read;
	TAILQ_HEAD(, flush_call) flushes;
	size_t n_flushes;
	struct observer observer;
	struct query *query;     /* QueryServiceState in progress, else NULL */
	struct rpc_call state;
	struct loop_call read_call, query_call;
};

/* Calls from the session of a port (session.h). */
extern const struct consumer_ops consumer_session_ops;

/* Sends an empty reply. */
enum rpc_verdict consumer_done(struct rpc_call call);
/* EnableTracing's reply, if it is still awaited.  error NULL: as planned. */
void consumer_reply_disabled(struct consumer_port *p, const char *error);
/* Ends the calls that are under way for the session, which lives on. */
void consumer_let_go(struct consumer_port *p);
/* Ends a ReadBuffers in progress as if the trace ended here. */
void consumer_cut_read(struct consumer_port *p);
/* Answers all flushes that are under way: they failed. */
void consumer_fail_flushes(struct consumer_port *p);
/* Output has room again: goes on with replies in parts. */
void consumer_drained(void *port);
/* Frees what a QueryServiceState in progress holds. */
void consumer_query_end(struct consumer_port *p);

/* The methods (rpc_method_fn). */
#define CONSUMER_METHOD(name)                                                 \
	enum rpc_verdict consumer_##name(void *port, struct rpc_call call,    \
	    const uint8_t *args, size_t len)
CONSUMER_METHOD(enable_tracing);
CONSUMER_METHOD(disable_tracing);
CONSUMER_METHOD(read_buffers);
CONSUMER_METHOD(free_buffers);
CONSUMER_METHOD(flush);
CONSUMER_METHOD(start_tracing);
CONSUMER_METHOD(change_config);
CONSUMER_METHOD(detach);
CONSUMER_METHOD(attach);
CONSUMER_METHOD(get_trace_stats);
CONSUMER_METHOD(observe_events);
CONSUMER_METHOD(query_state);
CONSUMER_METHOD(query_caps);
CONSUMER_METHOD(save_for_bugreport);
CONSUMER_METHOD(clone_session);
#undef CONSUMER_METHOD

#endif /* SERVICE_PORT_CONSUMER_INTERNAL_H */
