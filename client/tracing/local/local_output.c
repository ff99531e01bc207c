/* Trace files out of the buffers, on the threads of the program. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/tracing/local/local_internal.h"
#include "protos/fields.h"
#include "transport/clock/system_info.h"
#include "transport/packet/packet_check.h"
#include "transport/packet/packet_parts.h"
#include "transport/packet/packet_stats.h"
#include "transport/packet/service_packets.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Bytes of one piece, unless a packet is larger. */
#define PIECE_BYTES (256u * 1024u)
/* Sequence ids of writers follow the service's. */
#define SEQUENCE_OF(writer) ((writer) + SERVICE_PACKETS_SEQUENCE)

struct output {
	struct tributary_local *l;
	struct pb_writer piece;  /* framed packets */
	struct pb_writer packet; /* the service's own, being built */
	int32_t uid;
	struct packet_trailer trailer; /* of trailer_writer */
	uint32_t trailer_writer;
	uint64_t left; /* bytes: a reader does not follow writers for ever */
};

/* Puts a packet of the service, which is in o->packet. */
static void
put_built(struct output *o)
{
	if (!o->packet.failed)
		pb_put_bytes(&o->piece, Trace_packet, o->packet.data,
		    o->packet.len);
	pb_writer_reset(&o->packet);
	o->packet.failed = false;
}

static void
put_snapshots(struct output *o)
{
	struct clock_reading clocks[CLOCK_READINGS_MAX];
	struct tributary_local *l = o->l;
	size_t i, n;

	for (i = 0; i < l->n_snapshots; i++) {
		n = clock_snapshot_list(&l->snapshots[i], clocks);
		service_packets_clock_snapshot(&o->packet, o->uid, clocks, n,
		    l->config->primary_clock);
		put_built(o);
	}
	l->n_snapshots = 0;
}

static void
put_config(struct output *o)
{
	struct tributary_local *l = o->l;
	struct system_info info;
	struct pb_writer w;

	if (!l->config->no_config) {
		service_packets_trace_config(&o->packet, o->uid,
		    l->config->bytes, l->config->len);
		put_built(o);
	}
	service_packets_trace_uuid(&o->packet, o->uid, (int64_t)l->uuid_msb,
	    (int64_t)l->uuid_lsb);
	put_built(o);
	if (l->config->has_attributes) {
		service_packets_trace_attributes(&o->packet, o->uid,
		    l->config->bytes, l->config->len);
		put_built(o);
	}
	if (l->config->no_system_info)
		return;
	system_info_collect(&info, NULL);
	pb_writer_init(&w);
	system_info_encode(&w, &info);
	if (!w.failed)
		service_packets_remote_system_info(&o->packet, o->uid, 0,
		    w.data, w.len);
	pb_writer_done(&w);
	put_built(o);
}

/* at_ns 0: not yet. */
static void
put_event(struct output *o, enum service_event event, uint64_t at_ns,
    bool *said)
{
	if (at_ns == 0 || *said || o->l->config->no_events)
		return;
	*said = true;
	service_packets_event(&o->packet, o->uid, at_ns, event);
	put_built(o);
}

static void
put_prefix(struct output *o)
{
	struct tributary_local *l = o->l;
	bool started = l->said_started;

	put_snapshots(o);
	service_packets_sync_marker(&o->packet, o->uid);
	put_built(o);
	if (!l->said_config)
		put_config(o);
	l->said_config = true;
	put_event(o, SERVICE_EVENT_TRACING_STARTED, l->started_ns, &started);
	put_event(o, SERVICE_EVENT_ALL_DATA_SOURCES_STARTED, l->all_started_ns,
	    &l->said_started);
	put_event(o, SERVICE_EVENT_ALL_DATA_SOURCES_FLUSHED, l->flushed_ns,
	    &l->said_flushed);
	put_event(o, SERVICE_EVENT_TRACING_DISABLED, l->disabled_ns,
	    &l->said_disabled);
}

static void
put_stats(struct output *o)
{
	struct tb_stats stats[LOCAL_BUFFERS_MAX];
	const struct tb_stats *all[LOCAL_BUFFERS_MAX];
	struct tributary_local *l = o->l;
	size_t i, n = l->config->n_buffers;

	for (i = 0; i < n; i++) {
		stats[i] = *trace_buffer_stats(l->buffers[i]);
		/* By threads; the buffer saw those that were begun alone. */
		stats[i].trace_writer_packet_loss = 0;
		all[i] = &stats[i];
	}
	for (i = 0; i < l->config->n_sources; i++)
		stats[l->config->sources[i].buffer].trace_writer_packet_loss +=
		    l->dropped[i];
	service_packets_trace_stats(&o->packet, o->uid, &(struct packet_stats){
	    .buffers = all, .n_buffers = n, .producers_connected = 1,
	    .producers_seen = 1, .tracing_sessions = 1,
	    .total_buffers = (uint32_t)n,
	    .data_sources_registered = (uint32_t)l->config->n_sources,
	    .data_sources_seen = l->config->n_sources,
	    .invalid_packets = l->counts.invalid,
	    .flushes_requested = l->flushes,
	    .flushes_succeeded = l->flushes - l->flushes_failed,
	    .flushes_failed = l->flushes_failed });
	put_built(o);
}

