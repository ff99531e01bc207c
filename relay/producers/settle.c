/* Flushes that the relay itself asks for, before it leaves a collector. */
#include "protos/fields.h"
#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "transport/wire/pb_writer.h"

/* Sends a command for all running instances: Flush with an id, or Clear. */
static void
send_for_all(struct local *l, uint32_t command, uint64_t flush_id)
{
	const struct local_instance *i;
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, command);
	/* ClearIncrementalState has its ids in the same field. */
	TAILQ_FOREACH(i, &l->instances, link)
		if (i->state < LOCAL_INSTANCE_STOPPING)
			pb_put_uint(&w, Flush_data_source_ids, i->id);
	if (flush_id != 0)
		pb_put_uint(&w, Flush_request_id, flush_id);
	pb_nest_end(&w, mark);
	producer_server_send(&l->server, &w, -1);
	pb_writer_done(&w);
}

static bool
runs(const struct local *l)
{
	const struct local_instance *i;

	if (l->state != LOCAL_ANNOUNCED)
		return false;
	TAILQ_FOREACH(i, &l->instances, link)
		if (i->state < LOCAL_INSTANCE_STOPPING)
			return true;
	return false;
}

void
local_settled(struct local *l)
{
	struct producers *ps = l->owner;

	if (runs(l))
		send_for_all(l,
		    GetAsyncCommandResponse_clear_incremental_state, 0);
	if (ps->settle.settled != NULL)
		ps->settle.settled(ps->settle.arg, l->channel);
}

void
producers_settle(struct producers *ps, const struct producers_settle *settle)
{
	struct local *l, *next;
	uint64_t id;

	ps->settle = *settle;
	ps->settle_after = ps->last_flush;
	TAILQ_FOREACH_SAFE(l, &ps->locals, link, next) {
		if (!runs(l))
			continue;
		id = ++ps->last_flush;
		settle->asked(settle->arg, l->channel);
		send_for_all(l, GetAsyncCommandResponse_flush, id);
		local_flush_begin(l, id, 0, 0, false);
	}
}

void
producers_settle_end(struct producers *ps)
{
	ps->settle.settled = NULL;
}
