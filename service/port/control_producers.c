#include "protos/fields.h"
#include "service/ingest/quota.h"
#include "service/model/model.h"
#include "service/port/control_internal.h"
#include "service/session/producer.h"
#include "transport/wire/pb_reader.h"

/* A producer may claim any number of processors. */
#define CPUS_READ  1024u
#define CPUS_NAMED 64u

static uint64_t
put_kernel_cpu(struct pb_writer *w, const struct pb_field *cpu, size_t *n_named)
{
	uint64_t number = 0, events = 0;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, cpu->data, cpu->len) {
		if (f.number == KernelLosses_Cpu_cpu)
			number = f.value;
		else if (f.number == KernelLosses_Cpu_events)
			events = f.value;
	}
	if (events > 0 && *n_named < CPUS_NAMED) {
		(*n_named)++;
		pb_put_uint(w, KernelLost_cpus, (uint32_t)number);
	}
	return events;
}

/* Copies no bytes of the producer's, which need not be a message. */
static void
put_kernel_lost(struct pb_writer *w, const struct source_descriptor *d)
{
	size_t n_named = 0, n_cpus = 0;
	size_t mark = pb_nest_begin(w, ProducerState_kernel_lost);
	uint64_t events = 0;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, d->kernel_losses, d->kernel_losses_len) {
		if (f.number != KernelLosses_cpus || f.wire != PB_BYTES)
			continue;
		if (n_cpus++ == CPUS_READ)
			break;
		events += put_kernel_cpu(w, &f, &n_named);
	}
	pb_put_uint(w, KernelLost_events, events);
	pb_nest_end(w, mark);
}

static void
put_producer(struct pb_writer *w, const struct producer *p)
{
	size_t mark = pb_nest_begin(w, QueryProducersReply_producers);
	const struct data_source *source;
	struct quota_counts quota;

	pb_put_uint(w, ProducerState_id, p->id);
	pb_put_string(w, ProducerState_name, p->name);
	pb_put_uint(w, ProducerState_machine_id, p->machine->id);
	if (producer_machine_name(p) != NULL)
		pb_put_string(w, ProducerState_machine_name,
		    producer_machine_name(p));
	pb_put_int(w, ProducerState_pid, p->pid);
	pb_put_int(w, ProducerState_uid, p->uid);
	pb_put_uint(w, ProducerState_data_sources, p->n_data_sources);
	pb_put_uint(w, ProducerState_instances, p->n_instances);
	pb_put_uint(w, ProducerState_bytes, p->wrote.bytes);
	pb_put_uint(w, ProducerState_packets, p->wrote.packets);
	pb_put_uint(w, ProducerState_lost, p->wrote.lost);
	quota_counts_of_producer(p, &quota);
	control_put_quota(w, ProducerState_quota, &quota);
	TAILQ_FOREACH(source, &p->data_sources, link) {
		if (source->descriptor.kernel_losses != NULL) {
			put_kernel_lost(w, &source->descriptor);
			break;
		}
	}
	pb_nest_end(w, mark);
}

static void
put_head(struct control *p, struct pb_writer *part)
{
}

/* Copies the next entry of `told`, which was encoded at the question. */
static bool
put_next(struct control *p, struct pb_writer *entry)
{
	struct pb_reader r;
	struct pb_field f;

	/* Without producers, told.data may be NULL. */
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
		if (producer->state != PRODUCER_GONE)
			put_producer(&p->told, producer);
	if (p->told.failed)
		return RPC_REJECT;
	control_answer(p, call, &question);
	return RPC_OK;
}
