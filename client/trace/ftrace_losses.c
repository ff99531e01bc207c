#include "client/trace/ftrace_losses.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/trace/packet_facts.h"
#include "client/trace/trace_losses.h"
#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

/* Processors that a text names; of more it says how many there are. */
#define NAMED_CPUS 4

/* ---- processors ---- */

/* The entry of a processor, made where there is none; NULL: no memory. */
static struct ftrace_cpu *
entry_of(struct ftrace_losses *l, uint64_t number)
{
	const uint32_t cpu = number < FTRACE_CPUS_MAX ? (uint32_t)number :
	    FTRACE_CPUS_MAX - 1;
	size_t low = 0, high = l->n_cpus, mid;
	struct ftrace_cpu *grown;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (l->cpus[mid].cpu == cpu)
			return &l->cpus[mid];
		if (l->cpus[mid].cpu < cpu)
			low = mid + 1;
		else
			high = mid;
	}
	grown = realloc(l->cpus, (l->n_cpus + 1) * sizeof(*grown));
	if (grown == NULL)
		return NULL;
	l->cpus = grown;
	memmove(&grown[low + 1], &grown[low],
	    (l->n_cpus - low) * sizeof(*grown));
	l->n_cpus++;
	grown[low] = (struct ftrace_cpu){ .cpu = cpu };
	return &grown[low];
}

/* ---- bundles ---- */

static void
note_status(struct ftrace_losses *l, uint64_t status)
{
	if (status < 32)
		l->statuses |= UINT32_C(1) << status;
}

static void
take_error(struct ftrace_losses *l, const struct pb_field *error)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, error->data, error->len) {
		if (f.number == FtraceError_status && f.wire == PB_VARINT)
			note_status(l, f.value);
	}
}

static void
take_bundle(struct ftrace_losses *l, const struct pb_field *bundle)
{
	struct pb_reader r;
	struct pb_field f;
	uint64_t number = 0, errors = 0;
	bool marked = false;
	struct ftrace_cpu *cpu;

	l->bundles++;
	PB_FOREACH(&f, &r, bundle->data, bundle->len) {
		if (f.number == FtraceEventBundle_lost_events &&
		    f.wire == PB_VARINT) {
			marked = f.value != 0;
		} else if (f.number == FtraceEventBundle_cpu &&
		    f.wire == PB_VARINT) {
			number = f.value;
		} else if (f.number == FtraceEventBundle_error &&
		    f.wire == PB_BYTES) {
			take_error(l, &f);
			errors++;
		}
	}
	if ((!marked && errors == 0) || (cpu = entry_of(l, number)) == NULL)
		return;
	cpu->marked_bundles += marked;
	cpu->errors += errors;
}

/* ---- the kernel's counts ---- */

/*
 * With each flush come the counts of the beginning, once more, and those of
 * now.  A count that went back was cleared in between: all of it is new.
 */
static void
take_cpu(struct ftrace_losses *l, const struct pb_field *stats, bool at_end)
{
	uint64_t now[FTRACE_COUNTERS] = { 0 }, number = 0;
	struct ftrace_cpu *cpu;
	struct pb_reader r;
	struct pb_field f;
	int i;

	PB_FOREACH(&f, &r, stats->data, stats->len) {
		if (f.wire != PB_VARINT)
			continue;
		if (f.number == FtraceCpuStats_cpu)
			number = f.value;
		else if (f.number == FtraceCpuStats_overrun)
			now[FTRACE_OVERRUN] = f.value;
		else if (f.number == FtraceCpuStats_commit_overrun)
			now[FTRACE_COMMIT_OVERRUN] = f.value;
		else if (f.number == FtraceCpuStats_dropped_events)
			now[FTRACE_DROPPED] = f.value;
	}
	if ((cpu = entry_of(l, number)) == NULL)
		return;
	for (i = 0; i < FTRACE_COUNTERS; i++) {
		if (!at_end)
			cpu->begin[i] = now[i];
		else
			cpu->lost[i] = now[i] < cpu->begin[i] ? now[i] :
			    now[i] - cpu->begin[i];
	}
}

