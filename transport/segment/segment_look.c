#include "transport/segment/segment_look.h"

#include "protos/fields.h"
#include "transport/packet/service_packets.h"
#include "transport/wire/pb_reader.h"

#define PAYLOADS 136u

static const uint8_t of_service[PAYLOADS] = {
	[TracePacket_clock_snapshot] = SEGMENT_NEEDED,
	[TracePacket_trace_config] = SEGMENT_NEEDED,
	[TracePacket_trace_attributes] = SEGMENT_NEEDED,
	[TracePacket_system_info] = SEGMENT_NEEDED,
	[TracePacket_remote_clock_sync] = SEGMENT_NEEDED,
	[TracePacket_service_event] = SEGMENT_SHARED,
	[TracePacket_trigger] = SEGMENT_SHARED,
	[TracePacket_clone_snapshot_trigger] = SEGMENT_SHARED,
	[TracePacket_synchronization_marker] = SEGMENT_SHARED,
	[TracePacket_trace_stats] = SEGMENT_STATS,
	[TracePacket_trace_uuid] = SEGMENT_UUID,
};

static const uint8_t of_producer[PAYLOADS] = {
	[TracePacket_cpu_info] = SEGMENT_ONCE,
	[TracePacket_system_info] = SEGMENT_ONCE,
	[TracePacket_packages_list] = SEGMENT_ONCE,
	[TracePacket_extension_descriptor] = SEGMENT_ONCE,
	[TracePacket_user_list] = SEGMENT_ONCE,
	[TracePacket_gpu_info] = SEGMENT_ONCE,
	[TracePacket_interrupt_info] = SEGMENT_ONCE,
	[TracePacket_android_game_intervention_list] = SEGMENT_ONCE,
	[TracePacket_android_aflags] = SEGMENT_ONCE,
	[TracePacket_initial_display_state] = SEGMENT_ONCE,
	[TracePacket_translation_table] = SEGMENT_ONCE,
	[TracePacket_pixel_modem_token_database] = SEGMENT_ONCE,
	[TracePacket_process_tree] = SEGMENT_ONCE_IF_STATELESS,
	[TracePacket_generic_kernel_process_tree] = SEGMENT_ONCE_IF_STATELESS,
	[TracePacket_process_descriptor] = SEGMENT_ONCE_IF_STATELESS,
	[TracePacket_thread_descriptor] = SEGMENT_ONCE_IF_STATELESS,
	[TracePacket_track_descriptor] = SEGMENT_ONCE_IF_STATELESS,
};

/* Any field that the service or a producer may have to be looked at for. */
static inline bool
is_payload(uint32_t number)
{
	return number < PAYLOADS &&
	    (of_service[number] | of_producer[number]) != 0;
}

static inline void
look_at_bytes(struct segment_look *k, const struct pb_field *f)
{
	if (is_payload(f->number)) {
		k->payload = f->number;
		k->content = f->data;
		k->content_len = f->len;
	} else if (f->number == TracePacket_tributary_segment_cut) {
		k->mark = f->data;
		k->mark_len = f->len;
	}
}

static inline void
look_at_number(struct segment_look *k, const struct pb_field *f)
{
	switch (f->number) {
	case TracePacket_trusted_packet_sequence_id:
		k->sequence = (uint32_t)f->value;
		break;
	case TracePacket_machine_id:
		k->machine = (uint32_t)f->value;
		break;
	case TracePacket_sequence_flags:
		k->has_flags = true;
		k->clears |= (f->value &
		    TracePacket_SEQ_INCREMENTAL_STATE_CLEARED) != 0;
		k->needs = (f->value &
		    TracePacket_SEQ_NEEDS_INCREMENTAL_STATE) != 0;
		break;
	case TracePacket_incremental_state_cleared:
		k->has_flags = true;
		k->clears |= f->value != 0;
		break;
	case TracePacket_previous_packet_dropped:
		k->has_loss = f->value != 0;
		break;
	case TracePacket_tributary_repeated:
		k->repeated = f->value != 0;
		break;
	}
}

static void
look_at_packet(struct segment_look *k)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, k->body, k->len) {
		if (f.wire == PB_BYTES)
			look_at_bytes(k, &f);
		else if (f.wire == PB_VARINT)
			look_at_number(k, &f);
	}
	k->kind = k->sequence == SERVICE_PACKETS_SEQUENCE ?
	    of_service[k->payload] : of_producer[k->payload];
}

bool
segment_look(struct segment_look *k, const uint8_t *packets, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, packets, len);
	if (!pb_next(&r, &f) || f.number != Trace_packet || f.wire != PB_BYTES)
		return false;
	*k = (struct segment_look){
		.field = packets,
		.field_len = (size_t)(r.p - packets),
		.body = f.data,
		.len = f.len,
	};
	look_at_packet(k);
	return true;
}
