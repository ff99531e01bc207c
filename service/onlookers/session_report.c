#include "service/onlookers/session_report.h"

#include <stdio.h>
#include <string.h>

#include "protos/fields.h"
#include "service/ingest/session_losses.h"
#include "service/output/file_writer.h"
#include "service/output/readback.h"
#include "service/output/session_stats.h"
#include "service/packet/sequence_map.h"
#include "service/session/producer.h"
#include "service/session/session.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/packet/packet_stats.h"
#include "transport/packet/service_packets.h"
#include "transport/wire/pb_writer.h"

/*
 * Bounds on what configs and peers may make long: together, without the
 * statistics, they stay below SESSION_REPORT_MAX.
 */
#define TEXT_MAX        256u
#define BUFFER_NAME_MAX 64u
#define BUFFERS_BYTES   49152u
#define FILE_MAX        1024u
#define MACHINES_BYTES  8192u
#define TRIGGERS_BYTES  4096u
#define WARNINGS_BYTES  8192u
#define LOSSES_MAX      256u
#define WRITERS_MAX     16u

/* Cut to at most max bytes, not inside of a character. */
static size_t
put_text(struct pb_writer *w, uint32_t field, const char *text, size_t max)
{
	size_t len;

	if (text == NULL || (len = strlen(text)) == 0)
		return 0;
	if (len > max) {
		len = max;
		while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
	}
	pb_put_bytes(w, field, text, len);
	return len;
}

uint64_t
session_report_state(const struct session *s)
{
	switch (s->state) {
	case SESSION_NEW:
	case SESSION_CONFIGURED:
	case SESSION_AWAITS_TRIGGER:
	case SESSION_STARTING:
		return SessionState_CONFIGURED;
	case SESSION_STARTED:
		return SessionState_STARTED;
	case SESSION_LAST_FLUSH:
	case SESSION_STOPPING:
	case SESSION_DISABLING:
	case SESSION_CLOSING:
	case SESSION_GONE:
		return SessionState_STOPPING;
	case SESSION_DISABLED:
		return SessionState_DISABLED;
	case SESSION_CLONED:
		break;
	}
	return SessionState_CLONED;
}

static void
put_owner(struct pb_writer *w, const struct principal *p)
{
	char text[160];

	switch (p->auth) {
	case PEER_UNIX:
		snprintf(text, sizeof(text), "uid %u", (unsigned)p->uid);
		break;
	case PEER_CERT:
		snprintf(text, sizeof(text), "certificate %s", p->name);
		break;
	case PEER_NOBODY:
		snprintf(text, sizeof(text), "unauthenticated");
		break;
	}
	put_text(w, SessionState_owner, text, TEXT_MAX);
}

static uint64_t
used_of(const struct session_buffer *b)
{
	uint64_t used = b->tb != NULL ? trace_buffer_unread(b->tb) : 0;

	return used < b->size ? used : b->size;
}

uint64_t
session_report_used(const struct session *s)
{
	uint64_t used = 0;
	size_t i;

	for (i = 0; i < s->n_buffers; i++)
		used += used_of(&s->buffers[i]);
	return used;
}

static void
put_buffer(struct pb_writer *w, const struct session_buffer *b)
{
	const struct tb_stats *st = trace_buffer_stats(b->tb);
	uint64_t refused = 0;
	size_t mark = pb_nest_begin(w, SessionState_buffers);

	/* Refused chunks have no known size: estimated as the average. */
	if (st->chunks_written > 0)
		refused = (uint64_t)((double)st->chunks_discarded *
		    ((double)st->bytes_written / (double)st->chunks_written));
	put_text(w, SessionState_Buffer_name, b->name, BUFFER_NAME_MAX);
	pb_put_uint(w, SessionState_Buffer_size, b->size);
	pb_put_uint(w, SessionState_Buffer_used, used_of(b));
	pb_put_uint(w, SessionState_Buffer_discard, !b->ring);
	pb_put_uint(w, SessionState_Buffer_bytes_written, st->bytes_written);
	pb_put_uint(w, SessionState_Buffer_bytes_lost,
	    st->bytes_overwritten + refused);
	pb_put_uint(w, SessionState_Buffer_chunks_lost, st->chunks_overwritten +
	    st->chunks_discarded);
	pb_put_uint(w, SessionState_Buffer_write_wrap_count,
	    st->write_wrap_count);
	pb_nest_end(w, mark);
}

