#include "client/archive/trim/event_kinds.h"

#include "client/trace/packet_facts.h"
#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

static enum event_kind
track_event_kind(const struct pb_field *event)
{
	enum event_kind kind = EVENT_PLAIN;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, event->data, event->len) {
		switch (f.number) {
		case TrackEvent_timestamp_delta_us:
		case TrackEvent_thread_time_delta_us:
		case TrackEvent_thread_instruction_count_delta:
			return EVENT_NONE;
		case TrackEvent_counter_value:
		case TrackEvent_double_counter_value:
		case TrackEvent_extra_counter_values:
		case TrackEvent_extra_double_counter_values:
			kind = EVENT_COUNTER;
			break;
		}
	}
	return r.bad ? EVENT_NONE : kind;
}

enum event_kind
event_kind_of(const struct packet_facts *f)
{
	if (f->type == 0 || f->payload.wire != PB_BYTES)
		return EVENT_NONE;
	switch (f->type) {
	case TracePacket_track_event:
		return track_event_kind(&f->payload);
	case TracePacket_ftrace_events:
		return EVENT_FTRACE;
	case TracePacket_process_stats:
	case TracePacket_sys_stats:
	case TracePacket_for_testing:
		return EVENT_PLAIN;
	}
	return EVENT_NONE;
}

struct span {
	uint64_t first, last;
	bool known;
};

static void
widen(struct span *s, uint64_t ns)
{
	if (!s->known || ns < s->first)
		s->first = ns;
	if (!s->known || ns > s->last)
		s->last = ns;
	s->known = true;
}

/* Packed increments, the first of which is a time. */
static bool
take_increments(struct span *s, const struct pb_field *packed)
{
	const uint8_t *p = packed->data, *end = p + packed->len;
	uint64_t v, ns = 0;

	while (p < end) {
		if ((p = pb_varint(p, end, &v)) == NULL)
			return false;
		ns += v;
		widen(s, ns);
	}
	return true;
}

static bool
take_compact(struct span *s, const struct pb_field *sched)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, sched->data, sched->len) {
		if (f.number != CompactSched_switch_timestamp &&
		    f.number != CompactSched_waking_timestamp)
			continue;
		if (f.wire != PB_BYTES || !take_increments(s, &f))
			return false;
	}
	return !r.bad;
}

static bool
take_event(struct span *s, const struct pb_field *event)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, event->data, event->len) {
		if (f.number == FtraceEvent_timestamp) {
			widen(s, f.value);
			return true;
		}
	}
	return false;
}

bool
event_ftrace_span(const struct packet_facts *p, uint64_t *first,
    uint64_t *last)
{
	struct span s = { 0 };
	struct pb_reader r;
	struct pb_field f;
	bool plain = true;

	PB_FOREACH(&f, &r, p->payload.data, p->payload.len) {
		switch (f.number) {
		case FtraceEventBundle_event:
			plain = plain && f.wire == PB_BYTES &&
			    take_event(&s, &f);
			break;
		case FtraceEventBundle_compact_sched:
			plain = plain && f.wire == PB_BYTES &&
			    take_compact(&s, &f);
			break;
		case FtraceEventBundle_ftrace_clock:
			plain = plain && f.value == 0;
			break;
		case FtraceEventBundle_generic_event_descriptors:
			plain = false;
			break;
		}
	}
	if (r.bad || !plain || !s.known)
		return false;
	*first = s.first;
	*last = s.last;
	return true;
}

bool
event_is_incremental_track(const struct packet_facts *p)
{
	struct pb_reader r, inner;
	struct pb_field f, g;

	if (p->type != TracePacket_track_descriptor ||
	    p->payload.wire != PB_BYTES)
		return false;
	PB_FOREACH(&f, &r, p->payload.data, p->payload.len) {
		if (f.number != TrackDescriptor_counter || f.wire != PB_BYTES)
			continue;
		PB_FOREACH(&g, &inner, f.data, f.len) {
			if (g.number == CounterDescriptor_is_incremental &&
			    g.value != 0)
				return true;
		}
	}
	return false;
}
