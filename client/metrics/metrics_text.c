#include "client/metrics/metrics_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "protos/control.pb-c.h"
#include "protos/utf8.h"
#include "transport/process/process_stats.h"

typedef Tributary__QueryMetricsReply metrics_reply;
typedef Tributary__QueryMetricsReply__Count metrics_count;

enum kind { COUNTER, GAUGE };

/* Digits of a value that stand behind the point, in the unit that is printed. */
enum scale { WHOLE = 0, MS = 3, NS = 9 };

/* A family of one value, or one for each value of a label. */
struct family {
	const char *name;  /* a counter's without _total */
	const char *help;
	enum kind kind;
	enum scale scale;
	const char *label; /* NULL: one value */
	size_t has;        /* offsets: of has_NAME, or with a label n_NAME */
	size_t at;
};

#define ONE(message, member)                                                  \
	NULL, offsetof(message, has_##member), offsetof(message, member)
#define EACH(member, its_label)                                               \
	its_label, offsetof(metrics_reply, n_##member),                       \
	    offsetof(metrics_reply, member)

static const struct family families[] = {
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
	    COUNTER, WHOLE, ONE(metrics_reply, tls_handshakes_failed) },
	{ "tributary_tls_handshakes_late", "TLS handshakes that took too long.",
	    COUNTER, WHOLE, ONE(metrics_reply, tls_handshakes_late) },
	{ "tributary_certificate_expiry_timestamp_seconds", "When the "
	    "collector's certificate ends.", GAUGE, WHOLE,
	    ONE(metrics_reply, certificate_expiry_s) },
	{ "tributary_links", "Links of relays.", GAUGE, WHOLE,
	    EACH(links, "state") },
	{ "tributary_link_resumes", "Links that relays opened, by what became "
	    "of them.", COUNTER, WHOLE, EACH(links_opened, "result") },
	{ "tributary_producers", "Connected producers.", GAUGE, WHOLE,
	    ONE(metrics_reply, producers) },
	{ "tributary_data_sources", "Registered data sources.", GAUGE, WHOLE,
	    ONE(metrics_reply, data_sources) },
	{ "tributary_machines", "Machines that were seen.", GAUGE, WHOLE,
	    EACH(machines, "state") },
	{ "tributary_sessions", "Tracing sessions.", GAUGE, WHOLE,
	    EACH(sessions, "state") },
	{ "tributary_recordings", "Standing recordings.", GAUGE, WHOLE,
	    EACH(recordings, "state") },
	{ "tributary_buffer_bytes", "Size of all trace buffers.", GAUGE, WHOLE,
	    ONE(metrics_reply, buffer_bytes) },
	{ "tributary_buffer_used_bytes", "Bytes in trace buffers that were "
	    "not read yet.", GAUGE, WHOLE,
	    ONE(metrics_reply, buffer_used_bytes) },
	{ "tributary_buffer_limit_bytes", "The most that all trace buffers "
	    "may take.", GAUGE, WHOLE, ONE(metrics_reply, buffer_limit_bytes) },
	{ "tributary_chunks_written", "Chunks that trace buffers took.",
	    COUNTER, WHOLE, ONE(metrics_reply, chunks_written) },
	{ "tributary_received_bytes", "Trace data that trace buffers took.",
	    COUNTER, WHOLE, ONE(metrics_reply, received_bytes) },
	{ "tributary_chunks_dropped", "Chunks that no trace buffer took.",
	    COUNTER, WHOLE, EACH(chunks_dropped, "cause") },
	{ "tributary_lost_packets", "Packets that were lost on the way.",
	    COUNTER, WHOLE, EACH(lost_packets, "cause") },
	{ "tributary_losses_of_unknown_size", "Sessions that lost something "
	    "of which nobody knows how much.", COUNTER, WHOLE,
	    EACH(losses_of_unknown_size, "cause") },
	{ "tributary_file_written_bytes", "Bytes of trace files.", COUNTER,
	    WHOLE, ONE(metrics_reply, file_written_bytes) },
	{ "tributary_segments", "Segments that a cut began, or a flight "
	    "recorder wrote.", COUNTER, WHOLE, EACH(segments, "cut") },
	{ "tributary_disk_free_bytes", "Room on the disks of traces.", GAUGE,
	    WHOLE, EACH(disk_free_bytes, "folder") },
	{ "tributary_input_lag_seconds", "How long input waits for its turn.",
	    GAUGE, MS, ONE(metrics_reply, input_lag_ms) },
	{ "tributary_overload_level", "Work that is left undone under load, "
	    "0: none.", GAUGE, WHOLE, ONE(metrics_reply, overload_level) },
};

#define PROCESS(member) ONE(Tributary__ProcessMetrics, member)

/* Names begin behind a prefix. */
static const struct family of_process[] = {
	{ "process_cpu_seconds", "Processor time, of user and system.",
	    COUNTER, NS, PROCESS(cpu_ns) },
	{ "process_resident_memory_bytes", "Resident memory.", GAUGE, WHOLE,
	    PROCESS(resident_bytes) },
	{ "process_virtual_memory_bytes", "Virtual memory.", GAUGE, WHOLE,
	    PROCESS(virtual_bytes) },
	{ "process_open_fds", "Open descriptors.", GAUGE, WHOLE,
	    PROCESS(open_fds) },
	{ "process_max_fds", "The most descriptors that may be open.", GAUGE,
	    WHOLE, PROCESS(max_fds) },
	{ "process_start_time_seconds", "Start, since 1970.", GAUGE, NS,
	    PROCESS(start_ns) },
	{ "process_threads", "Threads.", GAUGE, WHOLE, PROCESS(threads) },
};

struct printer {
	FILE *out;
	enum metrics_form form;
};

const char *
metrics_text_type(enum metrics_form form)
{
	return form == METRICS_OPENMETRICS ?
	    "application/openmetrics-text; version=1.0.0; charset=utf-8" :
	    "text/plain; version=0.0.4; charset=utf-8";
}

/* The text format names a counter's family as its value, OpenMetrics without. */
static void
put_head(const struct printer *p, const char *prefix, const char *name,
    const char *type, const char *help)
{
	const char *end = strcmp(type, "counter") == 0 &&
	    p->form == METRICS_PROMETHEUS ? "_total" : "";

	fprintf(p->out, "# HELP %s%s%s %s\n# TYPE %s%s%s %s\n", prefix, name,
	    end, help, prefix, name, end, type);
}

static void
put_label(const struct printer *p, const char *name, const char *value)
{
	const char *end = value + strnlen(value, METRICS_LABEL_MAX);
	size_t n;

	fprintf(p->out, "{%s=\"", name);
	while (value < end) {
		n = utf8_printable(value, (size_t)(end - value));
		if (n == 0 && *value != '\n')
			fputs("\xef\xbf\xbd", p->out);
		else if (*value == '\n')
			fputs("\\n", p->out);
		else if (*value == '"' || *value == '\\')
			fprintf(p->out, "\\%c", *value);
		else
			fwrite(value, 1, n, p->out);
		value += n == 0 ? 1 : n;
	}
	fputs("\"}", p->out);
}

static void
put_scaled(const struct printer *p, enum scale scale, uint64_t v)
{
	uint64_t one = 1;
	int i;

	for (i = 0; i < (int)scale; i++)
		one *= 10;
	fprintf(p->out, "%" PRIu64, v / one);
	if (scale != WHOLE)
		fprintf(p->out, ".%0*" PRIu64, (int)scale, v % one);
}

/* value NULL: no label. */
static void
put_sample(const struct printer *p, const char *prefix, const struct family *f,
    const char *value, uint64_t v)
{
	fprintf(p->out, "%s%s%s", prefix, f->name, f->kind == COUNTER ?
	    "_total" : "");
	if (value != NULL)
		put_label(p, f->label, value);
	fputc(' ', p->out);
	put_scaled(p, f->scale, v);
	fputc('\n', p->out);
}

static void
put_family(const struct printer *p, const char *prefix, const struct family *f,
    const void *message)
{
	const char *base = message;
	metrics_count *const *counts;
	size_t i, n = 0;

	if (f->label != NULL)
		n = *(const size_t *)(base + f->has);
	else if (*(const protobuf_c_boolean *)(base + f->has))
		n = 1;
	if (n == 0)
		return;
	put_head(p, prefix, f->name, f->kind == COUNTER ? "counter" : "gauge",
	    f->help);
	if (f->label == NULL) {
		put_sample(p, prefix, f, NULL,
		    *(const uint64_t *)(base + f->at));
		return;
	}
	counts = *(metrics_count *const *const *)(base + f->at);
	for (i = 0; i < n && i < METRICS_SERIES_MAX; i++)
		put_sample(p, prefix, f, counts[i]->label != NULL ?
		    counts[i]->label : "", counts[i]->value);
}

static void
put_families(const struct printer *p, const char *prefix,
    const struct family *f, size_t n, const void *message)
{
	size_t i;

	for (i = 0; i < n; i++)
		put_family(p, prefix, &f[i], message);
}

static void
put_lag(const struct printer *p, const metrics_reply *r)
{
	static const char name[] = "tributary_event_loop_lag_seconds";
	uint64_t n = 0;
	size_t i;

	if (r->n_loop_delays == 0)
		return;
	put_head(p, "", name, "histogram", "How late the event loop ran a "
	    "timer of one second.");
	for (i = 0; i < r->n_loop_delays && i < METRICS_SERIES_MAX; i++) {
		n += r->loop_delays[i]->count;
		if (!r->loop_delays[i]->has_most_ns)
			continue;
		fprintf(p->out, "%s_bucket{le=\"", name);
		put_scaled(p, NS, r->loop_delays[i]->most_ns);
		fprintf(p->out, "\"} %" PRIu64 "\n", n);
	}
	fprintf(p->out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum ", name, n,
	    name);
	put_scaled(p, NS, r->loop_delay_sum_ns);
	fprintf(p->out, "\n%s_count %" PRIu64 "\n", name, n);
}

static void
put_build(const struct printer *p, const char *version)
{
	bool open = p->form == METRICS_OPENMETRICS;

	put_head(p, "", open ? "tributary_build" : "tributary_build_info",
	    open ? "info" : "gauge", "The version of the collector.");
	fputs("tributary_build_info", p->out);
	put_label(p, "version", version);
	fputs(" 1\n", p->out);
}

static void
put_collector(const struct printer *p, const metrics_reply *r)
{
	put_build(p, r->version != NULL ? r->version : "");
	put_families(p, "", families, sizeof(families) / sizeof(families[0]),
	    r);
	put_lag(p, r);
	if (r->process != NULL)
		put_families(p, "tributary_", of_process,
		    sizeof(of_process) / sizeof(of_process[0]), r->process);
}

static void
put_own(const struct printer *p, const struct metrics_page *page)
{
	static const struct family up = { "tributary_collector_up", "Whether "
	    "the collector answers.", GAUGE, WHOLE, NULL, 0, 0 };
	static const struct family open = { "tributary_web_connections",
	    "Open connections of tributary-web.", GAUGE, WHOLE, NULL, 0, 0 };
	static const struct family answers = { "tributary_web_answers",
	    "Answers of tributary-web, by the status of HTTP.", COUNTER, WHOLE,
	    "code", 0, 0 };
	char code[16];
	size_t i;

	put_head(p, "", up.name, "gauge", up.help);
	put_sample(p, "", &up, NULL, page->collector != NULL);
	put_head(p, "", open.name, "gauge", open.help);
	put_sample(p, "", &open, NULL, page->connections);
	put_head(p, "", answers.name, "counter", answers.help);
	for (i = 0; i < page->n_answers && page->answers[i].status != 0; i++) {
		snprintf(code, sizeof(code), "%u", page->answers[i].status);
		put_sample(p, "", &answers, code, page->answers[i].n);
	}
}

static void
put_own_process(const struct printer *p, const struct process_stats *s)
{
	Tributary__ProcessMetrics m = TRIBUTARY__PROCESS_METRICS__INIT;

	m.has_cpu_ns = m.has_resident_bytes = m.has_virtual_bytes = true;
	m.has_open_fds = m.has_max_fds = m.has_start_ns = m.has_threads = true;
	m.cpu_ns = s->cpu_ns;
	m.resident_bytes = s->resident_bytes;
	m.virtual_bytes = s->virtual_bytes;
	m.open_fds = s->open_fds;
	m.max_fds = s->max_fds;
	m.start_ns = s->start_ns;
	m.threads = s->threads;
	put_families(p, "", of_process,
	    sizeof(of_process) / sizeof(of_process[0]), &m);
}

void
metrics_text_print(FILE *out, const struct metrics_page *page,
    enum metrics_form form)
{
	const struct printer p = { .out = out, .form = form };

	put_own(&p, page);
	put_own_process(&p, page->own);
	if (page->collector != NULL)
		put_collector(&p, page->collector);
	if (form == METRICS_OPENMETRICS)
		fputs("# EOF\n", out);
}