/* The text of it is len bytes of name, and why; taken once. */
static void
keep_trouble(struct ftrace_losses *l, bool not_recorded, const char *name,
    size_t len, const char *why)
{
	struct ftrace_trouble *grown;
	char *text;
	size_t i;

	if (len == 0 || asprintf(&text, "%.*s%s", len < 300 ? (int)len : 300,
	    name, why) < 0)
		return;
	/* Printers want it on one line. */
	for (i = 0; text[i] != '\0'; i++)
		if (text[i] == '\n' || text[i] == '\t')
			text[i] = ' ';
	for (i = 0; i < l->n_troubles; i++)
		if (strcmp(l->troubles[i].text, text) == 0)
			break;
	if (i < l->n_troubles || i == FTRACE_TROUBLES_MAX ||
	    (grown = realloc(l->troubles, (i + 1) * sizeof(*grown))) == NULL) {
		free(text);
		return;
	}
	l->troubles = grown;
	grown[l->n_troubles++] = (struct ftrace_trouble){ not_recorded, text };
}

static void
keep_event(struct ftrace_losses *l, const struct pb_field *name,
    const char *why)
{
	keep_trouble(l, true, (const char *)name->data, name->len, why);
}

/* A sentence a line. */
static void
keep_lines(struct ftrace_losses *l, const struct pb_field *lines)
{
	const char *at = (const char *)lines->data, *end = at + lines->len;
	const char *line;

	for (; at < end; at = line + 1) {
		line = memchr(at, '\n', (size_t)(end - at));
		if (line == NULL)
			line = end;
		keep_trouble(l, false, at, (size_t)(line - at), "");
	}
}

static void
take_stats(struct ftrace_losses *l, const struct pb_field *stats)
{
	uint64_t phase = 0;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, stats->data, stats->len) {
		if (f.number == FtraceStats_phase && f.wire == PB_VARINT)
			phase = f.value;
		else if (f.number == FtraceStats_ftrace_parse_errors &&
		    f.wire == PB_VARINT)
			note_status(l, f.value);
		else if (f.wire != PB_BYTES)
			continue;
		else if (f.number == FtraceStats_unknown_ftrace_events)
			keep_event(l, &f, ": the kernel has no such event");
		else if (f.number == FtraceStats_failed_ftrace_events)
			keep_event(l, &f, ": it could not be switched on");
		else if (f.number == FtraceStats_atrace_errors ||
		    f.number == FtraceStats_exclusive_feature_error)
			keep_lines(l, &f);
	}
	l->told_begin = l->told_begin || phase == FtraceStats_START_OF_TRACE;
	/* The phase may stand behind the counts. */
	PB_FOREACH(&f, &r, stats->data, stats->len) {
		if (f.number == FtraceStats_cpu_stats && f.wire == PB_BYTES)
			take_cpu(l, &f, phase == FtraceStats_END_OF_TRACE);
	}
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
ftrace_losses_done(struct ftrace_losses *l)
{
	size_t i;

	for (i = 0; i < l->n_troubles; i++)
		free(l->troubles[i].text);
	free(l->troubles);
	free(l->cpus);
}

static void
raise_to(uint64_t *value, uint64_t other)
{
	if (*value < other)
		*value = other;
}

void
ftrace_losses_join(struct ftrace_losses *to, const struct ftrace_losses *from)
{
	const struct ftrace_cpu *f;
	struct ftrace_cpu *cpu;
	size_t i, k;

	to->told_begin = to->told_begin && from->told_begin;
	to->statuses |= from->statuses;
	for (i = 0; i < from->n_cpus; i++) {
		f = &from->cpus[i];
		if ((cpu = entry_of(to, f->cpu)) == NULL)
			continue;
		for (k = 0; k < FTRACE_COUNTERS; k++)
			raise_to(&cpu->lost[k], f->lost[k]);
		raise_to(&cpu->marked_bundles, f->marked_bundles);
		raise_to(&cpu->errors, f->errors);
	}
}

bool
ftrace_losses_not_recorded(const struct ftrace_losses *l)
{
	size_t i;

	if (l->n_troubles != 0 && l->bundles == 0)
		return true;
	for (i = 0; i < l->n_troubles; i++)
		if (l->troubles[i].not_recorded)
			return true;
	return false;
}

/* ---- as causes ---- */

enum cause {
	/* The first ones are those of enum ftrace_counter. */
	UNREAD_PLACES = FTRACE_COUNTERS,
	MARKED,
	CAUSES,
};

/* Ends a cause where the count at the session's beginning is unknown. */
#define SINCE_CLEARED \
	" since it was cleared, some perhaps before this session"