static void
put_buffers(struct pb_writer *w, const struct session *s)
{
	size_t i, begin = w->len;

	/* So many that they would not fit are in the statistics alone. */
	for (i = 0; i < s->n_buffers && w->len - begin < BUFFERS_BYTES; i++)
		if (s->buffers[i].tb != NULL)
			put_buffer(w, &s->buffers[i]);
}

static const char *
compression_of(const Perfetto__Protos__TraceConfig *pb)
{
	if (pb->compression != NULL && pb->compression->zstd != NULL)
		return "zstd";
	if ((pb->compression != NULL && pb->compression->deflate != NULL) ||
	    pb->compression_type ==
	    PERFETTO__PROTOS__TRACE_CONFIG__COMPRESSION_TYPE__COMPRESSION_TYPE_DEFLATE)
		return "deflate";
	return NULL;
}

static void
put_file(struct pb_writer *w, const struct session *s)
{
	const Perfetto__Protos__TraceConfig *pb = s->config->pb;

	if (s->file == NULL && !s->wrote_file)
		return;
	put_text(w, SessionState_file, s->file_path, FILE_MAX);
	pb_put_uint(w, SessionState_file_bytes, s->file != NULL ?
	    file_writer_bytes(s->file) : s->file_bytes);
	pb_put_uint(w, SessionState_max_file_bytes, pb->max_file_size_bytes);
	put_text(w, SessionState_compression, compression_of(pb), TEXT_MAX);
}

static void
put_triggers(struct pb_writer *w, const struct session *s)
{
	const Perfetto__Protos__TraceConfig__TriggerConfig *t =
	    s->config->pb->trigger_config;
	size_t i, bytes = 0;

	if (t == NULL || t->trigger_mode ==
	    PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__UNSPECIFIED)
		return;
	for (i = 0; i < t->n_triggers && bytes < TRIGGERS_BYTES; i++)
		bytes += put_text(w, SessionState_triggers,
		    t->triggers[i]->name, TEXT_MAX);
	pb_put_uint(w, SessionState_trigger_mode, (uint64_t)t->trigger_mode);
	pb_put_uint(w, SessionState_triggers_hit, s->n_triggers_hit);
}

static void
put_warnings(struct pb_writer *w, const struct session *s)
{
	size_t i, bytes = 0;

	for (i = 0; i < s->n_warnings && bytes < WARNINGS_BYTES; i++)
		bytes += put_text(w, SessionState_warnings, s->warnings[i],
		    TEXT_MAX * 2);
}

static void
put_machines(struct pb_writer *w, const struct session *s, bool host)
{
	const struct machine *m;
	size_t i, bytes = 0;
	char text[32];

	if (host)
		pb_put_string(w, SessionState_machines, "host");
	for (i = 0; (m = readback_machine(s->readback, i)) != NULL; i++) {
		if (bytes >= MACHINES_BYTES)
			continue;
		snprintf(text, sizeof(text), "machine %u", (unsigned)m->id);
		bytes += put_text(w, SessionState_machines, m->name != NULL &&
		    m->name[0] != '\0' ? m->name : text, TEXT_MAX);
	}
	pb_put_uint(w, SessionState_all_machines, i + host);
}

static void
put_crowd(struct pb_writer *w, const struct session *s)
{
	const struct session_crowd c = session_crowd(s);
	uint64_t sequences = 0, given;
	size_t i;

	put_machines(w, s, c.host);
	pb_put_uint(w, SessionState_producers, c.producers);
	pb_put_uint(w, SessionState_data_sources, c.data_sources);
	/* A sequence gets its id when it is first read. */
	for (i = 0; i < s->n_buffers; i++)
		if (s->buffers[i].tb != NULL)
			sequences += trace_buffer_sequences(s->buffers[i].tb);
	given = sequence_map_last_id(s->sequences) - SERVICE_PACKETS_SEQUENCE;
	pb_put_uint(w, SessionState_sequences, given > sequences ? given :
	    sequences);
}

static const struct producer *
producer_of(const struct service *sv, uint64_t id)
{
	const struct producer *p;

	TAILQ_FOREACH(p, &sv->producers, link)
		if (p->id == id)
			return p;
	return NULL;
}

