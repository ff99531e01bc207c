#include "client/trace/wall_clock.h"

#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

/* ClockSnapshot.Clock.clock_id */
#define REALTIME 1u
#define BOOTTIME 6u

static void
read_clock(struct wall_clock *out, const struct pb_field *clock)
{
	uint64_t id = 0, ns = 0;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, clock->data, clock->len) {
		if (f.number == ClockSnapshot_Clock_clock_id)
			id = f.value;
		else if (f.number == ClockSnapshot_Clock_timestamp)
			ns = f.value;
	}
	if (id == BOOTTIME)
		out->boottime_ns = ns;
	else if (id == REALTIME)
		out->realtime_ns = ns;
}

void
wall_clock_read(struct wall_clock *out, const struct pb_field *snapshot)
{
	struct wall_clock read = { 0 };
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, snapshot->data, snapshot->len)
		if (f.number == ClockSnapshot_clocks && f.wire == PB_BYTES)
			read_clock(&read, &f);
	if (read.boottime_ns != 0 && read.realtime_ns != 0)
		*out = read;
}
