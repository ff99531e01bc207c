#include "protos/fields.h"
#include "service/model/model.h"
#include "service/onlookers/query.h"
#include "service/output/session_stats.h"
#include "service/port/consumer_internal.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

enum rpc_verdict
consumer_get_trace_stats(void *ctx, struct rpc_call call,
    const uint8_t *args, size_t len)
{
	struct consumer_port *p = ctx;
	struct pb_writer w;
	size_t mark;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	if (p->session == NULL)
		return RPC_REJECT;
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, GetTraceStatsResponse_trace_stats);
	session_stats_message(p->session, &w);
	pb_nest_end(&w, mark);
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
	return RPC_OK;
}

enum rpc_verdict
consumer_observe_events(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct consumer_port *p = ctx;
	struct session *s = p->session;
	const struct ds_instance *i;
	uint32_t mask;

	if (!observer_parse(args, len, &mask))
		return RPC_BAD_ARGS;
	observer_set(&p->observer, call, mask);
	if (s == NULL)
		return RPC_OK;
	/*
	 * The stream begins with the present states: an instance that was not
	 * started yet counts as stopped; one that is starting or stopping is
	 * told when it has.
	 */
	TAILQ_FOREACH(i, &s->instances, of_session)
		if (i->state != INSTANCE_STARTING &&
		    i->state != INSTANCE_STOPPING)
			observer_instance(&p->observer, i->producer->name,
			    i->name, i->state == INSTANCE_STARTED);
	if (s->all_started_said)
		observer_all_started(&p->observer);
	return RPC_OK;
}

enum rpc_verdict
consumer_query_caps(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct pb_writer w;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	pb_writer_init(&w);
	query_capabilities(&w);
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
	return RPC_OK;
}

enum rpc_verdict
consumer_save_for_bugreport(void *ctx, struct rpc_call call,
    const uint8_t *args, size_t len)
{
	struct pb_writer w;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	pb_writer_init(&w);
	pb_put_uint(&w, SaveTraceForBugreportResponse_success, 0);
	pb_put_string(&w, SaveTraceForBugreportResponse_msg,
	    "SaveTraceForBugreport is not supported by this "
	    "service: use CloneSession with for_bugreport");
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
	return RPC_OK;
}
