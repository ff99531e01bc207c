#include "transport/packet/service_packets.h"

#include "protos/fields.h"
#include "transport/clock/clock_snapshot.h"
#include "transport/packet/packet_stats.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static const uint8_t sync_marker[16] = {
	0x82, 0x47, 0x7a, 0x76, 0xb2, 0x8d, 0x42, 0xba,
	0x81, 0xdc, 0x33, 0x32, 0x6d, 0x57, 0xa0, 0x79,
};

static void
put_trusted(struct pb_writer *w, int32_t uid)
{
	pb_put_int(w, TracePacket_trusted_uid, uid);
	pb_put_uint(w, TracePacket_trusted_packet_sequence_id,
	    SERVICE_PACKETS_SEQUENCE);
}

/*
 * Begins nearly every packet of the service.  The clock is named even where
 * there is no timestamp: real ones do, and it keeps a session with another
 * default clock from misreading the service's own sequence.
 */
static void
put_common(struct pb_writer *w, int32_t uid)
{
	put_trusted(w, uid);
	pb_put_uint(w, TracePacket_timestamp_clock_id,
	    SERVICE_PACKETS_CLOCK_BOOTTIME);
}

static void
put_timed(struct pb_writer *w, int32_t uid, uint64_t ts)
{
	pb_put_uint(w, TracePacket_timestamp, ts);
	put_common(w, uid);
}

static void
put_clocks(struct pb_writer *w, const struct clock_reading *clocks, size_t n)
{
	size_t i, mark;

	for (i = 0; i < n; i++) {
		mark = pb_nest_begin(w, ClockSnapshot_clocks);
		pb_put_uint(w, ClockSnapshot_Clock_clock_id, clocks[i].id);
		pb_put_uint(w, ClockSnapshot_Clock_timestamp, clocks[i].ns);
		pb_nest_end(w, mark);
	}
}

void
service_packets_clock_snapshot(struct pb_writer *w, int32_t uid,
    const struct clock_reading *clocks, size_t n, uint32_t primary_clock)
{
	size_t mark = pb_nest_begin(w, TracePacket_clock_snapshot);

	pb_put_uint(w, ClockSnapshot_primary_trace_clock, primary_clock);
	put_clocks(w, clocks, n);
	pb_nest_end(w, mark);
	put_common(w, uid);
}

/*
 * Always the same bytes, so that a program that joins traces can search for
 * them: no clock, and the marker last.
 */
void
service_packets_sync_marker(struct pb_writer *w, int32_t uid)
{
	put_trusted(w, uid);
	pb_put_bytes(w, TracePacket_synchronization_marker, sync_marker,
	    sizeof(sync_marker));
}

void
service_packets_trace_config(struct pb_writer *w, int32_t uid,
    const uint8_t *config, size_t len)
{
	put_common(w, uid);
	pb_put_bytes(w, TracePacket_trace_config, config, len);
}

void
service_packets_trace_attributes(struct pb_writer *w, int32_t uid,
    const uint8_t *config, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	size_t mark;

	put_common(w, uid);
	mark = pb_nest_begin(w, TracePacket_trace_attributes);
	pb_init(&r, config, len);
	/* Pieces of one message are merged by putting them together. */
	while (pb_next(&r, &f))
		if (f.number == TraceConfig_trace_attributes &&
		    f.wire == PB_BYTES)
			pb_put_raw(w, f.data, f.len);
	pb_nest_end(w, mark);
}

void
service_packets_trace_uuid(struct pb_writer *w, int32_t uid, int64_t msb,
    int64_t lsb)
{
	size_t mark;

	put_common(w, uid);
	mark = pb_nest_begin(w, TracePacket_trace_uuid);
	pb_put_int(w, TraceUuid_lsb, lsb);
	pb_put_int(w, TraceUuid_msb, msb);
	pb_nest_end(w, mark);
}

void
service_packets_remote_system_info(struct pb_writer *w, int32_t uid,
    uint32_t machine, const uint8_t *info, size_t len)
{
	pb_put_bytes(w, TracePacket_system_info, info, len);
	if (machine == 0) {
		put_common(w, uid);
		return;
	}
	/* No clock: the BOOTTIME of another machine means nothing here */
	pb_put_uint(w, TracePacket_machine_id, machine);
	put_trusted(w, uid);
}

