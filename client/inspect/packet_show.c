#include "client/inspect/packet_show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/clock/clock_name.h"
#include "client/clock/trace_clocks.h"
#include "client/inspect/packet_filter.h"
#include "client/trace/machine_names.h"
#include "client/trace/packet_expand.h"
#include "client/trace/packet_facts.h"
#include "protos/fields.h"
#include "protos/text_print.h"
#include "protos/trace_packet.pb-c.h"
#include "protos/utf8.h"
#include "transport/base/human_numbers.h"
#include "transport/base/machine_word.h"
#include "transport/wire/pb_reader.h"

#define NAME_BYTES 200
#define TIME_BYTES 200

struct packet_show {
	FILE *out;                          /* borrowed, or NULL */
	const struct packet_filter *filter; /* borrowed */
	struct packet_types types;
	struct trace_clocks *clocks; /* owned */
	struct packet_expand *expand; /* owned */
	struct machine_names names;
	const char *failed;
	uint64_t seen, shown;
	uint64_t damaged; /* compressed packets, malformed inner packets */
	bool has_start;
	uint64_t start_ns;
	uint64_t latest_ns; /* of all packets so far */
	uint64_t offset;    /* of the packet in the file */
	bool inside;        /* it came out of a compressed one */
};

static void
learn_name(struct packet_show *p, const struct packet_facts *f)
{
	char name[NAME_BYTES];
	struct pb_reader r;
	struct pb_field e;

	if (f->type != TracePacket_system_info || f->payload.wire != PB_BYTES)
		return;
	PB_FOREACH(&e, &r, f->payload.data, f->payload.len) {
		if (e.number != SystemInfo_machine_name || e.wire != PB_BYTES ||
		    e.len == 0)
			continue;
		utf8_escape(name, sizeof(name), (const char *)e.data, e.len,
		    "");
		machine_names_put(&p->names, f->machine_id, name);
	}
}

static void
learn_time(struct packet_show *p, const struct trace_moment *m)
{
	if (m->result != TRACE_TIME_OK)
		return;
	if (!p->has_start) {
		p->has_start = true;
		p->start_ns = p->latest_ns = m->ns;
	}
	if ((int64_t)(m->ns - p->latest_ns) > 0)
		p->latest_ns = m->ns;
}

static char *
time_text(char out[TIME_BYTES], const struct packet_show *p,
    const struct trace_moment *m)
{
	char into[CLOCK_NAME_MAX], at[CLOCK_NAME_MAX], clock[CLOCK_NAME_MAX];
	struct clock_key k = trace_clocks_trace_clock(p->clocks);

	switch (m->result) {
	case TRACE_TIME_NONE:
		snprintf(out, TIME_BYTES, "no time");
		break;
	case TRACE_TIME_OK:
		snprintf(out, TIME_BYTES, "%s s (%s %s)", clock_seconds(into,
		    (int64_t)(m->ns - p->start_ns)), clock_name(clock, &k),
		    clock_seconds(at, (int64_t)m->ns));
		break;
	case TRACE_TIME_UNKNOWN:
	case TRACE_TIME_NO_WAY:
	case TRACE_TIME_WENT_BACK:
	case TRACE_TIME_LOST:
		snprintf(out, TIME_BYTES, "time unknown (%s %" PRIu64 ": %s)",
		    clock_name(clock, &m->at.clock), m->at.ns,
		    trace_time_text(m->result));
		break;
	}
	return out;
}

static void
print_machine(const struct packet_show *p, uint32_t id)
{
	const char *name = machine_names_find(&p->names, id);

	if (id == 0)
		fprintf(p->out, ", machine " MACHINE_WORD_HOST);
	else if (name != NULL)
		fprintf(p->out, ", machine %s (%" PRIu32 ")", name, id);
	else
		fprintf(p->out, ", machine %" PRIu32, id);
}

static void
print_packet(struct packet_show *p, const struct packet_facts *f,
    const struct trace_moment *m, const uint8_t *data, size_t len)
{
	Perfetto__Protos__TracePacket *packet;
	char text[TIME_BYTES], bytes[HUMAN_TEXT_MAX];

	fprintf(p->out, "# %s", time_text(text, p, m));
	if (f->sequence_id != 0)
		fprintf(p->out, ", sequence %" PRIu32, f->sequence_id);
	print_machine(p, f->machine_id);
	fprintf(p->out, ", %s at byte %" PRIu64 "%s\n",
	    human_bytes(bytes, len), p->offset,
	    p->inside ? " (compressed)" : "");
	packet = perfetto__protos__trace_packet__unpack(NULL, len, data);
	if (packet == NULL) {
		fputs("# its contents cannot be decoded\n", p->out);
		return;
	}
	fputs("packet {\n", p->out);
	if (text_print(p->out, &packet->base, 1) == 0)
		fputs("}\n", p->out);
	perfetto__protos__trace_packet__free_unpacked(packet, NULL);
}

