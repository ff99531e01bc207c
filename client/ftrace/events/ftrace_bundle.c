#include "client/ftrace/events/ftrace_bundle.h"

#include <string.h>

#include "client/ftrace/events/event_plan.h"
#include "client/ftrace/events/symbol_index.h"
#include "client/ftrace/events/syscall_filter.h"
#include "client/tracing/packet/packet.h"
#include "protos/fields.h"
#include "protos/ftrace_bundle.pb-c.h"

#define STATUS(name) PERFETTO__PROTOS__FTRACE_PARSE_STATUS__FTRACE_STATUS_##name

void
ftrace_bundle_init(struct ftrace_bundle *b,
    const struct ftrace_bundle_setup *setup)
{
	memset(b, 0, sizeof(*b));
	b->setup = *setup;
}

void
ftrace_bundle_done(struct ftrace_bundle *b)
{
	compact_sched_done(&b->sched);
}

void
ftrace_bundle_begin(struct ftrace_bundle *b, struct tributary_packet *packet,
    const struct ftrace_bundle_head *head)
{
	b->packet = packet;
	b->end = head->previous_end;
	b->n_events = b->n_errors = 0;
	packet_begin(packet, TracePacket_ftrace_events);
	packet_put_uint(packet, FtraceEventBundle_cpu, head->cpu);
	if (head->lost)
		packet_put_uint(packet, FtraceEventBundle_lost_events, 1);
	/* Also 0, which says that there was none before. */
	packet_put_uint(packet, FtraceEventBundle_previous_bundle_end_timestamp,
	    head->previous_end);
	if (head->clock == 0)
		return;
	packet_put_uint(packet, FtraceEventBundle_ftrace_clock, head->clock);
	if (head->clock_time == 0)
		return;
	packet_put_uint(packet, FtraceEventBundle_ftrace_timestamp,
	    head->clock_time);
	packet_put_uint(packet, FtraceEventBundle_boot_timestamp,
	    head->boot_time);
}

/* Once in a bundle, before the event's first one. */
static void
describe(struct ftrace_bundle *b, const struct event_plan *plan)
{
	uint8_t *bits = &b->described[plan->id / 8];
	uint8_t bit = (uint8_t)(1u << plan->id % 8);

	if ((*bits & bit) != 0)
		return;
	*bits |= bit;
	b->any_described = true;
	packet_put_bytes(b->packet,
	    FtraceEventBundle_generic_event_descriptors, plan->descriptor,
	    plan->descriptor_len);
}

/* A print's text is its last step; without one there is nothing to ask. */
static bool
is_print_allowed(const struct print_filter *filter,
    const struct event_plan *plan, const uint8_t *data, size_t len)
{
	const struct event_step *s = &plan->steps[plan->n_steps - 1];
	const char *text = (const char *)data + s->offset;

	return s->kind != EVENT_STEP_TEXT_REST ||
	    print_filter_allows(filter, text, strnlen(text, len - s->offset));
}

/* The number is the first step. */
static bool
is_syscall_wanted(const struct syscall_filter *filter,
    const struct event_plan *plan, const uint8_t *data)
{
	const struct event_step *s = &plan->steps[0];
	int32_t narrow;
	int64_t id;

	if (s->kind == EVENT_STEP_I64) {
		memcpy(&id, data + s->offset, sizeof(id));
		return syscall_filter_has(filter, id);
	}
	if (s->kind != EVENT_STEP_I32)
		return true;
	memcpy(&narrow, data + s->offset, sizeof(narrow));
	return syscall_filter_has(filter, narrow);
}

/* Records that are too short are broken, whatever a filter says. */
static bool
is_wanted(const struct ftrace_bundle *b, const struct event_plan *plan,
    const uint8_t *data, size_t len)
{
	if (plan->n_steps == 0 || len < plan->size)
		return true;
	switch (plan->filter) {
	case EVENT_PLAN_PRINT:
		return is_print_allowed(&b->setup.print, plan, data, len);
	case EVENT_PLAN_SYSCALL:
		return b->setup.syscalls == NULL ||
		    is_syscall_wanted(b->setup.syscalls, plan, data);
	case EVENT_PLAN_UNFILTERED:
		break;
	}
	return true;
}

static enum translate_verdict
add_compact(struct ftrace_bundle *b, const struct event_plan *plan,
    uint64_t time, const uint8_t *data, size_t len)
{
	if (UNLIKELY(len < plan->size))
		return EVENT_BROKEN;
	if (LIKELY(compact_sched_add(&b->sched, plan, time, data,
	    b->setup.env.pids)))
		return EVENT_DONE;
	/* Counted as a packet that is dropped, with all that is in it. */
	b->packet->failed = true;
	return EVENT_NO_ROOM;
}

enum translate_verdict
ftrace_bundle_add(struct ftrace_bundle *b, const struct event_plan *plan,
    uint64_t time, const uint8_t *data, size_t len)
{
	bool compact = b->setup.compact && plan->compact != EVENT_PLAN_PLAIN;
	enum translate_verdict verdict;

	if (UNLIKELY(plan->filter != EVENT_PLAN_UNFILTERED) &&
	    !is_wanted(b, plan, data, len))
		return EVENT_FILTERED;
	if (compact) {
		verdict = add_compact(b, plan, time, data, len);
	} else {
		if (UNLIKELY(plan->descriptor != NULL))
			describe(b, plan);
		verdict = event_translate(plan, time, data, len, &b->setup.env,
		    b->packet);
	}
	if (LIKELY(verdict == EVENT_DONE)) {
		b->end = time;
		b->n_events++;
	} else if (verdict == EVENT_BROKEN) {
		ftrace_bundle_error(b, time, compact ?
		    STATUS(SHORT_COMPACT_EVENT) : STATUS(INVALID_EVENT));
	}
	return verdict;
}

void
ftrace_bundle_error(struct ftrace_bundle *b, uint64_t time, uint32_t status)
{
	b->n_errors++;
	packet_begin(b->packet, FtraceEventBundle_error);
	packet_put_uint(b->packet, FtraceError_timestamp, time);
	packet_put_uint(b->packet, FtraceError_status, status);
	packet_end(b->packet);
}

void
ftrace_bundle_end(struct ftrace_bundle *b)
{
	if (b->setup.compact)
		compact_sched_write(&b->sched, b->packet);
	packet_end(b->packet);
	if (b->setup.symbols != NULL)
		symbol_index_write(b->setup.env.symbols, b->setup.symbols,
		    b->packet);
	if (b->any_described)
		memset(b->described, 0, sizeof(b->described));
	b->any_described = false;
	b->packet = NULL;
}
