#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/inspect/report/asked_sources.h"
#include "client/inspect/report/buffers.h"
#include "client/inspect/report/clocks.h"
#include "client/inspect/report/inspection.h"
#include "client/inspect/report/machine_totals.h"
#include "client/inspect/report/report.h"
#include "client/inspect/report/session_log.h"
#include "client/inspect/report/verdict.h"
#include "client/text/colour.h"
#include "client/trace/trace_report.h"
#include "client/trace/trace_summary.h"
#include "protos/trace_config.pb-c.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/base/human_numbers.h"
#include "transport/base/log.h"
#include "transport/base/machine_word.h"

/* Longer lists end in "and N more". */
#define MAX_MACHINES  20
#define MAX_SOURCES   24
#define MAX_BUFFERS   32
#define MAX_SLOW      8
#define MAX_TRIGGERS  8
#define MAX_PROGRAMS  16

#define INDENT TRACE_REPORT_INDENT
#define SHOWN  200 /* of an escaped name */

typedef Perfetto__Protos__TraceConfig trace_config;
typedef Perfetto__Protos__TraceStats trace_stats;

static const char *
shown(char out[SHOWN], const char *name)
{
	return log_escape(out, SHOWN, name, strlen(name));
}

/* The beginning of a line of a section. */
static const char *
begin(size_t n, const char *section)
{
	return n == 0 ? section : INDENT;
}

static void
and_more(FILE *out, size_t n, size_t max)
{
	if (n > max)
		fprintf(out, INDENT "and %zu more\n", n - max);
}

static void
session(FILE *out, const struct session_log *l)
{
	const trace_config *c = l->config;
	char name[SHOWN], text[HUMAN_TEXT_MAX];

	if (!l->has_uuid && c == NULL)
		return;
	fprintf(out, "Session         ");
	if (c != NULL && c->unique_session_name != NULL &&
	    c->unique_session_name[0] != '\0')
		fprintf(out, "\"%s\", ", shown(name, c->unique_session_name));
	if (l->has_uuid)
		fprintf(out, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04"
		    PRIx64 "-%012" PRIx64, l->uuid_msb >> 32,
		    l->uuid_msb >> 16 & 0xffff, l->uuid_msb & 0xffff,
		    l->uuid_lsb >> 48, l->uuid_lsb & 0xffffffffffff);
	else
		fprintf(out, "without a uuid");
	if (c != NULL && c->duration_ms != 0)
		fprintf(out, ", to last %s", human_ms(text, c->duration_ms));
	if (c != NULL && c->write_into_file)
		fprintf(out, ", into a file as it comes");
	fprintf(out, "\n");
	if (l->n_configs > 1 || l->n_uuids > 1)
		fprintf(out, INDENT "and more: the file holds %" PRIu64
		    " sessions, one behind the other\n",
		    l->n_configs > l->n_uuids ? l->n_configs : l->n_uuids);
}

/* "host", "host (\"rack\")", "car-7, machine 12", "machine 12" */
static void
print_machine(FILE *out, uint32_t id, const char *own_name)
{
	char name[SHOWN];

	shown(name, own_name);
	if (id == 0 && name[0] != '\0')
		fprintf(out, MACHINE_WORD_HOST " (\"%s\")", name);
	else if (id == 0)
		fprintf(out, MACHINE_WORD_HOST);
	else
		fprintf(out, "%s%smachine %" PRIu32, name, name[0] != '\0' ?
		    ", " : "", id);
}

static void
machine(FILE *out, size_t n, const struct machine_total *m,
    const struct session_log *l)
{
	const struct session_machine *known = session_log_machine(l, m->id);
	char name[SHOWN], packets[HUMAN_TEXT_MAX], bytes[HUMAN_TEXT_MAX];

	fprintf(out, "%s", begin(n, "Machines        "));
	print_machine(out, m->id, known == NULL ? "" : known->name);
	if (known != NULL && known->system[0] != '\0')
		fprintf(out, ", %s", shown(name, known->system));
	if (known != NULL && known->cpus != 0)
		fprintf(out, ", %" PRIu32 " CPU%s", known->cpus,
		    human_s(known->cpus));
	fprintf(out, ": %s packet%s, %s\n", human_count(packets, m->packets),
	    human_s(m->packets), human_bytes(bytes, m->bytes));
}

