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
#include "client/trace/trace_losses.h"
#include "client/trace/trace_summary.h"
#include "protos/json_out.h"
#include "protos/trace_config.pb-c.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/base/machine_word.h"

#define MAX_LOSSES 1024

typedef Perfetto__Protos__TraceConfig trace_config;
typedef Perfetto__Protos__TraceStats trace_stats;

static const char *
damage_word(enum trace_damage_kind kind)
{
	switch (kind) {
	case TRACE_DAMAGE_NO_PACKET:
		return "no_packet";
	case TRACE_DAMAGE_TOO_LONG:
		return "too_long";
	case TRACE_DAMAGE_PAST_END:
		return "past_end";
	case TRACE_DAMAGE_MALFORMED:
		return "malformed";
	case TRACE_DAMAGE_ZEROS:
		return "zeros";
	}
	return "";
}

static void
damages(struct json_out *j, const struct trace_scan *s)
{
	char text[160];
	size_t i;

	json_array(j, "damages");
	for (i = 0; i < s->n_damages && i < TRACE_SCAN_PLACES; i++) {
		trace_damage_text(text, sizeof(text), &s->damages[i]);
		json_object(j, NULL);
		json_uint(j, "offset", s->damages[i].offset);
		json_string(j, "kind", damage_word(s->damages[i].kind));
		json_uint(j, "skipped_bytes", s->damages[i].skipped);
		json_string(j, "text", text);
		json_object_end(j);
	}
	json_array_end(j);
}

static void
file(struct json_out *j, const struct inspection *i)
{
	const struct trace_scan *s = inspection_scan(i);
	const struct inspect_compressed *c = inspection_compressed(i);

	json_object(j, "file");
	json_uint(j, "bytes", s->bytes);
	json_uint(j, "packets", s->packets);
	json_uint(j, "malformed_packets", s->malformed);
	json_uint(j, "n_damages", s->n_damages);
	damages(j, s);
	json_uint(j, "skipped_bytes", s->skipped);
	json_uint(j, "packets_behind_damage", s->packets_behind);
	json_uint(j, "bytes_behind_damage", s->bytes_behind);
	json_bool(j, "search_given_up", s->gave_up);
	json_uint(j, "bad_compressed_packets", c->bad);
	if (c->bad != 0) {
		json_uint(j, "bad_compressed_offset", c->offset);
		json_string(j, "bad_compressed_text", c->text);
	}
	if (s->tail_bytes != 0) {
		json_object(j, "tail");
		json_uint(j, "offset", s->tail_offset);
		json_uint(j, "bytes", s->tail_bytes);
		json_uint(j, "expected_bytes", s->tail_wants);
		json_object_end(j);
	} else {
		json_null(j, "tail");
	}
	json_object_end(j);
}

static void
totals(struct json_out *j, const struct inspection *i)
{
	const struct trace_totals *t =
	    trace_summary_totals(inspection_summary(i));
	uint64_t ns = inspection_duration_ns(i);

	json_uint(j, "packets", t->packets);
	json_uint(j, "bytes", t->expanded_bytes);
	json_uint(j, "compressed_packets", t->compressed);
	json_uint(j, "service_packets", t->service_packets);
	json_uint(j, "malformed_packets", t->malformed);
	json_uint(j, "duration_ns", ns);
	if (ns != 0)
		json_number(j, "bytes_per_second",
		    (double)t->expanded_bytes / ((double)ns / 1e9));
}

