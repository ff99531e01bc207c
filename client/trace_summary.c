#include "client/trace_summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/trace_packet.pb-c.h"
#include "transport/pb_reader.h"
#include "transport/pb_writer.h"

/* Fields of TracePacket that are looked at (reference wire-format.md). */
enum {
	F_TRUSTED_UID = 3,
	F_TIMESTAMP = 8,
	F_SEQUENCE_ID = 10,
	F_TRACE_CONFIG = 33,
	F_TRACE_STATS = 35,
	F_DROPPED = 42,
	F_COMPRESSED = 50,
	F_SERVICE_EVENT = 69,
	F_TRUSTED_PID = 79,
	F_FIRST_ON_SEQUENCE = 87,
	F_MACHINE_ID = 98,
	F_ZSTD = 133,
};

/* What the service writes, or what no sequence is given for. */
#define SERVICE_SEQUENCE 1

/* Types of packets are counted by field number; larger ones as unknown. */
#define TYPE_SLOTS 1024
#define TYPE_UNKNOWN 0

#define PRODUCER_BUCKETS 4096
#define NO_INDEX UINT32_MAX
#define MAX_NAMES 16384
#define HEADER_MAX 11 /* tag and the longest varint */

struct producer {
	struct trace_producer pub;
	uint32_t next; /* in its bucket, or NO_INDEX */
};

/* An entry of the hash of sequences; key 0 is a free slot. */
struct sequence {
	uint64_t key;
	uint32_t producer; /* or NO_INDEX */
};

struct name {
	uint32_t machine_id;
	int32_t pid;
	char *text; /* owned */
};

/*
 * Producers are never removed, so that an index stays good; the sorted copies
 * that callers see are made anew for each call.
 */
struct trace_summary {
	struct trace_totals totals;
	Perfetto__Protos__TraceStats *stats; /* owned, or NULL */
	uint64_t started_ns, disabled_ns;

	uint8_t is_type[TYPE_SLOTS]; /* a member of the `data` oneof */
	uint64_t types[TYPE_SLOTS];
	struct trace_packet_type types_out[TYPE_SLOTS];

	struct producer *producers;
	size_t n_producers, cap_producers;
	uint32_t buckets[PRODUCER_BUCKETS];
	struct trace_producer *producers_out;

	struct sequence *sequences; /* open addressing, at most half full */
	size_t n_sequences, cap_sequences;

	char **data_sources;
	size_t n_data_sources;

	struct name *names;
	size_t n_names;

	uint8_t *tail; /* an unfinished packet, framing included */
	size_t tail_len, tail_cap;
	uint64_t whole_bytes;
};

/* What one packet says about itself. */
struct facts {
	uint32_t sequence_id;
	uint32_t machine_id;
	int32_t uid;
	int32_t pid;
	uint32_t type;
	uint32_t dropped; /* DataLossReason mask */
	bool first_on_sequence;
	uint64_t timestamp;
	struct pb_field payload; /* of the type; valid when type is set */
};

static void
mark_types(struct trace_summary *s)
{
	const ProtobufCMessageDescriptor *d =
	    &perfetto__protos__trace_packet__descriptor;
	size_t data_case = offsetof(Perfetto__Protos__TracePacket, data_case);
	unsigned i;

	for (i = 0; i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];

		if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
		    f->quantifier_offset == data_case && f->id < TYPE_SLOTS)
			s->is_type[f->id] = 1;
	}
}

struct trace_summary *
trace_summary_new(void)
{
	struct trace_summary *s;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	memset(s->buckets, 0xff, sizeof(s->buckets)); /* NO_INDEX */
	mark_types(s);
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
	for (i = 0; i < s->n_names; i++)
		free(s->names[i].text);
	if (s->stats != NULL)
		perfetto__protos__trace_stats__free_unpacked(s->stats, NULL);
	free(s->data_sources);
	free(s->names);
	free(s->producers);
	free(s->producers_out);
	free(s->sequences);
	free(s->tail);
	free(s);
}

static uint64_t
mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	return x;
}

