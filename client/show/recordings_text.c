#include "client/show/recordings_text.h"

#include <inttypes.h>
#include <stdint.h>

#include "client/text/text_cell.h"
#include "client/text/time_text.h"
#include "protos/control.pb-c.h"
#include "protos/json_out.h"
#include "transport/base/human_numbers.h"

typedef Tributary__RecordingState recording_state;
typedef Tributary__QueryRecordingsReply recordings_reply;

#define CELL_MAX 96

static const char *
state_text(const recording_state *s)
{
	switch (s->state) {
	case TRIBUTARY__RECORDING_STATE__STATE__STARTING:
		return "starting";
	case TRIBUTARY__RECORDING_STATE__STATE__RUNNING:
		return s->flight ? "armed" : "recording";
	case TRIBUTARY__RECORDING_STATE__STATE__WAITING:
		return "waiting";
	case TRIBUTARY__RECORDING_STATE__STATE__STOPPED:
		return "stopped";
	case TRIBUTARY__RECORDING_STATE__STATE__ENDING:
		return "ending";
	default:
		return "unknown";
	}
}

/* Time until then; "-": not known, "now": over. */
static const char *
time_until(char out[HUMAN_TEXT_MAX], uint64_t then_ns, uint64_t now_ns)
{
	if (then_ns == 0)
		return "-";
	return then_ns <= now_ns ? "now" :
	    human_ms(out, (then_ns - now_ns) / 1000000);
}

/* "100.0 GiB, 336 h": what the settings say is kept. */
static const char *
kept(char out[CELL_MAX], const recording_state *s)
{
	char bytes[HUMAN_TEXT_MAX];

	if (s->keep_bytes != 0 && s->keep_ms != 0)
		snprintf(out, CELL_MAX, "%s, %" PRIu64 " h",
		    human_bytes(bytes, s->keep_bytes), s->keep_ms / 3600000);
	else if (s->keep_bytes != 0)
		snprintf(out, CELL_MAX, "%s", human_bytes(bytes,
		    s->keep_bytes));
	else if (s->keep_ms != 0)
		snprintf(out, CELL_MAX, "%" PRIu64 " h", s->keep_ms / 3600000);
	else
		snprintf(out, CELL_MAX, "all");
	return out;
}

/* "#17" while a segment is written, "3 written" of a flight recorder. */
static const char *
segment(char out[CELL_MAX], const recording_state *s)
{
	if (s->flight)
		snprintf(out, CELL_MAX, "%" PRIu64 " written", s->snapshots);
	else if (s->segment != 0)
		snprintf(out, CELL_MAX, "#%" PRIu32, s->segment);
	else
		snprintf(out, CELL_MAX, "-");
	return out;
}

/* ---- a line each ---- */

static void
print_line(FILE *out, const recording_state *s, uint64_t now, int name_width)
{
	char text[TEXT_CELL_MAX], cell[CELL_MAX];
	char a[HUMAN_TEXT_MAX], b[HUMAN_TEXT_MAX], rate[HUMAN_TEXT_MAX + 2];

	text_cell_put(out, text_cell_plain(s->name, text), name_width);
	fprintf(out, "%-9s  %-12s  ", state_text(s),
	    time_text_ago(a, s->began_ns, now));
	snprintf(rate, sizeof(rate), "%s/s",
	    human_bytes(a, s->bytes_per_second));
	fprintf(out, "%12s  %10s  ", s->session == 0 || s->flight ? "-" : rate,
	    s->session == 0 || s->flight ? "-" : human_bytes(b, s->bytes));
	fprintf(out, "%-10s  ", segment(cell, s));
	fprintf(out, "%-11s  ", time_until(a, s->state ==
	    TRIBUTARY__RECORDING_STATE__STATE__WAITING ? s->retry_ns :
	    s->next_cut_ns, now));
	fprintf(out, "%-18s  %s\n", kept(cell, s),
	    text_cell_plain(s->reason, text));
}

static void
print_table(FILE *out, const recordings_reply *r)
{
	char text[TEXT_CELL_MAX];
	int name_width = 4;
	size_t i;

	for (i = 0; i < r->n_recordings; i++)
		name_width = text_cell_widen(name_width,
		    text_cell_plain(r->recordings[i]->name, text));
	if (r->n_recordings == 0) {
		fprintf(out, "There are no recordings in the collector's "
		    "settings, or none that you may see.\n");
		return;
	}
	fprintf(out, "%-*s  %-9s  %-12s  %12s  %10s  %-10s  %-11s  %-18s  %s\n",
	    name_width, "NAME", "STATE", "AGE", "RATE", "SIZE", "SEGMENT",
	    "NEXT", "KEPT", "ENDED LAST BY");
	for (i = 0; i < r->n_recordings; i++)
		print_line(out, r->recordings[i], r->now_ns, name_width);
}

/* ---- everything, a block each ---- */

