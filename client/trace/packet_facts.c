#include "client/trace/packet_facts.h"

#include <string.h>

#include "protos/fields.h"
#include "protos/trace_packet.pb-c.h"

void
packet_types_init(struct packet_types *t)
{
	const ProtobufCMessageDescriptor *d =
	    &perfetto__protos__trace_packet__descriptor;
	size_t data_case = offsetof(Perfetto__Protos__TracePacket, data_case);
	unsigned i;

	memset(t, 0, sizeof(*t));
	for (i = 0; i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];

		if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
		    f->quantifier_offset == data_case &&
		    f->id < PACKET_TYPE_SLOTS)
			t->is_type[f->id] = 1;
	}
}

const char *
packet_type_name(uint32_t type)
{
	const ProtobufCFieldDescriptor *f =
	    protobuf_c_message_descriptor_get_field(
	    &perfetto__protos__trace_packet__descriptor, type);

	return f == NULL ? "" : f->name;
}

bool
packet_facts_read(struct packet_facts *f, const struct packet_types *t,
    const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field e;

	memset(f, 0, sizeof(*f));
	PB_FOREACH(&e, &r, data, len) {
		switch (e.number) {
		case TracePacket_trusted_uid:
			f->uid = (int32_t)e.value;
			break;
		case TracePacket_timestamp:
			f->timestamp = e.value;
			f->has_timestamp = true;
			break;
		case TracePacket_trusted_packet_sequence_id:
			f->sequence_id = (uint32_t)e.value;
			break;
		case TracePacket_sequence_flags:
			f->flags |= (uint32_t)e.value;
			break;
		case TracePacket_incremental_state_cleared:
			if (e.value != 0)
				f->flags |= PACKET_STATE_CLEARED;
			break;
		case TracePacket_previous_packet_dropped:
			f->dropped = (uint32_t)e.value;
			break;
		case TracePacket_timestamp_clock_id:
			f->clock_id = (uint32_t)e.value;
			break;
		case TracePacket_trace_packet_defaults:
			f->defaults = e;
			break;
		case TracePacket_trusted_pid:
			f->pid = (int32_t)e.value;
			break;
		case TracePacket_first_packet_on_sequence:
			f->first_on_sequence = e.value != 0;
			break;
		case TracePacket_tributary_segment:
			f->segment = e;
			break;
		case TracePacket_tributary_repeated:
			f->repeated = e.value != 0;
			break;
		case TracePacket_tributary_divided:
			f->divided = e.value != 0;
			break;
		case TracePacket_machine_id:
			f->machine_id = (uint32_t)e.value;
			break;
		default:
			if (e.number < PACKET_TYPE_SLOTS &&
			    t->is_type[e.number]) {
				f->type = e.number;
				f->payload = e;
			}
			break;
		}
	}
	return !r.bad;
}
