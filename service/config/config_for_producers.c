#include <string.h>

#include "protos/fields.h"
#include "service/config/config.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

void
config_for_producer(const struct config *c,
    const struct config_data_source *ds, uint16_t buffer, uint64_t session,
    struct pb_writer *out)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, ds->config, ds->config_len) {
		switch (f.number) {
		case DataSourceConfig_target_buffer:
		case DataSourceConfig_trace_duration_ms:
		case DataSourceConfig_tracing_session_id:
		case DataSourceConfig_enable_extra_guardrails:
		case DataSourceConfig_stop_timeout_ms:
		case DataSourceConfig_session_initiator:
			break; /* ours to say */
		case DataSourceConfig_prefer_suspend_clock_for_duration:
			if (!c->pb->prefer_suspend_clock_for_duration)
				pb_put_raw(out, f.start,
				    (size_t)(r.p - f.start));
			break;
		default:
			pb_put_raw(out, f.start, (size_t)(r.p - f.start));
			break;
		}
	}
	pb_put_uint(out, DataSourceConfig_target_buffer, buffer);
	pb_put_uint(out, DataSourceConfig_trace_duration_ms,
	    c->pb->duration_ms);
	pb_put_uint(out, DataSourceConfig_tracing_session_id, session);
	pb_put_uint(out, DataSourceConfig_enable_extra_guardrails,
	    c->pb->enable_extra_guardrails);
	pb_put_uint(out, DataSourceConfig_stop_timeout_ms,
	    config_stop_timeout_ms(c));
	pb_put_uint(out, DataSourceConfig_session_initiator, 0);
	/*
	 * Left out when false: older SDKs compare what they get with what they
	 * know.
	 */
	if (c->pb->prefer_suspend_clock_for_duration)
		pb_put_uint(out,
		    DataSourceConfig_prefer_suspend_clock_for_duration, 1);
}

int
config_keep_for_producers(struct config *c,
    const struct config_data_source *ds, uint16_t buffer, uint64_t session)
{
	struct config_data_source *own =
	    &c->data_sources[ds - c->data_sources];
	struct pb_writer w;

	if (own->for_producers != NULL)
		return 0;
	pb_writer_init(&w);
	config_for_producer(c, ds, buffer, session, &w);
	if (w.failed) {
		pb_writer_done(&w);
		return -1;
	}
	own->for_producers = w.data;
	own->for_producers_len = w.len;
	return 0;
}

void
config_shm_sizes(const struct config *c, const char *producer,
    uint32_t *shm_kb, uint32_t *page_kb)
{
	size_t i;

	*shm_kb = *page_kb = 0;
	for (i = 0; i < c->pb->n_producers; i++) {
		const Perfetto__Protos__TraceConfig__ProducerConfig *p =
		    c->pb->producers[i];

		if (p->producer_name == NULL ||
		    strcmp(p->producer_name, producer) != 0)
			continue;
		*shm_kb = p->shm_size_kb;
		*page_kb = p->page_size_kb;
		return;
	}
}
