#include "service/onlookers/session_report.h"

#include <stdio.h>
#include <string.h>

#include "transport/wire/pb_writer.h"
#include "service/buffer/trace_buffer.h"
#include "service/session/file_writer.h"
#include "service/packet/packet_stats.h"
#include "service/session/producer.h"
#include "service/session/readback.h"
#include "service/packet/sequence_map.h"
#include "service/packet/service_packets.h"
#include "service/session/session.h"
#include "service/session/session_losses.h"
#include "service/session/session_stats.h"

/* Field numbers: protos/control.proto. */
enum {
	S_ID = 1,
	S_NAME = 2,
	S_STATE = 3,
	S_OWNER = 4,
	S_HAS_CONSUMER = 5,
	S_DETACH_KEY = 6,
	S_CREATED = 7,
	S_STARTED = 8,
	S_REMAINING = 9,
	S_PLANNED = 10,
	S_BUFFERS = 11,
	S_FILE = 12,
	S_FILE_BYTES = 13,
	S_MAX_FILE_BYTES = 14,
	S_MACHINES = 15,
	S_PRODUCERS = 16,
	S_DATA_SOURCES = 17,
	S_SEQUENCES = 18,
	S_PACKETS = 19,
	S_PACKETS_LOST = 20,
	S_FLUSHES_FAILED = 21,
	S_WARNINGS = 22,
	S_TRIGGERS = 23,
	S_TRIGGER_MODE = 24,
	S_TRIGGERS_HIT = 25,
	S_STATS = 26,
	S_CLONED_FROM = 27,
	S_ERROR = 28,
	S_COMPRESSION = 29,
	S_FILTERED = 30,
	S_ALL_MACHINES = 31,
	S_ENDED = 32,
	S_WRITERS = 33,
	W_SEQUENCE = 1,
	W_PRODUCER = 2,
	W_PID = 3,
	W_MACHINE = 4,
	W_BUFFER = 5,
	W_CHUNKS = 6,
	W_BYTES = 7,
	B_NAME = 1,
	B_SIZE = 2,
	B_USED = 3,
	B_DISCARD = 4,
	B_WRITTEN = 5,
	B_LOST = 6,
	B_CHUNKS_LOST = 7,
	B_WRAPS = 8,
};
enum {
	STATE_CONFIGURED = 1,
	STATE_STARTED = 2,
	STATE_STOPPING = 3,
	STATE_DISABLED = 4,
	STATE_CLONED = 5,
};

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

static uint64_t
state_of(const struct session *s)
{
	switch (s->state) {
	case SESSION_CONFIGURED:
		return s->ending ? STATE_STOPPING : STATE_CONFIGURED;
	case SESSION_STARTED:
		/* Its last flush belongs to the end. */
		return s->ending ? STATE_STOPPING : STATE_STARTED;
	case SESSION_DISABLING:
		return STATE_STOPPING;
	case SESSION_DISABLED:
		/* Until its file is complete it is not over. */
		return s->file != NULL ? STATE_STOPPING : STATE_DISABLED;
	case SESSION_CLONED:
		break;
	}
	return STATE_CLONED;
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
		snprintf(text, sizeof(text), "nobody vouches");
		break;
	}
	put_text(w, S_OWNER, text, TEXT_MAX);
}

static void
put_buffer(struct pb_writer *w, const struct session_buffer *b)
{
	const struct tb_stats *st = trace_buffer_stats(b->tb);
	uint64_t used = trace_buffer_unread(b->tb), refused = 0;
	size_t mark = pb_nest_begin(w, S_BUFFERS);

	/* How much a refused chunk held nobody knows: as much as others. */
	if (st->chunks_written > 0)
		refused = (uint64_t)((double)st->chunks_discarded *
		    ((double)st->bytes_written / (double)st->chunks_written));
	put_text(w, B_NAME, b->name, BUFFER_NAME_MAX);
	pb_put_uint(w, B_SIZE, b->size);
	pb_put_uint(w, B_USED, used < b->size ? used : b->size);
	pb_put_uint(w, B_DISCARD, !b->ring);
	pb_put_uint(w, B_WRITTEN, st->bytes_written);
	pb_put_uint(w, B_LOST, st->bytes_overwritten + refused);
	pb_put_uint(w, B_CHUNKS_LOST, st->chunks_overwritten +
	    st->chunks_discarded);
	pb_put_uint(w, B_WRAPS, st->write_wrap_count);
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
	put_text(w, S_FILE, s->file_path, FILE_MAX);
	pb_put_uint(w, S_FILE_BYTES, s->file != NULL ?
	    file_writer_bytes(s->file) : s->file_bytes);
	pb_put_uint(w, S_MAX_FILE_BYTES, pb->max_file_size_bytes);
	put_text(w, S_COMPRESSION, compression_of(pb), TEXT_MAX);
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
		bytes += put_text(w, S_TRIGGERS, t->triggers[i]->name,
		    TEXT_MAX);
	pb_put_uint(w, S_TRIGGER_MODE, (uint64_t)t->trigger_mode);
	pb_put_uint(w, S_TRIGGERS_HIT, s->n_triggers_hit);
}

