#include "relay/status/report.h"

#include <string.h>
#include <unistd.h>

#include "protos/fields.h"
#include "protos/relay_report.pb-c.h"
#include "protos/utf8.h"
#include "relay/outbox/outbox.h"
#include "relay/producers/producers.h"
#include "relay/settings/settings.h"
#include "relay/uplink/uplink.h"
#include "transport/loop/delays.h"
#include "transport/loop/loop.h"
#include "transport/metrics/process_metrics.h"
#include "transport/wire/pb_writer.h"

/*
 * Written by hand, field by field: generated code would want every part of it
 * in memory at once.  A field whose value says nothing is left out.
 */
static void
put(struct pb_writer *w, uint32_t field, uint64_t v)
{
	if (v != 0)
		pb_put_uint(w, field, v);
}

/* Adds a peer's words, escaped as in the log. */
static void
put_text(struct pb_writer *w, uint32_t field, const char *text)
{
	char shown[1024];

	if (text == NULL || *text == '\0')
		return;
	utf8_escape(shown, sizeof(shown), text, strlen(text), "");
	pb_put_string(w, field, shown);
}

static uint64_t
ago(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

static void
put_choice(struct pb_writer *w, const struct uplink_view *v, uint64_t now)
{
	pb_put_uint(w, RelayReportLink_collectors, v->n_collectors);
	pb_put_uint(w, RelayReportLink_choice, v->rank + 1);
	put_text(w, RelayReportLink_home, v->home);
	put_text(w, RelayReportLink_why, v->why);
	pb_put_uint(w, RelayReportLink_moves, v->moves);
	if (v->moves > 0)
		pb_put_uint(w, RelayReportLink_moved_ms_ago,
		    ago(now, v->moved_ms));
}

static void
put_link(struct pb_writer *w, const struct uplink_view *v, uint64_t now)
{
	size_t mark = pb_nest_begin(w, RelayReport_link);

	pb_put_string(w, RelayReportLink_state, uplink_state_text(v->state));
	put_text(w, RelayReportLink_peer, v->peer);
	pb_put_uint(w, RelayReportLink_since_ms, ago(now, v->since_ms));
	put_text(w, RelayReportLink_last_error, v->last_error);
	if (v->state == UPLINK_WAITING && v->next_try_ms != 0)
		pb_put_uint(w, RelayReportLink_next_try_ms,
		    ago(v->next_try_ms, now));
	pb_put_uint(w, RelayReportLink_reconnects, v->reconnects);
	pb_put_uint(w, RelayReportLink_bytes_up, v->bytes_up);
	pb_put_uint(w, RelayReportLink_bytes_sent, v->bytes_sent);
	pb_put_uint(w, RelayReportLink_bytes_again, v->bytes_again);
	put(w, RelayReportLink_compressed, v->compressed);
	put_text(w, RelayReportLink_why_classic, v->why_classic);
	put(w, RelayReportLink_without_clocks, v->without_clocks);
	if (v->n_collectors > 1)
		put_choice(w, v, now);
	pb_nest_end(w, mark);
}

static void
put_clock(struct pb_writer *w, const struct uplink_view *v)
{
	size_t mark;

	if (!v->clock_known)
		return;
	mark = pb_nest_begin(w, RelayReport_clock);
	pb_put_sint(w, RelayReportClock_offset_ns, v->clock_offset_ns);
	pb_put_uint(w, RelayReportClock_uncertainty_ns,
	    v->clock_uncertainty_ns);
	pb_put_uint(w, RelayReportClock_round_trip_ns, v->round_trip_ns);
	pb_put_uint(w, RelayReportClock_measured_ms_ago, v->round_trips_ago_ms);
	pb_nest_end(w, mark);
}

static void
put_store(struct pb_writer *w, const struct outbox_stats *s)
{
	size_t mark = pb_nest_begin(w, RelayReport_store);

	pb_put_uint(w, RelayReportStore_memory_bytes, s->memory_bytes);
	pb_put_uint(w, RelayReportStore_memory_limit, s->memory_limit);
	pb_put_uint(w, RelayReportStore_spool_bytes, s->spool_bytes);
	pb_put_uint(w, RelayReportStore_spool_limit, s->spool_limit);
	put_text(w, RelayReportStore_spool_error, s->spool_error);
	pb_put_uint(w, RelayReportStore_blocks_on_the_way, s->blocks_on_the_way);
	pb_put_uint(w, RelayReportStore_oldest_ms, s->oldest_ms);
	pb_put_uint(w, RelayReportStore_spool_cut_bytes, s->spool_cut_bytes);
	pb_put_uint(w, RelayReportStore_spool_damaged, s->spool_damaged);
	pb_nest_end(w, mark);
}

static void
put_producer(void *arg, const struct producers_view *v)
{
	struct pb_writer *w = arg;
	size_t mark = pb_nest_begin(w, RelayReport_producers);

	pb_put_uint(w, RelayReportProducer_channel, v->channel);
	put_text(w, RelayReportProducer_name, v->name);
	pb_put_int(w, RelayReportProducer_pid, v->pid);
	pb_put_int(w, RelayReportProducer_uid, v->uid);
	put(w, RelayReportProducer_emulated, v->emulated);
	put(w, RelayReportProducer_announced, v->announced);
	pb_put_uint(w, RelayReportProducer_data_sources, v->data_sources);
	pb_put_uint(w, RelayReportProducer_instances, v->instances);
	pb_put_uint(w, RelayReportProducer_writers, v->writers);
	pb_put_uint(w, RelayReportProducer_chunks, v->chunks);
	pb_put_uint(w, RelayReportProducer_bytes, v->bytes);
	put(w, RelayReportProducer_discarded, v->discarded);
	put(w, RelayReportProducer_late, v->late);
	pb_nest_end(w, mark);
}

static void
put_process(struct pb_writer *w, const struct loop *l)
{
	const struct delays *d = loop_delays(l);
	size_t i;

	process_metrics_put(w, RelayReport_process);
	for (i = 0; i < DELAYS; i++)
		pb_put_uint(w, RelayReport_loop_delays, d->n[i]);
	pb_put_uint(w, RelayReport_loop_delay_sum_ns, d->sum_ns);
}

/* Adds losses over the link, and over Perfetto's protocol. */
static void
put_losses(struct pb_writer *w, const struct outbox_stats *s,
    const struct uplink_view *v)
{
	uint64_t chunks, packets;
	size_t i, mark;

	for (i = 0; i < LINK_LOSS_OF_RELAYS; i++) {
		chunks = s->chunks_lost[i] + v->chunks_lost[i];
		packets = s->packets_lost[i] + v->packets_lost[i];
		if (chunks == 0 && packets == 0)
			continue;
		mark = pb_nest_begin(w, RelayReport_losses);
		pb_put_string(w, RelayReportLoss_cause,
		    link_loss_text((uint32_t)i));
		pb_put_uint(w, RelayReportLoss_chunks, chunks);
		pb_put_uint(w, RelayReportLoss_packets, packets);
		pb_put_uint(w, RelayReportLoss_bytes,
		    s->bytes_lost[i] + v->bytes_lost[i]);
		pb_nest_end(w, mark);
	}
}

uint8_t *
report_make(const struct report_sources *from, size_t *len)
{
	uint64_t now = loop_now_ms();
	struct outbox_stats stats;
	struct uplink_view view;
	struct pb_writer w;
	size_t i;

	uplink_view(from->uplink, &view);
	outbox_stats(from->outbox, &stats);
	pb_writer_init(&w);
	pb_put_string(&w, RelayReport_version, TRIBUTARY_VERSION);
	pb_put_int(&w, RelayReport_pid, getpid());
	pb_put_uint(&w, RelayReport_running_ms, ago(now, from->started_ms));
	put_text(&w, RelayReport_machine_name, from->settings->machine_name);
	for (i = 0; i < from->settings->n_producer_sockets; i++)
		put_text(&w, RelayReport_producer_socket,
		    from->settings->producer_sockets[i]);
	put_link(&w, &view, now);
	put_clock(&w, &view);
	put_store(&w, &stats);
	producers_each(from->producers, put_producer, &w);
	put_losses(&w, &stats, &view);
	put_process(&w, from->loop);
	if (w.failed) {
		pb_writer_done(&w);
		return NULL;
	}
	*len = w.len;
	return w.data;
}
