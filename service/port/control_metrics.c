#include "protos/control.pb-c.h"
#include "protos/fields.h"
#include "protos/link.pb-c.h"
#include "protos/segment.pb-c.h"
#include "service/limits/metric_count.h"
#include "service/link/link.h"
#include "service/model/model.h"
#include "service/onlookers/session_report.h"
#include "service/output/file_writer.h"
#include "service/port/control_internal.h"
#include "service/recordings/recordings.h"
#include "service/settings/settings.h"
#include "transport/loop/delays.h"
#include "transport/metrics/metrics.h"
#include "transport/metrics/process_metrics.h"
#include "transport/wire/pb_reader.h"

/* Before the names of an enum that is no message's. */
#define LOSS_PREFIX "LINK_LOSS_"

static void
put_by_enum(struct pb_writer *w, uint32_t field,
    const ProtobufCEnumDescriptor *d, uint64_t value, uint64_t n)
{
	char label[METRICS_LABEL_MAX];

	if (metrics_enum_label(label, d, (int)value, LOSS_PREFIX))
		metric_count_put(w, field, label, n);
}

static void
put_refused(struct pb_writer *w, const struct refusals *r, uint64_t now_ns)
{
	const uint64_t now_ms = loop_now_ms();
	const char *name;
	size_t i, mark;

	for (i = 0; i < REFUSALS; i++) {
		if ((name = refusals_name(i)) == NULL)
			continue;
		mark = pb_nest_begin(w, QueryMetricsReply_refused);
		pb_put_string(w, Count_label, name);
		pb_put_uint(w, Count_value, r->n[i]);
		if (r->n[i] != 0)
			pb_put_uint(w, Count_last_ns, now_ns -
			    (now_ms - r->last_ms[i]) * 1000000u);
		pb_nest_end(w, mark);
	}
}

static void
put_links(struct pb_writer *w, const struct service *s)
{
	struct links_counts c;
	size_t i;

	links_count(s->links, &c);
	metric_count_put(w, QueryMetricsReply_links, "connected", c.connected);
	metric_count_put(w, QueryMetricsReply_links, "cut", c.cut);
	pb_put_uint(w, QueryMetricsReply_draining, links_drains(s->links));
	for (i = LINK_RESUMED; i <= LINK_MOVED; i++)
		put_by_enum(w, QueryMetricsReply_links_opened,
		    &tributary__link_opened__why__descriptor, i, c.opened[i]);
}

static void
put_machines(struct pb_writer *w, const struct service *s)
{
	struct machine_counts c;

	machine_table_count(s->machines, &c);
	/* The collector's own is always there. */
	metric_count_put(w, QueryMetricsReply_machines, "connected",
	    c.connected + 1);
	metric_count_put(w, QueryMetricsReply_machines, "cut", c.cut);
	metric_count_put(w, QueryMetricsReply_machines, "gone", c.gone);
	metric_count_put(w, QueryMetricsReply_relays_backlog, "memory",
	    c.backlog.memory);
	metric_count_put(w, QueryMetricsReply_relays_backlog, "spool",
	    c.backlog.spool);
	metric_count_put(w, QueryMetricsReply_relays_backlog_limit, "memory",
	    c.backlog.memory_limit);
	metric_count_put(w, QueryMetricsReply_relays_backlog_limit, "spool",
	    c.backlog.spool_limit);
	pb_put_uint(w, QueryMetricsReply_relays_oldest_ms,
	    c.backlog.oldest_ms);
	pb_put_uint(w, QueryMetricsReply_relays_clock_error_ns,
	    c.clock_error_ns);
}

