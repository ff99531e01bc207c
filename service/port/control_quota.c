#include "service/port/control_internal.h"

#include "service/session/quota.h"

/* Field numbers: protos/control.proto, QuotaState. */
enum {
	Q_BYTES_PER_SECOND = 1,
	Q_HELD_TIMES = 2,
	Q_HELD_MS = 3,
	Q_DROPPED_CHUNKS = 4,
	Q_DROPPED_PACKETS = 5,
	Q_DROPPED_BYTES = 6,
	Q_SEQUENCES = 7,
	Q_REFUSED_PRODUCERS = 8,
	Q_REFUSED_CONNECTIONS = 9,
	Q_REFUSED_DATA_SOURCES = 10,
	Q_REFUSED_SEQUENCES = 11,
};

static void
put(struct pb_writer *w, uint32_t field, uint64_t v)
{
	if (v != 0)
		pb_put_uint(w, field, v);
}

void
control_put_quota(struct pb_writer *w, uint32_t field,
    const struct quota_counts *c)
{
	size_t mark;

	if (!c->limited)
		return;
	mark = pb_nest_begin(w, field);
	put(w, Q_BYTES_PER_SECOND, c->bytes_per_second);
	put(w, Q_HELD_TIMES, c->held_times);
	put(w, Q_HELD_MS, c->held_ms);
	put(w, Q_DROPPED_CHUNKS, c->dropped_chunks);
	put(w, Q_DROPPED_PACKETS, c->dropped_packets);
	put(w, Q_DROPPED_BYTES, c->dropped_bytes);
	put(w, Q_SEQUENCES, c->sequences);
	put(w, Q_REFUSED_PRODUCERS, c->refused_producers);
	put(w, Q_REFUSED_CONNECTIONS, c->refused_connections);
	put(w, Q_REFUSED_DATA_SOURCES, c->refused_data_sources);
	put(w, Q_REFUSED_SEQUENCES, c->refused_sequences);
	pb_nest_end(w, mark);
}