#define OVERRUN_TEXT "overwritten unread in the kernel's ftrace buffer"
#define COMMIT_OVERRUN_TEXT "of interrupts that the kernel's ftrace buffer " \
	"had no room for"
#define DROPPED_TEXT "that found the kernel's ftrace buffer full"

static const char larger_buffer[] =
    "a larger buffer_size_kb in ftrace_config keeps more";

static uint64_t
count_of(const struct ftrace_cpu *cpu, enum cause c)
{
	if (c == UNREAD_PLACES)
		return cpu->errors;
	return c == MARKED ? cpu->marked_bundles : cpu->lost[c];
}

/* "CPU 0", "CPUs 0, 3 and 5 more". */
static void
name_cpus(char out[TRACE_LOSS_CPUS_MAX], const struct ftrace_losses *l,
    enum cause c)
{
	size_t i, n = 0, all = 0, len;

	for (i = 0; i < l->n_cpus; i++)
		all += count_of(&l->cpus[i], c) != 0;
	len = (size_t)snprintf(out, TRACE_LOSS_CPUS_MAX, "CPU%s",
	    all > 1 ? "s" : "");
	for (i = 0; i < l->n_cpus && n < NAMED_CPUS; i++) {
		if (count_of(&l->cpus[i], c) == 0)
			continue;
		len += (size_t)snprintf(out + len, TRACE_LOSS_CPUS_MAX - len,
		    "%s %" PRIu32, n == 0 ? "" : n + 1 == all ? " and" : ",",
		    l->cpus[i].cpu);
		n++;
	}
	if (n < all)
		snprintf(out + len, TRACE_LOSS_CPUS_MAX - len,
		    " and %zu more", all - n);
}

uint64_t
ftrace_losses_events(const struct ftrace_losses *l)
{
	uint64_t n = 0;
	size_t i, k;

	for (i = 0; i < l->n_cpus; i++)
		for (k = 0; k < FTRACE_COUNTERS; k++)
			n += l->cpus[i].lost[k];
	return n;
}

/*
 * Where the kernel counted what it lost, marks say no more than where that
 * was; statuses are at least one place each.
 */
static uint64_t
total(const struct ftrace_losses *l, enum cause c)
{
	uint64_t n = 0;
	size_t i;

	if (c == MARKED && ftrace_losses_events(l) != 0)
		return 0;
	for (i = 0; i < l->n_cpus; i++)
		n += count_of(&l->cpus[i], c);
	if (c == UNREAD_PLACES && n == 0)
		n = (uint64_t)__builtin_popcount(l->statuses);
	return n;
}

size_t
ftrace_losses_list(const struct ftrace_losses *l, uint32_t machine,
    struct trace_loss *out, size_t max)
{
	static const struct {
		const char *unit, *cause, *since_cleared, *hint;
	} causes[CAUSES] = {
		[FTRACE_OVERRUN] = { "event", OVERRUN_TEXT,
		    OVERRUN_TEXT SINCE_CLEARED, larger_buffer },
		[FTRACE_COMMIT_OVERRUN] = { "event", COMMIT_OVERRUN_TEXT,
		    COMMIT_OVERRUN_TEXT SINCE_CLEARED, larger_buffer },
		[FTRACE_DROPPED] = { "event", DROPPED_TEXT,
		    DROPPED_TEXT SINCE_CLEARED, larger_buffer },
		[UNREAD_PLACES] = { "place",
		    "in the kernel's ftrace data that could not be read",
		    NULL, NULL },
		[MARKED] = { "bundle",
		    "of ftrace events, before which the kernel lost some",
		    NULL, larger_buffer },
	};
	size_t n = 0;
	uint64_t count;
	int c;

	for (c = 0; c < CAUSES; c++) {
		if ((count = total(l, (enum cause)c)) == 0 || n++ >= max)
			continue;
		out[n - 1] = (struct trace_loss){
			.count = count,
			.unit = causes[c].unit,
			.cause = c < FTRACE_COUNTERS && !l->told_begin ?
			    causes[c].since_cleared : causes[c].cause,
			.hint = causes[c].hint,
			.buffer = -1,
			.place = TRACE_LOSS_IN_KERNEL,
			.machine = machine,
			.at_least = c == UNREAD_PLACES,
		};
		name_cpus(out[n - 1].cpus, l, (enum cause)c);
	}
	return n;
}
