#include "service/output/cut_marks.h"

#include <time.h>
#include <unistd.h>

#include "protos/fields.h"
#include "service/ingest/buffer_vms.h"
#include "service/model/model.h"
#include "service/output/readback.h"
#include "service/output/session_packets.h"
#include "service/output/session_stats.h"
#include "service/packet/event_log.h"
#include "service/packet/session_filter.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/loop/loop.h"
#include "transport/packet/packet_parts.h"
#include "transport/packet/service_packets.h"

static int32_t
uid(void)
{
	return (int32_t)getuid();
}

/*
 * Moves the packet in one, unless it is empty, into w: filtered, and then
 * flagged as repeated, as the filter would take the flag away.
 */
static void
move(struct session *s, struct pb_writer *w, struct pb_writer *one,
    bool repeated)
{
	struct tb_slice left = { .data = one->data, .len = one->len };
	size_t mark;

	w->failed = w->failed || one->failed;
	if (!w->failed && one->len > 0) {
		if (UNLIKELY(s->filter != NULL))
			left = session_filter_packet(s->filter,
			    &(struct packet_parts){ .slices = &left, .n = 1,
			    .size = one->len }, SESSION_FILTER_NO_BUFFER);
		mark = pb_nest_begin(w, Trace_packet);
		pb_put_raw(w, left.data, left.len);
		if (repeated)
			service_packets_flag_repeated(w);
		pb_nest_end(w, mark);
	}
	pb_writer_reset(one);
}

static void
repeat(struct session *s, struct pb_writer *w, struct pb_writer *one)
{
	move(s, w, one, true);
}

static void
repeat_machines(struct session *s, struct pb_writer *w, struct pb_writer *one)
{
	const struct machine *m;
	size_t i;

	for (i = 0; (m = readback_machine(s->readback, i)) != NULL; i++) {
		session_packets_machine(s, m, one);
		repeat(s, w, one);
		/* Kept as a whole packet's body by machine_clock.c. */
		if (m->clock_repeat != NULL)
			pb_put_raw(one, m->clock_repeat, m->clock_repeat_len);
		repeat(s, w, one);
	}
}

static void
repeat_events(struct session *s, struct pb_writer *w, struct pb_writer *one)
{
	const uint8_t *data;
	size_t i, len;

	for (i = 0; i < EVENT_LOG_LASTING; i++) {
		if ((data = event_log_lasting(s->events, i, &len)) != NULL)
			pb_put_raw(one, data, len);
		repeat(s, w, one);
	}
}

static void
put_begin(struct session *s, const struct service_cut *c,
    struct pb_writer *w)
{
	struct pb_writer one;
	size_t mark;

	mark = pb_nest_begin(w, Trace_packet);
	service_packets_cut_begin(w, uid(), loop_boottime_ns(), c);
	pb_nest_end(w, mark);
	pb_writer_init(&one);
	/* First, as all timestamps behind it mean something by it. */
	event_log_clocks_now(s->events, &one);
	repeat(s, w, &one);
	session_packets_config(s, &one);
	repeat(s, w, &one);
	session_packets_attributes(s, &one);
	repeat(s, w, &one);
	session_packets_provenance(s, &one);
	repeat(s, w, &one);
	session_packets_system_info(s, &one);
	repeat(s, w, &one);
	repeat_events(s, w, &one);
	repeat_machines(s, w, &one);
	pb_writer_done(&one);
}

/*
 * Programs of producers, with what they made of the packets of all segments so
 * far: here, as sequences without incremental state move at END.  An importer
 * finds their producers by the TraceProvenance before them.
 */
static void
repeat_vms(struct session *s, struct pb_writer *w, struct pb_writer *one)
{
	const struct buffer_vms *vms;
	const struct buffer_vm *vm;
	bool any = false;
	size_t b, i;

	for (b = 0; b < s->n_buffers; b++) {
		vms = s->buffers[b].vms;
		for (i = 0; vms != NULL &&
		    (vm = buffer_vms_in_trace(vms, i)) != NULL; i++) {
			if (!any)
				session_packets_provenance(s, one);
			repeat(s, w, one);
			any = true;
			buffer_vms_put(vms, vm, s->sequences, uid(), one);
			repeat(s, w, one);
		}
	}
}

static void
put_end(struct session *s, const struct service_cut *c,
    struct pb_writer *w)
{
	struct pb_writer one;
	size_t mark;

	pb_writer_init(&one);
	session_stats_packet(s, &one);
	move(s, w, &one, false);
	repeat_vms(s, w, &one);
	pb_writer_done(&one);
	mark = pb_nest_begin(w, Trace_packet);
	service_packets_cut_end(w, uid(), loop_boottime_ns(), c);
	pb_nest_end(w, mark);
}

void
cut_marks_init(struct cut_marks *m)
{
	m->state = CUT_MARKS_NONE;
	pb_writer_init(&m->packets);
	pb_init(&m->rest, NULL, 0);
}

void
cut_marks_done(struct cut_marks *m)
{
	pb_writer_done(&m->packets);
	cut_marks_init(m);
}

void
cut_marks_want_begin(struct cut_marks *m, struct service_cut *cut,
    const struct readback_cut_ops *ops, void *arg)
{
	m->state = CUT_MARKS_BEGIN_DUE;
	m->cut = cut;
	m->ops = ops;
	m->arg = arg;
}

bool
cut_marks_withdraw(struct cut_marks *m)
{
	if (m->state != CUT_MARKS_BEGIN_DUE)
		return false;
	m->state = CUT_MARKS_NONE;
	return true;
}

void
cut_marks_want_end(struct cut_marks *m)
{
	m->state = CUT_MARKS_END_DUE;
}

bool
cut_marks_is_due(const struct cut_marks *m)
{
	return m->state == CUT_MARKS_BEGIN_DUE ||
	    m->state == CUT_MARKS_END_DUE;
}

bool
cut_marks_are_open(const struct cut_marks *m)
{
	return m->state == CUT_MARKS_OPEN || m->state == CUT_MARKS_END_DUE;
}

static uint64_t
realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool
cut_marks_make(struct cut_marks *m, struct session *s)
{
	bool begins = m->state == CUT_MARKS_BEGIN_DUE;

	if (begins) {
		m->cut->realtime_ns = realtime_ns();
		put_begin(s, m->cut, &m->packets);
	} else {
		put_end(s, m->cut, &m->packets);
	}
	if (m->packets.failed) {
		pb_writer_done(&m->packets);
		pb_writer_init(&m->packets);
		return false;
	}
	pb_init(&m->rest, m->packets.data, m->packets.len);
	m->state = begins ? CUT_MARKS_OPEN : CUT_MARKS_NONE;
	if (begins)
		m->ops->begun(m->arg);
	else
		m->ops->ended(m->arg);
	return true;
}

bool
cut_marks_peek(struct cut_marks *m, struct tb_slice *packet)
{
	struct pb_reader r = m->rest;
	struct pb_field f;

	if (pb_next(&r, &f)) {
		*packet = (struct tb_slice){ .data = f.data, .len = f.len };
		return true;
	}
	if (m->packets.data != NULL) {
		pb_writer_done(&m->packets);
		pb_writer_init(&m->packets);
		pb_init(&m->rest, NULL, 0);
	}
	return false;
}

void
cut_marks_pop(struct cut_marks *m)
{
	struct pb_field f;

	(void)pb_next(&m->rest, &f);
}
