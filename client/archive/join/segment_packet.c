#include "client/archive/join/segment_packet.h"

#include <string.h>

#include "client/trace/packet_facts.h"
#include "protos/fields.h"

static void
take_field(struct segment_packet *p, const struct pb_field *f)
{
	switch (f->number) {
	case TracePacket_timestamp:
		p->has_timestamp = true;
		p->timestamp = f->value;
		break;
	case TracePacket_trusted_uid:
		p->uid = (int32_t)f->value;
		break;
	case TracePacket_trusted_packet_sequence_id:
		p->sequence_id = (uint32_t)f->value;
		break;
	case TracePacket_machine_id:
		p->machine_id = (uint32_t)f->value;
		break;
	case TracePacket_clock_snapshot:
	case TracePacket_trace_uuid:
	case TracePacket_trace_stats:
		p->payload = f->number;
		p->content = *f;
		break;
	case TracePacket_tributary_segment:
		if (f->wire == PB_BYTES)
			p->segment = *f;
		break;
	case TracePacket_tributary_segment_cut:
		p->cut = true;
		break;
	case TracePacket_tributary_repeated:
		p->repeated = f->value != 0;
		break;
	case TracePacket_tributary_divided:
		p->divided = f->value != 0;
		break;
	}
}

bool
segment_packet_read(struct segment_packet *p, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	memset(p, 0, sizeof(*p));
	p->data = data;
	p->len = len;
	PB_FOREACH(&f, &r, data, len) {
		take_field(p, &f);
	}
	return !r.bad;
}

bool
segment_packet_is_service(const struct segment_packet *p)
{
	return p->sequence_id <= PACKET_SERVICE_SEQUENCE;
}

bool
segment_packet_is_common(const struct segment_packet *p)
{
	return segment_packet_is_service(p) && p->machine_id == 0;
}
