#include "client/tracing/event/event_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <tributary/track_event.h>
#include <unistd.h>

#include "client/tracing/event/process_names.h"
#include "client/tracing/memory/own_memory.h"
#include "client/tracing/packet/packet.h"
#include "client/tracing/source/registry.h"
#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

/* Parents above a track; more are left out. */
#define TRACK_DEPTH_MAX 16

/* ---- The config ---- */

static void
read_config(struct event_config *c)
{
	struct pb_reader r;
	struct pb_field f;

	c->unit_ns = 1;
	pb_init(&r, c->encoded, c->len);
	while (pb_next(&r, &f)) {
		if (f.wire != PB_VARINT)
			continue;
		switch (f.number) {
		case TrackEventConfig_disable_incremental_timestamps:
			c->absolute_time = f.value != 0;
			break;
		case TrackEventConfig_timestamp_unit_multiplier:
			c->unit_ns = f.value != 0 ? f.value : 1;
			break;
		case TrackEventConfig_filter_debug_annotations:
			c->no_annotations = f.value != 0;
			break;
		case TrackEventConfig_filter_dynamic_event_names:
			c->no_dynamic_names = f.value != 0;
			break;
		case TrackEventConfig_enable_thread_time_sampling:
			c->thread_time = f.value != 0;
			break;
		case TrackEventConfig_thread_time_subsampling_ns:
			c->thread_time_period_ns = f.value;
			break;
		default:
			break;
		}
	}
	c->plain = !c->absolute_time && !c->thread_time && c->unit_ns == 1;
}

struct event_config *
event_state_config_new(const uint8_t *data_source_config, size_t len)
{
	struct event_config *c;
	struct pb_reader r;
	struct pb_field f;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	pb_init(&r, data_source_config, len);
	while (pb_next(&r, &f)) {
		if (f.number != DataSourceConfig_track_event_config ||
		    f.wire != PB_BYTES || f.len == 0 || c->encoded != NULL)
			continue;
		if ((c->encoded = malloc(f.len)) == NULL) {
			free(c);
			return NULL;
		}
		memcpy(c->encoded, f.data, f.len);
		c->len = f.len;
	}
	read_config(c);
	return c;
}

void
event_state_config_free(struct event_config *c)
{
	if (c != NULL)
		free(c->encoded);
	free(c);
}

void
event_state_free(void *state)
{
	struct event_state *st = state;

	interning_done(&st->told);
	own_free(st, sizeof(*st));
}

uint64_t
thread_time_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- Packets ---- */

void
event_state_put_time(struct tributary_packet *p, const struct event_config *c,
    struct event_state *st, uint64_t now_ns)
{
	uint64_t units;

	if (c->absolute_time) {
		tributary_put_uint(p, TracePacket_timestamp,
		    now_ns / c->unit_ns);
		return;
	}
	units = now_ns > st->last_ns ? now_ns - st->last_ns : 0;
	/* A division for each event is to be spared. */
	if (UNLIKELY(c->unit_ns != 1))
		units /= c->unit_ns;
	st->last_ns += units * c->unit_ns;
	packet_put_uint(p, TracePacket_timestamp, units);
}

static bool
finish(struct sequence *q, struct tributary_packet *p)
{
	bool ok;

	if (p->failed) {
		chunk_writer_count_drop(&q->w, 1);
		ok = false;
	} else {
		ok = chunk_writer_put(&q->w, p->data, packet_len(p));
	}
	packet_done(p);
	return ok;
}

static void
put_clock(struct tributary_packet *p, uint32_t id, uint64_t at, uint64_t unit,
    bool incremental)
{
	tributary_begin(p, ClockSnapshot_clocks);
	tributary_put_uint(p, ClockSnapshot_Clock_clock_id, id);
	tributary_put_uint(p, ClockSnapshot_Clock_timestamp, at / unit);
	if (incremental)
		tributary_put_uint(p, ClockSnapshot_Clock_is_incremental, 1);
	if (unit != 1 || incremental)
		tributary_put_uint(p, ClockSnapshot_Clock_unit_multiplier_ns,
		    unit);
	tributary_end(p);
}