static void
print_flight(FILE *out, const recording_state *s)
{
	char text[TEXT_CELL_MAX];

	fprintf(out, "  flight         %" PRIu64 " segment%s written; %" PRIu64
	    " trigger%s shared one with others\n", s->snapshots,
	    human_s(s->snapshots), s->shared, human_s(s->shared));
	if (s->snapshots_failed != 0)
		fprintf(out, "  not written    %" PRIu64 " segment%s%s%s\n",
		    s->snapshots_failed, human_s(s->snapshots_failed),
		    s->snapshot_error == NULL ? "" : ", the last one as ",
		    s->snapshot_error == NULL ? "" :
		    text_cell_plain(s->snapshot_error, text));
}

static void
print_rotate(FILE *out, const recording_state *s, uint64_t now)
{
	char a[HUMAN_TEXT_MAX], cell[CELL_MAX];

	if (s->segment != 0)
		fprintf(out, "  segment        %s\n", segment(cell, s));
	if (s->every_ms != 0)
		fprintf(out, "  cut every      %s, next in %s\n",
		    human_ms(a, s->every_ms), time_until(cell, s->next_cut_ns,
		    now));
	if (s->max_bytes != 0)
		fprintf(out, "  cut at         %s\n", human_bytes(a,
		    s->max_bytes));
	if (s->by_machine)
		fprintf(out, "  files          one for each machine\n");
	if (s->flight)
		print_flight(out, s);
	fprintf(out, "  kept           %s\n", kept(cell, s));
}

static void
print_block(FILE *out, const recording_state *s, uint64_t now)
{
	char text[TEXT_CELL_MAX], a[HUMAN_TEXT_MAX], b[HUMAN_TEXT_MAX];

	fprintf(out, "%s\n", text_cell_plain(s->name, text));
	fprintf(out, "  state          %s since %s (%s)\n", state_text(s),
	    time_text_at(a, s->since_ns), time_text_ago(b, s->since_ns, now));
	if (s->session != 0)
		fprintf(out, "  session        %" PRIu64 ", begun %s ago\n",
		    s->session, time_text_ago(a, s->began_ns, now));
	fprintf(out, "  begun          %" PRIu64 " time%s since the daemon "
	    "began\n", s->begun, human_s(s->begun));
	if (s->session != 0 && !s->flight)
		fprintf(out, "  written        %s, lately %s/s\n",
		    human_bytes(a, s->bytes), human_bytes(b,
		    s->bytes_per_second));
	print_rotate(out, s, now);
	if (s->retry_ns != 0)
		fprintf(out, "  again in       %s\n", time_until(a, s->retry_ns,
		    now));
	if (s->reason != NULL)
		fprintf(out, "  ended last     %s ago: %s\n",
		    time_text_ago(a, s->ended_ns, now),
		    text_cell_plain(s->reason, text));
}

/* ---- JSON ---- */

static void
json_unless_0(struct json_out *j, const char *key, uint64_t v)
{
	if (v != 0)
		json_uint(j, key, v);
}

static void
json_recording(struct json_out *j, const recording_state *s)
{
	json_object(j, NULL);
	json_string(j, "name", s->name);
	json_string(j, "state", state_text(s));
	json_uint(j, "since_ns", s->since_ns);
	json_uint(j, "begun", s->begun);
	if (s->session != 0) {
		json_uint(j, "session", s->session);
		json_uint(j, "began_ns", s->began_ns);
		json_uint(j, "bytes", s->bytes);
		json_uint(j, "bytes_per_second", s->bytes_per_second);
	}
	json_unless_0(j, "segment", s->segment);
	json_unless_0(j, "next_cut_ns", s->next_cut_ns);
	json_unless_0(j, "retry_ns", s->retry_ns);
	if (s->reason != NULL) {
		json_string(j, "reason", s->reason);
		json_uint(j, "ended_ns", s->ended_ns);
	}
	json_unless_0(j, "every_ms", s->every_ms);
	json_unless_0(j, "max_bytes", s->max_bytes);
	json_unless_0(j, "keep_bytes", s->keep_bytes);
	json_unless_0(j, "keep_ms", s->keep_ms);
	json_bool(j, "by_machine", s->by_machine);
	json_bool(j, "flight", s->flight);
	if (s->flight) {
		json_uint(j, "snapshots", s->snapshots);
		json_uint(j, "shared", s->shared);
		json_uint(j, "snapshots_failed", s->snapshots_failed);
		json_string(j, "snapshot_error", s->snapshot_error);
	}
	json_object_end(j);
}

void
recordings_print(FILE *out, const recordings_reply *r, enum list_form form)
{
	struct json_out j = { .out = out, .row = "\n  " };
	size_t i;

	switch (form) {
	case LIST_TABLE:
		print_table(out, r);
		break;
	case LIST_LONG:
		for (i = 0; i < r->n_recordings; i++)
			print_block(out, r->recordings[i], r->now_ns);
		break;
	case LIST_JSON:
		json_array(&j, NULL);
		for (i = 0; i < r->n_recordings; i++)
			json_recording(&j, r->recordings[i]);
		json_array_end(&j);
		fputc('\n', out);
		break;
	}
}