static void
put_warnings(struct pb_writer *w, const struct session *s)
{
	size_t i, bytes = 0;

	for (i = 0; i < s->n_warnings && bytes < WARNINGS_BYTES; i++)
		bytes += put_text(w, S_WARNINGS, s->warnings[i], TEXT_MAX * 2);
}

static void
put_machines(struct pb_writer *w, const struct session *s, bool host)
{
	const struct machine *m;
	size_t i, bytes = 0;
	char text[32];

	if (host)
		pb_put_string(w, S_MACHINES, "host");
	for (i = 0; (m = readback_machine(s->readback, i)) != NULL; i++) {
		if (bytes >= MACHINES_BYTES)
			continue;
		snprintf(text, sizeof(text), "machine %u", (unsigned)m->id);
		bytes += put_text(w, S_MACHINES, m->name != NULL &&
		    m->name[0] != '\0' ? m->name : text, TEXT_MAX);
	}
	pb_put_uint(w, S_ALL_MACHINES, i + host);
}

static void
put_crowd(struct pb_writer *w, const struct session *s)
{
	const struct session_crowd c = session_crowd(s);
	uint64_t sequences = 0, given;
	size_t i;

	put_machines(w, s, c.host);
	pb_put_uint(w, S_PRODUCERS, c.producers);
	pb_put_uint(w, S_DATA_SOURCES, c.data_sources);
	/* A sequence gets its id when it is first read. */
	for (i = 0; i < s->n_buffers; i++)
		if (s->buffers[i].tb != NULL)
			sequences += trace_buffer_sequences(s->buffers[i].tb);
	given = sequence_map_last_id(s->sequences) - SERVICE_PACKETS_SEQUENCE;
	pb_put_uint(w, S_SEQUENCES, given > sequences ? given : sequences);
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
	size_t mark = pb_nest_begin(w, S_WRITERS);

	if (writer->sequence != 0)
		pb_put_uint(w, W_SEQUENCE, writer->sequence);
	if (p != NULL) {
		put_text(w, W_PRODUCER, p->name, BUFFER_NAME_MAX);
		put_text(w, W_MACHINE, p->machine->id == 0 ? "host" :
		    producer_machine_name(p), BUFFER_NAME_MAX);
	}
	pb_put_int(w, W_PID, writer->pid);
	pb_put_uint(w, W_BUFFER, writer->buffer);
	pb_put_uint(w, W_CHUNKS, writer->chunks);
	pb_put_uint(w, W_BYTES, writer->bytes);
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
	pb_put_uint(w, S_PACKETS, s->packets_stored);
	pb_put_uint(w, S_PACKETS_LOST, lost);
	pb_put_uint(w, S_FLUSHES_FAILED, s->flushes_failed);
}

static void
put_times(struct pb_writer *w, const struct session *s)
{
	const Perfetto__Protos__TraceConfig *pb = s->config->pb;
	uint64_t planned = pb->duration_ms, left;

	if (pb->trigger_config != NULL &&
	    pb->trigger_config->trigger_timeout_ms != 0)
		planned = pb->trigger_config->trigger_timeout_ms;
	pb_put_uint(w, S_CREATED, (uint64_t)s->created_realtime_ns);
	if (s->start_realtime_ns != 0)
		pb_put_uint(w, S_STARTED, (uint64_t)s->start_realtime_ns);
	if (s->end_realtime_ns != 0)
		pb_put_uint(w, S_ENDED, (uint64_t)s->end_realtime_ns);
	if (session_remaining_ms(s, &left))
		pb_put_uint(w, S_REMAINING, left);
	if (planned != 0)
		pb_put_uint(w, S_PLANNED, planned);
}

void
session_report(struct session *s, bool with_stats, struct pb_writer *w)
{
	const Perfetto__Protos__TraceConfig *pb = s->config->pb;
	size_t begin = w->len, end, mark;

	pb_put_uint(w, S_ID, s->id);
	put_text(w, S_NAME, pb->unique_session_name, TEXT_MAX);
	pb_put_uint(w, S_STATE, state_of(s));
	put_owner(w, &s->owner);
	pb_put_uint(w, S_HAS_CONSUMER, s->ops != NULL);
	put_text(w, S_DETACH_KEY, s->detach_key, TEXT_MAX);
	put_times(w, s);
	put_buffers(w, s);
	put_file(w, s);
	put_crowd(w, s);
	put_counts(w, s);
	put_triggers(w, s);
	put_warnings(w, s);
	if (s->cloned_from != 0)
		pb_put_uint(w, S_CLONED_FROM, s->cloned_from);
	put_text(w, S_ERROR, s->end_error, TEXT_MAX * 2);
	pb_put_uint(w, S_FILTERED, pb->trace_filter != NULL);
	if (!with_stats)
		return;
	put_writers(w, s);
	end = w->len;
	mark = pb_nest_begin(w, S_STATS);
	session_stats_message(s, w);
	pb_nest_end(w, mark);
	if (w->len - begin > SESSION_REPORT_MAX)
		w->len = end;
}
