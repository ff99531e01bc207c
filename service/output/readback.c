#include "service/output/readback.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/config/config.h"
#include "service/ingest/buffer_vms.h"
#include "service/model/model.h"
#include "service/output/cut_marks.h"
#include "service/output/packet_out.h"
#include "service/output/session_packets.h"
#include "service/output/session_stats.h"
#include "service/packet/event_log.h"
#include "service/packet/sequence_map.h"
#include "service/packet/session_filter.h"
#include "transport/base/log.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/loop/loop.h"
#include "transport/packet/packet_check.h"
#include "transport/packet/service_packets.h"
#include "transport/wire/pb_writer.h"

/*
 * Time for filtering in one call: so little may be left of many packets that
 * the output never gets full.
 */
#define FILTER_TURN_NS 10000000ull

/* Tag and length of Trace.packet. */
#define PACKET_HEADER_MAX 11u

/* A remote machine whose data is in the trace, and what was said of it. */
struct seen_machine {
	struct machine *machine; /* referred to */
	bool introduced;
	/* Generations written; system info 0, once introduced: name only. */
	uint64_t said_system_info;
	uint64_t said_clock_sync;
};

struct readback {
	struct session *s;
	bool said_config;
	bool said_uuid;
	bool said_attributes;
	bool said_system_info;
	bool said_provenance;
	bool said_completed;
	/* The newest sequence in the last TraceProvenance. */
	uint32_t provenance_of;
	bool put_provenance; /* in this pass */
	bool want_marker;
	bool want_stats;
	size_t buffer;  /* being read */
	size_t idle;    /* buffers in a row that had nothing more */
	struct pb_writer packet; /* the service's own, being built */
	struct seen_machine *machines;
	size_t n_machines;
	int32_t uid;
	struct cut_marks marks;
};

struct readback *
readback_new(struct session *s)
{
	struct readback *r;

	if ((r = calloc(1, sizeof(*r))) == NULL)
		return NULL;
	r->s = s;
	r->want_marker = true;
	r->want_stats = true;
	r->uid = (int32_t)getuid();
	pb_writer_init(&r->packet);
	cut_marks_init(&r->marks);
	return r;
}

struct readback *
readback_new_clone(struct session *s, const struct readback *from)
{
	struct readback *r = readback_new(s);
	size_t i;

	if (r == NULL)
		return NULL;
	/* Markers come with snapshots of clocks, and a clone takes none. */
	r->want_marker = false;
	for (i = 0; i < from->n_machines; i++)
		readback_saw_machine(r, from->machines[i].machine);
	return r;
}

void
readback_free(struct readback *r)
{
	size_t i;

	if (r == NULL)
		return;
	for (i = 0; i < r->n_machines; i++)
		machine_unref(r->machines[i].machine);
	pb_writer_done(&r->packet);
	cut_marks_done(&r->marks);
	free(r->machines);
	free(r);
}

void
readback_want_stats(struct readback *r)
{
	r->want_stats = true;
}

void
readback_want_marker(struct readback *r)
{
	r->want_marker = true;
}

bool
readback_has_machine(const struct readback *r, const struct machine *m)
{
	size_t i;

	for (i = 0; i < r->n_machines; i++)
		if (r->machines[i].machine == m)
			return true;
	return false;
}

const struct machine *
readback_machine(const struct readback *r, size_t i)
{
	return i < r->n_machines ? r->machines[i].machine : NULL;
}

void
readback_saw_machine(struct readback *r, struct machine *m)
{
	struct seen_machine *grown;

	if (readback_has_machine(r, m))
		return;
	grown = realloc(r->machines, (r->n_machines + 1) * sizeof(*grown));
	if (grown == NULL)
		return;
	r->machines = grown;
	memset(&grown[r->n_machines], 0, sizeof(*grown));
	grown[r->n_machines++].machine = m;
	machine_ref(m);
}

static bool
has_new_info(const struct seen_machine *m)
{
	return !m->introduced ||
	    m->said_system_info != m->machine->system_info_generation;
}

static bool
has_new_clocks(const struct seen_machine *m)
{
	return m->machine->clock_sync != NULL &&
	    m->said_clock_sync != m->machine->clock_sync_generation;
}

/*
 * Puts bytes as one complete packet, which was filtered; false: no room,
 * nothing was put.
 */
static bool
put_final(struct readback *r, struct packet_out *out, uint64_t *limit,
    struct tb_slice slice)
{
	size_t size;

	if (!packet_out_room(out))
		return false;
	if (limit != NULL) {
		size = packet_out_size(slice.len, NULL, 0);
		if (size > *limit) {
			/* The file is full: the packets that matter went. */
			*limit = 0;
			return true;
		}
		*limit -= size;
	}
	/* Without memory the packet is left out, and counted as invalid. */
	if (!packet_out_put_whole(out, &slice))
		r->s->invalid_packets++;
	return true;
}