static uint32_t
find_producer(struct trace_summary *s, const struct facts *f)
{
	uint64_t key = (uint64_t)f->machine_id << 32 | (uint32_t)f->pid;
	uint32_t *bucket = &s->buckets[mix(key ^ (uint64_t)f->uid << 16) %
	    PRODUCER_BUCKETS];
	struct producer *grown, *p;
	uint32_t i;
	size_t cap;

	for (i = *bucket; i != NO_INDEX; i = s->producers[i].next) {
		p = &s->producers[i];
		if (p->pub.machine_id == f->machine_id &&
		    p->pub.pid == f->pid && p->pub.uid == f->uid)
			return i;
	}
	if (s->n_producers == TRACE_SUMMARY_MAX_PRODUCERS)
		return NO_INDEX;
	if (s->n_producers == s->cap_producers) {
		cap = s->cap_producers == 0 ? 16 : s->cap_producers * 2;
		grown = realloc(s->producers, cap * sizeof(*grown));
		if (grown == NULL)
			return NO_INDEX;
		s->producers = grown;
		s->cap_producers = cap;
	}
	p = &s->producers[s->n_producers];
	*p = (struct producer){
		.pub = { .machine_id = f->machine_id, .pid = f->pid,
		    .uid = f->uid },
		.next = *bucket,
	};
	*bucket = (uint32_t)s->n_producers++;
	return *bucket;
}