static void
event_counts(struct json_out *j, const struct session_log *l)
{
	static const char *const names[SESSION_EVENTS] = {
		[SESSION_SOURCES_STARTED] = "all_data_sources_started",
		[SESSION_STARTED] = "tracing_started",
		[SESSION_FLUSHED] = "all_data_sources_flushed",
		[SESSION_READ] = "read_tracing_buffers_completed",
		[SESSION_DISABLED] = "tracing_disabled",
		[SESSION_SEIZED] = "seized_for_bugreport",
		[SESSION_SLOW_START] = "slow_starting_data_sources",
		[SESSION_SLOW_FLUSH] = "last_flush_slow_data_sources",
		[SESSION_FLUSH_STARTED] = "flush_started",
		[SESSION_CLONE_STARTED] = "clone_started",
		[SESSION_BUFFER_CLONED] = "buffer_cloned",
	};
	size_t i;

	json_array(j, "events");
	for (i = 0; i < SESSION_EVENTS; i++) {
		if (names[i] == NULL || l->events[i].n == 0)
			continue;
		json_object(j, NULL);
		json_string(j, "event", names[i]);
		json_uint(j, "count", l->events[i].n);
		json_uint(j, "first_ns", l->events[i].first_ns);
		json_uint(j, "last_ns", l->events[i].last_ns);
		json_object_end(j);
	}
	json_array_end(j);
}

static void
slow_and_triggers(struct json_out *j, const struct session_log *l)
{
	size_t i;

	json_array(j, "slow_data_sources");
	for (i = 0; i < l->n_slow; i++) {
		json_object(j, NULL);
		json_string(j, "producer", l->slow[i].producer);
		json_string(j, "data_source", l->slow[i].data_source);
		json_uint(j, "slow_starts", l->slow[i].starts);
		json_uint(j, "slow_flushes", l->slow[i].flushes);
		json_object_end(j);
	}
	json_array_end(j);
	json_array(j, "triggers");
	for (i = 0; i < l->n_triggers; i++) {
		json_object(j, NULL);
		json_string(j, "name", l->triggers[i].name);
		json_string(j, "producer", l->triggers[i].producer);
		json_int(j, "uid", l->triggers[i].uid);
		json_uint(j, "ns", l->triggers[i].ns);
		json_bool(j, "cloned", l->triggers[i].clone);
		json_object_end(j);
	}
	json_array_end(j);
	json_array(j, "cloned_buffers");
	for (i = 0; i < l->n_cloned; i++)
		json_uint(j, NULL, l->cloned[i]);
	json_array_end(j);
}

static void
session(struct json_out *j, const struct session_log *l)
{
	const trace_config *c = l->config;
	char uuid[40];

	json_object(j, "session");
	if (l->has_uuid) {
		snprintf(uuid, sizeof(uuid), "%08" PRIx64 "-%04" PRIx64 "-%04"
		    PRIx64 "-%04" PRIx64 "-%012" PRIx64, l->uuid_msb >> 32,
		    l->uuid_msb >> 16 & 0xffff, l->uuid_msb & 0xffff,
		    l->uuid_lsb >> 48, l->uuid_lsb & 0xffffffffffff);
		json_string(j, "uuid", uuid);
	}
	json_uint(j, "configs", l->n_configs);
	json_uint(j, "uuids", l->n_uuids);
	if (c != NULL && c->unique_session_name != NULL)
		json_string(j, "name", c->unique_session_name);
	if (c != NULL) {
		json_uint(j, "asked_duration_ms", c->duration_ms);
		json_bool(j, "write_into_file", c->write_into_file);
	}
	event_counts(j, l);
	slow_and_triggers(j, l);
	json_uint(j, "entries_left_out", l->overflow);
	json_object_end(j);
}

static void
machines(struct json_out *j, const struct inspection *i)
{
	const struct session_log *l = inspection_log(i);
	const struct session_machine *known;
	struct machine_total *m;
	size_t k, n;

	n = machine_totals_make(&m, trace_summary_sequences(
	    inspection_summary(i)), l);
	json_array(j, "machines");
	for (k = 0; k < n; k++) {
		known = session_log_machine(l, m[k].id);
		json_object(j, NULL);
		json_uint(j, "id", m[k].id);
		if (m[k].id == 0)
			json_string(j, "name", MACHINE_WORD_HOST);
		if (known != NULL) {
			json_string(j, m[k].id == 0 ? "own_name" : "name",
			    known->name);
			json_string(j, "system", known->system);
			json_string(j, "service", known->service);
			json_uint(j, "cpus", known->cpus);
		}
		json_uint(j, "packets", m[k].packets);
		json_uint(j, "bytes", m[k].bytes);
		json_uint(j, "sequences", m[k].sequences);
		json_uint(j, "gaps", m[k].gaps);
		json_object_end(j);
	}
	json_array_end(j);
	free(m);
}

