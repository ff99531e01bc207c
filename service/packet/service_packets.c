#include "service/packet/packet_stats.h"
#include "service/packet/service_packets.h"
#include "transport/clock/clock_snapshot.h"
#include "transport/clock/system_info.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Field numbers: reference wire-format.md, under the name of each message */
enum trace_packet_field {
	PACKET_TRUSTED_UID = 3,
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACE_CONFIG = 33,
	PACKET_TRACE_STATS = 35,
	PACKET_SYNC_MARKER = 36,
	PACKET_SYSTEM_INFO = 45,
	PACKET_TRIGGER = 46,
	PACKET_TIMESTAMP_CLOCK_ID = 58,
	PACKET_SERVICE_EVENT = 69,
	PACKET_TRACE_UUID = 89,
	PACKET_MACHINE_ID = 98,
	PACKET_REMOTE_CLOCK_SYNC = 107,
	PACKET_CLONE_TRIGGER = 113,
	PACKET_PROVENANCE = 124,
	PACKET_TRACE_ATTRIBUTES = 126,
	PACKET_SESSION_EVENT = 134,
};

enum trace_config_field { CONFIG_TRACE_ATTRIBUTES = 48 };
enum clock_snapshot_field { SNAPSHOT_CLOCKS = 1, SNAPSHOT_PRIMARY = 2 };
enum clock_field { CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum remote_clock_field { REMOTE_SYNCED = 1 };
enum synced_clocks_field { SYNCED_CLIENT = 2, SYNCED_HOST = 3 };
enum trace_uuid_field { UUID_MSB = 1, UUID_LSB = 2 };
enum service_event_field { EVENT_BUFFER_CLONED = 11 };
enum data_sources_field { SOURCES_DATA_SOURCE = 1 };
enum data_source_field { SOURCE_PRODUCER = 1, SOURCE_NAME = 2 };
enum trigger_field {
	TRIGGER_NAME = 1,
	TRIGGER_PRODUCER = 2,
	TRIGGER_UID = 3,
	TRIGGER_STOP_DELAY = 4,
};
enum provenance_field { PROVENANCE_BUFFERS = 2 };
enum provenance_buffer_field { BUFFER_SEQUENCES = 1 };
enum provenance_sequence_field { SEQUENCE_ID = 1, SEQUENCE_PRODUCER = 2 };
enum session_event_field {
	SESSION_STATE = 1,
	SESSION_NAME = 2,
	SESSION_ID = 3,
	SESSION_CONSUMER_UID = 4,
	SESSION_DATA_SOURCES = 5,
};

static const uint8_t sync_marker[16] = {
	0x82, 0x47, 0x7a, 0x76, 0xb2, 0x8d, 0x42, 0xba,
	0x81, 0xdc, 0x33, 0x32, 0x6d, 0x57, 0xa0, 0x79,
};

static void
put_trusted(struct pb_writer *w, int32_t uid)
{
	pb_put_int(w, PACKET_TRUSTED_UID, uid);
	pb_put_uint(w, PACKET_SEQUENCE_ID, SERVICE_PACKETS_SEQUENCE);
}

/*
 * What nearly every packet of the service begins with.  The clock is named
 * even where there is no timestamp: real ones do, and it keeps a session with
 * another default clock from misreading the service's own sequence.
 */
static void
put_common(struct pb_writer *w, int32_t uid)
{
	put_trusted(w, uid);
	pb_put_uint(w, PACKET_TIMESTAMP_CLOCK_ID,
	    SERVICE_PACKETS_CLOCK_BOOTTIME);
}

static void
put_timed(struct pb_writer *w, int32_t uid, uint64_t ts)
{
	pb_put_uint(w, PACKET_TIMESTAMP, ts);
	put_common(w, uid);
}

static void
put_clocks(struct pb_writer *w, const struct clock_reading *clocks, size_t n)
{
	size_t i, mark;

	for (i = 0; i < n; i++) {
		mark = pb_nest_begin(w, SNAPSHOT_CLOCKS);
		pb_put_uint(w, CLOCK_ID, clocks[i].id);
		pb_put_uint(w, CLOCK_TIMESTAMP, clocks[i].ns);
		pb_nest_end(w, mark);
	}
}

void
service_packets_clock_snapshot(struct pb_writer *w, int32_t uid,
    const struct clock_reading *clocks, size_t n, uint32_t primary_clock)
{
	size_t mark = pb_nest_begin(w, PACKET_CLOCK_SNAPSHOT);

	pb_put_uint(w, SNAPSHOT_PRIMARY, primary_clock);
	put_clocks(w, clocks, n);
	pb_nest_end(w, mark);
	put_common(w, uid);
}

/*
 * Always the same bytes, so that whoever concatenates traces can search for
 * them: no clock, and the marker last.
 */
void
service_packets_sync_marker(struct pb_writer *w, int32_t uid)
{
	put_trusted(w, uid);
	pb_put_bytes(w, PACKET_SYNC_MARKER, sync_marker, sizeof(sync_marker));
}

void
service_packets_trace_config(struct pb_writer *w, int32_t uid,
    const uint8_t *config, size_t len)
{
	put_common(w, uid);
	pb_put_bytes(w, PACKET_TRACE_CONFIG, config, len);
}

void
service_packets_trace_attributes(struct pb_writer *w, int32_t uid,
    const uint8_t *config, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	size_t mark;

	put_common(w, uid);
	mark = pb_nest_begin(w, PACKET_TRACE_ATTRIBUTES);
	pb_init(&r, config, len);
	/* Pieces of one message are merged by putting them together. */
	while (pb_next(&r, &f))
		if (f.number == CONFIG_TRACE_ATTRIBUTES && f.wire == PB_BYTES)
			pb_put_raw(w, f.data, f.len);
	pb_nest_end(w, mark);
}

void
service_packets_trace_uuid(struct pb_writer *w, int32_t uid, int64_t msb,
    int64_t lsb)
{
	size_t mark;

	put_common(w, uid);
	mark = pb_nest_begin(w, PACKET_TRACE_UUID);
	pb_put_int(w, UUID_LSB, lsb);
	pb_put_int(w, UUID_MSB, msb);
	pb_nest_end(w, mark);
}

void
service_packets_system_info(struct pb_writer *w, int32_t uid,
    const struct system_info *s)
{
	size_t mark = pb_nest_begin(w, PACKET_SYSTEM_INFO);

	system_info_encode(w, s);
	pb_nest_end(w, mark);
	put_common(w, uid);
}

void
service_packets_remote_system_info(struct pb_writer *w, int32_t uid,
    uint32_t machine, const uint8_t *info, size_t len)
{
	pb_put_bytes(w, PACKET_SYSTEM_INFO, info, len);
	if (machine == 0) {
		put_common(w, uid);
		return;
	}
	/* No clock: the BOOTTIME of another machine means nothing here */
	pb_put_uint(w, PACKET_MACHINE_ID, machine);
	put_trusted(w, uid);
}

void
service_packets_event(struct pb_writer *w, int32_t uid, uint64_t ts,
    enum service_event event)
{
	size_t mark;