/* The slot that holds key, or the free one where it belongs. */
static struct sequence *
sequence_slot(struct sequence *slots, size_t cap, uint64_t key)
{
	size_t i = mix(key) & (cap - 1);

	while (slots[i].key != 0 && slots[i].key != key)
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

static int
grow_sequences(struct trace_summary *s)
{
	size_t i, cap = s->cap_sequences == 0 ? 64 : s->cap_sequences * 2;
	struct sequence *slots;

	if ((slots = calloc(cap, sizeof(*slots))) == NULL)
		return -1;
	for (i = 0; i < s->cap_sequences; i++) {
		if (s->sequences[i].key != 0)
			*sequence_slot(slots, cap, s->sequences[i].key) =
			    s->sequences[i];
	}
	free(s->sequences);
	s->sequences = slots;
	s->cap_sequences = cap;
	return 0;
}

/* NULL: too many, or no memory.  *is_new says whether it was just made. */
static struct sequence *
find_sequence(struct trace_summary *s, const struct facts *f, bool *is_new)
{
	uint64_t key = (uint64_t)f->machine_id << 32 | f->sequence_id;
	struct sequence *q;

	*is_new = false;
	if (s->cap_sequences != 0) {
		q = sequence_slot(s->sequences, s->cap_sequences, key);
		if (q->key != 0)
			return q;
	}
	if (s->n_sequences == TRACE_SUMMARY_MAX_SEQUENCES)
		return NULL;
	if ((s->n_sequences + 1) * 2 > s->cap_sequences &&
	    grow_sequences(s) < 0)
		return NULL;
	q = sequence_slot(s->sequences, s->cap_sequences, key);
	q->key = key;
	q->producer = find_producer(s, f);
	s->n_sequences++;
	*is_new = true;
	return q;
}

static void
count_gap(struct trace_summary *s, const struct facts *f, bool first_seen)
{
	unsigned bit;

	/*
	 * Perfetto's service marks the first packet of every sequence, as it
	 * cannot know whether something came before: that is no loss.
	 */
	if (f->dropped == 0 || f->first_on_sequence ||
	    (f->dropped == 1 && first_seen))
		return;
	s->totals.gaps++;
	for (bit = 0; bit < TRACE_SUMMARY_LOSS_BITS; bit++) {
		if ((f->dropped >> bit & 1) != 0)
			s->totals.gaps_by_reason[bit]++;
	}
}

static void
count_producer_packet(struct trace_summary *s, const struct facts *f,
    uint64_t bytes)
{
	struct trace_producer *p;
	struct sequence *q;
	bool is_new;

	if ((q = find_sequence(s, f, &is_new)) == NULL) {
		count_gap(s, f, true);
		return;
	}
	count_gap(s, f, is_new);
	if (is_new)
		s->totals.sequences++;
	if (q->producer == NO_INDEX)
		return;
	p = &s->producers[q->producer].pub;
	p->packets++;
	p->bytes += bytes;
	p->sequences += is_new;
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

/* TraceConfig.data_sources(2).config(1).name(1) */
static void
read_trace_config(struct trace_summary *s, const struct pb_field *config)
{
	struct pb_reader rc, rs, rd;
	struct pb_field ds, dsc, name;

	pb_init(&rc, config->data, config->len);
	while (pb_next(&rc, &ds)) {
		if (ds.number != 2 || ds.wire != PB_BYTES)
			continue;
		pb_init(&rs, ds.data, ds.len);
		while (pb_next(&rs, &dsc)) {
			if (dsc.number != 1 || dsc.wire != PB_BYTES)
				continue;
			pb_init(&rd, dsc.data, dsc.len);
			while (pb_next(&rd, &name)) {
				if (name.number == 1 && name.wire == PB_BYTES)
					add_data_source(s, name.data,
					    name.len);
			}
		}
	}
}

static void
read_service_event(struct trace_summary *s, const struct facts *f)
{
	struct pb_reader r;
	struct pb_field e;

	pb_init(&r, f->payload.data, f->payload.len);
	while (pb_next(&r, &e)) {
		if (e.number == 2) /* tracing_started */
			s->started_ns = f->timestamp;
		else if (e.number == 5) /* tracing_disabled */
			s->disabled_ns = f->timestamp;
	}
	if (s->started_ns != 0 && s->disabled_ns > s->started_ns)
		s->totals.duration_ns = s->disabled_ns - s->started_ns;
}

/* Packets by which the service speaks about the whole trace. */
static void
read_service_packet(struct trace_summary *s, const struct facts *f)
{
	Perfetto__Protos__TraceStats *stats;

	s->totals.service_packets++;
	if (f->payload.wire != PB_BYTES)
		return;
	switch (f->type) {
	case F_TRACE_CONFIG:
		read_trace_config(s, &f->payload);
		break;
	case F_SERVICE_EVENT:
		read_service_event(s, f);
		break;
	case F_TRACE_STATS:
		stats = perfetto__protos__trace_stats__unpack(NULL,
		    f->payload.len, f->payload.data);
		if (stats == NULL)
			break;
		if (s->stats != NULL)
			perfetto__protos__trace_stats__free_unpacked(s->stats,
			    NULL);
		s->stats = stats;
		break;
	default:
		break;
	}
}

/* false: malformed. */
static bool
read_facts(const struct trace_summary *s, const uint8_t *data, size_t len,
    struct facts *f)
{
	struct pb_reader r;
	struct pb_field e;

	*f = (struct facts){ .type = TYPE_UNKNOWN };
	pb_init(&r, data, len);
	while (pb_next(&r, &e)) {
		switch (e.number) {
		case F_TRUSTED_UID:
			f->uid = (int32_t)e.value;
			break;
		case F_TIMESTAMP:
			f->timestamp = e.value;
			break;
		case F_SEQUENCE_ID:
			f->sequence_id = (uint32_t)e.value;
			break;
		case F_DROPPED:
			f->dropped = (uint32_t)e.value;
			break;
		case F_TRUSTED_PID:
			f->pid = (int32_t)e.value;
			break;
		case F_FIRST_ON_SEQUENCE:
			f->first_on_sequence = e.value != 0;
			break;
		case F_MACHINE_ID:
			f->machine_id = (uint32_t)e.value;
			break;
		default:
			if (e.number < TYPE_SLOTS && s->is_type[e.number]) {
				f->type = e.number;
				f->payload = e;
			}
			break;
		}
	}
	return !r.bad;
}

void
trace_summary_packet(struct trace_summary *s, const uint8_t *data, size_t len)
{
	uint64_t bytes = 1 + pb_varint_size(len) + len;
	struct facts f;

	s->totals.packets++;
	s->totals.bytes += bytes;
	if (!read_facts(s, data, len, &f)) {
		s->totals.malformed++;
		return;
	}
	s->types[f.type]++;
	if (f.type == F_COMPRESSED || f.type == F_ZSTD)
		s->totals.compressed++;
	if (f.sequence_id <= SERVICE_SEQUENCE)
		read_service_packet(s, &f);
	else
		count_producer_packet(s, &f, bytes);
}

/* Where the first packet in [data, data + len) lies. */
enum cut { CUT_OK, CUT_MORE, CUT_BAD };

/*
 * On CUT_OK and CUT_MORE *total is the packet's size with its framing; 0 when
 * not even that is known.
 */
static enum cut
cut_packet(const uint8_t *data, size_t len, size_t *header, size_t *total)
{
	const uint8_t *p;
	uint64_t size;

	*total = 0;
	if (len == 0)
		return CUT_MORE;
	if (data[0] != (1 << 3 | PB_BYTES)) /* Trace.packet */
		return CUT_BAD;
	if ((p = pb_varint(data + 1, data + len, &size)) == NULL)
		return len < HEADER_MAX ? CUT_MORE : CUT_BAD;
	if (size > TRACE_SUMMARY_MAX_PACKET)
		return CUT_BAD;
	*header = (size_t)(p - data);
	*total = *header + (size_t)size;
	return *total <= len ? CUT_OK : CUT_MORE;
}

static int
tail_append(struct trace_summary *s, const uint8_t *data, size_t len)
{
	size_t cap = s->tail_cap == 0 ? 4096 : s->tail_cap;
	uint8_t *grown;

	while (cap < s->tail_len + len)
		cap *= 2;
	if (cap != s->tail_cap) {
		if ((grown = realloc(s->tail, cap)) == NULL)
			return -1;
		s->tail = grown;
		s->tail_cap = cap;
	}
	memcpy(s->tail + s->tail_len, data, len);
	s->tail_len += len;
	return 0;
}

/*
 * Moves bytes of data behind the unfinished packet, and counts it when that
 * completes it.  Returns the number of bytes taken, or -1 without memory.
 */
static ssize_t
feed_tail(struct trace_summary *s, const uint8_t *data, size_t len)
{
	size_t header = 0, total, take;

	if (cut_packet(s->tail, s->tail_len, &header, &total) == CUT_BAD)
		return -1;
	/* Byte by byte until the length is known. */
	take = total == 0 ? 1 : total - s->tail_len;
	if (take > len)
		take = len;
	if (tail_append(s, data, take) < 0)
		return -1;
	switch (cut_packet(s->tail, s->tail_len, &header, &total)) {
	case CUT_OK:
		trace_summary_packet(s, s->tail + header, total - header);
		s->whole_bytes += total;
		s->tail_len = 0;
		break;
	case CUT_MORE:
		break;
	case CUT_BAD:
		return -1;
	}
	return (ssize_t)take;
}

int
trace_summary_feed(struct trace_summary *s, const uint8_t *data, size_t len,
    char *err, size_t err_size)
{
	size_t header, total;
	ssize_t n;

	while (len > 0) {
		if (s->tail_len > 0) {
			if ((n = feed_tail(s, data, len)) < 0)
				goto bad;
			data += n;
			len -= (size_t)n;
			continue;
		}
		switch (cut_packet(data, len, &header, &total)) {
		case CUT_OK:
			trace_summary_packet(s, data + header, total - header);
			s->whole_bytes += total;
			data += total;
			len -= total;
			break;
		case CUT_MORE:
			if (tail_append(s, data, len) < 0)
				goto bad;
			return 0;
		case CUT_BAD:
			goto bad;
		}
	}
	return 0;

bad:
	snprintf(err, err_size, "no packet of a trace begins at byte %llu",
	    (unsigned long long)s->whole_bytes);
	return -1;
}

uint64_t
trace_summary_whole_bytes(const struct trace_summary *s)
{
	return s->whole_bytes;
}

uint64_t
trace_summary_loose_bytes(const struct trace_summary *s)
{
	return s->tail_len;
}

void
trace_summary_name(struct trace_summary *s, uint32_t machine_id, int32_t pid,
    const char *name)
{
	struct name *grown;
	char *copy;
	size_t i;

	if ((copy = strdup(name)) == NULL)
		return;
	for (i = 0; i < s->n_names; i++) {
		if (s->names[i].pid != pid ||
		    s->names[i].machine_id != machine_id)
			continue;
		free(s->names[i].text);
		s->names[i].text = copy;
		return;
	}
	if (s->n_names == MAX_NAMES ||
	    (grown = realloc(s->names, (i + 1) * sizeof(*grown))) == NULL) {
		free(copy);
		return;
	}
	s->names = grown;
	s->names[s->n_names++] =
	    (struct name){ .machine_id = machine_id, .pid = pid, .text = copy };
}

const struct trace_totals *
trace_summary_totals(const struct trace_summary *s)
{
	return &s->totals;
}

static const char *
name_of(const struct trace_summary *s, const struct trace_producer *p)
{
	size_t i;

	for (i = 0; i < s->n_names; i++) {
		if (s->names[i].pid == p->pid &&
		    s->names[i].machine_id == p->machine_id)
			return s->names[i].text;
	}
	return NULL;
}

static int
by_bytes(const void *a, const void *b)
{
	const struct trace_producer *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

size_t
trace_summary_producers(struct trace_summary *s,
    const struct trace_producer **out)
{
	size_t i;

	free(s->producers_out);
	s->producers_out = calloc(s->n_producers + 1,
	    sizeof(*s->producers_out));
	*out = s->producers_out;
	if (s->producers_out == NULL)
		return 0;
	for (i = 0; i < s->n_producers; i++) {
		s->producers_out[i] = s->producers[i].pub;
		s->producers_out[i].name = name_of(s, &s->producers[i].pub);
	}
	qsort(s->producers_out, s->n_producers, sizeof(*s->producers_out),
	    by_bytes);
	return s->n_producers;
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
	const ProtobufCFieldDescriptor *f;
	size_t i, n = 0;

	for (i = 0; i < TYPE_SLOTS; i++) {
		if (s->types[i] == 0)
			continue;
		f = protobuf_c_message_descriptor_get_field(
		    &perfetto__protos__trace_packet__descriptor, (unsigned)i);
		s->types_out[n].name = f == NULL ? "" : f->name;
		s->types_out[n++].packets = s->types[i];
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
		"given up by the producer",
		"the producer's shared memory was full",
	};

	return bit < TRACE_SUMMARY_LOSS_BITS ? reasons[bit] : "";
}
