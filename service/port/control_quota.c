#include "protos/fields.h"
#include "service/ingest/quota.h"
#include "service/port/control_internal.h"

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
	put(w, QuotaState_bytes_per_second, c->bytes_per_second);
	put(w, QuotaState_held_times, c->held_times);
	put(w, QuotaState_held_ms, c->held_ms);
	put(w, QuotaState_dropped_chunks, c->dropped_chunks);
	put(w, QuotaState_dropped_packets, c->dropped_packets);
	put(w, QuotaState_dropped_bytes, c->dropped_bytes);
	put(w, QuotaState_sequences, c->sequences);
	put(w, QuotaState_refused_producers, c->refused_producers);
	put(w, QuotaState_refused_connections, c->refused_connections);
	put(w, QuotaState_refused_data_sources, c->refused_data_sources);
	put(w, QuotaState_refused_sequences, c->refused_sequences);
	pb_nest_end(w, mark);
}
