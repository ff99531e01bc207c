#include "client/show/session_stats_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "client/show/session_json.h"
#include "client/show/sessions_text.h"
#include "client/text/text_cell.h"
#include "client/trace/buffer_advice.h"
#include "client/trace/trace_losses.h"
#include "protos/control.pb-c.h"
#include "protos/json_out.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/base/human_numbers.h"

typedef Tributary__SessionState session_state;
typedef Tributary__SessionState__Writer session_writer;
typedef Perfetto__Protos__TraceStats trace_stats;
typedef Perfetto__Protos__TraceStats__BufferStats buffer_stats;

#define STATE(name) TRIBUTARY__SESSION_STATE__STATE__##name

#define LOSSES_MAX 64u
/* Writers that the text names; JSON has all that were told. */
#define WRITERS_SHOWN 5u

/* ---- what the numbers are about ---- */

static bool
is_running(const session_state *s)
{
	return s->state == STATE(STARTED) || s->state == STATE(STOPPING);
}

/* Duration of the recording, so far or in all; 0: not known. */
static uint64_t
recorded_ms(const session_state *s, uint64_t now_ns)
{
	uint64_t end = s->ended_ns != 0 ? s->ended_ns : now_ns;

	return s->started_ns != 0 && end > s->started_ns ?
	    (end - s->started_ns) / 1000000 : 0;
}

static void
read_buffer(struct buffer_advice *out, const session_state *s, size_t i,
    uint64_t now_ns)
{
	struct buffer_facts f = {
		.stats = s->stats->buffer_stats[i],
		.duration_ms = recorded_ms(s, now_ns),
		.streamed = s->has_file_bytes,
		.running = is_running(s),
	};

	if (i < s->n_buffers) {
		f.discard = s->buffers[i]->discard;
		f.used = s->buffers[i]->used;
	}
	buffer_advice_make(out, &f);
}

/* Losses of no buffer, which the readings of the buffers do not tell. */
static size_t
other_losses(const session_state *s, struct trace_loss out[LOSSES_MAX])
{
	struct trace_loss all[LOSSES_MAX];
	size_t i, n = trace_losses_list(s->stats, all, LOSSES_MAX), kept = 0;

	for (i = 0; i < n && i < LOSSES_MAX; i++)
		if (all[i].buffer < 0)
			out[kept++] = all[i];
	return kept;
}

/* ---- for people ---- */

static void
print_buffers(FILE *out, const session_state *s, uint64_t now_ns)
{
	char name[TEXT_CELL_MAX];
	struct buffer_advice r;
	size_t i, k;

	for (i = 0; i < s->stats->n_buffer_stats; i++) {
		read_buffer(&r, s, i, now_ns);
		for (k = 0; k < r.n; k++) {
			fprintf(out, "  buffer %zu ", i);
			if (i < s->n_buffers && s->buffers[i]->name != NULL)
				fprintf(out, "\"%s\" ", text_cell_plain(
				    s->buffers[i]->name, name));
			fprintf(out, "%s.\n", r.sentences[k].text);
		}
	}
}

static void
print_losses(FILE *out, const session_state *s)
{
	struct trace_loss l[LOSSES_MAX];
	size_t i, n = other_losses(s, l);
	char text[256];

	for (i = 0; i < n; i++)
		fprintf(out, "  %s.\n", trace_loss_text(text, sizeof(text),
		    &l[i]));
}

static void
print_flushes(FILE *out, const trace_stats *st)
{
	char all[HUMAN_TEXT_MAX], failed[HUMAN_TEXT_MAX];

	if (st->flushes_requested == 0)
		return;
	human_count(all, st->flushes_requested);
	if (st->flushes_failed == 0)
		fprintf(out, "  %s flush%s, all answered in time.\n", all,
		    st->flushes_requested == 1 ? "" : "es");
	else
		fprintf(out, "  %s of %s flushes timed out: a producer was too "
		    "slow, or hangs.\n", human_count(failed,
		    st->flushes_failed), all);
}

static void
print_writer(FILE *out, const session_writer *w, uint64_t all)
{
	char name[TEXT_CELL_MAX], bytes[HUMAN_TEXT_MAX];
	char chunks[HUMAN_TEXT_MAX];

	fprintf(out, "    %s", w->producer != NULL ?
	    text_cell_plain(w->producer, name) : "(gone)");
	if (w->pid != 0)
		fprintf(out, ", pid %" PRId32, w->pid);
	if (w->machine != NULL && strcmp(w->machine, "host") != 0)
		fprintf(out, " on %s", text_cell_plain(w->machine, name));
	fprintf(out, ": %s in %s chunk%s of buffer %" PRIu32,
	    human_bytes(bytes, w->bytes), human_count(chunks, w->chunks),
	    human_s(w->chunks), w->buffer);
	if (all != 0)
		fprintf(out, " (%.0f %%)", 100.0 * (double)w->bytes /
		    (double)all);
	fprintf(out, "\n");
}

static uint64_t
all_written(const trace_stats *st)
{
	uint64_t bytes = 0;
	size_t i;

	for (i = 0; i < st->n_buffer_stats; i++)
		bytes += st->buffer_stats[i]->bytes_written;
	return bytes;
}

static void
print_writers(FILE *out, const session_state *s)
{
	size_t i;

	fprintf(out, "  %" PRIu32 " producer%s wrote %" PRIu32
	    " sequence%s%s\n", s->producers, human_s(s->producers), s->sequences,
	    human_s(s->sequences), s->n_writers > 0 ?
	    "; those that wrote most:" : ".");
	for (i = 0; i < s->n_writers && i < WRITERS_SHOWN; i++)
		print_writer(out, s->writers[i], all_written(s->stats));
}

