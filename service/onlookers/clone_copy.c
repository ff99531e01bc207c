#include "service/onlookers/clone_copy.h"

#include <string.h>

#include "service/ingest/arrivals.h"
#include "service/ingest/buffer_vms.h"
#include "service/ingest/session_losses.h"
#include "service/output/readback.h"
#include "service/packet/sequence_map.h"
#include "service/packet/session_filter.h"
#include "service/session/session.h"
#include "transport/buffer/trace_buffer.h"

int
clone_copy_check(const struct session *src, const struct principal *who,
    char *err, size_t err_size)
{
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < src->n_buffers; i++)
		total += src->buffers[i].size + src->buffers[i].vm_bytes;
	if (session_check_limits(src->service, who, err, err_size) != 0)
		return -1;
	return session_check_memory(src->service, who, total, err, err_size);
}

/* The states of programs as the copy's packets find them. */
static int
copy_vms(struct session_buffer *to, struct session_buffer *from)
{
	if (from->vms == NULL)
		return 0;
	if ((to->vms = buffer_vms_clone(from->vms)) == NULL)
		return -1;
	to->vm_bytes = from->vm_bytes;
	to->session->service->total_buffer_bytes += to->vm_bytes;
	/* A buffer that is moved leaves an empty one behind. */
	if (from->transfer_on_clone)
		buffer_vms_clear(from->vms);
	return 0;
}

/* Begins to copy one buffer, or moves it. */
static int
copy_buffer(struct session_buffer *to, struct session_buffer *from)
{
	if (from->transfer_on_clone)
		ring_ahead_stop(&from->ahead, from->session->service->populator);
	to->tb = from->transfer_on_clone ? trace_buffer_take(from->tb) :
	    trace_buffer_clone(from->tb);
	if (to->tb == NULL)
		return -1;
	to->size = from->size;
	to->ring = from->ring;
	to->session->service->total_buffer_bytes += to->size;
	if (from->name != NULL && (to->name = strdup(from->name)) == NULL)
		return -1;
	return copy_vms(to, from);
}

/* A filter of its own: its statistics are of what the clone gives. */
static int
copy_filter(struct session *s, const struct session *src, bool skip)
{
	char err[256];

	if (src->filter == NULL || skip)
		return 0;
	s->filter = session_filter_new(s->config, err, sizeof(err));
	return s->filter == NULL ? -1 : 0;
}

struct session *
clone_copy_new(struct session *src, const struct principal *who,
    bool skip_filter)
{
	struct session *s;
	size_t i;

	if ((s = session_alloc(src->service, who)) == NULL)
		return NULL;
	s->cloned_from = src->id;
	s->end_realtime_ns = s->created_realtime_ns;
	s->packets_stored = src->packets_stored;
	s->crowd = session_crowd(src);
	if ((s->config = config_copy(src->config)) == NULL ||
	    (s->sequences = sequence_map_clone(src->sequences)) == NULL ||
	    (s->events = event_log_clone(src->events)) == NULL ||
	    (s->readback = readback_new_clone(s, src->readback)) == NULL ||
	    session_losses_copy(s, src) != 0 ||
	    arrivals_copy(s, src) != 0 ||
	    copy_filter(s, src, skip_filter) != 0 ||
	    session_alloc_buffers(s, src->n_buffers) != 0)
		goto fail;
	/* A new one, but this half ties a trace to what it was made for. */
	s->uuid_lsb = src->uuid_lsb;
	s->start_realtime_ns = src->start_realtime_ns;
	s->invalid_packets = src->invalid_packets;
	s->refused = src->refused;
	s->flushes_requested = src->flushes_requested;
	s->flushes_succeeded = src->flushes_succeeded;
	s->flushes_failed = src->flushes_failed;
	event_log_snapshot(s->events);
	event_log_event(s->events, SERVICE_EVENT_CLONE_STARTED);
	for (i = 0; i < src->n_buffers; i++) {
		if (copy_buffer(&s->buffers[i], &src->buffers[i]) != 0)
			goto fail;
		event_log_buffer_cloned(s->events, (uint32_t)i);
	}
	return s;

fail:
	session_free(s);
	return NULL;
}