static void
put_writer(struct pb_writer *w, const struct service *sv,
    const struct sequence_writer *writer)
{
	const struct producer *p = producer_of(sv, writer->producer);
	size_t mark = pb_nest_begin(w, SessionState_writers);

	if (writer->sequence != 0)
		pb_put_uint(w, Writer_sequence_id, writer->sequence);
	if (p != NULL) {
		put_text(w, Writer_producer, p->name, BUFFER_NAME_MAX);
		put_text(w, Writer_machine, p->machine->id == 0 ? "host" :
		    producer_machine_name(p), BUFFER_NAME_MAX);
	}
	pb_put_int(w, Writer_pid, writer->pid);
	pb_put_uint(w, Writer_buffer, writer->buffer);
	pb_put_uint(w, Writer_chunks, writer->chunks);
	pb_put_uint(w, Writer_bytes, writer->bytes);
	pb_nest_end(w, mark);
}

static void
put_writers(struct pb_writer *w, const struct session *s)
{
	struct sequence_writer writers[WRITERS_MAX];
	size_t i, n;

	n = sequence_map_top_writers(s->sequences, writers, WRITERS_MAX);
	for (i = 0; i < n; i++)
		put_writer(w, s->service, &writers[i]);
}

static void
put_counts(struct pb_writer *w, const struct session *s)
{
	struct packet_link_loss losses[LOSSES_MAX];
	uint64_t lost = 0;
	size_t i, n;

	for (i = 0; i < s->n_buffers; i++)
		if (s->buffers[i].tb != NULL)
			lost += trace_buffer_stats(s->buffers[i].tb)->
			    trace_writer_packet_loss;
	n = session_losses_by_machine(s, losses, LOSSES_MAX);
	for (i = 0; i < n; i++)
		lost += losses[i].packets;
	pb_put_uint(w, SessionState_packets, s->packets_stored);
	pb_put_uint(w, SessionState_packets_lost, lost);
	pb_put_uint(w, SessionState_flushes_failed, s->flushes_failed);
}

static void
put_times(struct pb_writer *w, const struct session *s)
{
	const Perfetto__Protos__TraceConfig *pb = s->config->pb;
	uint64_t planned = pb->duration_ms, left;

	if (pb->trigger_config != NULL &&
	    pb->trigger_config->trigger_timeout_ms != 0)
		planned = pb->trigger_config->trigger_timeout_ms;
	pb_put_uint(w, SessionState_created_ns,
	    (uint64_t)s->created_realtime_ns);
	if (s->start_realtime_ns != 0)
		pb_put_uint(w, SessionState_started_ns,
		    (uint64_t)s->start_realtime_ns);
	if (s->end_realtime_ns != 0)
		pb_put_uint(w, SessionState_ended_ns,
		    (uint64_t)s->end_realtime_ns);
	if (session_remaining_ms(s, &left))
		pb_put_uint(w, SessionState_remaining_ms, left);
	if (planned != 0)
		pb_put_uint(w, SessionState_planned_ms, planned);
}

void
session_report(struct session *s, bool with_stats, struct pb_writer *w)
{
	const Perfetto__Protos__TraceConfig *pb = s->config->pb;
	size_t begin = w->len, end, mark;

	pb_put_uint(w, SessionState_id, s->id);
	put_text(w, SessionState_unique_session_name, pb->unique_session_name,
	    TEXT_MAX);
	pb_put_uint(w, SessionState_state, session_report_state(s));
	put_owner(w, &s->owner);
	pb_put_uint(w, SessionState_has_consumer, s->ops != NULL);
	put_text(w, SessionState_detach_key, s->detach_key, TEXT_MAX);
	put_times(w, s);
	put_buffers(w, s);
	put_file(w, s);
	put_crowd(w, s);
	put_counts(w, s);
	put_triggers(w, s);
	put_warnings(w, s);
	if (s->cloned_from != 0)
		pb_put_uint(w, SessionState_cloned_from, s->cloned_from);
	put_text(w, SessionState_error, s->end_error, TEXT_MAX * 2);
	pb_put_uint(w, SessionState_filtered, pb->trace_filter != NULL);
	if (!with_stats)
		return;
	put_writers(w, s);
	end = w->len;
	mark = pb_nest_begin(w, SessionState_stats);
	session_stats_message(s, w);
	pb_nest_end(w, mark);
	if (w->len - begin > SESSION_REPORT_MAX)
		w->len = end;
}
