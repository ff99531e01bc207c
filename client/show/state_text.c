#include "client/show/state_text.h"

#include <inttypes.h>
#include <time.h>

#include "client/library/producer_lookup.h"
#include "client/show/source_details.h"
#include "client/text/text_cell.h"
#include "protos/service_state.pb-c.h"
#include "transport/base/human_numbers.h"

typedef Perfetto__Protos__TracingServiceState state_pb;
typedef Perfetto__Protos__TracingServiceState__Producer producer_pb;
typedef Perfetto__Protos__TracingServiceState__TracingSession session_pb;

/* Columns that details take where they are not asked for in full. */
#define DETAILS_COLUMNS 40

static const char *
machine_of(const producer_pb *p, char out[TEXT_CELL_MAX])
{
	if (p->machine_id == 0)
		return "host";
	if (p->machine_name != NULL && p->machine_name[0] != '\0')
		return text_cell_plain(p->machine_name, out);
	snprintf(out, TEXT_CELL_MAX, "%" PRIu32, p->machine_id);
	return out;
}

static void
print_producers(FILE *out, const state_pb *s)
{
	char name[TEXT_CELL_MAX], text[TEXT_CELL_MAX];
	int name_width = 4, machine_width = 7;
	const producer_pb *p;
	size_t i;

	for (i = 0; i < s->n_producers; i++) {
		p = s->producers[i];
		name_width = text_cell_widen(name_width,
		    text_cell_plain(p->name, name));
		machine_width = text_cell_widen(machine_width,
		    machine_of(p, text));
	}
	fprintf(out, "\nPRODUCERS (%zu)\n\n", s->n_producers);
	if (s->n_producers == 0)
		return;
	fprintf(out, "%-6s  %-8s  %-8s  %-6s  %-*s  %-*s  %s\n", "ID", "PID",
	    "UID", "FROZEN", machine_width, "MACHINE", name_width, "NAME",
	    "SDK");
	for (i = 0; i < s->n_producers; i++) {
		p = s->producers[i];
		fprintf(out, "%-6" PRId32 "  %-8" PRId32 "  %-8" PRId32
		    "  %-6s  ", p->id, p->pid, p->uid, p->frozen ? "yes" : "-");
		text_cell_put(out, machine_of(p, text), machine_width);
		text_cell_put(out, text_cell_plain(p->name, name), name_width);
		fprintf(out, "%s\n", text_cell_plain(p->sdk_version, text));
	}
}

/* at: as producer_lookup() has it. */
static const char *
producer_of(const state_pb *s, int32_t id, size_t *at,
    char out[TEXT_CELL_MAX])
{
	const producer_pb *p = producer_lookup(s, id, at);
	char name[TEXT_CELL_MAX];

	if (p != NULL)
		snprintf(out, TEXT_CELL_MAX, "%.480s (%" PRId32 ")",
		    text_cell_plain(p->name, name), id);
	else
		snprintf(out, TEXT_CELL_MAX, "(%" PRId32 ")", id);
	return out;
}

static void
print_sources(FILE *out, const state_pb *s, bool in_full)
{
	char name[TEXT_CELL_MAX], producer[TEXT_CELL_MAX];
	const Perfetto__Protos__DataSourceDescriptor *d;
	int name_width = 4, producer_width = 8;
	size_t i, at = 0;

	for (i = 0; i < s->n_data_sources; i++) {
		d = s->data_sources[i]->ds_descriptor;
		name_width = text_cell_widen(name_width,
		    text_cell_plain(d == NULL ? NULL : d->name, name));
		producer_width = text_cell_widen(producer_width, producer_of(s,
		    s->data_sources[i]->producer_id, &at, producer));
	}
	fprintf(out, "\nDATA SOURCES (%zu)\n\n", s->n_data_sources);
	if (s->n_data_sources == 0)
		return;
	fprintf(out, "%-*s  %-*s  %s\n", name_width, "NAME", producer_width,
	    "PRODUCER", "CATEGORIES");
	for (i = 0; i < s->n_data_sources; i++) {
		d = s->data_sources[i]->ds_descriptor;
		text_cell_put(out, text_cell_plain(d == NULL ? NULL : d->name,
		    name), name_width);
		text_cell_put(out, producer_of(s,
		    s->data_sources[i]->producer_id, &at, producer),
		    producer_width);
		if (d == NULL || !source_details_categories(out, d, in_full ?
		    0 : DETAILS_COLUMNS))
			fprintf(out, "-");
		fprintf(out, "\n");
	}
}

static const char *
time_of(int64_t ns, char out[32])
{
	time_t t = (time_t)(ns / 1000000000);
	struct tm tm;

	if (ns <= 0 || localtime_r(&t, &tm) == NULL ||
	    strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		return "-";
	return out;
}

static void
print_session(FILE *out, const session_pb *t)
{
	char state[TEXT_CELL_MAX], name[TEXT_CELL_MAX], started[32];
	char size[HUMAN_TEXT_MAX], lasts[HUMAN_TEXT_MAX], buffers[64];
	uint64_t kb = 0;
	size_t i;

	for (i = 0; i < t->n_buffer_size_kb; i++)
		kb += t->buffer_size_kb[i];
	snprintf(buffers, sizeof(buffers), "%zu: %s", t->n_buffer_size_kb,
	    human_bytes(size, kb * 1024));
	fprintf(out, "%-6" PRIu64 "  %-8" PRId32 "  %-20s  %-14s  %-12s  %7"
	    PRIu32 "  %-19s  %s\n", t->id, t->consumer_uid,
	    text_cell_plain(t->state, state), buffers, t->duration_ms == 0 ?
	    "-" : human_ms(lasts, t->duration_ms), t->num_data_sources,
	    time_of(t->start_realtime_ns, started),
	    text_cell_plain(t->unique_session_name, name));
}

static void
print_sessions(FILE *out, const state_pb *s)
{
	size_t i;

	if (!s->supports_tracing_sessions)
		return; /* an old service does not tell */
	fprintf(out, "\nSESSIONS (%" PRId32 ", of which %" PRId32
	    " started)\n\n", s->num_sessions, s->num_sessions_started);
	if (s->n_tracing_sessions > 0)
		fprintf(out, "%-6s  %-8s  %-20s  %-14s  %-12s  %7s  %-19s  "
		    "%s\n", "ID", "UID", "STATE", "BUFFERS", "DURATION",
		    "SOURCES", "STARTED", "NAME");
	for (i = 0; i < s->n_tracing_sessions; i++)
		print_session(out, s->tracing_sessions[i]);
	if (s->num_sessions > 0 &&
	    (size_t)s->num_sessions > s->n_tracing_sessions)
		fprintf(out, "(%" PRId32 " of others are not shown)\n",
		    s->num_sessions - (int32_t)s->n_tracing_sessions);
}

void
state_text_print(FILE *out, const state_pb *s, bool in_full)
{
	char text[TEXT_CELL_MAX];

	fprintf(out, "Service  %s\n",
	    text_cell_plain(s->tracing_service_version, text));
	print_producers(out, s);
	print_sources(out, s, in_full);
	print_sessions(out, s);
}
