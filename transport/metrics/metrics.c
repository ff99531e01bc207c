#include "transport/metrics/metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "protos/control.pb-c.h"
#include "protos/metrics.pb-c.h"
#include "protos/utf8.h"

typedef Tributary__QueryMetricsReply__Count metrics_count;

#define PROCESS(member) METRICS_ONE(Tributary__ProcessMetrics, member)

/* Names begin behind a prefix. */
static const struct metrics_family of_process[] = {
	{ "process_cpu_seconds", "Processor time, of user and system.",
	    METRICS_COUNTER, METRICS_NS, PROCESS(cpu_ns) },
	{ "process_resident_memory_bytes", "Resident memory.", METRICS_GAUGE,
	    METRICS_WHOLE, PROCESS(resident_bytes) },
	{ "process_virtual_memory_bytes", "Virtual memory.", METRICS_GAUGE,
	    METRICS_WHOLE, PROCESS(virtual_bytes) },
	{ "process_open_fds", "Open descriptors.", METRICS_GAUGE,
	    METRICS_WHOLE, PROCESS(open_fds) },
	{ "process_max_fds", "The most descriptors that may be open.",
	    METRICS_GAUGE, METRICS_WHOLE, PROCESS(max_fds) },
	{ "process_start_time_seconds", "Start, since 1970.", METRICS_GAUGE,
	    METRICS_NS, PROCESS(start_ns) },
	{ "process_threads", "Threads.", METRICS_GAUGE, METRICS_WHOLE,
	    PROCESS(threads) },
};

