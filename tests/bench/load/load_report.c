#include "tests/bench/load/load_report.h"

#include "protos/json_out.h"
#include "tests/bench/load/hostile.h"
#include "tests/bench/load/recording.h"

static void
put_histogram(struct json_out *j, const char *key, const struct histogram *h)
{
	json_object(j, key);
	json_uint(j, "count", h->n);
	json_uint(j, "p50", histogram_at(h, 500));
	json_uint(j, "p90", histogram_at(h, 900));
	json_uint(j, "p99", histogram_at(h, 990));
	json_uint(j, "max", h->max);
	json_object_end(j);
}

static void
put_spread(struct json_out *j, const char *key, const struct fleet_spread *s)
{
	json_object(j, key);
	json_uint(j, "min", s->min);
	json_uint(j, "max", s->max);
	json_uint(j, "total", s->total);
	json_object_end(j);
}

static void
put_watch(struct json_out *j, const char *key, const struct load_watch *w)
{
	const struct process_sample *b = &w->begin;

	if (!w->known)
		return;
	json_object(j, key);
	json_number(j, "user_s", w->end.user - b->user);
	json_number(j, "system_s", w->end.system - b->system);
	json_number(j, "connect_cpu_s", w->connected.cpu - b->cpu);
	json_number(j, "load_cpu_s", w->load.cpu - w->idle.cpu);
	json_number(j, "session_cpu_s", w->end.cpu - w->idle.cpu);
	json_uint(j, "rss_begin_kb", b->rss_kb);
	json_uint(j, "rss_connected_kb", w->connected.rss_kb);
	json_uint(j, "rss_idle_kb", w->idle.rss_kb);
	json_uint(j, "rss_load_kb", w->load.rss_kb);
	json_uint(j, "rss_peak_kb", w->end.peak_kb);
	json_uint(j, "rss_end_kb", w->end.rss_kb);
	json_uint(j, "threads", w->peak_threads);
	json_uint(j, "descriptors_begin", b->descriptors);
	json_uint(j, "descriptors_peak", w->peak_descriptors);
	json_uint(j, "descriptors_end", w->end.descriptors);
	json_object_end(j);
}

static void
put_recording(struct json_out *j, const struct recording_result *r)
{
	if (r == NULL)
		return;
	json_object(j, "session");
	json_number(j, "start_ms", r->start_ms);
	json_number(j, "stop_ms", r->stop_ms);
	json_uint(j, "file_bytes", r->file_bytes);
	if (r->error[0] != '\0')
		json_string(j, "error", r->error);
	else
		json_null(j, "error");
	if (r->has_stats) {
		json_uint(j, "lost_as_told", r->lost);
		json_uint(j, "buffer_bytes", r->buffer_bytes);
		json_uint(j, "chunks_overwritten", r->chunks_overwritten);
		json_uint(j, "chunks_discarded", r->chunks_discarded);
		json_uint(j, "invalid_packets", r->invalid_packets);
	}
	json_object_end(j);
	json_object(j, "control");
	put_histogram(j, "flush_us", &r->flush_us);
	json_uint(j, "flush_failed", r->flush_failed);
	put_histogram(j, "query_us", &r->query_us);
	json_object_end(j);
}

static void
put_hostile(struct json_out *j, const struct hostile *h)
{
	struct hostile_counts c;
	unsigned kind;

	json_object(j, "hostile");
	for (kind = 0; kind < HOSTILE_KINDS; kind++) {
		hostile_look(h, (enum load_hostile)kind, &c);
		if (c.connections == 0)
			continue;
		json_object(j, load_hostile_text(kind));
		json_uint(j, "connections", c.connections);
		json_uint(j, "thrown_out", c.thrown_out);
		json_uint(j, "bytes", c.bytes);
		json_object_end(j);
	}
	json_object_end(j);
}

static void
put_errors(struct json_out *j, const struct load_totals *t)
{
	size_t i;

	json_object(j, "errors");
	for (i = 0; i < t->n_errors; i++)
		json_uint(j, t->errors[i].kind, t->errors[i].count);
	json_object_end(j);
	json_object(j, "first_errors");
	for (i = 0; i < t->n_errors; i++)
		json_string(j, t->errors[i].kind, t->errors[i].text);
	json_object_end(j);
}

static void
put_written(struct json_out *j, const struct load_report *r)
{
	const struct load_totals *t = r->totals;
	struct fleet_spread packets, bytes;

	fleet_packets(r->fleet, &packets);
	fleet_bytes(r->fleet, &bytes);
	put_spread(j, "packets", &packets);
	put_spread(j, "bytes", &bytes);
	json_uint(j, "chunks", t->chunks);
	json_uint(j, "commits", t->commits);
	json_uint(j, "replies", t->replies);
	put_histogram(j, "round_trip_us", &t->round_trip_us);
	json_uint(j, "starts", t->starts);
	json_uint(j, "flushes", t->flushes);
	json_uint(j, "stops", t->stops);
	json_uint(j, "memory_full", t->stalls);
	json_uint(j, "socket_full", t->held_back);
	json_uint(j, "ended_clean", t->ended_clean);
	json_uint(j, "ended_cut", t->ended_cut);
}

void
load_report_print(const struct load_report *r, FILE *out)
{
	struct json_out j = { .out = out };

	json_object(&j, NULL);
	json_uint(&j, "producers", r->at_peak.devices);
	json_uint(&j, "connected", r->at_peak.most_connected);
	json_uint(&j, "connections", r->totals->connections);
	json_uint(&j, "sequences", r->sequences);
	json_number(&j, "connect_s", r->connect_s);
	json_number(&j, "load_s", r->load_s);
	json_number(&j, "total_s", r->total_s);
	put_written(&j, r);
	put_errors(&j, r->totals);
	put_hostile(&j, r->hostile);
	put_recording(&j, r->recording);
	put_watch(&j, "generator", &r->self);
	put_watch(&j, "collector", &r->collector);
	if (r->ledger != NULL)
		json_string(&j, "ledger", r->ledger);
	json_object_end(&j);
	putc('\n', out);
	fflush(out);
}
