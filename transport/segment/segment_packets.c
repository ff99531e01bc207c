#include "transport/segment/segment_packets.h"

#include "protos/fields.h"
#include "transport/packet/service_packets.h"
#include "transport/segment/segment_look.h"
#include "transport/segment/segment_splitter.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Mixes all bits; different numbers stay different (splitmix64). */
static uint64_t
mixed(uint64_t v)
{
	v += 0x9e3779b97f4a7c15ull;
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
	v = (v ^ v >> 27) * 0x94d049bb133111ebull;
	return v ^ v >> 31;
}

struct segment_uuid
segment_uuid_of(const struct segment_uuid *recording, uint32_t number,
    uint32_t machine)
{
	uint64_t which = (uint64_t)number << 32 | machine;

	return (struct segment_uuid){
		.msb = mixed(recording->msb ^ mixed(which)),
		.lsb = mixed(recording->lsb + mixed(~which)),
	};
}

static void
put_trusted(struct pb_writer *w, int32_t uid)
{
	pb_put_int(w, TracePacket_trusted_uid, uid);
	pb_put_uint(w, TracePacket_trusted_packet_sequence_id,
	    SERVICE_PACKETS_SEQUENCE);
}

static void
put_recording_uuid(struct pb_writer *w, const struct segment_uuid *u)
{
	uint8_t bytes[SEGMENT_UUID_SIZE];
	size_t i;

	for (i = 0; i < 8; i++) {
		bytes[i] = (uint8_t)(u->msb >> (56 - 8 * i));
		bytes[i + 8] = (uint8_t)(u->lsb >> (56 - 8 * i));
	}
	pb_put_bytes(w, Segment_recording_uuid, bytes, sizeof(bytes));
}

static void
put_segment(struct pb_writer *w, const struct segment_head *h)
{
	size_t mark = pb_nest_begin(w, TracePacket_tributary_segment);

	put_recording_uuid(w, &h->recording_uuid);
	if (h->recording != NULL)
		pb_put_string(w, Segment_recording, h->recording);
	pb_put_uint(w, Segment_number, h->number);
	if (h->begun_by != NULL)
		pb_put_bytes(w, Segment_begun_by, h->begun_by,
		    h->begun_by_len);
	if (h->machine_name != NULL)
		pb_put_string(w, Segment_machine, h->machine_name);
	if (h->machine != 0)
		pb_put_uint(w, Segment_machine_id, h->machine);
	if (h->by_machine)
		pb_put_uint(w, Segment_split, SegmentConfig_BY_MACHINE);
	pb_put_uint(w, Segment_begin_realtime_ns, h->begin_realtime_ns);
	pb_nest_end(w, mark);
}

void
segment_packets_head(struct pb_writer *w, int32_t uid,
    const struct segment_head *h)
{
	struct segment_uuid own = segment_uuid_of(&h->recording_uuid, h->number,
	    h->machine);
	size_t packet, uuid;

	packet = pb_nest_begin(w, Trace_packet);
	put_segment(w, h);
	put_trusted(w, uid);
	pb_nest_end(w, packet);

	packet = pb_nest_begin(w, Trace_packet);
	uuid = pb_nest_begin(w, TracePacket_trace_uuid);
	pb_put_int(w, TraceUuid_msb, (int64_t)own.msb);
	pb_put_int(w, TraceUuid_lsb, (int64_t)own.lsb);
	pb_nest_end(w, uuid);
	put_trusted(w, uid);
	pb_nest_end(w, packet);
}

void
segment_packets_tail(struct pb_writer *w, int32_t uid,
    const struct segment_tail *t)
{
	size_t packet = pb_nest_begin(w, Trace_packet), segment, end;

	segment = pb_nest_begin(w, TracePacket_tributary_segment);
	put_recording_uuid(w, &t->recording_uuid);
	pb_put_uint(w, Segment_number, t->number);
	end = pb_nest_begin(w, Segment_end);
	pb_put_uint(w, End_packets, t->packets);
	pb_put_uint(w, End_unanswered, t->unanswered);
	if (t->cause != SegmentCut_CAUSE_UNSPECIFIED)
		pb_put_uint(w, End_cause, t->cause);
	pb_nest_end(w, end);
	pb_nest_end(w, segment);
	put_trusted(w, uid);
	pb_nest_end(w, packet);
}

void
segment_packets_divided(struct pb_writer *w, const struct segment_look *k)
{
	size_t packet = pb_nest_begin(w, Trace_packet);

	pb_put_raw(w, k->body, k->len);
	pb_put_uint(w, TracePacket_previous_packet_dropped,
	    TracePacket_DATA_LOSS_PRESENT);
	pb_put_uint(w, TracePacket_tributary_divided, 1);
	pb_nest_end(w, packet);
}

void
segment_packets_repeated(struct pb_writer *w, const struct segment_look *k)
{
	size_t packet = pb_nest_begin(w, Trace_packet);

	pb_put_raw(w, k->body, k->len);
	/* The last value of a field counts. */
	if (k->has_loss)
		pb_put_uint(w, TracePacket_previous_packet_dropped, 0);
	pb_put_uint(w, TracePacket_tributary_repeated, 1);
	pb_nest_end(w, packet);
}

void
segment_packets_changed(struct pb_writer *w, const struct segment_look *k,
    const struct pb_writer *content)
{
	size_t packet = pb_nest_begin(w, Trace_packet);
	struct pb_reader r;
	struct pb_field f;

	pb_put_bytes(w, k->payload, content->data, content->len);
	PB_FOREACH(&f, &r, k->body, k->len)
		if (f.number != k->payload)
			pb_put_raw(w, f.start, (size_t)(r.p - f.start));
	pb_nest_end(w, packet);
}