static void
machines(FILE *out, const struct inspection *i)
{
	const struct session_log *l = inspection_log(i);
	struct machine_total *m;
	size_t k, n;

	n = machine_totals_make(&m, trace_summary_sequences(
	    inspection_summary(i)), l);
	for (k = 0; k < n && k < MAX_MACHINES; k++)
		machine(out, k, &m[k], l);
	and_more(out, n, MAX_MACHINES);
	free(m);
}

static void
names(FILE *out, const struct asked_sources *a, enum asked_wrote wrote,
    const char *before)
{
	char name[SHOWN];
	size_t i, n = 0;

	for (i = 0; i < a->n; i++) {
		if ((a->all[i].wrote == ASKED_NOTHING) !=
		    (wrote == ASKED_NOTHING))
			continue;
		if (n++ < MAX_SOURCES)
			fprintf(out, "%s%s", n == 1 ? before : ", ",
			    shown(name, a->all[i].name));
	}
	if (n > MAX_SOURCES)
		fprintf(out, " and %zu more", n - MAX_SOURCES);
	if (n > 0)
		fprintf(out, "\n");
}

static void
sources(FILE *out, const struct inspection *i)
{
	struct trace_summary *s = inspection_summary(i);
	const struct trace_packet_type *types;
	struct asked_sources *a;
	size_t n, k, empty = 0;

	if ((a = malloc(sizeof(*a))) == NULL)
		return;
	n = trace_summary_types(s, &types);
	asked_sources_make(a, inspection_log(i)->config,
	    inspection_final_stats(i), types, n);
	for (k = 0; k < a->n; k++)
		empty += a->all[k].wrote == ASKED_NOTHING;
	names(out, a, ASKED_WROTE, "Data sources    ");
	names(out, a, ASKED_NOTHING, empty == a->n ?
	    "Data sources    nothing is in the trace of: " :
	    INDENT "nothing is in the trace of: ");
	free(a);
}

static void
sequences(FILE *out, const struct inspection *i)
{
	const struct trace_sequences *t =
	    trace_summary_sequences(inspection_summary(i));
	uint64_t n = 0, gaps = 0, stateless = 0, packets = 0;
	const struct trace_sequence *q;
	char count[HUMAN_TEXT_MAX], of[HUMAN_TEXT_MAX];
	size_t at = 0;

	while ((q = trace_sequences_next(t, &at)) != NULL) {
		n++;
		gaps += q->gaps != 0;
		stateless += q->without_state != 0;
		packets += q->without_state;
	}
	fprintf(out, "Sequences       %s", human_count(count, n));
	if (gaps != 0)
		fprintf(out, ", %s with gaps", human_count(count, gaps));
	if (trace_sequences_overflow(t) != 0)
		fprintf(out, ", and more that are not told apart");
	fprintf(out, "\n");
	if (packets != 0)
		fprintf(out, INDENT "%s packet%s of %s of them cannot be "
		    "decoded: the names that\n" INDENT "they use were lost, or "
		    "were never written\n", human_count(count, packets),
		    human_s(packets), human_count(of, stateless));
}

static void
buffers(FILE *out, const struct inspection *i)
{
	size_t k, m, n = inspect_buffers_count(i);
	struct inspect_buffer b;
	char name[SHOWN];

	for (k = 0; k < n && k < MAX_BUFFERS; k++) {
		inspect_buffers_read(&b, i, k);
		fprintf(out, "%sbuffer %zu", begin(k, "Buffers         "), k);
		if (b.name[0] != '\0')
			fprintf(out, " \"%s\"", shown(name, b.name));
		for (m = 0; m < b.reading.n; m++)
			fprintf(out, "%s %s\n", m == 0 ? "" : INDENT " ",
			    b.reading.sentences[m].text);
	}
	and_more(out, n, MAX_BUFFERS);
}

