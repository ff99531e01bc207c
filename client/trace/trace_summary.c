#include "client/trace/trace_summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/trace/ftrace_losses.h"
#include "client/trace/ftrace_rings.h"
#include "client/trace/machine_names.h"
#include "client/trace/packet_expand.h"
#include "client/trace/packet_facts.h"
#include "client/trace/packet_splitter.h"
#include "client/trace/trace_losses.h"
#include "client/trace/trace_sequences.h"
#include "client/trace/wall_clock.h"
#include "protos/fields.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/base/failure.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

struct trace_summary {
	struct trace_totals totals;
	Perfetto__Protos__TraceStats *stats; /* owned, or NULL */
	uint64_t started_ns, disabled_ns;

	struct packet_types known;
	struct type_count {
		uint64_t packets;
		uint64_t bytes;
	} types[PACKET_TYPE_SLOTS];
	struct trace_packet_type types_out[PACKET_TYPE_SLOTS];

	struct trace_sequences *sequences; /* owned */
	struct ftrace_rings rings;
	struct packet_splitter cutter;
	struct packet_expand *expand; /* owned */

	char **data_sources;
	size_t n_data_sources;
	struct machine_names machines;
	struct wall_clock clock; /* the first reading of the collector */
};

/* Bits that say what a packet with a loss looks like, not why. */
#define EFFECTS (1u << 3 | 1u << 4 | 1u << 5)

/* Counts a gap under its causes, and under effects where no cause is told. */
static void
count_gap(struct trace_summary *s, const struct packet_facts *f)
{
	bool caused = (f->dropped & ~(EFFECTS | 1u)) != 0;
	unsigned bit;

	s->totals.gaps++;
	/* Bit 0, DATA_LOSS_PRESENT, is in all of them: counts only alone. */
	s->totals.gaps_by_reason[0] += f->dropped == 1;
	for (bit = 1; bit < TRACE_SUMMARY_LOSS_BITS; bit++) {
		if ((f->dropped >> bit & 1) != 0 &&
		    !(caused && (EFFECTS >> bit & 1) != 0))
			s->totals.gaps_by_reason[bit]++;
	}
}

static struct trace_sequence *
count_producer_packet(struct trace_summary *s, const struct packet_facts *f,
    uint64_t bytes)
{
	struct trace_sequence *q, nowhere = { .id = 0 };

	s->totals.after_stats++;
	s->totals.after_read++;
	q = trace_sequences_find(s->sequences, f->sequence_id);
	if (q != NULL && q->packets == 0)
		s->totals.sequences++;
	if (q == NULL || q->packets == 0)
		machine_names_see(&s->machines, f->machine_id);
	if (trace_sequence_take(q != NULL ? q : &nowhere, f, bytes))
		count_gap(s, f);
	return q;
}

static void
add_data_source(struct trace_summary *s, const uint8_t *name, size_t len)
{
	char **grown, *copy;
	size_t i;

	if (len == 0 || s->n_data_sources == TRACE_SUMMARY_MAX_DATA_SOURCES)
		return;
	if ((copy = strndup((const char *)name, len)) == NULL)
		return;
	for (i = 0; i < s->n_data_sources; i++) {
		if (strcmp(s->data_sources[i], copy) == 0)
			goto out;
	}
	grown = realloc(s->data_sources, (i + 1) * sizeof(*grown));
	if (grown == NULL)
		goto out;
	s->data_sources = grown;
	s->data_sources[s->n_data_sources++] = copy;
	return;

out:
	free(copy);
}

static void
read_trace_config(struct trace_summary *s, const struct pb_field *config)
{
	struct pb_reader rc, rs, rd;
	struct pb_field ds, dsc, name;

	PB_FOREACH(&ds, &rc, config->data, config->len) {
		if (ds.number != TraceConfig_data_sources ||
		    ds.wire != PB_BYTES)
			continue;
		PB_FOREACH(&dsc, &rs, ds.data, ds.len) {
			if (dsc.number != TraceConfig_DataSource_config ||
			    dsc.wire != PB_BYTES)
				continue;
			ftrace_rings_take(&s->rings, &dsc);
			PB_FOREACH(&name, &rd, dsc.data, dsc.len) {
				if (name.number == DataSourceConfig_name &&
				    name.wire == PB_BYTES)
					add_data_source(s, name.data,
					    name.len);
			}
		}
	}
}