/* The clock in which the sequence's packets are, if they do not say. */
static uint32_t
default_clock(const struct event_config *c)
{
	if (!c->absolute_time)
		return EVENT_CLOCK_INCREMENTAL;
	return c->unit_ns == 1 ? EVENT_CLOCK_BOOTTIME : EVENT_CLOCK_ABSOLUTE;
}

static bool
put_beginning(struct sequence *q, const struct event_config *c, uint64_t now_ns)
{
	struct tributary_packet p;

	packet_init(&p);
	tributary_put_uint(&p, TracePacket_timestamp, now_ns);
	tributary_put_uint(&p, TracePacket_timestamp_clock_id,
	    EVENT_CLOCK_BOOTTIME);
	tributary_put_uint(&p, TracePacket_sequence_flags,
	    TracePacket_SEQ_INCREMENTAL_STATE_CLEARED);
	tributary_begin(&p, TracePacket_trace_packet_defaults);
	tributary_put_uint(&p, TracePacketDefaults_timestamp_clock_id,
	    default_clock(c));
	tributary_begin(&p, TracePacketDefaults_track_event_defaults);
	tributary_put_uint(&p, TrackEventDefaults_track_uuid,
	    event_thread_uuid());
	if (c->thread_time)
		tributary_put_uint(&p,
		    TrackEventDefaults_extra_counter_track_uuids,
		    event_thread_time_uuid());
	tributary_end(&p);
	tributary_end(&p);
	if (default_clock(c) != EVENT_CLOCK_BOOTTIME) {
		tributary_begin(&p, TracePacket_clock_snapshot);
		put_clock(&p, EVENT_CLOCK_BOOTTIME, now_ns, 1, false);
		put_clock(&p, EVENT_CLOCK_INCREMENTAL, now_ns, c->unit_ns,
		    true);
		if (c->unit_ns != 1)
			put_clock(&p, EVENT_CLOCK_ABSOLUTE, now_ns, c->unit_ns,
			    false);
		tributary_end(&p);
	}
	return finish(q, &p);
}

static void
begin_descriptor(struct tributary_packet *p, struct sequence *q,
    uint64_t now_ns, uint64_t uuid)
{
	packet_init(p);
	event_state_put_time(p, q->instance->context, q->state, now_ns);
	tributary_put_uint(p, TracePacket_sequence_flags,
	    TracePacket_SEQ_NEEDS_INCREMENTAL_STATE);
	tributary_begin(p, TracePacket_track_descriptor);
	tributary_put_uint(p, TrackDescriptor_uuid, uuid);
}

static bool
end_descriptor(struct tributary_packet *p, struct sequence *q)
{
	tributary_end(p);
	return finish(q, p);
}

/* A thread without a name is another than the calling one. */
static bool
put_thread(struct sequence *q, const struct tributary_track *t,
    const char *name, uint64_t now_ns)
{
	struct tributary_packet p;

	begin_descriptor(&p, q, now_ns, t->uuid);
	tributary_put_uint(&p, TrackDescriptor_parent_uuid,
	    tributary_process_uuid());
	tributary_begin(&p, TrackDescriptor_thread);
	tributary_put_int(&p, ThreadDescriptor_pid, getpid());
	tributary_put_int(&p, ThreadDescriptor_tid, t->tid);
	if (name[0] != '\0')
		tributary_put_string(&p, ThreadDescriptor_thread_name, name);
	tributary_end(&p);
	return end_descriptor(&p, q);
}

static bool
put_own_thread(struct sequence *q, uint64_t now_ns)
{
	struct tributary_track t = tributary_thread_track();
	char name[PROCESS_NAME_MAX];

	thread_name(name);
	return put_thread(q, &t, name, now_ns);
}

static bool
put_process(struct sequence *q, uint64_t now_ns)
{
	struct tributary_packet p;
	char name[PROCESS_NAME_MAX];

	begin_descriptor(&p, q, now_ns, tributary_process_uuid());
	tributary_begin(&p, TrackDescriptor_process);
	tributary_put_int(&p, ProcessDescriptor_pid, getpid());
	process_put_command_line(&p);
	process_name(name);
	if (name[0] != '\0')
		tributary_put_string(&p, ProcessDescriptor_process_name, name);
	tributary_end(&p);
	return end_descriptor(&p, q);
}

