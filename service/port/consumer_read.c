#include "protos/fields.h"
#include "service/config/config.h"
#include "service/model/model.h"
#include "service/onlookers/query.h"
#include "service/output/read_reply.h"
#include "service/port/consumer_internal.h"
#include "service/session/session.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Replies of a read that are queued before the reader must catch up. */
#define READ_QUEUE_BYTES (256u * 1024u)
/* Replies made in one turn of the loop: others want their turn too. */
#define READ_REPLIES_PER_TURN 4u
/* Parts of a service state; the frame adds little. */
#define STATE_PART_BYTES (64u * 1024u)

/* ---- ReadBuffers ---- */

static void
read_end(struct consumer_port *p)
{
	read_reply_free(p->out);
	p->out = NULL;
	p->read.conn = NULL;
}

static void
read_some(void *arg)
{
	struct consumer_port *p = arg;
	enum read_reply_result r;
	const uint8_t *msg;
	size_t len;
	unsigned n;

	for (n = 0; p->out != NULL && n < READ_REPLIES_PER_TURN; n++) {
		if (rpc_conn_queued(p->conn) >= READ_QUEUE_BYTES)
			return; /* drained() goes on */
		r = read_reply_next(p->out, &msg, &len);
		if (r == READ_REPLY_WAIT)
			return; /* it calls us again */
		rpc_reply(p->read, msg, len, r == READ_REPLY_MORE, -1);
		if (r == READ_REPLY_LAST)
			read_end(p);
	}
	if (p->out != NULL)
		loop_defer(p->service->loop, &p->read_call, read_some, p);
}

void
consumer_cut_read(struct consumer_port *p)
{
	if (p->out == NULL)
		return;
	rpc_reply(p->read, NULL, 0, false, -1);
	read_end(p);
}

enum rpc_verdict
consumer_read_buffers(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct consumer_port *p = ctx;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	if (p->session == NULL && p->discarded)
		return consumer_done(call);
	if (p->session == NULL || p->out != NULL)
		return RPC_REJECT;
	/* Reading consumes the buffers, whose data belongs into the file. */
	if (p->session->state != SESSION_CLONED &&
	    p->session->config->pb->write_into_file)
		return RPC_REJECT;
	if (session_reads_nothing(p->session)) {
		if (p->session->state != SESSION_DISABLED)
			return RPC_REJECT;
		/* Without its trigger: clients wait for an empty trace. */
		return consumer_done(call);
	}
	if ((p->out = read_reply_new(p->session, read_some, p)) == NULL)
		return RPC_REJECT;
	p->read = call;
	read_some(p);
	return RPC_OK;
}

/* ---- QueryServiceState ---- */

void
consumer_query_end(struct consumer_port *p)
{
	query_free(p->query);
	p->query = NULL;
	p->state.conn = NULL;
}

/* As read_some(): ten thousand producers are megabytes. */
static void
query_some(void *arg)
{
	struct consumer_port *p = arg;
	const struct pb_writer *part;
	unsigned n;
	bool last;

	for (n = 0; p->query != NULL && n < READ_REPLIES_PER_TURN; n++) {
		if (rpc_conn_queued(p->conn) >= READ_QUEUE_BYTES)
			return; /* drained() goes on */
		if ((part = query_next(p->query, STATE_PART_BYTES,
			 &last)) == NULL) {
			rpc_reject(p->state);
			consumer_query_end(p);
			return;
		}
		rpc_reply(p->state, part->data, part->len, !last, -1);
		if (last)
			consumer_query_end(p);
	}
	if (p->query != NULL)
		loop_defer(p->service->loop, &p->query_call, query_some, p);
}

enum rpc_verdict
consumer_query_state(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct consumer_port *p = ctx;
	struct pb_reader r;
	struct pb_field f;
	bool sessions_only = false;

	PB_FOREACH(&f, &r, args, len)
		if (f.number == QueryServiceStateRequest_sessions_only)
			sessions_only = f.value != 0;
	if (r.bad)
		return RPC_BAD_ARGS;
	if (!call.wants_reply)
		return RPC_OK;
	/* One answer at a time. */
	if (p->query != NULL ||
	    (p->query = query_new(p->service, &p->who, sessions_only)) == NULL)
		return RPC_REJECT;
	p->state = call;
	query_some(p);
	return RPC_OK;
}

/* ---- both ---- */

void
consumer_drained(void *ctx)
{
	struct consumer_port *p = ctx;

	if (p->out != NULL)
		read_some(p);
	if (p->query != NULL)
		query_some(p);
	observer_drained(&p->observer);
}

void
consumer_let_go(struct consumer_port *p)
{
	if (p->out != NULL) {
		rpc_reject(p->read);
		read_end(p);
	}
	loop_cancel(p->service->loop, p);
	/* A question about the service is none about the session. */
	if (p->query != NULL)
		loop_defer(p->service->loop, &p->query_call, query_some, p);
	if (p->session != NULL)
		consumer_fail_flushes(p);
	p->session = NULL;
}