static void
read_service_event(struct trace_summary *s, const struct packet_facts *f)
{
	struct pb_reader r;
	struct pb_field e;

	PB_FOREACH(&e, &r, f->payload.data, f->payload.len) {
		if (e.number == TracingServiceEvent_tracing_started)
			s->started_ns = f->timestamp;
		else if (e.number ==
		    TracingServiceEvent_read_tracing_buffers_completed)
			s->totals.after_read = 0;
		else if (e.number == TracingServiceEvent_tracing_disabled)
			s->disabled_ns = f->timestamp;
	}
	if (s->started_ns != 0 && s->disabled_ns > s->started_ns)
		s->totals.duration_ns = s->disabled_ns - s->started_ns;
}

static void
read_provenance(struct trace_summary *s, const struct pb_field *provenance)
{
	struct pb_reader rp, rb, rs;
	struct pb_field buffer, seq, f;
	struct trace_sequence *q;
	uint32_t id, n = 0;
	int32_t producer;

	PB_FOREACH(&buffer, &rp, provenance->data, provenance->len) {
		if (buffer.number != TraceProvenance_buffers ||
		    buffer.wire != PB_BYTES)
			continue;
		n++;
		PB_FOREACH(&seq, &rb, buffer.data, buffer.len) {
			if (seq.number != TraceProvenance_Buffer_sequences ||
			    seq.wire != PB_BYTES)
				continue;
			id = 0;
			producer = 0;
			PB_FOREACH(&f, &rs, seq.data, seq.len) {
				if (f.number == Sequence_id)
					id = (uint32_t)f.value;
				else if (f.number == Sequence_producer_id)
					producer = (int32_t)f.value;
			}
			if (id <= PACKET_SERVICE_SEQUENCE ||
			    (q = trace_sequences_find(s->sequences, id)) == NULL)
				continue;
			q->producer_id = producer;
			q->buffer = n;
		}
	}
}

static void
read_system_info(struct trace_summary *s, const struct packet_facts *f)
{
	struct pb_reader r;
	struct pb_field e;
	char *name;

	PB_FOREACH(&e, &r, f->payload.data, f->payload.len) {
		if (e.number != SystemInfo_machine_name || e.wire != PB_BYTES ||
		    e.len == 0 ||
		    (name = strndup((const char *)e.data, e.len)) == NULL)
			continue;
		machine_names_put(&s->machines, f->machine_id, name);
		free(name);
	}
}

/*
 * Takes producer names from TraceStats, the only names of producers that a
 * trace has.
 */
static void
name_foreign(struct trace_summary *s)
{
	const Perfetto__Protos__TraceStats__ForeignClock *c;
	size_t i;

	for (i = 0; i < s->stats->n_tributary_foreign_clocks; i++) {
		c = s->stats->tributary_foreign_clocks[i];
		if (c->producer_name != NULL)
			trace_sequences_name(s->sequences,
			    (int32_t)c->producer_id, c->machine_id, 0,
			    c->producer_name);
	}
}

/* Reads the service's packets about the whole trace. */
static void
read_service_packet(struct trace_summary *s, const struct packet_facts *f)
{
	Perfetto__Protos__TraceStats *stats;

	s->totals.service_packets++;
	machine_names_see(&s->machines, f->machine_id);
	if (f->payload.wire != PB_BYTES)
		return;
	switch (f->type) {
	case TracePacket_trace_config:
		read_trace_config(s, &f->payload);
		break;
	case TracePacket_clock_snapshot:
		if (f->machine_id == 0 && s->clock.realtime_ns == 0)
			wall_clock_read(&s->clock, &f->payload);
		break;
	case TracePacket_system_info:
		read_system_info(s, f);
		break;
	case TracePacket_service_event:
		read_service_event(s, f);
		break;
	case TracePacket_trace_provenance:
		read_provenance(s, &f->payload);
		break;
	case TracePacket_trace_stats:
		stats = perfetto__protos__trace_stats__unpack(NULL,
		    f->payload.len, f->payload.data);
		if (stats == NULL)
			break;
		if (s->stats != NULL)
			perfetto__protos__trace_stats__free_unpacked(s->stats,
			    NULL);
		s->stats = stats;
		name_foreign(s);
		s->totals.after_stats = s->totals.after_read = 0;
		break;
	default:
		break;
	}
}