const char *
metrics_type(enum metrics_form form)
{
	return form == METRICS_OPENMETRICS ?
	    "application/openmetrics-text; version=1.0.0; charset=utf-8" :
	    "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- lines ---- */

/* The text format names a counter's family as its value, OpenMetrics without. */
static void
put_head(const struct metrics_out *m, const char *prefix, const char *name,
    const char *type, const char *help)
{
	const char *end = strcmp(type, "counter") == 0 &&
	    m->form == METRICS_PROMETHEUS ? "_total" : "";

	fprintf(m->out, "# HELP %s%s%s %s\n# TYPE %s%s%s %s\n", prefix, name,
	    end, help, prefix, name, end, type);
}

static void
put_label(const struct metrics_out *m, const char *name, const char *value)
{
	const char *end = value + strnlen(value, METRICS_LABEL_MAX);
	size_t n;

	fprintf(m->out, "{%s=\"", name);
	while (value < end) {
		n = utf8_printable(value, (size_t)(end - value));
		if (n == 0 && *value != '\n')
			fputs("\xef\xbf\xbd", m->out);
		else if (*value == '\n')
			fputs("\\n", m->out);
		else if (*value == '"' || *value == '\\')
			fprintf(m->out, "\\%c", *value);
		else
			fwrite(value, 1, n, m->out);
		value += n == 0 ? 1 : n;
	}
	fputs("\"}", m->out);
}

static void
put_scaled(const struct metrics_out *m, enum metrics_scale scale, uint64_t v)
{
	uint64_t one = 1;
	int i;

	for (i = 0; i < (int)scale; i++)
		one *= 10;
	fprintf(m->out, "%" PRIu64, v / one);
	if (scale != METRICS_WHOLE)
		fprintf(m->out, ".%0*" PRIu64, (int)scale, v % one);
}

void
metrics_head(const struct metrics_out *m, const char *prefix,
    const struct metrics_family *f)
{
	put_head(m, prefix, f->name, f->kind == METRICS_COUNTER ? "counter" :
	    "gauge", f->help);
}

void
metrics_value(const struct metrics_out *m, const char *prefix,
    const struct metrics_family *f, const char *label, uint64_t v)
{
	fprintf(m->out, "%s%s%s", prefix, f->name, f->kind == METRICS_COUNTER ?
	    "_total" : "");
	if (label != NULL)
		put_label(m, f->label, label);
	fputc(' ', m->out);
	if (f->is_signed && v > INT64_MAX) {
		fputc('-', m->out);
		v = 0 - v;
	}
	put_scaled(m, f->scale, v);
	fputc('\n', m->out);
}

void
metrics_one(const struct metrics_out *m, const struct metrics_family *f,
    uint64_t v)
{
	metrics_head(m, "", f);
	metrics_value(m, "", f, NULL, v);
}

void
metrics_states(const struct metrics_out *m,
    const struct metrics_family *f, const char *const *labels, const char *now)
{
	metrics_head(m, "", f);
	for (; *labels != NULL; labels++)
		metrics_value(m, "", f, *labels,
		    now != NULL && strcmp(*labels, now) == 0);
}

/* ---- messages ---- */

static void
put_family(const struct metrics_out *m, const char *prefix,
    const struct metrics_family *f, const ProtobufCMessage *message)
{
	const char *base = (const char *)message;
	metrics_count *const *counts;
	size_t i, n = 0;

	if (f->label != NULL)
		n = *(const size_t *)(base + f->has);
	else if (*(const protobuf_c_boolean *)(base + f->has))
		n = 1;
	if (n == 0)
		return;
	metrics_head(m, prefix, f);
	if (f->label == NULL) {
		metrics_value(m, prefix, f, NULL,
		    *(const uint64_t *)(base + f->at));
		return;
	}
	counts = *(metrics_count *const *const *)(base + f->at);
	for (i = 0; i < n && i < METRICS_SERIES_MAX; i++)
		metrics_value(m, prefix, f, counts[i]->label != NULL ?
		    counts[i]->label : "", counts[i]->value);
}

void
metrics_families(const struct metrics_out *m, const char *prefix,
    const struct metrics_family *f, size_t n, const ProtobufCMessage *message)
{
	size_t i;

	for (i = 0; i < n; i++)
		put_family(m, prefix, &f[i], message);
}

/* ---- families of every program ---- */

void
metrics_histogram(const struct metrics_out *m, const char *name,
    const char *help, const struct metrics_row *rows, size_t n, uint64_t sum_ns)
{
	uint64_t count = 0;
	size_t i;

	if (n == 0)
		return;
	put_head(m, "", name, "histogram", help);
	for (i = 0; i < n && i < METRICS_SERIES_MAX; i++) {
		count += rows[i].count;
		if (rows[i].most_ns == UINT64_MAX)
			continue;
		fprintf(m->out, "%s_bucket{le=\"", name);
		put_scaled(m, METRICS_NS, rows[i].most_ns);
		fprintf(m->out, "\"} %" PRIu64 "\n", count);
	}
	fprintf(m->out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum ", name,
	    count, name);
	put_scaled(m, METRICS_NS, sum_ns);
	fprintf(m->out, "\n%s_count %" PRIu64 "\n", name, count);
}

void
metrics_build(const struct metrics_out *m, const char *name, const char *help,
    const char *version)
{
	bool open = m->form == METRICS_OPENMETRICS;

	fprintf(m->out, "# HELP %s%s %s\n# TYPE %s%s %s\n%s_info", name,
	    open ? "" : "_info", help, name, open ? "" : "_info",
	    open ? "info" : "gauge", name);
	put_label(m, "version", version != NULL ? version : "");
	fputs(" 1\n", m->out);
}

void
metrics_process(const struct metrics_out *m, const char *prefix,
    const struct Tributary__ProcessMetrics *p)
{
	metrics_families(m, prefix, of_process,
	    sizeof(of_process) / sizeof(of_process[0]), &p->base);
}

void
metrics_end(const struct metrics_out *m)
{
	if (m->form == METRICS_OPENMETRICS)
		fputs("# EOF\n", m->out);
}

/* ---- labels ---- */

bool
metrics_enum_label(char out[METRICS_LABEL_MAX],
    const ProtobufCEnumDescriptor *d, int value, const char *prefix)
{
	const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(d,
	    value);
	const char *name;
	size_t i;

	if (v == NULL)
		return false;
	name = v->name;
	if (strncmp(name, prefix, strlen(prefix)) == 0)
		name += strlen(prefix);
	snprintf(out, METRICS_LABEL_MAX, "%s", name);
	for (i = 0; out[i] != '\0'; i++)
		out[i] = (char)tolower((unsigned char)out[i]);
	return true;
}