void
service_packets_event(struct pb_writer *w, int32_t uid, uint64_t ts,
    enum service_event event)
{
	size_t mark;

	put_timed(w, uid, ts);
	mark = pb_nest_begin(w, TracePacket_service_event);
	pb_put_uint(w, event, 1);
	pb_nest_end(w, mark);
}

void
service_packets_slow_sources(struct pb_writer *w, int32_t uid, uint64_t ts,
    enum service_slow_event event, const struct service_slow_source *sources,
    size_t n)
{
	size_t i, mark, list, one;

	put_timed(w, uid, ts);
	mark = pb_nest_begin(w, TracePacket_service_event);
	list = pb_nest_begin(w, event);
	for (i = 0; i < n && i < SERVICE_PACKETS_SLOW_MAX; i++) {
		one = pb_nest_begin(w, DataSources_data_source);
		pb_put_string(w, DataSources_DataSource_producer_name,
		    sources[i].producer);
		pb_put_string(w, DataSources_DataSource_data_source_name,
		    sources[i].data_source);
		pb_nest_end(w, one);
	}
	pb_nest_end(w, list);
	pb_nest_end(w, mark);
}

void
service_packets_buffer_cloned(struct pb_writer *w, int32_t uid, uint64_t ts,
    uint32_t buffer)
{
	size_t mark;

	put_timed(w, uid, ts);
	mark = pb_nest_begin(w, TracePacket_service_event);
	pb_put_uint(w, TracingServiceEvent_buffer_cloned, buffer);
	pb_nest_end(w, mark);
}

void
service_packets_trace_stats(struct pb_writer *w, int32_t uid,
    const struct packet_stats *st)
{
	size_t mark;

	put_common(w, uid);
	mark = pb_nest_begin(w, TracePacket_trace_stats);
	packet_stats_encode(w, st);
	pb_nest_end(w, mark);
}

void
service_packets_remote_clock_sync(struct pb_writer *w, int32_t uid,
    uint32_t machine, const struct service_clock_pair *pairs, size_t n)
{
	size_t i, mark, pair, clocks;

	pb_put_uint(w, TracePacket_machine_id, machine);
	put_trusted(w, uid);
	mark = pb_nest_begin(w, TracePacket_remote_clock_sync);
	for (i = 0; i < n; i++) {
		pair = pb_nest_begin(w, RemoteClockSync_synced_clocks);
		clocks = pb_nest_begin(w, SyncedClocks_client_clocks);
		put_clocks(w, pairs[i].client, pairs[i].n_client);
		pb_nest_end(w, clocks);
		clocks = pb_nest_begin(w, SyncedClocks_host_clocks);
		put_clocks(w, pairs[i].host, pairs[i].n_host);
		pb_nest_end(w, clocks);
		pb_nest_end(w, pair);
	}
	pb_nest_end(w, mark);
}

static void
put_trigger(struct pb_writer *w, int32_t uid, uint32_t field,
    const struct service_trigger *t)
{
	size_t mark = pb_nest_begin(w, field);

	pb_put_string(w, Trigger_trigger_name, t->name);
	pb_put_string(w, Trigger_producer_name, t->producer_name);
	pb_put_int(w, Trigger_trusted_producer_uid, t->producer_uid);
	pb_put_uint(w, Trigger_stop_delay_ms, t->stop_delay_ms);
	pb_nest_end(w, mark);
	put_timed(w, uid, t->ts);
}

void
service_packets_trigger(struct pb_writer *w, int32_t uid,
    const struct service_trigger *t)
{
	put_trigger(w, uid, TracePacket_trigger, t);
}

void
service_packets_clone_trigger(struct pb_writer *w, int32_t uid,
    const struct service_trigger *t)
{
	put_trigger(w, uid, TracePacket_clone_snapshot_trigger, t);
}

void
service_packets_provenance(struct pb_writer *w, int32_t uid, uint64_t ts,
    size_t n_buffers, const struct service_sequence *sequences, size_t n)
{
	size_t mark, buffer, one, b, i;

	pb_put_uint(w, TracePacket_timestamp, ts);
	mark = pb_nest_begin(w, TracePacket_trace_provenance);
	for (b = 0; b < n_buffers; b++) {
		buffer = pb_nest_begin(w, TraceProvenance_buffers);
		for (i = 0; i < n; i++) {
			if (sequences[i].buffer != b)
				continue;
			one = pb_nest_begin(w,
			    TraceProvenance_Buffer_sequences);
			pb_put_uint(w, Sequence_id, sequences[i].sequence);
			pb_put_int(w, Sequence_producer_id,
			    sequences[i].producer);
			pb_nest_end(w, one);
		}
		pb_nest_end(w, buffer);
	}
	pb_nest_end(w, mark);
	put_common(w, uid);
}