const struct trace_sequence *
trace_summary_take(struct trace_summary *s, const struct packet_facts *f,
    uint64_t bytes)
{
	s->totals.packets++;
	s->totals.bytes += bytes;
	s->totals.expanded_bytes += bytes;
	s->types[f->type].packets++;
	s->types[f->type].bytes += bytes;
	if (f->sequence_id > PACKET_SERVICE_SEQUENCE)
		return count_producer_packet(s, f, bytes);
	read_service_packet(s, f);
	return NULL;
}

void
trace_summary_take_malformed(struct trace_summary *s, uint64_t bytes)
{
	s->totals.packets++;
	s->totals.bytes += bytes;
	s->totals.expanded_bytes += bytes;
	s->totals.malformed++;
}

void
trace_summary_take_compressed(struct trace_summary *s, uint64_t bytes,
    uint64_t expanded, bool whole)
{
	s->totals.bytes += bytes - expanded;
	s->totals.compressed++;
	if (!whole)
		s->totals.malformed++;
}

static bool
is_compressed(const struct packet_facts *f)
{
	return f->type == TracePacket_compressed_packets ||
	    f->type == TracePacket_zstd_compressed_packets;
}

static void
inner_cb(void *arg, const uint8_t *data, size_t len)
{
	struct trace_summary *s = arg;
	uint64_t bytes = 1 + pb_varint_size(len) + len;
	struct packet_facts f;

	/* A compressed packet within a compressed one is not opened. */
	if (packet_facts_read(&f, &s->known, data, len) && !is_compressed(&f))
		(void)trace_summary_take(s, &f, bytes);
	else
		trace_summary_take_malformed(s, bytes);
}

struct trace_summary *
trace_summary_new(void)
{
	struct trace_summary *s;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->sequences = trace_sequences_new();
	s->expand = packet_expand_new(inner_cb, s);
	if (s->sequences == NULL || s->expand == NULL) {
		trace_summary_free(s);
		return NULL;
	}
	packet_types_init(&s->known);
	return s;
}

void
trace_summary_free(struct trace_summary *s)
{
	size_t i;

	if (s == NULL)
		return;
	for (i = 0; i < s->n_data_sources; i++)
		free(s->data_sources[i]);
	if (s->stats != NULL)
		perfetto__protos__trace_stats__free_unpacked(s->stats, NULL);
	free(s->data_sources);
	machine_names_done(&s->machines);
	trace_sequences_free(s->sequences);
	packet_expand_free(s->expand);
	packet_splitter_done(&s->cutter);
	free(s);
}

void
trace_summary_packet(struct trace_summary *s, const uint8_t *data, size_t len)
{
	uint64_t bytes = 1 + pb_varint_size(len) + len;
	uint64_t before = s->totals.expanded_bytes;
	enum packet_expand_result r;
	struct packet_facts f;
	char err[128];

	if (!packet_facts_read(&f, &s->known, data, len)) {
		trace_summary_take_malformed(s, bytes);
	} else if (!is_compressed(&f)) {
		(void)trace_summary_take(s, &f, bytes);
	} else {
		r = packet_expand_packet(s->expand, data, len, err, sizeof(err));
		trace_summary_take_compressed(s, bytes,
		    s->totals.expanded_bytes - before, r == PACKET_EXPAND_DONE);
	}
}

static void
packet_cb(void *arg, const uint8_t *data, size_t len)
{
	trace_summary_packet(arg, data, len);
}

int
trace_summary_feed(struct trace_summary *s, const uint8_t *data, size_t len,
    char *err, size_t err_size)
{
	if (packet_splitter_feed(&s->cutter, data, len, packet_cb, s) == 0)
		return 0;
	return FAILURE(err, err_size, "no packet of a trace begins at byte %"
	    PRIu64, s->cutter.whole_bytes);
}

uint64_t
trace_summary_whole_bytes(const struct trace_summary *s)
{
	return s->cutter.whole_bytes;
}