/* As put_final(), with the filter. */
static bool
put(struct readback *r, struct packet_out *out, uint64_t *limit,
    const uint8_t *data, size_t len)
{
	struct tb_slice slice = { .data = data, .len = len };

	/* Looked at first: the filter counts what it sees. */
	if (!packet_out_room(out))
		return false;
	if (UNLIKELY(r->s->filter != NULL))
		slice = session_filter_packet(r->s->filter,
		    &(struct packet_parts){ .slices = &slice, .n = 1,
		    .size = len }, SESSION_FILTER_NO_BUFFER);
	return put_final(r, out, limit, slice);
}

static void
log_no_memory(const struct readback *r)
{
	log_limited(&r->s->service->memory_log, loop_now_ms(), LOG_LEVEL_ERROR,
	    "session %" PRIu64 ": no memory for the packets that describe it",
	    r->s->id);
}

/* Puts the packet in r->packet; nothing where that is empty. */
static bool
put_built(struct readback *r, struct packet_out *out, uint64_t *limit)
{
	bool ok = true;

	/* Counted, as one that put() finds no memory for. */
	if (UNLIKELY(r->packet.failed)) {
		r->s->invalid_packets++;
		log_no_memory(r);
	} else if (r->packet.len > 0) {
		ok = put(r, out, limit, r->packet.data, r->packet.len);
	}
	pb_writer_done(&r->packet);
	pb_writer_init(&r->packet);
	return ok;
}

static bool
put_queue(struct readback *r, struct packet_out *out, uint64_t *limit,
    enum event_queue q)
{
	const uint8_t *data;
	size_t len;

	while ((data = event_log_peek(r->s->events, q, &len)) != NULL) {
		if (!put(r, out, limit, data, len))
			return false;
		event_log_pop(r->s->events, q);
	}
	return true;
}

static bool
put_system_infos(struct readback *r, struct packet_out *out, uint64_t *limit)
{
	struct seen_machine *m;
	size_t i;

	for (i = 0; i < r->n_machines; i++) {
		m = &r->machines[i];
		if (!has_new_info(m))
			continue;
		session_packets_machine(r->s, m->machine, &r->packet);
		if (!put_built(r, out, limit))
			return false;
		m->introduced = true;
		m->said_system_info = m->machine->system_info_generation;
	}
	return true;
}

/* Clock snapshots of the past that this trace has not got yet. */
static bool
put_past_clocks(struct readback *r, struct packet_out *out, uint64_t *limit,
    struct seen_machine *m)
{
	const struct machine_past_clocks *past;
	size_t i;

	for (i = 0; i < m->machine->n_past_clocks; i++) {
		past = &m->machine->past_clocks[i];
		if (past->generation <= m->said_clock_sync)
			continue;
		if (!put(r, out, limit, past->data, past->len))
			return false;
		m->said_clock_sync = past->generation;
	}
	return true;
}

/*
 * Puts clock snapshots of remote machines before the data: an importer aligns
 * only packets that come after.  The newest comes last, as the importer takes
 * the last one for the offset to the collector's clocks.
 */
static bool
put_clocks(struct readback *r, struct packet_out *out, uint64_t *limit)
{
	struct seen_machine *m;
	size_t i;

	for (i = 0; i < r->n_machines; i++) {
		m = &r->machines[i];
		if (!has_new_clocks(m))
			continue;
		/* Kept as a whole packet's body by machine_clock.c. */
		if (!put_past_clocks(r, out, limit, m) ||
		    !put(r, out, limit, m->machine->clock_sync,
		    m->machine->clock_sync_len))
			return false;
		m->said_clock_sync = m->machine->clock_sync_generation;
	}
	return true;
}

static bool
put_provenance(struct readback *r, struct packet_out *out, uint64_t *limit)
{
	session_packets_provenance(r->s, &r->packet);
	if (!put_built(r, out, limit))
		return false;
	r->provenance_of = sequence_map_last_id(r->s->sequences);
	r->put_provenance = true;
	return true;
}

/*
 * The programs of producers, and the states that stand for overwritten packets.
 * An importer finds the sequences of a program's producers in the TraceProvenance
 * before it.
 */