static void
producers(struct json_out *j, struct trace_summary *s)
{
	const struct trace_producer *p;
	size_t i, n = trace_summary_producers(s, &p);

	json_array(j, "producers");
	for (i = 0; i < n; i++) {
		json_object(j, NULL);
		json_int(j, "id", p[i].id);
		json_uint(j, "machine", p[i].machine_id);
		json_int(j, "pid", p[i].pid);
		json_int(j, "uid", p[i].uid);
		json_uint(j, "packets", p[i].packets);
		json_uint(j, "bytes", p[i].bytes);
		json_uint(j, "sequences", p[i].sequences);
		json_uint(j, "gaps", p[i].gaps);
		json_object_end(j);
	}
	json_array_end(j);
}

static void
reasons(struct json_out *j, uint32_t mask)
{
	unsigned bit;

	json_array(j, "reasons");
	for (bit = 0; bit < 32; bit++) {
		if ((mask >> bit & 1) != 0)
			json_uint(j, NULL, UINT64_C(1) << bit);
	}
	json_array_end(j);
}

static void
sequences(struct json_out *j, const struct trace_sequences *t)
{
	const struct trace_sequence *q;
	size_t at = 0;

	json_array(j, "sequences");
	while ((q = trace_sequences_next(t, &at)) != NULL) {
		json_object(j, NULL);
		json_uint(j, "id", q->id);
		json_int(j, "producer", q->producer_id);
		json_uint(j, "machine", q->machine_id);
		json_int(j, "pid", q->pid);
		json_int(j, "uid", q->uid);
		if (q->buffer != 0)
			json_uint(j, "buffer", q->buffer - 1);
		json_uint(j, "packets", q->packets);
		json_uint(j, "bytes", q->bytes);
		json_uint(j, "gaps", q->gaps);
		reasons(j, q->reasons);
		json_uint(j, "undecodable_packets", q->without_state);
		json_uint(j, "ftrace_lost_events",
		    ftrace_losses_events(&q->ftrace));
		json_object_end(j);
	}
	json_array_end(j);
	json_uint(j, "packets_of_untold_sequences",
	    trace_sequences_overflow(t));
}

static void
ftrace_troubles(struct json_out *j, const struct trace_sequences *t)
{
	const struct trace_sequence *q;
	size_t i, at = 0;

	json_array(j, "ftrace_troubles");
	while ((q = trace_sequences_next(t, &at)) != NULL) {
		for (i = 0; i < q->ftrace.n_troubles; i++) {
			json_object(j, NULL);
			json_uint(j, "machine", q->machine_id);
			json_bool(j, "not_recorded",
			    q->ftrace.troubles[i].not_recorded);
			json_string(j, "text", q->ftrace.troubles[i].text);
			json_object_end(j);
		}
	}
	json_array_end(j);
}

static void
sources(struct json_out *j, const struct inspection *i)
{
	struct trace_summary *s = inspection_summary(i);
	struct asked_sources *a = malloc(sizeof(*a));
	const struct trace_packet_type *types;
	size_t k, n = trace_summary_types(s, &types);

	json_array(j, "data_sources");
	if (a != NULL)
		asked_sources_make(a, inspection_log(i)->config,
		    inspection_final_stats(i), types, n);
	for (k = 0; a != NULL && k < a->n; k++) {
		json_object(j, NULL);
		json_string(j, "name", a->all[k].name);
		json_uint(j, "buffer", a->all[k].buffer);
		if (a->all[k].wrote == ASKED_UNKNOWN)
			json_null(j, "wrote");
		else
			json_bool(j, "wrote", a->all[k].wrote == ASKED_WROTE);
		json_object_end(j);
	}
	json_array_end(j);
	free(a);
	json_array(j, "packet_types");
	for (k = 0; k < n; k++) {
		json_object(j, NULL);
		json_string(j, "name", types[k].name);
		json_uint(j, "field", types[k].type);
		json_uint(j, "packets", types[k].packets);
		json_uint(j, "bytes", types[k].bytes);
		json_object_end(j);
	}
	json_array_end(j);
}

