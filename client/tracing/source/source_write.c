/* Packets of data sources: from the callers' threads into their sequences. */
#include <stdlib.h>
#include <string.h>

#include "client/tracing/packet/packet.h"
#include "client/tracing/source/endpoint.h"
#include "client/tracing/source/registry.h"
#include "protos/fields.h"

struct tributary_source *
tributary_source_add(const struct tributary_source_options *options,
    const struct tributary_source_ops *ops)
{
	struct tributary_source_options o = { 0 };
	struct tributary_source *s;

	memcpy(&o, options,
	    options->size < sizeof(o) ? options->size : sizeof(o));
	/* No name: also where the caller has not set a size. */
	if (o.name == NULL || o.name[0] == '\0')
		return NULL;
	if ((s = registry_add(&o, ops)) != NULL)
		registry_changed();
	return s;
}

bool
tributary_source_describe(struct tributary_source *s, const void *descriptor,
    size_t len)
{
	uint8_t *data = malloc(len + 1);

	if (data == NULL)
		return false;
	if (len > 0)
		memcpy(data, descriptor, len);
	registry_describe(s, data, len);
	return true;
}

bool
tributary_source_enabled(const struct tributary_source *s)
{
	return atomic_load_explicit(&s->enabled, memory_order_relaxed) != 0;
}

/* The thread has entered q. */
static bool
write_one(struct sequence *q, tributary_write_fn write, void *arg)
{
	struct tributary_packet p;
	bool first = sequence_is_stale(q), ok = true;

	packet_init(&p);
	sequence_pause(q);
	write(&p, q->instance, q->instance->context, first, arg);
	sequence_resume(q);
	if (p.depth > 0)
		p.failed = true;
	if (p.flags != 0)
		tributary_put_uint(&p, TracePacket_sequence_flags, p.flags);
	if (p.failed) {
		chunk_writer_count_drop(&q->w, 1);
		ok = false;
	} else if (packet_len(&p) > 0) {
		ok = chunk_writer_put(&q->w, p.data, packet_len(&p));
	}
	/* A loss may be that of the packet which began the state. */
	if (!ok)
		q->generation--;
	packet_done(&p);
	return ok;
}

void
tributary_source_write(struct tributary_source *s, tributary_write_fn write,
    void *arg)
{
	uint64_t mask = atomic_load_explicit(&s->enabled, memory_order_relaxed);
	struct sequence *q;
	unsigned slot;

	if (mask & REGISTRY_RESTART) {
		registry_restart();
		return;
	}
	for (; mask != 0; mask &= mask - 1) {
		slot = (unsigned)__builtin_ctzll(mask);
		if ((q = sequence_enter(s, slot)) == NULL)
			continue;
		(void)write_one(q, write, arg);
		sequence_leave(q);
	}
}

bool
tributary_instance_write(struct tributary_instance *i, tributary_write_fn write,
    void *arg)
{
	struct sequence *q;
	bool ok;

	if ((q = sequence_enter(i->source, i->slot)) == NULL)
		return false;
	ok = q->instance == i && write_one(q, write, arg);
	sequence_leave(q);
	return ok;
}

uint64_t
tributary_instance_session(const struct tributary_instance *i)
{
	return i->session;
}

uint64_t
tributary_instance_dropped(const struct tributary_instance *i)
{
	struct tributary_instance *of = (struct tributary_instance *)i;
	struct sequence *q;
	uint64_t n;

	registry_lock();
	n = atomic_load(&of->dropped) +
	    atomic_load(&of->source->missed[of->slot]);
	LIST_FOREACH(q, &of->sequences, link)
		n += chunk_writer_dropped(&q->w);
	registry_unlock();
	return n;
}

void
tributary_stop_done(struct tributary_instance *i)
{
	i->endpoint->stop_done(i->endpoint, i);
}

void
tributary_flush_done(struct tributary_instance *i, uint64_t flush_id)
{
	i->endpoint->flush_done(i->endpoint, i, flush_id);
}