static bool
put_vms(struct readback *r, struct packet_out *out, uint64_t *limit)
{
	struct session *s = r->s;
	struct buffer_vms *vms;
	struct buffer_vm *vm;
	size_t i;

	for (i = 0; i < s->n_buffers; i++) {
		if ((vms = s->buffers[i].vms) == NULL)
			continue;
		while ((vm = buffer_vms_due(vms)) != NULL) {
			if (!r->put_provenance &&
			    !put_provenance(r, out, limit))
				return false;
			/* Not built in vain: a state may be large. */
			if (!packet_out_room(out))
				return false;
			buffer_vms_put(vms, vm, s->sequences, r->uid,
			    &r->packet);
			if (!put_built(r, out, limit))
				return false;
			buffer_vms_was_put(vms, vm, s->sequences);
		}
	}
	return true;
}

/* The packets before the data.  Safe to call again after false. */
static bool
put_prefix(struct readback *r, struct packet_out *out, uint64_t *limit)
{
	struct session *s = r->s;

	if (!put_queue(r, out, limit, EVENT_QUEUE_SNAPSHOTS))
		return false;
	if (r->want_marker) {
		service_packets_sync_marker(&r->packet, r->uid);
		if (!put_built(r, out, limit))
			return false;
		r->want_marker = false;
	}
	if (!r->said_config) {
		session_packets_config(s, &r->packet);
		if (!put_built(r, out, limit))
			return false;
		r->said_config = true;
	}
	if (!r->said_uuid) {
		service_packets_trace_uuid(&r->packet, r->uid,
		    (int64_t)s->uuid_msb, (int64_t)s->uuid_lsb);
		if (!put_built(r, out, limit))
			return false;
		r->said_uuid = true;
	}
	if (!r->said_attributes) {
		session_packets_attributes(s, &r->packet);
		if (!put_built(r, out, limit))
			return false;
		r->said_attributes = true;
	}
	if (!r->said_provenance) {
		if (!put_provenance(r, out, limit))
			return false;
		r->said_provenance = true;
	}
	if (!put_vms(r, out, limit))
		return false;
	if (!r->said_system_info) {
		session_packets_system_info(s, &r->packet);
		if (!put_built(r, out, limit))
			return false;
		r->said_system_info = true;
	}
	if (!put_system_infos(r, out, limit))
		return false;
	return put_queue(r, out, limit, EVENT_QUEUE_EVENTS) &&
	    put_clocks(r, out, limit);
}

/* Counts a packet as dropped; the next of its sequence reports the loss. */
static void
drop(struct readback *r, const struct tb_packet *p, uint32_t loss)
{
	r->s->invalid_packets++;
	sequence_map_dropped(r->s->sequences, p->origin,
	    p->loss | loss | TB_LOSS_PRESENT);
}

/* Puts what the filter leaves of a packet.  False: the limit was hit. */
static bool
put_filtered(struct readback *r, struct packet_out *out, uint64_t *limit,
    const struct tb_packet *p, const struct packet_parts *parts)
{
	struct tb_slice left = session_filter_packet(r->s->filter, parts,
	    r->buffer);
	size_t size = packet_out_size(left.len, NULL, 0);

	if (limit != NULL && size > *limit)
		return false;
	if (limit != NULL)
		*limit -= size;
	if (!packet_out_put_whole(out, &left))
		drop(r, p, parts->loss);
	return true;
}

/* Puts a packet of a buffer.  False: the limit was hit. */
static bool
put_packet(struct readback *r, struct packet_out *out, uint64_t *limit,
    const struct tb_packet *p)
{
	struct packet_parts parts = { .slices = p->slices, .n = p->n_slices,
	    .size = p->size, .loss = p->loss };
	size_t size;

	if (packet_check(p->slices, p->n_slices, p->size) == PACKET_INVALID) {
		drop(r, p, TB_LOSS_CHUNK_CORRUPTED);
		return true;
	}
	parts.trailer = sequence_map_trailer(r->s->sequences, p->origin,
	    &parts.loss);
	if (parts.trailer == NULL) {
		drop(r, p, 0);
		return true;
	}
	if (UNLIKELY(r->s->filter != NULL))
		return put_filtered(r, out, limit, p, &parts);
	if (limit != NULL) {
		size = packet_out_size(p->size, parts.trailer, parts.loss);
		if (size > *limit)
			return false;
		*limit -= size;
	}
	if (!packet_out_put(out, &parts))
		drop(r, p, parts.loss);
	return true;
}

/* Visits all buffers again in this pass. */
static void
start_over(struct readback *r)
{
	r->idle = 0;
	if (r->s->n_buffers > 0)
		trace_buffer_begin_read(r->s->buffers[r->buffer].tb);
}

void
readback_begin(struct readback *r)
{
	size_t i;

	r->put_provenance = false;
	for (i = 0; i < r->s->n_buffers; i++)
		if (r->s->buffers[i].vms != NULL)
			buffer_vms_begin_pass(r->s->buffers[i].vms,
			    r->s->sequences);
	start_over(r);
}

