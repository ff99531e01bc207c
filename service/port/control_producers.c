#include "service/port/control_internal.h"

#include "transport/wire/pb_reader.h"
#include "service/model/model.h"
#include "service/session/producer.h"
#include "service/session/quota.h"

/* Field numbers: protos/control.proto. */
enum {
	REPLY_PRODUCERS = 1,
	P_ID = 1,
	P_NAME = 2,
	P_MACHINE_ID = 3,
	P_MACHINE_NAME = 4,
	P_PID = 5,
	P_UID = 6,
	P_DATA_SOURCES = 7,
	P_INSTANCES = 8,
	P_BYTES = 9,
	P_PACKETS = 10,
	P_LOST = 11,
	P_QUOTA = 12,
};

static void
put_producer(struct pb_writer *w, const struct producer *p)
{
	size_t mark = pb_nest_begin(w, REPLY_PRODUCERS);
	struct quota_counts quota;

	pb_put_uint(w, P_ID, p->id);
	pb_put_string(w, P_NAME, p->name);
	pb_put_uint(w, P_MACHINE_ID, p->machine->id);
	if (producer_machine_name(p) != NULL)
		pb_put_string(w, P_MACHINE_NAME, producer_machine_name(p));
	pb_put_int(w, P_PID, p->pid);
	pb_put_int(w, P_UID, p->uid);
	pb_put_uint(w, P_DATA_SOURCES, p->n_data_sources);
	pb_put_uint(w, P_INSTANCES, p->n_instances);
	pb_put_uint(w, P_BYTES, p->wrote.bytes);
	pb_put_uint(w, P_PACKETS, p->wrote.packets);
	pb_put_uint(w, P_LOST, p->wrote.lost);
	quota_counts_of_producer(p, &quota);
	control_put_quota(w, P_QUOTA, &quota);
	pb_nest_end(w, mark);
}

static void
put_head(struct control *p, struct pb_writer *part)
{
}

/* All of them were written when the question came: they come and go. */
static bool
put_next(struct control *p, struct pb_writer *entry)
{
	struct pb_reader r;
	struct pb_field f;

	/* Without a producer it has no memory either. */
	if (p->told.len == p->next)
		return false;
	pb_init(&r, p->told.data + p->next, p->told.len - p->next);
	if (!pb_next(&r, &f))
		return false;
	pb_put_raw(entry, f.start, (size_t)(r.p - f.start));
	p->next += (size_t)(r.p - f.start);
	return true;
}

static const struct control_question question = {
	.head = put_head,
	.entry = put_next,
};

enum rpc_verdict
control_query_producers(void *port, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	const struct producer *producer;
	struct control *p = port;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	if (p->question != NULL)
		return RPC_REJECT;
	pb_writer_reset(&p->told);
	TAILQ_FOREACH(producer, &p->service->producers, link)
		if (!producer->gone)
			put_producer(&p->told, producer);
	if (p->told.failed)
		return RPC_REJECT;
	control_answer(p, call, &question);
	return RPC_OK;
}
