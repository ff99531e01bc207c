#include "client/trace/ftrace_losses.h"

#include "client/trace/packet_facts.h"
#include "client/trace/trace_losses.h"
#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

/* Causes in the order of ftrace_losses_add(). */
enum cause {
	OVERRUN,
	OVERRUN_SINCE_CLEARED,
	DROPPED,
	DROPPED_SINCE_CLEARED,
	MARKED,
};

/* Ends a cause where the count at the session's beginning is unknown. */
#define SINCE_CLEARED \
	" since it was cleared, some perhaps before this session"

static const char larger_buffer[] =
    "a larger buffer_size_kb in ftrace_config keeps more";

static void
take_bundle(struct ftrace_losses *l, const struct pb_field *bundle)
{
	struct pb_reader r;
	struct pb_field f;
	bool marked = false;

	PB_FOREACH(&f, &r, bundle->data, bundle->len) {
		if (f.number == FtraceEventBundle_lost_events &&
		    f.wire == PB_VARINT)
			marked = f.value != 0;
	}
	l->marked_bundles += marked;
}

static void
add_cpu(const struct pb_field *cpu, uint64_t *overrun, uint64_t *dropped)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, cpu->data, cpu->len) {
		if (f.wire != PB_VARINT)
			continue;
		if (f.number == FtraceCpuStats_overrun)
			*overrun += f.value;
		else if (f.number == FtraceCpuStats_dropped_events)
			*dropped += f.value;
	}
}

/* A count that went back was cleared in between: all of it is new. */
static void
count_on(struct ftrace_count *c, uint64_t now, bool lost)
{
	if (lost)
		c->lost += now < c->last ? now : now - c->last;
	c->last = now;
}

static void
take_stats(struct ftrace_losses *l, const struct pb_field *stats)
{
	uint64_t overrun = 0, dropped = 0, phase = 0;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, stats->data, stats->len) {
		if (f.number == FtraceStats_phase && f.wire == PB_VARINT)
			phase = f.value;
		else if (f.number == FtraceStats_cpu_stats &&
		    f.wire == PB_BYTES)
			add_cpu(&f, &overrun, &dropped);
	}
	l->told_begin = l->told_begin || phase == FtraceStats_START_OF_TRACE;
	count_on(&l->overrun, overrun, phase == FtraceStats_END_OF_TRACE);
	count_on(&l->dropped, dropped, phase == FtraceStats_END_OF_TRACE);
}

void
ftrace_losses_take(struct ftrace_losses *l, const struct packet_facts *f)
{
	if (f->payload.wire != PB_BYTES)
		return;
	if (f->type == TracePacket_ftrace_events)
		take_bundle(l, &f->payload);
	else if (f->type == TracePacket_ftrace_stats)
		take_stats(l, &f->payload);
}

void
ftrace_losses_add(struct trace_loss *out,
    const struct ftrace_losses *l)
{
	static const struct trace_loss causes[FTRACE_LOSSES_MAX] = {
		[OVERRUN] = { .unit = "event", .buffer = -1,
		    .cause = "overwritten unread in the kernel's ftrace buffer",
		    .hint = larger_buffer },
		[OVERRUN_SINCE_CLEARED] = { .unit = "event", .buffer = -1,
		    .cause = "overwritten unread in the kernel's ftrace buffer"
			     SINCE_CLEARED,
		    .hint = larger_buffer },
		[DROPPED] = { .unit = "event", .buffer = -1,
		    .cause = "that found the kernel's ftrace buffer full",
		    .hint = larger_buffer },
		[DROPPED_SINCE_CLEARED] = { .unit = "event", .buffer = -1,
		    .cause = "that found the kernel's ftrace buffer full"
			     SINCE_CLEARED,
		    .hint = larger_buffer },
		[MARKED] = { .unit = "bundle", .buffer = -1,
		    .cause = "of ftrace events, before which the kernel lost "
			     "some" },
	};
	uint64_t counts[FTRACE_LOSSES_MAX] = { 0 };
	unsigned i;

	counts[l->told_begin ? OVERRUN : OVERRUN_SINCE_CLEARED] =
	    l->overrun.lost;
	counts[l->told_begin ? DROPPED : DROPPED_SINCE_CLEARED] =
	    l->dropped.lost;
	counts[MARKED] = l->marked_bundles;
	for (i = 0; i < FTRACE_LOSSES_MAX; i++) {
		counts[i] += out[i].count;
		out[i] = causes[i];
		out[i].count = counts[i];
	}
}