static void
buffers(struct json_out *j, const struct inspection *i)
{
	size_t k, m, n = inspect_buffers_count(i);
	struct inspect_buffer b;

	json_array(j, "buffers");
	for (k = 0; k < n; k++) {
		inspect_buffers_read(&b, i, k);
		json_object(j, NULL);
		json_uint(j, "index", k);
		json_string(j, "name", b.name);
		json_uint(j, "size", b.stats->buffer_size);
		json_string(j, "policy", b.discard ? "discard" : "ring");
		json_string(j, "verdict",
		    buffer_verdict_word(b.reading.verdict));
		json_uint(j, "gone_ms", b.reading.gone_ms);
		json_uint(j, "gone_bytes", b.reading.gone_bytes);
		json_uint(j, "enough_bytes", b.reading.enough_bytes);
		json_array(j, "sentences");
		for (m = 0; m < b.reading.n; m++)
			json_string(j, NULL, b.reading.sentences[m].text);
		json_array_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

static void
counted_losses(struct json_out *j, const struct trace_summary *s)
{
	struct trace_loss *l = calloc(MAX_LOSSES, sizeof(*l));
	size_t i, n = 0;

	if (l != NULL)
		n = trace_summary_losses(s, l, MAX_LOSSES);
	for (i = 0; i < n && i < MAX_LOSSES; i++) {
		json_object(j, NULL);
		json_uint(j, "count", l[i].how_much_unknown ? 0 : l[i].count);
		json_bool(j, "how_much_unknown", l[i].how_much_unknown);
		json_bool(j, "at_least", l[i].at_least);
		json_string(j, "unit", l[i].unit);
		json_string(j, "cause", l[i].cause);
		json_uint(j, "bytes", l[i].bytes);
		if (l[i].buffer >= 0)
			json_int(j, "buffer", l[i].buffer);
		if (l[i].cpus[0] != '\0')
			json_string(j, "processors", l[i].cpus);
		if (l[i].place != TRACE_LOSS_IN_SESSION)
			json_uint(j, "machine", l[i].machine);
		json_object_end(j);
	}
	free(l);
}

static void
losses(struct json_out *j, const struct trace_summary *s)
{
	const struct trace_totals *t = trace_summary_totals(s);
	const trace_stats *stats = trace_summary_stats(s);
	unsigned bit;

	json_array(j, "losses");
	counted_losses(j, s);
	json_array_end(j);
	json_uint(j, "gaps", t->gaps);
	json_array(j, "gaps_by_reason");
	for (bit = 0; bit < TRACE_SUMMARY_LOSS_BITS; bit++) {
		if (t->gaps_by_reason[bit] == 0)
			continue;
		json_object(j, NULL);
		json_uint(j, "reason", UINT64_C(1) << bit);
		json_string(j, "cause", trace_summary_reason(bit));
		json_uint(j, "gaps", t->gaps_by_reason[bit]);
		json_object_end(j);
	}
	json_array_end(j);
	if (stats != NULL)
		json_uint(j, "packets_after_stats", t->after_stats);
	if (stats == NULL) {
		json_null(j, "trace_stats");
		return;
	}
	json_message(j, "trace_stats", &stats->base);
}

void
inspect_report_json(FILE *out, const struct inspection *i,
    const struct inspect_verdict *v, const char *path)
{
	struct trace_summary *s = inspection_summary(i);
	struct json_out j = { .out = out };

	json_object(&j, NULL);
	json_string(&j, "path", path);
	json_string(&j, "verdict", inspect_verdict_word(v->kind));
	json_string(&j, "text", v->text);
	file(&j, i);
	totals(&j, i);
	session(&j, inspection_log(i));
	machines(&j, i);
	producers(&j, s);
	sequences(&j, trace_summary_sequences(s));
	ftrace_troubles(&j, trace_summary_sequences(s));
	sources(&j, i);
	buffers(&j, i);
	session_programs_json(&inspection_log(i)->programs, &j);
	losses(&j, s);
	inspect_clocks_json(&j, i);
	json_object_end(&j);
	fputc('\n', out);
}