	put_timed(w, uid, ts);
	mark = pb_nest_begin(w, PACKET_SERVICE_EVENT);
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
	mark = pb_nest_begin(w, PACKET_SERVICE_EVENT);
	list = pb_nest_begin(w, event);
	for (i = 0; i < n && i < SERVICE_PACKETS_SLOW_MAX; i++) {
		one = pb_nest_begin(w, SOURCES_DATA_SOURCE);
		pb_put_string(w, SOURCE_PRODUCER, sources[i].producer);
		pb_put_string(w, SOURCE_NAME, sources[i].data_source);
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
	mark = pb_nest_begin(w, PACKET_SERVICE_EVENT);
	pb_put_uint(w, EVENT_BUFFER_CLONED, buffer);
	pb_nest_end(w, mark);
}

void
service_packets_trace_stats(struct pb_writer *w, int32_t uid,
    const struct packet_stats *st)
{
	size_t mark;

	put_common(w, uid);
	mark = pb_nest_begin(w, PACKET_TRACE_STATS);
	packet_stats_encode(w, st);
	pb_nest_end(w, mark);
}

void
service_packets_remote_clock_sync(struct pb_writer *w, int32_t uid,
    uint32_t machine, const struct service_clock_pair *pairs, size_t n)
{
	size_t i, mark, pair, clocks;

	pb_put_uint(w, PACKET_MACHINE_ID, machine);
	put_trusted(w, uid);
	mark = pb_nest_begin(w, PACKET_REMOTE_CLOCK_SYNC);
	for (i = 0; i < n; i++) {
		pair = pb_nest_begin(w, REMOTE_SYNCED);
		clocks = pb_nest_begin(w, SYNCED_CLIENT);
		put_clocks(w, pairs[i].client, pairs[i].n_client);
		pb_nest_end(w, clocks);
		clocks = pb_nest_begin(w, SYNCED_HOST);
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

	pb_put_string(w, TRIGGER_NAME, t->name);
	pb_put_string(w, TRIGGER_PRODUCER, t->producer_name);
	pb_put_int(w, TRIGGER_UID, t->producer_uid);
	pb_put_uint(w, TRIGGER_STOP_DELAY, t->stop_delay_ms);
	pb_nest_end(w, mark);
	put_timed(w, uid, t->ts);
}

void
service_packets_trigger(struct pb_writer *w, int32_t uid,
    const struct service_trigger *t)
{
	put_trigger(w, uid, PACKET_TRIGGER, t);
}

void
service_packets_clone_trigger(struct pb_writer *w, int32_t uid,
    const struct service_trigger *t)
{
	put_trigger(w, uid, PACKET_CLONE_TRIGGER, t);
}

void
service_packets_provenance(struct pb_writer *w, int32_t uid, uint64_t ts,
    size_t n_buffers, const struct service_sequence *sequences, size_t n)
{
	size_t mark, buffer, one, b, i;

	pb_put_uint(w, PACKET_TIMESTAMP, ts);
	mark = pb_nest_begin(w, PACKET_PROVENANCE);
	for (b = 0; b < n_buffers; b++) {
		buffer = pb_nest_begin(w, PROVENANCE_BUFFERS);
		for (i = 0; i < n; i++) {
			if (sequences[i].buffer != b)
				continue;
			one = pb_nest_begin(w, BUFFER_SEQUENCES);
			pb_put_uint(w, SEQUENCE_ID, sequences[i].sequence);
			pb_put_int(w, SEQUENCE_PRODUCER,
			    sequences[i].producer);
			pb_nest_end(w, one);
		}
		pb_nest_end(w, buffer);
	}
	pb_nest_end(w, mark);
	put_common(w, uid);
}

void
service_packets_session_event(struct pb_writer *w, int32_t uid, uint64_t ts,
    const struct service_session_event *e)
{
	size_t mark;

	put_timed(w, uid, ts);
	mark = pb_nest_begin(w, PACKET_SESSION_EVENT);
	pb_put_uint(w, SESSION_STATE, e->state);
	if (e->name != NULL && e->name[0] != '\0')
		pb_put_string(w, SESSION_NAME, e->name);
	pb_put_uint(w, SESSION_ID, e->id);
	pb_put_int(w, SESSION_CONSUMER_UID, e->consumer_uid);
	pb_put_uint(w, SESSION_DATA_SOURCES, e->num_data_sources);
	pb_nest_end(w, mark);
}