void
session_stats_print(FILE *out, const session_state *s, uint64_t now_ns)
{
	char label[200], time[HUMAN_TEXT_MAX], packets[HUMAN_TEXT_MAX];
	uint64_t ms = recorded_ms(s, now_ns);

	fprintf(out, "%s: %s", session_label(s, label, sizeof(label)),
	    session_state_text(s));
	if (ms != 0)
		fprintf(out, ", %s recorded", human_ms(time, ms));
	fprintf(out, ", about %s packet%s\n", human_count(packets,
	    s->packets), human_s(s->packets));
	if (s->stats == NULL) {
		fprintf(out, "  The statistics are too many to be told.\n");
		return;
	}
	print_buffers(out, s, now_ns);
	print_losses(out, s);
	print_flushes(out, s->stats);
	print_writers(out, s);
}

/* ---- JSON ---- */

static void
json_counters(struct json_out *j, const buffer_stats *b)
{
	const struct {
		const char *name;
		uint64_t value;
	} counters[] = {
		{ "buffer_size", b->buffer_size },
		{ "bytes_written", b->bytes_written },
		{ "bytes_overwritten", b->bytes_overwritten },
		{ "bytes_read", b->bytes_read },
		{ "padding_bytes_written", b->padding_bytes_written },
		{ "padding_bytes_cleared", b->padding_bytes_cleared },
		{ "chunks_written", b->chunks_written },
		{ "chunks_rewritten", b->chunks_rewritten },
		{ "chunks_relocated", b->chunks_relocated },
		{ "chunks_overwritten", b->chunks_overwritten },
		{ "chunks_discarded", b->chunks_discarded },
		{ "chunks_read", b->chunks_read },
		{ "chunks_committed_out_of_order",
		    b->chunks_committed_out_of_order },
		{ "write_wrap_count", b->write_wrap_count },
		{ "patches_succeeded", b->patches_succeeded },
		{ "patches_failed", b->patches_failed },
		{ "readaheads_succeeded", b->readaheads_succeeded },
		{ "readaheads_failed", b->readaheads_failed },
		{ "abi_violations", b->abi_violations },
		{ "trace_writer_packet_loss", b->trace_writer_packet_loss },
	};
	size_t i;

	json_object(j, "stats");
	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		json_uint(j, counters[i].name, counters[i].value);
	json_object_end(j);
}

static void
json_buffer(struct json_out *j, const session_state *s, size_t i,
    uint64_t now_ns)
{
	struct buffer_advice r;
	size_t k;

	read_buffer(&r, s, i, now_ns);
	json_object(j, NULL);
	json_counters(j, s->stats->buffer_stats[i]);
	json_string(j, "verdict", buffer_verdict_word(r.verdict));
	json_uint(j, "gone_bytes", r.gone_bytes);
	json_uint(j, "gone_ms", r.gone_ms);
	json_uint(j, "enough_bytes", r.enough_bytes);
	json_array(j, "sentences");
	for (k = 0; k < r.n; k++) {
		json_object(j, NULL);
		json_bool(j, "loss", r.sentences[k].loss);
		json_string(j, "text", r.sentences[k].text);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void
json_losses(struct json_out *j, const session_state *s)
{
	struct trace_loss l[LOSSES_MAX];
	size_t i, n = other_losses(s, l);

	json_array(j, "losses");
	for (i = 0; i < n; i++) {
		json_object(j, NULL);
		json_string(j, "unit", l[i].unit);
		json_string(j, "cause", l[i].cause);
		if (!l[i].how_much_unknown)
			json_uint(j, "count", l[i].count);
		if (trace_loss_on_link(&l[i]))
			json_uint(j, "machine_id", l[i].machine);
		json_object_end(j);
	}
	json_array_end(j);
}

static void
json_writers(struct json_out *j, const session_state *s)
{
	const session_writer *w;
	size_t i;

	json_array(j, "writers");
	for (i = 0; i < s->n_writers; i++) {
		w = s->writers[i];
		json_object(j, NULL);
		json_int(j, "pid", w->pid);
		json_uint(j, "buffer", w->buffer);
		json_uint(j, "chunks", w->chunks);
		json_uint(j, "bytes", w->bytes);
		if (w->sequence_id != 0)
			json_uint(j, "sequence_id", w->sequence_id);
		json_string(j, "producer", w->producer);
		json_string(j, "machine", w->machine);
		json_object_end(j);
	}
	json_array_end(j);
}

void
session_stats_json(struct json_out *j, const session_state *s, uint64_t now_ns)
{
	size_t i;

	json_object(j, NULL);
	session_json(j, "session", NULL, s);
	json_uint(j, "recorded_ms", recorded_ms(s, now_ns));
	if (s->stats != NULL) {
		json_array(j, "buffers");
		for (i = 0; i < s->stats->n_buffer_stats; i++)
			json_buffer(j, s, i, now_ns);
		json_array_end(j);
		json_uint(j, "flushes_requested", s->stats->flushes_requested);
		json_uint(j, "flushes_succeeded", s->stats->flushes_succeeded);
		json_uint(j, "flushes_failed", s->stats->flushes_failed);
		json_losses(j, s);
		json_writers(j, s);
	}
	json_object_end(j);
}