void
service_packets_protovm(struct pb_writer *w, int32_t uid,
    const struct service_protovm *p)
{
	size_t mark = pb_nest_begin(w, TracePacket_protovms), one, i;

	one = pb_nest_begin(w, ProtoVms_instance);
	pb_put_bytes(w, Instance_program, p->program, p->program_len);
	pb_put_bytes(w, Instance_state, p->state, p->state_len);
	pb_put_uint(w, Instance_memory_limit_kb, p->memory_limit_kb);
	for (i = 0; i < p->n_producers; i++)
		pb_put_int(w, Instance_producer_id, p->producers[i]);
	pb_nest_end(w, one);
	pb_nest_end(w, mark);
	put_common(w, uid);
}

void
service_packets_session_event(struct pb_writer *w, int32_t uid, uint64_t ts,
    const struct service_session_event *e)
{
	size_t mark;

	put_timed(w, uid, ts);
	mark = pb_nest_begin(w, TracePacket_concurrent_session_event);
	pb_put_uint(w, ConcurrentSessionEvent_state, e->state);
	if (e->name != NULL && e->name[0] != '\0')
		pb_put_string(w, ConcurrentSessionEvent_session_name, e->name);
	pb_put_uint(w, ConcurrentSessionEvent_session_id, e->id);
	pb_put_int(w, ConcurrentSessionEvent_consumer_uid, e->consumer_uid);
	pb_put_uint(w, ConcurrentSessionEvent_num_data_sources,
	    e->num_data_sources);
	pb_nest_end(w, mark);
}

static void
put_cut(struct pb_writer *w, uint32_t phase, const struct service_cut *c)
{
	pb_put_uint(w, SegmentCut_phase, phase);
	pb_put_uint(w, SegmentCut_number, c->number);
	pb_put_uint(w, SegmentCut_cause, c->cause);
	pb_put_uint(w, SegmentCut_realtime_ns, c->realtime_ns);
	/* Where memory was short, one of them may be missing. */
	if (c->trigger == NULL || c->trigger_producer == NULL)
		return;
	pb_put_string(w, SegmentCut_trigger, c->trigger);
	pb_put_string(w, SegmentCut_trigger_producer, c->trigger_producer);
	if (c->trigger_machine != 0)
		pb_put_uint(w, SegmentCut_trigger_machine_id,
		    c->trigger_machine);
}

void
service_packets_begun_by(struct pb_writer *w, const struct service_cut *c)
{
	put_cut(w, SegmentCut_BEGIN, c);
}

void
service_packets_cut_begin(struct pb_writer *w, int32_t uid, uint64_t ts,
    const struct service_cut *c)
{
	size_t mark;

	put_timed(w, uid, ts);
	mark = pb_nest_begin(w, TracePacket_tributary_segment_cut);
	put_cut(w, SegmentCut_BEGIN, c);
	pb_nest_end(w, mark);
}

void
service_packets_cut_end(struct pb_writer *w, int32_t uid, uint64_t ts,
    const struct service_cut *c)
{
	size_t mark, one, i;

	put_timed(w, uid, ts);
	mark = pb_nest_begin(w, TracePacket_tributary_segment_cut);
	put_cut(w, SegmentCut_END, c);
	for (i = 0; i < c->n_unanswered; i++) {
		one = pb_nest_begin(w, SegmentCut_unanswered);
		pb_put_string(w, Unanswered_producer,
		    c->unanswered[i].producer);
		pb_put_int(w, Unanswered_producer_id,
		    c->unanswered[i].producer_id);
		if (c->unanswered[i].machine != 0)
			pb_put_uint(w, Unanswered_machine_id,
			    c->unanswered[i].machine);
		pb_nest_end(w, one);
	}
	pb_nest_end(w, mark);
}

void
service_packets_flag_repeated(struct pb_writer *w)
{
	pb_put_uint(w, TracePacket_tributary_repeated, 1);
}
