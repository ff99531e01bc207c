#include <stdlib.h>

#include "client/library/commit_batch.h"
#include "client/library/producer.h"
#include "client/library/producer_internal.h"
#include "protos/fields.h"

uint64_t
producer_instance_id(const struct producer_instance *i)
{
	return i->id;
}

uint64_t
producer_instance_session(const struct producer_instance *i)
{
	return i->session;
}

struct producer_instance *
producer_instance_find(struct producer *p, uint64_t id)
{
	struct producer_instance *i;

	LIST_FOREACH(i, &p->instances, link)
		if (i->id == id)
			return i;
	return NULL;
}

/* Round robin, so that an id is reused as late as possible.  0: none free. */
static uint16_t
take_writer_id(struct producer *p)
{
	uint32_t tries, id = p->last_writer_id;

	for (tries = 0; tries < SHM_MAX_WRITER_ID; tries++) {
		id = id % SHM_MAX_WRITER_ID + 1;
		if ((p->writer_ids[id / 8] & 1u << id % 8) == 0) {
			p->writer_ids[id / 8] |= (uint8_t)(1u << id % 8);
			p->last_writer_id = (uint16_t)id;
			return (uint16_t)id;
		}
	}
	return 0;
}

static void
give_writer_id(struct producer *p, uint16_t id)
{
	p->writer_ids[id / 8] &= (uint8_t)~(1u << id % 8);
}

struct trace_writer *
producer_instance_writer(struct producer_instance *i,
    enum trace_writer_policy policy)
{
	struct producer *p = i->producer;
	struct producer_writer *w;
	uint16_t id;

	if (p->batch == NULL || (id = take_writer_id(p)) == 0)
		return NULL;
	if ((w = calloc(1, sizeof(*w))) == NULL)
		goto fail;
	w->writer = trace_writer_new(p->batch, id, i->buffer, policy);
	if (w->writer == NULL)
		goto fail;
	LIST_INSERT_HEAD(&i->writers, w, link);

	/* A scrape has to know the buffer of this writer's chunks. */
	pb_writer_reset(&p->scratch);
	pb_put_uint(&p->scratch, RegisterTraceWriterRequest_trace_writer_id,
	    id);
	pb_put_uint(&p->scratch, RegisterTraceWriterRequest_target_buffer,
	    i->buffer);
	producer_tell(p, "RegisterTraceWriter");
	return w->writer;

fail:
	free(w);
	give_writer_id(p, id);
	return NULL;
}

static void
free_writer(struct producer_instance *i, struct producer_writer *w)
{
	struct producer *p = i->producer;
	uint16_t id = trace_writer_id(w->writer);

	LIST_REMOVE(w, link);
	trace_writer_free(w->writer);
	free(w);
	give_writer_id(p, id);
	if (!p->ready)
		return;
	pb_writer_reset(&p->scratch);
	pb_put_uint(&p->scratch, UnregisterTraceWriterRequest_trace_writer_id,
	    id);
	producer_tell(p, "UnregisterTraceWriter");
}

static void
instance_free(struct producer_instance *i)
{
	struct producer_writer *w;

	LIST_REMOVE(i, link);
	i->producer->n_instances--;
	if (i->ctx != NULL && i->source->destroy != NULL)
		i->source->destroy(i->ctx);
	while ((w = LIST_FIRST(&i->writers)) != NULL)
		free_writer(i, w);
	free(i);
}

void
producer_instance_flush_writers(struct producer_instance *i)
{
	struct producer_writer *w;

	LIST_FOREACH(w, &i->writers, link)
		trace_writer_flush(w->writer);
}

/* Packets that destroy() still writes are dropped. */
static void
detach_writers(struct producer_instance *i)
{
	struct producer_writer *w;

	LIST_FOREACH(w, &i->writers, link)
		trace_writer_detach(w->writer);
}

void
producer_instance_stop(struct producer_instance *i)
{
	struct producer *p = i->producer;

	if (i->ctx != NULL && i->started && i->source->stop != NULL)
		i->source->stop(i->ctx);
	producer_instance_flush_writers(i);
	/* NotifyDataSourceStopped must not overtake the last data. */
	if (p->batch != NULL)
		commit_batch_send_all(p->batch, 0);
	detach_writers(i);
	producer_tell_id(p, "NotifyDataSourceStopped", i->id);
	instance_free(i);
}

void
producer_instance_stop_all(struct producer *p)
{
	struct producer_instance *i;

	while ((i = LIST_FIRST(&p->instances)) != NULL)
		producer_instance_stop(i);
}

void
producer_instance_drop_all(struct producer *p)
{
	struct producer_instance *i;

	while ((i = LIST_FIRST(&p->instances)) != NULL) {
		detach_writers(i);
		instance_free(i);
	}
}