static void
next_buffer(struct readback *r)
{
	r->buffer++;
	if (r->buffer >= r->s->n_buffers)
		r->buffer = 0;
	trace_buffer_begin_read(r->s->buffers[r->buffer].tb);
}

/* ---- cuts ---- */

void
readback_want_cut(struct readback *r, struct service_cut *cut,
    const struct readback_cut_ops *ops, void *arg)
{
	cut_marks_want_begin(&r->marks, cut, ops, arg);
}

bool
readback_withdraw_cut(struct readback *r)
{
	return cut_marks_withdraw(&r->marks);
}

void
readback_want_cut_end(struct readback *r)
{
	cut_marks_want_end(&r->marks);
	/* Data that came since this pass looked for it lies before END. */
	start_over(r);
}

void
readback_drop_cut(struct readback *r)
{
	cut_marks_done(&r->marks);
}

/* Puts the rest of a mark and the packets that go with it. */
static bool
put_mark_rest(struct readback *r, struct packet_out *out, uint64_t *limit)
{
	struct tb_slice packet;

	while (cut_marks_peek(&r->marks, &packet)) {
		if (!put_final(r, out, limit, packet))
			return false;
		cut_marks_pop(&r->marks);
	}
	return true;
}

/* All was read: puts a mark that is due.  Safe to call again after false. */
static bool
put_mark(struct readback *r, struct packet_out *out, uint64_t *limit)
{
	if (cut_marks_is_due(&r->marks) &&
	    !cut_marks_make(&r->marks, r->s))
		log_no_memory(r); /* tried again at the end of the next pass */
	return put_mark_rest(r, out, limit);
}

/* The packets behind the data.  Safe to call again after false. */
static bool
put_suffix(struct readback *r, struct packet_out *out, uint64_t *limit)
{
	struct session *s = r->s;

	if (r->provenance_of != sequence_map_last_id(s->sequences) &&
	    !put_provenance(r, out, limit))
		return false;
	if (!r->said_completed) {
		event_log_event(s->events,
		    SERVICE_EVENT_READ_TRACING_BUFFERS_COMPLETED);
		r->said_completed = true;
	}
	if (!put_queue(r, out, limit, EVENT_QUEUE_EVENTS))
		return false;
	session_stats_packet(s, &r->packet);
	if (!put_built(r, out, limit))
		return false;
	r->want_stats = false;
	r->said_completed = false;
	return true;
}

void
readback_put_stats(struct readback *r, struct packet_out *out, uint64_t most)
{
	session_stats_packet_within(r->s, &r->packet,
	    most > PACKET_HEADER_MAX ? (size_t)most - PACKET_HEADER_MAX : 0);
	/* There is room in out: the packet is put, or left out as too long. */
	(void)put_built(r, out, &most);
}

/* Whether the buffers hold no unread data at all, not even stalled data. */
static bool
nothing_waits(const struct session *s)
{
	size_t i;

	for (i = 0; i < s->n_buffers; i++)
		if (trace_buffer_unread(s->buffers[i].tb) > 0)
			return false;
	return true;
}

static uint64_t
filter_ns(const struct session *s)
{
	return s->filter == NULL ? 0 : session_filter_ns(s->filter);
}

enum readback_result
readback_fill(struct readback *r, struct packet_out *out, uint64_t *limit)
{
	struct session *s = r->s;
	uint64_t filtered = filter_ns(s);
	struct tb_packet p;

	if (!put_mark_rest(r, out, limit) || !put_prefix(r, out, limit))
		return READBACK_FULL;
	while (r->idle < s->n_buffers) {
		if (!packet_out_room(out) ||
		    filter_ns(s) - filtered > FILTER_TURN_NS) {
			if (s->n_buffers > 1) {
				r->idle = 0;
				next_buffer(r);
			}
			return READBACK_FULL;
		}
		if (!trace_buffer_read(s->buffers[r->buffer].tb, &p)) {
			r->idle++;
			if (s->n_buffers > 1)
				next_buffer(r);
			continue;
		}
		r->idle = 0;
		if (!put_packet(r, out, limit, &p))
			return READBACK_LIMIT;
	}
	if (!put_mark(r, out, limit))
		return READBACK_FULL;
	/* Between the marks statistics would be of neither segment. */
	if (r->want_stats && !cut_marks_are_open(&r->marks) &&
	    !put_suffix(r, out, limit)) {
		/* Until there is room for the rest, more may come to be read. */
		r->idle = 0;
		return READBACK_FULL;
	}
	if (nothing_waits(s))
		sequence_map_sweep(s->sequences);
	/* One of the service's own packets did not fit. */
	return limit != NULL && *limit == 0 ? READBACK_LIMIT : READBACK_DONE;
}
