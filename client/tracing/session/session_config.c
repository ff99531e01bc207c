#include "client/tracing/session/session_config.h"

#include <string.h>
#include <tributary/session.h>

#include "protos/fields.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define BUFFER_KB 4096u

bool
session_config_waits(const uint8_t *config, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	bool waits = false;

	PB_FOREACH(&f, &r, config, len) {
		if (f.number == TraceConfig_deferred_start)
			waits |= f.value != 0;
		if (f.number == TraceConfig_trigger_config)
			waits = true;
	}
	return waits;
}

bool
session_config_has_started(const uint8_t *events, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	bool started = false;

	PB_FOREACH(&f, &r, events, len)
		if (f.number == ObservableEvents_all_data_sources_started)
			started = f.value != 0;
	return started;
}

static void
put_categories(struct pb_writer *w, const char *const *categories)
{
	size_t mark = pb_nest_begin(w, DataSourceConfig_track_event_config);

	for (; *categories != NULL; categories++)
		pb_put_string(w, TrackEventConfig_enabled_categories,
		    *categories);
	pb_put_string(w, TrackEventConfig_disabled_categories, "*");
	pb_nest_end(w, mark);
}

void
session_config_put(struct pb_writer *w,
    const struct tributary_session_options *options)
{
	struct tributary_session_options o = TRIBUTARY_SESSION_OPTIONS;
	size_t mark, inner;

	if (options != NULL)
		memcpy(&o, options, options->size < sizeof(o) ?
		    options->size : sizeof(o));
	mark = pb_nest_begin(w, TraceConfig_buffers);
	pb_put_uint(w, BufferConfig_size_kb,
	    o.buffer_kb != 0 ? o.buffer_kb : BUFFER_KB);
	pb_put_uint(w, BufferConfig_fill_policy,
	    o.discard ? BufferConfig_DISCARD : BufferConfig_RING_BUFFER);
	pb_nest_end(w, mark);
	mark = pb_nest_begin(w, TraceConfig_data_sources);
	inner = pb_nest_begin(w, TraceConfig_DataSource_config);
	pb_put_string(w, DataSourceConfig_name, "track_event");
	if (o.stall)
		pb_put_uint(w, DataSourceConfig_buffer_exhausted_policy,
		    DataSourceConfig_BUFFER_EXHAUSTED_STALL_THEN_DROP);
	if (o.categories != NULL)
		put_categories(w, o.categories);
	pb_nest_end(w, inner);
	pb_nest_end(w, mark);
	if (o.seconds != 0)
		pb_put_uint(w, TraceConfig_duration_ms, o.seconds * 1000ull);
	if (o.unique_name != NULL)
		pb_put_string(w, TraceConfig_unique_session_name,
		    o.unique_name);
}