static bool
put_thread_time(struct sequence *q, uint64_t now_ns)
{
	const struct event_config *c = q->instance->context;
	struct tributary_packet p;

	begin_descriptor(&p, q, now_ns, event_thread_time_uuid());
	tributary_put_uint(&p, TrackDescriptor_parent_uuid,
	    event_thread_uuid());
	tributary_put_string(&p, TrackDescriptor_name, "thread_time");
	tributary_begin(&p, TrackDescriptor_counter);
	tributary_put_uint(&p, CounterDescriptor_type,
	    CounterDescriptor_COUNTER_THREAD_TIME_NS);
	tributary_put_uint(&p, CounterDescriptor_unit_multiplier, c->unit_ns);
	tributary_put_uint(&p, CounterDescriptor_is_incremental, 1);
	tributary_end(&p);
	return end_descriptor(&p, q);
}

bool
event_state_begin(struct sequence *q, uint64_t now_ns)
{
	const struct event_config *c = q->instance->context;
	struct event_state *st = q->state;

	if (st == NULL) {
		if (!own_try_enter())
			return false;
		st = own_alloc(sizeof(*st));
		own_leave();
		if (st == NULL)
			return false;
		interning_init(&st->told);
		q->state = st;
		q->free_state = event_state_free;
	}
	interning_clear(&st->told);
	st->last_ns = now_ns / c->unit_ns * c->unit_ns;
	st->thread_time_ns = st->thread_time_at_ns = 0;
	return put_beginning(q, c, now_ns) && put_own_thread(q, now_ns) &&
	    put_process(q, now_ns) &&
	    (!c->thread_time || put_thread_time(q, now_ns));
}

static void
put_counter(struct tributary_packet *p, const struct tributary_track *t)
{
	tributary_begin(p, TrackDescriptor_counter);
	if (t->unit != TRIBUTARY_UNIT_NONE)
		tributary_put_uint(p, CounterDescriptor_unit, t->unit);
	if (t->unit_name != NULL)
		tributary_put_string(p, CounterDescriptor_unit_name,
		    t->unit_name);
	if (t->multiplier != 0)
		tributary_put_int(p, CounterDescriptor_unit_multiplier,
		    t->multiplier);
	if (t->incremental)
		tributary_put_uint(p, CounterDescriptor_is_incremental, 1);
	tributary_end(p);
}

static bool
put_track(struct sequence *q, const struct tributary_track *t, uint64_t now_ns)
{
	struct tributary_packet p;

	if (t->kind == TRIBUTARY_TRACK_OF_THREAD)
		return put_thread(q, t, "", now_ns);
	begin_descriptor(&p, q, now_ns, t->uuid);
	if (t->parent != NULL)
		tributary_put_uint(&p, TrackDescriptor_parent_uuid,
		    t->parent->uuid);
	if (t->name != NULL)
		tributary_put_string(&p, TrackDescriptor_name, t->name);
	if (t->description != NULL)
		tributary_put_string(&p, TrackDescriptor_description,
		    t->description);
	if (t->rank != 0)
		tributary_put_int(&p, TrackDescriptor_sibling_order_rank,
		    t->rank);
	if (t->kind == TRIBUTARY_TRACK_COUNTER)
		put_counter(&p, t);
	return end_descriptor(&p, q);
}

/* Every sequence has told its thread's and its process's when it began. */
static bool
is_told(const struct event_state *st, const struct tributary_track *t)
{
	if (t->kind == TRIBUTARY_TRACK_OF_THREAD &&
	    t->uuid == event_thread_uuid())
		return true;
	return t->kind == TRIBUTARY_TRACK_OF_PROCESS ||
	    interning_find(&st->told, t->uuid, INTERNED_TRACK) != 0;
}

bool
event_state_tell_track(struct sequence *q, const struct tributary_track *track,
    uint64_t now_ns)
{
	struct event_state *st = q->state;
	const struct tributary_track *t;
	int depth = 0;

	for (t = track; t != NULL && depth < TRACK_DEPTH_MAX;
	    t = t->parent, depth++) {
		if (is_told(st, t))
			return true;
		if (interning_add(&st->told, t->uuid, INTERNED_TRACK) == 0 ||
		    !put_track(q, t, now_ns))
			return false;
	}
	return true;
}
