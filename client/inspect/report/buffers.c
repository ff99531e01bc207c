#include "client/inspect/report/buffers.h"

#include "client/inspect/report/inspection.h"
#include "client/inspect/report/session_log.h"
#include "protos/trace_config.pb-c.h"
#include "protos/trace_stats.pb-c.h"

typedef Perfetto__Protos__TraceConfig trace_config;
typedef Perfetto__Protos__TraceConfig__BufferConfig buffer_config;
typedef Perfetto__Protos__TraceStats trace_stats;

size_t
inspect_buffers_count(const struct inspection *i)
{
	const trace_stats *stats = inspection_final_stats(i);

	return stats == NULL ? 0 : stats->n_buffer_stats;
}

void
inspect_buffers_read(struct inspect_buffer *out, const struct inspection *i,
    size_t index)
{
	const trace_config *config = inspection_log(i)->config;
	const buffer_config *b = config != NULL && index < config->n_buffers ?
	    config->buffers[index] : NULL;
	struct buffer_facts facts = {
		.duration_ms = inspection_duration_ns(i) / 1000000,
		.streamed = config != NULL && config->write_into_file,
	};

	out->stats = facts.stats =
	    inspection_final_stats(i)->buffer_stats[index];
	out->name = b != NULL && b->name != NULL ? b->name : "";
	out->discard = facts.discard = b != NULL && b->fill_policy ==
	    PERFETTO__PROTOS__TRACE_CONFIG__BUFFER_CONFIG__FILL_POLICY__DISCARD;
	buffer_advice_make(&out->reading, &facts);
}
