#include "relay/status/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protos/relay_report.pb-c.h"
#include "protos/utf8.h"
#include "relay/outbox/outbox.h"
#include "relay/producers/producers.h"
#include "relay/settings/settings.h"
#include "relay/uplink/uplink.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
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
put_link(struct pb_writer *w, const struct uplink_view *v, uint64_t now)
{
	size_t mark = pb_nest_begin(w, 6);

	pb_put_string(w, 1, uplink_state_text(v->state));
	put_text(w, 2, v->peer);
	pb_put_uint(w, 3, ago(now, v->since_ms));
	put_text(w, 4, v->last_error);
	if (v->state == UPLINK_WAITING && v->next_try_ms != 0)
		pb_put_uint(w, 5, ago(v->next_try_ms, now));
	pb_put_uint(w, 6, v->reconnects);
	pb_put_uint(w, 7, v->bytes_up);
	pb_put_uint(w, 8, v->bytes_sent);
	put(w, 9, v->bytes_again);
	put(w, 10, v->compressed);
	put_text(w, 11, v->why_classic);
	put(w, 12, v->without_clocks);
	pb_nest_end(w, mark);
}

/* sint64, as protobuf has it. */
static uint64_t
zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
}

static void
put_clock(struct pb_writer *w, const struct uplink_view *v)
{
	size_t mark;

	if (!v->clock_known)
		return;
	mark = pb_nest_begin(w, 7);
	pb_put_uint(w, 1, zigzag(v->clock_offset_ns));
	pb_put_uint(w, 2, v->clock_uncertainty_ns);
	pb_put_uint(w, 3, v->round_trip_ns);
	pb_put_uint(w, 4, v->round_trips_ago_ms);
	pb_nest_end(w, mark);
}

static void
put_store(struct pb_writer *w, const struct outbox_stats *s)
{
	size_t mark = pb_nest_begin(w, 8);

	pb_put_uint(w, 1, s->memory_bytes);
	pb_put_uint(w, 2, s->memory_limit);
	pb_put_uint(w, 3, s->spool_bytes);
	pb_put_uint(w, 4, s->spool_limit);
	put_text(w, 5, s->spool_error);
	put(w, 6, s->blocks_on_the_way);
	put(w, 7, s->oldest_ms);
	put(w, 8, s->spool_cut_bytes);
	put(w, 9, s->spool_damaged);
	pb_nest_end(w, mark);
}

static void
put_producer(void *arg, const struct producers_view *v)
{
	struct pb_writer *w = arg;
	size_t mark = pb_nest_begin(w, 9);

	pb_put_uint(w, 1, v->channel);
	put_text(w, 2, v->name);
	pb_put_int(w, 3, v->pid);
	pb_put_int(w, 4, v->uid);
	put(w, 5, v->emulated);
	put(w, 6, v->announced);
	pb_put_uint(w, 7, v->data_sources);
	pb_put_uint(w, 8, v->instances);
	pb_put_uint(w, 9, v->writers);
	pb_put_uint(w, 10, v->chunks);
	pb_put_uint(w, 11, v->bytes);
	put(w, 12, v->discarded);
	put(w, 13, v->late);
	pb_nest_end(w, mark);
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
		mark = pb_nest_begin(w, 10);
		pb_put_string(w, 1, link_loss_text((uint32_t)i));
		pb_put_uint(w, 2, chunks);
		pb_put_uint(w, 3, packets);
		pb_put_uint(w, 4, s->bytes_lost[i] + v->bytes_lost[i]);
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
	pb_put_string(&w, 1, TRIBUTARY_VERSION);
	pb_put_int(&w, 2, getpid());
	pb_put_uint(&w, 3, ago(now, from->started_ms));
	put_text(&w, 4, from->settings->machine_name);
	for (i = 0; i < from->settings->n_producer_sockets; i++)
		put_text(&w, 5, from->settings->producer_sockets[i]);
	put_link(&w, &view, now);
	put_clock(&w, &view);
	put_store(&w, &stats);
	producers_each(from->producers, put_producer, &w);
	put_losses(&w, &stats, &view);
	if (w.failed) {
		pb_writer_done(&w);
		return NULL;
	}
	*len = w.len;
	return w.data;
}