static bool
take_one(struct packet_show *p, const uint8_t *data, size_t len)
{
	struct packet_facts f;
	struct trace_moment m;

	if (!packet_facts_read(&f, &p->types, data, len))
		return false;
	p->seen++;
	learn_name(p, &f);
	if (trace_clocks_take(p->clocks, &f, &m) != 0) {
		p->failed = "out of memory";
		return true;
	}
	learn_time(p, &m);
	if (p->out == NULL || !packet_filter_match(p->filter, &f,
	    machine_names_find(&p->names, f.machine_id), (int64_t)((m.result ==
	    TRACE_TIME_OK ? m.ns : p->latest_ns) - p->start_ns)))
		return true;
	p->shown++;
	print_packet(p, &f, &m, data, len);
	if (ferror(p->out))
		p->failed = "writing failed";
	return true;
}

static void
inner_cb(void *arg, const uint8_t *data, size_t len)
{
	struct packet_show *p = arg;

	if (p->failed != NULL || take_one(p, data, len))
		return;
	p->damaged++;
	if (p->out != NULL)
		fprintf(p->out, "# malformed, at byte %" PRIu64
		    " (compressed)\n", p->offset);
}

struct packet_show *
packet_show_new(FILE *out, const struct packet_filter *filter)
{
	struct packet_show *p;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	p->out = out;
	p->filter = filter;
	packet_types_init(&p->types);
	p->clocks = trace_clocks_new();
	p->expand = packet_expand_new(inner_cb, p);
	if (p->clocks == NULL || p->expand == NULL) {
		packet_show_free(p);
		return NULL;
	}
	return p;
}

void
packet_show_free(struct packet_show *p)
{
	if (p == NULL)
		return;
	trace_clocks_free(p->clocks);
	packet_expand_free(p->expand);
	machine_names_done(&p->names);
	free(p);
}

bool
packet_show_take(struct packet_show *p, const uint8_t *data, size_t len,
    uint64_t offset)
{
	char err[200];

	if (p->failed != NULL)
		return true;
	p->offset = offset;
	p->inside = true;
	switch (packet_expand_packet(p->expand, data, len, err, sizeof(err))) {
	case PACKET_EXPAND_PLAIN:
		p->inside = false;
		return take_one(p, data, len);
	case PACKET_EXPAND_DONE:
		return true;
	case PACKET_EXPAND_BAD:
		p->damaged++;
		if (p->out != NULL)
			fprintf(p->out, "# the compressed packets at byte %"
			    PRIu64 " are damaged: %s\n", offset, err);
		return true;
	}
	return false;
}

const char *
packet_show_failed(const struct packet_show *p)
{
	return p->failed;
}

struct trace_clocks *
packet_show_clocks(struct packet_show *p)
{
	return p->clocks;
}

bool
packet_show_start(const struct packet_show *p, uint64_t *ns)
{
	if (p->has_start)
		*ns = p->start_ns;
	return p->has_start;
}

bool
packet_show_machine(const struct packet_show *p, const char *machine,
    uint32_t *id)
{
	const struct clock_graph_clock *c;
	size_t i, n;

	for (i = 0; i < p->names.n; i++) {
		if (packet_filter_is_machine(machine, p->names.all[i].id,
		    p->names.all[i].name)) {
			*id = p->names.all[i].id;
			return true;
		}
	}
	n = clock_graph_clocks(trace_clocks_graph(p->clocks), &c);
	for (i = 0; i < n; i++) {
		if (packet_filter_is_machine(machine, c[i].key.machine,
		    NULL)) {
			*id = c[i].key.machine;
			return true;
		}
	}
	return false;
}

uint64_t
packet_show_shown(const struct packet_show *p)
{
	return p->shown;
}

uint64_t
packet_show_damaged(const struct packet_show *p)
{
	return p->damaged;
}

uint64_t
packet_show_seen(const struct packet_show *p)
{
	return p->seen;
}