static void
slow(FILE *out, const struct session_log *l, bool flushes)
{
	char name[SHOWN], producer[SHOWN], count[HUMAN_TEXT_MAX];
	size_t i, n = 0;
	uint64_t times;

	for (i = 0; i < l->n_slow; i++) {
		times = flushes ? l->slow[i].flushes : l->slow[i].starts;
		if (times == 0)
			continue;
		if (n++ < MAX_SLOW)
			fprintf(out, INDENT "%s of producer %s %s %s time%s\n",
			    shown(name, l->slow[i].data_source),
			    shown(producer, l->slow[i].producer),
			    flushes ? "answered too late" : "started too late",
			    human_count(count, times), human_s(times));
	}
	and_more(out, n, MAX_SLOW);
}

/* "of producer 3", "of producers 3, 5 and 2 more" */
static void
whose(FILE *out, const struct session_program *p)
{
	size_t i;

	if (p->n_producers == 0)
		return;
	fprintf(out, " of producer%s", human_s(p->n_producers));
	for (i = 0; i < p->n_producers &&
	    i < SESSION_PROGRAM_PRODUCERS_MAX; i++)
		fprintf(out, "%s %" PRId32, i == 0 ? "" : ",",
		    p->producers[i]);
	if (p->n_producers > SESSION_PROGRAM_PRODUCERS_MAX)
		fprintf(out, " and %" PRIu64 " more", p->n_producers -
		    SESSION_PROGRAM_PRODUCERS_MAX);
}

static void
programs(FILE *out, const struct session_programs *l)
{
	char bytes[HUMAN_TEXT_MAX], state[HUMAN_TEXT_MAX];
	char limit[HUMAN_TEXT_MAX];
	const struct session_program *p;
	size_t i;

	for (i = 0; i < l->n && i < MAX_PROGRAMS; i++) {
		p = &l->all[i];
		fprintf(out, "%sProtoVM", begin(i, "Programs        "));
		whose(out, p);
		fprintf(out, ": %s with %" PRIu64 " instruction%s\n",
		    human_bytes(bytes, p->bytes), p->instructions,
		    human_s(p->instructions));
		fprintf(out, INDENT " state for overwritten packets: %s of at "
		    "most %s", human_bytes(state, p->state_bytes),
		    human_bytes(limit, p->memory_limit_kb * 1024));
		if (p->times > 1)
			fprintf(out, ", the last of %" PRIu64, p->times);
		fprintf(out, "\n");
	}
	and_more(out, l->n + l->overflow, MAX_PROGRAMS);
}

static void
flushes(FILE *out, const struct inspection *i)
{
	const trace_stats *st = inspection_final_stats(i);
	const struct session_log *l = inspection_log(i);
	char all[HUMAN_TEXT_MAX], failed[HUMAN_TEXT_MAX];

	if (st == NULL || st->flushes_requested == 0)
		return;
	fprintf(out, "Flushes         %s", human_count(all,
	    st->flushes_requested));
	if (st->flushes_failed != 0)
		fprintf(out, ", of which %s failed", human_count(failed,
		    st->flushes_failed));
	else
		fprintf(out, ", all in time");
	switch (st->final_flush_outcome) {
	case PERFETTO__PROTOS__TRACE_STATS__FINAL_FLUSH_OUTCOME__FINAL_FLUSH_FAILED:
		fprintf(out, "; the last one failed: the newest data may be "
		    "missing");
		break;
	case PERFETTO__PROTOS__TRACE_STATS__FINAL_FLUSH_OUTCOME__FINAL_FLUSH_SUCCEEDED:
	case PERFETTO__PROTOS__TRACE_STATS__FINAL_FLUSH_OUTCOME__FINAL_FLUSH_UNSPECIFIED:
	default: /* of a newer service */
		break;
	}
	fprintf(out, "\n");
	slow(out, l, true);
}

static void
filter(FILE *out, const trace_stats *st)
{
	char packets[HUMAN_TEXT_MAX], in[HUMAN_TEXT_MAX], kept[HUMAN_TEXT_MAX];
	char errors[HUMAN_TEXT_MAX];

	if (st == NULL || st->filter_stats == NULL)
		return;
	fprintf(out, "Filter          %s of %s kept, of %s packets",
	    human_bytes(kept, st->filter_stats->output_bytes),
	    human_bytes(in, st->filter_stats->input_bytes),
	    human_count(packets, st->filter_stats->input_packets));
	if (st->filter_stats->errors != 0)
		fprintf(out, "; %s that it could not read are gone",
		    human_count(errors, st->filter_stats->errors));
	fprintf(out, "\n");
}

