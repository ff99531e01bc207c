#include "transport/packet/packet_parts.h"

#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

static uint8_t *
put_varint_field(uint8_t *p, uint32_t field, uint64_t v)
{
	p += pb_encode_varint(p, (uint64_t)field << 3);
	return p + pb_encode_varint(p, v);
}

void
packet_trailer_init(struct packet_trailer *t, int32_t uid, int32_t pid,
    uint32_t sequence, uint32_t machine)
{
	uint8_t *p = t->bytes;

	memset(t->bytes, 0, sizeof(t->bytes));
	*p++ = PB_TAG(TracePacket_trusted_uid, PB_VARINT);
	p += pb_encode_varint(p, (uint64_t)(int64_t)uid);
	*p++ = PB_TAG(TracePacket_trusted_packet_sequence_id, PB_VARINT);
	p += pb_encode_varint(p, sequence);
	if (pid > 0)
		p = put_varint_field(p, TracePacket_trusted_pid, (uint64_t)pid);
	if (machine != 0)
		p = put_varint_field(p, TracePacket_machine_id, machine);
	t->len = (size_t)(p - t->bytes);
}

uint8_t *
packet_loss_put(uint8_t *p, uint32_t loss)
{
	return put_varint_field(p, TracePacket_previous_packet_dropped, loss);
}