static void
put_sessions(struct pb_writer *w, const struct service *s)
{
	uint64_t in_state[SessionState_CLONED + 1] = { 0 }, used = 0;
	uint64_t file_bytes = s->counters.file_bytes;
	const struct session *e;
	size_t i;

	TAILQ_FOREACH(e, &s->sessions, link) {
		in_state[session_report_state(e)]++;
		if (e->file != NULL)
			file_bytes += file_writer_bytes(e->file);
		used += session_report_used(e);
	}
	for (i = SessionState_CONFIGURED; i <= SessionState_CLONED; i++)
		put_by_enum(w, QueryMetricsReply_sessions,
		    &tributary__session_state__state__descriptor, i,
		    in_state[i]);
	for (i = RecordingState_STARTING; i <= RecordingState_ENDING; i++)
		put_by_enum(w, QueryMetricsReply_recordings,
		    &tributary__recording_state__state__descriptor, i,
		    recordings_in_state(s->recordings, i));
	pb_put_uint(w, QueryMetricsReply_buffer_bytes, s->total_buffer_bytes);
	pb_put_uint(w, QueryMetricsReply_buffer_used_bytes, used);
	pb_put_uint(w, QueryMetricsReply_buffer_limit_bytes,
	    s->settings->limits.max_total_buffer_kb * 1024);
	pb_put_uint(w, QueryMetricsReply_file_written_bytes, file_bytes);
}

static void
put_data(struct pb_writer *w, const struct service_counters *c)
{
	const uint32_t dropped = QueryMetricsReply_chunks_dropped;
	const ProtobufCEnumDescriptor *causes =
	    &tributary__link_loss_cause__descriptor;
	size_t i;

	pb_put_uint(w, QueryMetricsReply_chunks_written, c->chunks_written);
	pb_put_uint(w, QueryMetricsReply_received_bytes, c->bytes_received);
	metric_count_put(w, dropped, "buffer_full", c->chunks_discarded);
	metric_count_put(w, dropped, "late", c->chunks_late);
	metric_count_put(w, dropped, "wrong_buffer", c->wrong_buffer);
	metric_count_put(w, dropped, "unreadable", c->bad_chunk_index);
	metric_count_put(w, QueryMetricsReply_lost_packets, "producer",
	    c->packets_lost_by_producers);
	for (i = 0; i < LINK_LOSS_CAUSES; i++) {
		put_by_enum(w, QueryMetricsReply_lost_packets, causes, i,
		    c->lost[i].packets);
		put_by_enum(w, QueryMetricsReply_losses_of_unknown_size,
		    causes, i, c->lost[i].times);
	}
	for (i = SERVICE_CUT_TIME; i < SERVICE_CUT_CAUSES; i++)
		put_by_enum(w, QueryMetricsReply_segments,
		    &perfetto__protos__segment_cut__cause__descriptor, i,
		    c->segments[i]);
	metric_count_put(w, QueryMetricsReply_segments, "flight",
	    c->flight_segments);
}

static void
put_delays(struct pb_writer *w, const struct service *s)
{
	const struct delays *d = loop_delays(s->loop);
	uint64_t most;
	size_t i, mark;

	for (i = 0; i < DELAYS; i++) {
		mark = pb_nest_begin(w, QueryMetricsReply_loop_delays);
		most = delays_most_ns(i);
		if (most != UINT64_MAX)
			pb_put_uint(w, Delay_most_ns, most);
		pb_put_uint(w, Delay_count, d->n[i]);
		pb_nest_end(w, mark);
	}
	pb_put_uint(w, QueryMetricsReply_loop_delay_sum_ns, d->sum_ns);
	pb_put_uint(w, QueryMetricsReply_input_lag_ms, loop_lag_ms(s->loop));
	pb_put_uint(w, QueryMetricsReply_overload_level,
	    (uint64_t)s->overload.level);
}

enum rpc_verdict
control_query_metrics(void *port, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct control *p = port;
	const struct service *s = p->service;
	struct pb_writer *w = &p->part;
	const uint64_t now_ns = control_now_ns();

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	if (p->question != NULL)
		return RPC_REJECT;
	pb_writer_reset(w);
	pb_put_string(w, QueryMetricsReply_version, TRIBUTARY_VERSION);
	pb_put_uint(w, QueryMetricsReply_now_ns, now_ns);
	pb_put_uint(w, QueryMetricsReply_producers, s->n_producers);
	pb_put_uint(w, QueryMetricsReply_data_sources, s->n_data_sources);
	put_refused(w, &s->refusals, now_ns);
	put_links(w, s);
	put_machines(w, s);
	put_sessions(w, s);
	put_data(w, &s->counters);
	put_delays(w, s);
	process_metrics_put(w, QueryMetricsReply_process);
	if (s->report_front != NULL)
		s->report_front(s->report_front_arg, w);
	rpc_reply_written(call, w);
	return RPC_OK;
}
