#include "service/packet/packet_time.h"

#include "protos/fields.h"
#include "transport/clock/clock_snapshot.h"
#include "transport/wire/pb_reader.h"

static bool
counts_from_boot(uint64_t clock)
{
	return clock == CLOCK_ID_BOOTTIME || clock == CLOCK_ID_MONOTONIC;
}

/* The last varint of this number in a message; 0: none. */
static uint64_t
varint_of(const struct pb_field *message, uint32_t number)
{
	struct pb_reader r;
	struct pb_field f;
	uint64_t v = 0;

	PB_FOREACH(&f, &r, message->data, message->len)
		if (f.number == number && f.wire == PB_VARINT)
			v = f.value;
	return r.bad ? 0 : v;
}

/*
 * Reads a ClockSnapshot: an SDK with incremental timestamps writes one to say
 * where these start.
 */
static void
read_snapshot(const struct pb_field *snapshot, struct packet_time *out)
{
	struct pb_reader r;
	struct pb_field f;
	uint64_t clock;

	PB_FOREACH(&f, &r, snapshot->data, snapshot->len) {
		if (f.number != ClockSnapshot_clocks || f.wire != PB_BYTES)
			continue;
		clock = varint_of(&f, ClockSnapshot_Clock_clock_id);
		if (counts_from_boot(clock)) {
			out->clock = (uint32_t)clock;
			out->ns = varint_of(&f, ClockSnapshot_Clock_timestamp);
			out->is_reading = true;
		}
	}
}

struct packet_time
packet_time_of(const uint8_t *packet, size_t len, bool *other_default)
{
	struct packet_time snapshot = { .clock = 0 };
	uint64_t timestamp = 0, clock = 0, named;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, packet, len) {
		if (f.number == TracePacket_timestamp && f.wire == PB_VARINT)
			timestamp = f.value;
		else if (f.number == TracePacket_timestamp_clock_id &&
		    f.wire == PB_VARINT)
			clock = f.value;
		else if (f.number == TracePacket_clock_snapshot &&
		    f.wire == PB_BYTES)
			read_snapshot(&f, &snapshot);
		else if (f.number == TracePacket_trace_packet_defaults &&
		    f.wire == PB_BYTES) {
			named = varint_of(&f,
			    TracePacketDefaults_timestamp_clock_id);
			*other_default = named != 0 &&
			    named != CLOCK_ID_BOOTTIME;
		}
	}
	if (r.bad)
		return (struct packet_time){ .clock = 0 };
	if (snapshot.clock != 0 && snapshot.ns != 0)
		return snapshot;
	if (clock == 0 && !*other_default)
		clock = CLOCK_ID_BOOTTIME;
	if (timestamp == 0 || !counts_from_boot(clock))
		return (struct packet_time){ .clock = 0 };
	return (struct packet_time){ .clock = (uint32_t)clock,
		.ns = timestamp };
}