uint64_t
trace_summary_loose_bytes(const struct trace_summary *s)
{
	return s->cutter.tail_len;
}

void
trace_summary_name(struct trace_summary *s, int32_t id, uint32_t machine_id,
    int32_t pid, const char *name)
{
	trace_sequences_name(s->sequences, id, machine_id, pid, name);
}

void
trace_summary_machine(struct trace_summary *s, uint32_t id, const char *name)
{
	machine_names_suggest(&s->machines, id, name);
}

size_t
trace_summary_machines(const struct trace_summary *s,
    const struct machine_name **out)
{
	*out = s->machines.all;
	return s->machines.n;
}

bool
trace_summary_wall_clock(const struct trace_summary *s, struct wall_clock *out)
{
	*out = s->clock;
	return out->realtime_ns != 0;
}

const char *
trace_summary_machine_name(const struct trace_summary *s, uint32_t id)
{
	return machine_names_find(&s->machines, id);
}

const struct trace_sequences *
trace_summary_sequences(const struct trace_summary *s)
{
	return s->sequences;
}

size_t
trace_summary_producers(struct trace_summary *s,
    const struct trace_producer **out)
{
	return trace_sequences_producers(s->sequences, out);
}

const struct trace_totals *
trace_summary_totals(const struct trace_summary *s)
{
	return &s->totals;
}

static int
by_packets(const void *a, const void *b)
{
	const struct trace_packet_type *x = a, *y = b;

	if (x->packets != y->packets)
		return x->packets < y->packets ? 1 : -1;
	return strcmp(x->name, y->name);
}

size_t
trace_summary_types(struct trace_summary *s,
    const struct trace_packet_type **out)
{
	size_t i, n = 0;

	for (i = 0; i < PACKET_TYPE_SLOTS; i++) {
		if (s->types[i].packets == 0)
			continue;
		s->types_out[n++] = (struct trace_packet_type){
			.name = packet_type_name((uint32_t)i),
			.type = (uint32_t)i,
			.packets = s->types[i].packets,
			.bytes = s->types[i].bytes,
		};
	}
	qsort(s->types_out, n, sizeof(s->types_out[0]), by_packets);
	*out = s->types_out;
	return n;
}

size_t
trace_summary_data_sources(const struct trace_summary *s,
    const char *const **out)
{
	*out = (const char *const *)s->data_sources;
	return s->n_data_sources;
}

const Perfetto__Protos__TraceStats *
trace_summary_stats(const struct trace_summary *s)
{
	return s->stats;
}

size_t
trace_summary_losses(const struct trace_summary *s, struct trace_loss *out,
    size_t max)
{
	size_t n = 0;

	if (s->stats != NULL)
		n = trace_losses_list(s->stats, out, max);
	return n + ftrace_rings_list(&s->rings, s->sequences,
	    n < max ? out + n : NULL, n < max ? max - n : 0);
}

bool
trace_summary_not_recorded(const struct trace_summary *s)
{
	const struct trace_sequence *q;
	size_t at = 0;

	while ((q = trace_sequences_next(s->sequences, &at)) != NULL)
		if (ftrace_losses_not_recorded(&q->ftrace))
			return true;
	return false;
}

const char *
trace_summary_reason(unsigned bit)
{
	static const char *const reasons[TRACE_SUMMARY_LOSS_BITS] = {
		"cause not known",
		"chunks that never arrived",
		"chunks that were corrupt",
		"the beginning of a packet was gone",
		"a piece of a packet was gone",
		"the pieces of a packet did not fit together",
		"overwritten in the ring buffer",
		"a packet its producer had not finished when it was read",
		"the producer's shared memory was full",
		[16] = "the relay's spool was full",
		[17] = "the relay's disk was full or failed",
		[18] = "the relay's spool was damaged",
		[19] = "the collector had given the link up",
		[20] = "the collector was started again",
		[21] = "longer than a block of the link",
		[22] = "not all had come when the session ended",
		[23] = "the trace file failed",
		[24] = "over a quota of the collector",
	};

	if (bit >= TRACE_SUMMARY_LOSS_BITS)
		return "";
	return reasons[bit] != NULL ? reasons[bit] : "a newer cause";
}