/* Room for n more bytes.  False: no memory. */
static bool
make_room(struct pb_writer *w, size_t n)
{
	size_t cap = w->cap > 0 ? w->cap : PIECE_BYTES;
	uint8_t *data;

	while (cap - w->len < n)
		cap *= 2;
	if (cap == w->cap)
		return true;
	if ((data = realloc(w->data, cap)) == NULL)
		return false;
	w->data = data;
	w->cap = cap;
	return true;
}

static bool
put_packet(struct output *o, const struct tb_packet *p)
{
	struct packet_parts parts = { .slices = p->slices, .n = p->n_slices,
	    .size = p->size, .trailer = &o->trailer, .loss = p->loss };
	uint8_t *at;

	if (packet_check(p->slices, p->n_slices, p->size) != PACKET_OK) {
		o->l->counts.invalid++;
		return true;
	}
	if (o->trailer_writer != p->origin->writer) {
		o->trailer_writer = p->origin->writer;
		packet_trailer_init(&o->trailer, p->origin->uid,
		    p->origin->pid, SEQUENCE_OF(p->origin->writer), 0);
	}
	/* A tag, and a length of at most 5 bytes. */
	if (!make_room(&o->piece, p->size + PACKET_TRAILER_ROOM + 6))
		return false;
	at = o->piece.data + o->piece.len;
	*at++ = PB_TAG(Trace_packet, PB_BYTES);
	at += pb_encode_varint(at, packet_parts_size(&parts));
	at = packet_parts_put(at, &parts);
	o->piece.len = (size_t)(at - o->piece.data);
	o->l->counts.read++;
	return true;
}

/* One piece of buffer b.  False: no memory; *more: it has not all been read. */
static bool
fill(struct output *o, size_t b, bool *more)
{
	struct tb_packet p;
	size_t before;

	while (o->piece.len < PIECE_BYTES && o->left > 0) {
		if (!trace_buffer_read(o->l->buffers[b], &p)) {
			*more = false;
			return true;
		}
		before = o->piece.len;
		if (!put_packet(o, &p))
			return false;
		before = o->piece.len - before;
		o->left -= before < o->left ? before : o->left;
	}
	*more = o->left > 0;
	return true;
}

struct sink {
	bool (*put)(void *arg, const uint8_t *data, size_t len);
	void *arg;
};

/* Hands the piece over without the lock, which a file may hold up. */
static bool
hand_out(struct output *o, const struct sink *to)
{
	bool ok;

	if (o->piece.failed)
		return false;
	pthread_mutex_unlock(&o->l->lock);
	ok = o->piece.len == 0 || to->put(to->arg, o->piece.data,
	    o->piece.len);
	pthread_mutex_lock(&o->l->lock);
	o->piece.len = 0;
	return ok;
}

static bool
put_buffer(struct output *o, size_t b, const struct sink *to)
{
	bool more = true;

	/* Twice its size: what it holds, and what comes meanwhile. */
	o->left = 2 * o->l->config->buffers[b].bytes + PIECE_BYTES;
	trace_buffer_begin_read(o->l->buffers[b]);
	while (more)
		if (!fill(o, b, &more) || !hand_out(o, to))
			return false;
	return true;
}

static bool
put_all(struct output *o, const struct sink *to)
{
	size_t b;

	put_prefix(o);
	if (!hand_out(o, to))
		return false;
	for (b = 0; b < o->l->config->n_buffers; b++)
		if (!put_buffer(o, b, to))
			return false;
	put_stats(o);
	return hand_out(o, to);
}

bool
local_output(struct tributary_local *l,
    bool (*put)(void *arg, const uint8_t *data, size_t len), void *arg)
{
	struct output o = { .l = l, .uid = (int32_t)getuid() };
	struct sink to = { put, arg };
	bool ok;

	pb_writer_init(&o.piece);
	pb_writer_init(&o.packet);
	pthread_mutex_lock(&l->lock);
	while (l->reading)
		pthread_cond_wait(&l->changed, &l->lock);
	l->reading = true;
	ok = put_all(&o, &to);
	l->reading = false;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	pb_writer_done(&o.piece);
	pb_writer_done(&o.packet);
	return ok;
}
