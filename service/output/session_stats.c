#include "service/output/session_stats.h"

#include <stdlib.h>
#include <unistd.h>

#include "service/ingest/arrivals.h"
#include "service/ingest/session_losses.h"
#include "service/model/model.h"
#include "service/packet/sequence_map.h"
#include "service/packet/session_filter.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/packet/packet_stats.h"
#include "transport/packet/service_packets.h"
#include "transport/wire/pb_writer.h"

/* TraceStats.tributary_packets */
#define STATS_TRIBUTARY_PACKETS 10001
/* Machines and causes in a reply. */
#define REPLY_LOSSES_MAX 256u
/* Writers in a reply, and the bytes that it may have with them: one frame. */
#define REPLY_WRITERS_MAX 256u
#define REPLY_BYTES (96u * 1024u)

static void
fill(struct session *s, struct packet_stats *st, const struct tb_stats **bufs)
{
	const struct service *sv = s->service;
	size_t i;

	for (i = 0; i < s->n_buffers; i++)
		bufs[i] = trace_buffer_stats(s->buffers[i].tb);
	*st = (struct packet_stats){
		.buffers = bufs,
		.n_buffers = s->n_buffers,
		.producers_connected = (uint32_t)sv->n_producers,
		.producers_seen = sv->counters.producers_seen,
		.data_sources_seen = sv->counters.data_sources_seen,
		.tracing_sessions = (uint32_t)sv->n_sessions,
		.total_buffers = (uint32_t)sv->n_buffers,
		.chunks_discarded = s->refused.chunks,
		.patches_discarded = s->refused.patches,
		.invalid_packets = s->invalid_packets,
		.flushes_requested = s->flushes_requested,
		.flushes_succeeded = s->flushes_succeeded,
		.flushes_failed = s->flushes_failed,
		.final_flush_outcome = s->final_flush,
		.data_sources_registered = (uint32_t)sv->n_data_sources,
	};
}

static void
encode_packet(struct session *s, struct packet_stats *st, struct pb_writer *w)
{
	size_t n = sequence_map_writers(s->sequences);
	struct packet_writer_stats *writers = calloc(n + 1, sizeof(*writers));
	struct packet_link_loss *losses = NULL;

	if (writers != NULL) {
		st->writers = writers;
		st->n_writers = sequence_map_writer_stats(s->sequences,
		    writers, n);
	}
	n = session_losses_count(s);
	if (n > 0) {
		losses = calloc(n, sizeof(*losses));
		/* None would look as if nothing had been lost. */
		w->failed |= losses == NULL;
	}
	if (losses != NULL) {
		st->link_losses = losses;
		st->n_link_losses = session_losses_list(s, losses, n);
	}
	service_packets_trace_stats(w, (int32_t)getuid(), st);
	free(losses);
	free(writers);
}

/* The short form: no writers, and losses by machine. */
static void
encode_short_packet(struct session *s, struct packet_stats *st,
    struct pb_writer *w)
{
	struct packet_link_loss losses[REPLY_LOSSES_MAX];

	st->link_losses = losses;
	st->n_link_losses = session_losses_by_machine(s, losses,
	    REPLY_LOSSES_MAX);
	service_packets_trace_stats(w, (int32_t)getuid(), st);
	/* Arrays of this function; st lives on. */
	st->link_losses = NULL;
	st->n_link_losses = 0;
}

static void
encode_message(struct session *s, struct packet_stats *st, struct pb_writer *w)
{
	struct packet_link_loss losses[REPLY_LOSSES_MAX];
	struct packet_writer_stats *writers = calloc(REPLY_WRITERS_MAX,
	    sizeof(*writers));
	size_t begin = w->len;

	st->link_losses = losses;
	st->n_link_losses = session_losses_by_machine(s, losses,
	    REPLY_LOSSES_MAX);
	if (writers != NULL) {
		st->writers = writers;
		st->n_writers = sequence_map_writer_stats(s->sequences,
		    writers, REPLY_WRITERS_MAX);
	}
	packet_stats_encode(w, st);
	if (w->len - begin > REPLY_BYTES) {
		w->len = begin;
		st->n_writers = 0;
		packet_stats_encode(w, st);
	}
	free(writers);
	/* Arrays of this function; st lives on. */
	st->writers = NULL;
	st->link_losses = NULL;
	st->n_writers = st->n_link_losses = 0;
	pb_put_uint(w, STATS_TRIBUTARY_PACKETS, s->packets_stored);
}

/* Producers with a foreign clock, in a packet or a reply. */
#define FOREIGN_CLOCKS_MAX 64u

static void
encode(struct session *s, struct pb_writer *w,
    void (*fn)(struct session *, struct packet_stats *, struct pb_writer *))
{
	const struct tb_stats **bufs;
	struct packet_foreign_clock clocks[FOREIGN_CLOCKS_MAX];
	struct packet_filter_stats filter;
	struct packet_stats st;

	if ((bufs = calloc(s->n_buffers + 1, sizeof(*bufs))) == NULL) {
		w->failed = true;
		return;
	}
	fill(s, &st, bufs);
	st.foreign_clocks = clocks;
	st.n_foreign_clocks = arrivals_list(s, clocks, FOREIGN_CLOCKS_MAX);
	if (s->filter != NULL) {
		session_filter_stats(s->filter, &filter);
		st.filter = &filter;
	}
	fn(s, &st, w);
	free(bufs);
}

void
session_stats_packet(struct session *s, struct pb_writer *w)
{
	encode(s, w, encode_packet);
}

void
session_stats_packet_within(struct session *s, struct pb_writer *w,
    size_t most)
{
	session_stats_packet(s, w);
	if (w->failed || w->len <= most)
		return;
	pb_writer_reset(w);
	encode(s, w, encode_short_packet);
}

void
session_stats_message(struct session *s, struct pb_writer *w)
{
	encode(s, w, encode_message);
}
