#include "client/metrics/metrics_text.h"

#include <stdbool.h>

#include "protos/control.pb-c.h"

typedef Tributary__QueryMetricsReply metrics_reply;

#define COUNTER METRICS_COUNTER
#define GAUGE   METRICS_GAUGE
#define WHOLE   METRICS_WHOLE
#define MS      METRICS_MS
#define NS      METRICS_NS

#define ONE(member)         METRICS_ONE(metrics_reply, member)
#define EACH(member, label) METRICS_EACH(metrics_reply, member, label)

static const struct metrics_family families[] = {
	{ "tributary_connections", "Open connections, by the kind of socket "
	    "that they came in by.", GAUGE, WHOLE, EACH(connections, "port") },
	{ "tributary_connections_accepted", "Connections that were let in.",
	    COUNTER, WHOLE, EACH(connections_accepted, "port") },
	{ "tributary_connections_cut_off", "Connections that the collector "
	    "ended.", COUNTER, WHOLE, EACH(connections_cut_off, "cause") },
	{ "tributary_refused", "Connections, producers, data sources and "
	    "sessions that were refused, by the setting.",
	    COUNTER, WHOLE, EACH(refused, "limit") },
	{ "tributary_tls_handshakes_failed", "TLS handshakes that failed.",
	    COUNTER, WHOLE, ONE(tls_handshakes_failed) },
	{ "tributary_tls_handshakes_late", "TLS handshakes that took too long.",
	    COUNTER, WHOLE, ONE(tls_handshakes_late) },
	{ "tributary_certificate_expiry_timestamp_seconds", "When the "
	    "collector's certificate ends.", GAUGE, WHOLE,
	    ONE(certificate_expiry_s) },
	{ "tributary_links", "Links of relays.", GAUGE, WHOLE,
	    EACH(links, "state") },
	{ "tributary_link_resumes", "Links that relays opened, by what became "
	    "of them.", COUNTER, WHOLE, EACH(links_opened, "result") },
	{ "tributary_producers", "Connected producers.", GAUGE, WHOLE,
	    ONE(producers) },
	{ "tributary_data_sources", "Registered data sources.", GAUGE, WHOLE,
	    ONE(data_sources) },
	{ "tributary_machines", "Machines that were seen.", GAUGE, WHOLE,
	    EACH(machines, "state") },
	{ "tributary_relays_backlog_bytes", "Data that waits at relays for the "
	    "collector.", GAUGE, WHOLE, EACH(relays_backlog, "where") },
	{ "tributary_relays_backlog_limit_bytes", "Room for it.", GAUGE, WHOLE,
	    EACH(relays_backlog_limit, "where") },
	{ "tributary_relays_oldest_data_seconds", "Age of the oldest data that "
	    "waits at any relay.", GAUGE, MS, ONE(relays_oldest_ms) },
	{ "tributary_relays_clock_error_seconds", "Largest error of any "
	    "machine's clock.", GAUGE, NS, ONE(relays_clock_error_ns) },
	{ "tributary_sessions", "Tracing sessions.", GAUGE, WHOLE,
	    EACH(sessions, "state") },
	{ "tributary_recordings", "Standing recordings.", GAUGE, WHOLE,
	    EACH(recordings, "state") },
	{ "tributary_buffer_bytes", "Size of all trace buffers.", GAUGE, WHOLE,
	    ONE(buffer_bytes) },
	{ "tributary_buffer_used_bytes", "Bytes in trace buffers that were "
	    "not read yet.", GAUGE, WHOLE,
	    ONE(buffer_used_bytes) },
	{ "tributary_buffer_limit_bytes", "The most that all trace buffers "
	    "may take.", GAUGE, WHOLE, ONE(buffer_limit_bytes) },
	{ "tributary_chunks_written", "Chunks that trace buffers took.",
	    COUNTER, WHOLE, ONE(chunks_written) },
	{ "tributary_received_bytes", "Trace data that trace buffers took.",
	    COUNTER, WHOLE, ONE(received_bytes) },
	{ "tributary_chunks_dropped", "Chunks that no trace buffer took.",
	    COUNTER, WHOLE, EACH(chunks_dropped, "cause") },
	{ "tributary_lost_packets", "Packets that were lost on the way.",
	    COUNTER, WHOLE, EACH(lost_packets, "cause") },
	{ "tributary_losses_of_unknown_size", "Sessions that lost something "
	    "of which nobody knows how much.", COUNTER, WHOLE,
	    EACH(losses_of_unknown_size, "cause") },
	{ "tributary_file_written_bytes", "Bytes of trace files.", COUNTER,
	    WHOLE, ONE(file_written_bytes) },
	{ "tributary_segments", "Segments that a cut began, or a flight "
	    "recorder wrote.", COUNTER, WHOLE, EACH(segments, "cut") },
	{ "tributary_disk_free_bytes", "Room on the disks of traces.", GAUGE,
	    WHOLE, EACH(disk_free_bytes, "folder") },
	{ "tributary_input_lag_seconds", "How long input waits for its turn.",
	    GAUGE, MS, ONE(input_lag_ms) },
	{ "tributary_overload_level", "Work that is left undone under load, "
	    "0: none.", GAUGE, WHOLE, ONE(overload_level) },
};

static void
put_lag(const struct metrics_out *m, const metrics_reply *r)
{
	struct metrics_row rows[METRICS_SERIES_MAX];
	size_t i;

	for (i = 0; i < r->n_loop_delays && i < METRICS_SERIES_MAX; i++)
		rows[i] = (struct metrics_row){
			.most_ns = r->loop_delays[i]->has_most_ns ?
			    r->loop_delays[i]->most_ns : UINT64_MAX,
			.count = r->loop_delays[i]->count,
		};
	metrics_histogram(m, "tributary_event_loop_lag_seconds", "How late "
	    "the event loop ran its timers.", rows, i, r->loop_delay_sum_ns);
}

static void
put_collector(const struct metrics_out *m, const metrics_reply *r)
{
	metrics_build(m, "tributary_build", "The version of the collector.",
	    r->version);
	metrics_families(m, "", families,
	    sizeof(families) / sizeof(families[0]), &r->base);
	put_lag(m, r);
	if (r->process != NULL)
		metrics_process(m, "tributary_", r->process);
}

static void
put_own(const struct metrics_out *m, const struct metrics_page *page)
{
	static const struct metrics_family up = { "tributary_collector_up",
	    "Whether the collector answers.", GAUGE, WHOLE, NULL, 0, 0, false };
	static const struct metrics_family open = {
	    "tributary_web_connections", "Open connections of tributary-web.",
	    GAUGE, WHOLE, NULL, 0, 0, false };
	static const struct metrics_family answers = { "tributary_web_answers",
	    "Answers of tributary-web, by the status of HTTP.", COUNTER, WHOLE,
	    "code", 0, 0, false };
	char code[16];
	size_t i;

	metrics_one(m, &up, page->collector != NULL);
	metrics_one(m, &open, page->connections);
	metrics_head(m, "", &answers);
	for (i = 0; i < page->n_answers && page->answers[i].status != 0; i++) {
		snprintf(code, sizeof(code), "%u", page->answers[i].status);
		metrics_value(m, "", &answers, code, page->answers[i].n);
	}
}

void
metrics_text_print(FILE *out, const struct metrics_page *page,
    enum metrics_form form)
{
	const struct metrics_out m = { .out = out, .form = form };

	put_own(&m, page);
	metrics_process(&m, "", page->own);
	if (page->collector != NULL)
		put_collector(&m, page->collector);
	metrics_end(&m);
}