static void
events(FILE *out, const struct session_log *l)
{
	const struct session_event_count *e = l->events;
	char name[SHOWN], producer[SHOWN];
	size_t i;

	if (e[SESSION_SLOW_START].n != 0) {
		fprintf(out, "Slow to start\n");
		slow(out, l, false);
	}
	if (e[SESSION_CLONE_STARTED].n != 0)
		fprintf(out, "Snapshot        a clone of a session that went "
		    "on; %zu buffer%s\n", l->n_cloned, human_s(l->n_cloned));
	if (e[SESSION_SEIZED].n != 0)
		fprintf(out, "Seized          for a bug report: the session "
		    "ended early\n");
	for (i = 0; i < l->n_triggers && i < MAX_TRIGGERS; i++)
		fprintf(out, "%s%s of producer %s%s\n",
		    begin(i, "Triggers        "),
		    shown(name, l->triggers[i].name),
		    shown(producer, l->triggers[i].producer),
		    l->triggers[i].clone ? ", to which this snapshot is due" :
		    "");
	and_more(out, l->n_triggers, MAX_TRIGGERS);
}

static void
file(FILE *out, const struct inspection *i)
{
	const struct trace_scan *scan = inspection_scan(i);
	uint64_t ns = inspection_duration_ns(i);
	char bytes[HUMAN_TEXT_MAX], rate[HUMAN_TEXT_MAX];
	char what[160];
	uint64_t k;

	fprintf(out, "File            %s", human_bytes(bytes, scan->bytes));
	if (ns >= 100000000)
		fprintf(out, ", %s a second", human_bytes(rate,
		    (uint64_t)((double)scan->bytes / ((double)ns / 1e9))));
	fprintf(out, "\n");
	for (k = 1; k < scan->n_damages && k < TRACE_SCAN_PLACES; k++) {
		trace_damage_text(what, sizeof(what), &scan->damages[k]);
		fprintf(out, INDENT "also at byte %" PRIu64 ": %s\n",
		    scan->damages[k].offset, what);
	}
	if (scan->skipped != 0)
		fprintf(out, INDENT "%s of it belong to no packet\n",
		    human_bytes(bytes, scan->skipped));
	if (scan->gave_up)
		fprintf(out, INDENT "the part behind the last damage was made "
		    "to be slow to search, and was not searched\n");
	if (scan->tail_bytes != 0 && scan->n_damages != 0)
		fprintf(out, INDENT "its last %s are a packet that is cut "
		    "off\n", human_bytes(bytes, scan->tail_bytes));
}

static enum colour
colour_of(enum inspect_verdict_kind kind)
{
	switch (kind) {
	case INSPECT_WHOLE:
		return COLOUR_GOOD;
	case INSPECT_LOSSY:
	case INSPECT_WRONG_TIMES:
	case INSPECT_UNFINISHED:
		return COLOUR_WARNING;
	case INSPECT_CUT_OFF:
	case INSPECT_DAMAGED:
	case INSPECT_NO_TRACE:
		return COLOUR_BAD;
	}
	return COLOUR_NONE;
}

void
inspect_report_text(FILE *out, const struct inspection *i,
    const struct inspect_verdict *v, const char *path)
{
	struct trace_summary *s = inspection_summary(i);
	char name[SHOWN];

	fputs("Verdict         ", out);
	colour_put(out, colour_is_on(out), colour_of(v->kind), v->text);
	fputc('\n', out);
	if (v->kind == INSPECT_NO_TRACE) {
		fprintf(out, "Trace           %s\n", shown(name, path));
		return;
	}
	trace_report_head(out, trace_summary_totals(s), shown(name, path),
	    inspection_duration_ns(i) / 1000000);
	file(out, i);
	session(out, inspection_log(i));
	machines(out, i);
	trace_report_producers(out, s);
	sequences(out, i);
	sources(out, i);
	trace_report_types(out, s);
	buffers(out, i);
	programs(out, &inspection_log(i)->programs);
	flushes(out, i);
	filter(out, trace_summary_stats(s));
	events(out, inspection_log(i));
	inspect_clocks_text(out, i);
	trace_report_foreign_clocks(out, s);
	trace_report_troubles(out, s);
	trace_report_losses(out, s);
}
