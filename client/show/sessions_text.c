#include "client/show/sessions_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "client/show/session_json.h"
#include "client/text/text_cell.h"
#include "client/text/text_width.h"
#include "client/text/time_text.h"
#include "protos/control.pb-c.h"
#include "protos/json_out.h"
#include "transport/base/log.h"

typedef Tributary__SessionState session_state;
typedef Tributary__SessionState__Buffer session_buffer;
typedef Tributary__QuerySessionsReply sessions_reply;

#define STATE(name) TRIBUTARY__SESSION_STATE__STATE__##name

/* Machines that a line names; more of them are counted. */
#define LINE_MACHINES 2u

const char *
session_state_text(const session_state *s)
{
	switch (s->state) {
	case STATE(CONFIGURED):
		return s->trigger_mode == 1 ? "waits for a trigger" :
		    "waits for start";
	case STATE(STARTED):
		return "started";
	case STATE(STOPPING):
		return "stopping";
	case STATE(DISABLED):
		return s->error != NULL ? "failed" : "stopped";
	case STATE(CLONED):
		return "snapshot";
	default:
		return "unknown";
	}
}

const char *
session_label(const session_state *s, char *out, size_t size)
{
	char name[160];

	if (s->unique_session_name == NULL || s->unique_session_name[0] == '\0')
		snprintf(out, size, "session %" PRIu64, s->id);
	else
		snprintf(out, size, "session %" PRIu64 " (%s)", s->id,
		    log_escape(name, sizeof(name), s->unique_session_name,
		    strlen(s->unique_session_name)));
	return out;
}

/* ---- a line each ---- */

/* All buffers of a session together. */
struct fill {
	uint64_t size;
	uint64_t used;
	bool used_known;
	uint64_t lost;
};

static struct fill
fill_of(const session_state *s)
{
	struct fill f = { 0 };
	size_t i;

	for (i = 0; i < s->n_buffers; i++) {
		f.size += s->buffers[i]->size;
		f.used += s->buffers[i]->used;
		f.used_known |= s->buffers[i]->has_used;
		f.lost += s->buffers[i]->bytes_lost;
	}
	return f;
}

static const char *
percent(char out[HUMAN_TEXT_MAX], uint64_t part, uint64_t whole)
{
	snprintf(out, HUMAN_TEXT_MAX, "%" PRIu64 " %%", whole == 0 ? 0 :
	    human_whole(100.0 * (double)part / (double)whole + 0.5));
	return out;
}

static const char *
fill_text(const session_state *s, char out[HUMAN_TEXT_MAX])
{
	struct fill f = fill_of(s);

	return f.used_known ? percent(out, f.used, f.size) : "-";
}

/* "0", "12.0 MiB", "12.0 MiB + 5 pkt". */
static const char *
lost_text(const session_state *s, char out[TEXT_CELL_MAX])
{
	char bytes[HUMAN_TEXT_MAX], packets[HUMAN_TEXT_MAX];
	struct fill f = fill_of(s);

	if (!f.used_known)
		return "-";
	if (f.lost == 0 && s->packets_lost == 0)
		return "0";
	human_bytes(bytes, f.lost);
	human_count(packets, s->packets_lost);
	if (s->packets_lost == 0)
		snprintf(out, TEXT_CELL_MAX, "%s", bytes);
	else if (f.lost == 0)
		snprintf(out, TEXT_CELL_MAX, "%s pkt", packets);
	else
		snprintf(out, TEXT_CELL_MAX, "%s + %s pkt", bytes,
		    packets);
	return out;
}

static const char *
buffers_text(const session_state *s, char out[TEXT_CELL_MAX])
{
	char size[HUMAN_TEXT_MAX];

	if (s->n_buffers == 0)
		return "-";
	human_bytes(size, fill_of(s).size);
	if (s->n_buffers == 1)
		snprintf(out, TEXT_CELL_MAX, "%s", size);
	else
		snprintf(out, TEXT_CELL_MAX, "%zu, %s", s->n_buffers,
		    size);
	return out;
}

static const char *
left_text(const session_state *s, char out[HUMAN_TEXT_MAX])
{
	return s->has_remaining_ms ? human_ms(out, s->remaining_ms) : "-";
}

static uint64_t
n_machines(const session_state *s)
{
	return s->all_machines > s->n_machines ? s->all_machines :
	    s->n_machines;
}

/* "host, car-7" or how many. */
static const char *
machines_text(const session_state *s, char out[TEXT_CELL_MAX])
{
	char a[TEXT_CELL_MAX], b[TEXT_CELL_MAX];
	uint64_t n = n_machines(s);

	if (!s->has_all_machines)
		return "-";
	if (n == 0 || n > LINE_MACHINES || n > s->n_machines)
		snprintf(out, TEXT_CELL_MAX, "%" PRIu64, n);
	else if (n == 1)
		return text_cell_plain(s->machines[0], out);
	else
		snprintf(out, TEXT_CELL_MAX, "%.200s, %.200s",
		    text_cell_plain(s->machines[0], a),
		    text_cell_plain(s->machines[1], b));
	return out;
}

static const char *
file_text(const session_state *s, char out[TEXT_CELL_MAX])
{
	if (s->file == NULL && s->has_file_bytes)
		return "(unnamed)";
	return text_cell_plain(s->file, out);
}

enum column {
	COL_COLLECTOR, /* where there may be several */
	COL_ID,
	COL_NAME,
	COL_STATE,
	COL_OWNER,
	COL_AGE,
	COL_LEFT,
	COL_BUFFERS,
	COL_FILL,
	COL_LOST,
	COL_MACHINES,
	COL_PRODUCERS,
	COL_SIZE,
	COL_FILE,
	N_COLUMNS,
};

static const char *const heads[N_COLUMNS] = {
	"COLLECTOR", "ID", "NAME", "STATE", "OWNER", "AGE", "LEFT", "BUFFERS", "FILL",
	"LOST", "MACHINES", "PRODUCERS", "SIZE", "FILE",
};

static const char *
column_text(const struct control_sessions_list *l, size_t i, enum column c,
    char out[TEXT_CELL_MAX])
{
	const session_state *s = l->sessions[i];

	switch (c) {
	case COL_COLLECTOR:
		return l->collector;
	case COL_ID:
		snprintf(out, TEXT_CELL_MAX, "%" PRIu64, s->id);
		return out;
	case COL_NAME:
		return text_cell_plain(s->unique_session_name, out);
	case COL_STATE:
		return session_state_text(s);
	case COL_OWNER:
		return text_cell_plain(s->owner, out);
	case COL_AGE:
		return time_text_ago(out, s->created_ns != 0 ? s->created_ns :
		    s->started_ns, l->reply->now_ns);
	case COL_LEFT:
		return left_text(s, out);
	case COL_BUFFERS:
		return buffers_text(s, out);
	case COL_FILL:
		return fill_text(s, out);
	case COL_LOST:
		return lost_text(s, out);
	case COL_MACHINES:
		return machines_text(s, out);
	case COL_PRODUCERS:
		if (!s->has_producers)
			return "-";
		snprintf(out, TEXT_CELL_MAX, "%" PRIu32, s->producers);
		return out;
	case COL_SIZE:
		return s->has_file_bytes ? human_bytes(out, s->file_bytes) :
		    "-";
	case COL_FILE:
		return file_text(s, out);
	case N_COLUMNS:
		break;
	}
	return "";
}

static void
print_overload(FILE *out, const Tributary__OverloadState *o)
{
	char text[256];

	if (o == NULL || o->level == 0 || o->text == NULL)
		return;
	fprintf(out, "It is overloaded (input waits %" PRIu64 " ms for its "
	    "turn): %s.\n", o->lag_ms, log_escape(text, sizeof(text),
	    o->text, strlen(o->text)));
}

/* "The collector has 2 of at most 64 sessions, and ..." */
static void
print_totals(FILE *out, const struct control_sessions_list *l)
{
	char used[HUMAN_TEXT_MAX], most[HUMAN_TEXT_MAX];
	const sessions_reply *r = l->reply;

	if (!r->has_all_sessions)
		return;
	fprintf(out, "%s has %" PRIu32 " of at most %" PRIu32
	    " session%s, and %s of %s of buffers in use.\n",
	    l->collector != NULL ? l->collector : "The collector",
	    r->all_sessions, r->max_sessions, human_s(r->max_sessions),
	    human_bytes(used, r->buffer_bytes),
	    human_bytes(most, r->max_buffer_bytes));
	print_overload(out, r->overload);
}

static void
print_heads(FILE *out, const int *widths, int first)
{
	int c;

	for (c = first; c < N_COLUMNS - 1; c++)
		text_cell_put(out, heads[c], widths[c]);
	fprintf(out, "%s\n", heads[N_COLUMNS - 1]);
}

static void
print_table(FILE *out, const struct control_sessions_list *lists, size_t n)
{
	int widths[N_COLUMNS], c, first;
	char text[TEXT_CELL_MAX];
	size_t i, k;

	first = lists[0].collector != NULL ? COL_COLLECTOR : COL_ID;
	for (c = first; c < N_COLUMNS; c++) {
		widths[c] = text_width(heads[c]);
		for (i = 0; i < n; i++)
			for (k = 0; k < lists[i].n; k++)
				widths[c] = text_cell_widen(widths[c],
				    column_text(&lists[i], k, (enum column)c,
				    text));
	}
	print_heads(out, widths, first);
	for (i = 0; i < n; i++)
		for (k = 0; k < lists[i].n; k++) {
			for (c = first; c < N_COLUMNS - 1; c++)
				text_cell_put(out, column_text(&lists[i], k,
				    (enum column)c, text), widths[c]);
			fprintf(out, "%s\n", column_text(&lists[i], k,
			    N_COLUMNS - 1, text));
		}
}

/* ---- everything, a block each ---- */

/* ns: 0: not known. */
static void
print_time(FILE *out, const char *what, uint64_t ns, uint64_t now)
{
	char time[HUMAN_TEXT_MAX], ago[HUMAN_TEXT_MAX];

	if (ns != 0)
		fprintf(out, "  %-14s %s (%s ago)\n", what,
		    time_text_at(time, ns), time_text_ago(ago, ns, now));
}

static void
print_times(FILE *out, const session_state *s, uint64_t now)
{
	char time[HUMAN_TEXT_MAX];

	print_time(out, "created", s->created_ns, now);
	print_time(out, "started", s->started_ns, now);
	print_time(out, "ended", s->ended_ns, now);
	if (s->has_planned_ms && s->planned_ms != 0)
		fprintf(out, "  planned        %s\n",
		    human_ms(time, s->planned_ms));
	if (s->has_remaining_ms)
		fprintf(out, "  left           %s\n",
		    human_ms(time, s->remaining_ms));
}

static void
print_who(FILE *out, const session_state *s)
{
	char text[TEXT_CELL_MAX];

	fprintf(out, "  owner          %s\n", text_cell_plain(s->owner, text));
	if (s->detach_key != NULL)
		fprintf(out, "  consumer       none: detached under the key "
		    "\"%s\"\n", text_cell_plain(s->detach_key, text));
	else if (s->has_has_consumer)
		fprintf(out, "  consumer       %s\n", s->has_consumer ?
		    "connected" : "none");
	if (s->cloned_from != 0)
		fprintf(out, "  snapshot of    session %" PRIu64 "\n",
		    s->cloned_from);
}

static void
print_buffer(FILE *out, const session_buffer *b, size_t i)
{
	char name[TEXT_CELL_MAX], size[HUMAN_TEXT_MAX], used[HUMAN_TEXT_MAX];
	char share[HUMAN_TEXT_MAX], lost[HUMAN_TEXT_MAX];
	char wraps[HUMAN_TEXT_MAX];

	fprintf(out, "  buffer %-7zu ", i);
	if (b->name != NULL)
		fprintf(out, "\"%s\", ", text_cell_plain(b->name, name));
	fprintf(out, "%s", human_bytes(size, b->size));
	if (b->has_discard)
		fprintf(out, ", %s", b->discard ? "keeps the oldest" :
		    "keeps the newest");
	if (b->has_used)
		fprintf(out, ": %s unread (%s)", human_bytes(used, b->used),
		    percent(share, b->used, b->size));
	if (b->write_wrap_count != 0)
		fprintf(out, ", wrapped %s time%s", human_count(wraps,
		    b->write_wrap_count), human_s(b->write_wrap_count));
	if (b->has_bytes_lost && (b->bytes_lost != 0 || b->chunks_lost != 0))
		fprintf(out, ", lost %s", human_bytes(lost, b->bytes_lost));
	fprintf(out, "\n");
}

static void
print_file(FILE *out, const session_state *s)
{
	char path[TEXT_CELL_MAX], bytes[HUMAN_TEXT_MAX], most[HUMAN_TEXT_MAX];

	if (!s->has_file_bytes)
		return;
	fprintf(out, "  file           %s: %s", file_text(s, path),
	    human_bytes(bytes, s->file_bytes));
	if (s->max_file_bytes != 0)
		fprintf(out, " of at most %s", human_bytes(most,
		    s->max_file_bytes));
	if (s->compression != NULL && s->compression[0] != '\0')
		fprintf(out, ", %s", text_cell_plain(s->compression, path));
	fprintf(out, "\n");
}

static void
print_crowd(FILE *out, const session_state *s)
{
	char text[TEXT_CELL_MAX];
	size_t i;

	if (!s->has_producers)
		return;
	fprintf(out, "  producers      %" PRIu32 " with %" PRIu32 " data "
	    "source%s, %" PRIu32 " sequence%s\n", s->producers,
	    s->data_sources, human_s(s->data_sources), s->sequences,
	    human_s(s->sequences));
	fprintf(out, "  machines       ");
	for (i = 0; i < s->n_machines; i++)
		fprintf(out, "%s%s", i == 0 ? "" : ", ",
		    text_cell_plain(s->machines[i], text));
	if (n_machines(s) > s->n_machines)
		fprintf(out, " and %" PRIu64 " more", n_machines(s) -
		    s->n_machines);
	fprintf(out, "%s\n", n_machines(s) == 0 ? "none" : "");
}

static void
print_counts(FILE *out, const session_state *s)
{
	char n[HUMAN_TEXT_MAX];

	if (s->has_packets)
		fprintf(out, "  packets        about %s\n", human_count(n,
		    s->packets));
	if (s->packets_lost != 0)
		fprintf(out, "  lost           %s packet%s before they reached "
		    "a buffer\n", human_count(n, s->packets_lost),
		    human_s(s->packets_lost));
	if (s->flushes_failed != 0)
		fprintf(out, "  flushes        %s timed out\n", human_count(n,
		    s->flushes_failed));
}

static const char *
trigger_mode_text(uint32_t mode)
{
	switch (mode) {
	case 1:
		return "start it";
	case 2:
		return "stop it";
	case 4:
		return "take a snapshot";
	default:
		return "act on it";
	}
}

static void
print_words(FILE *out, const session_state *s)
{
	char text[TEXT_CELL_MAX], n[HUMAN_TEXT_MAX];
	size_t i;

	for (i = 0; i < s->n_triggers; i++)
		fprintf(out, "%s\"%s\"", i == 0 ? "  triggers       " : ", ",
		    text_cell_plain(s->triggers[i], text));
	if (s->n_triggers != 0)
		fprintf(out, " %s; hit %s time%s\n",
		    trigger_mode_text(s->trigger_mode),
		    human_count(n, s->triggers_hit), human_s(s->triggers_hit));
	if (s->filtered)
		fprintf(out, "  filter         its packets are filtered\n");
	for (i = 0; i < s->n_warnings; i++)
		fprintf(out, "  warning        %s\n",
		    text_cell_plain(s->warnings[i], text));
	if (s->error != NULL)
		fprintf(out, "  failed         %s\n", text_cell_plain(s->error,
		    text));
}

static void
print_block(FILE *out, const char *collector, const session_state *s,
    uint64_t now)
{
	char label[200];
	size_t i;

	fprintf(out, "%s\n", session_label(s, label, sizeof(label)));
	if (collector != NULL)
		fprintf(out, "  collector      %s\n", collector);
	fprintf(out, "  state          %s\n", session_state_text(s));
	print_who(out, s);
	print_times(out, s, now);
	for (i = 0; i < s->n_buffers; i++)
		print_buffer(out, s->buffers[i], i);
	print_file(out, s);
	print_crowd(out, s);
	print_counts(out, s);
	print_words(out, s);
}

/* ---- JSON ---- */

static void
print_json(FILE *out, const struct control_sessions_list *lists, size_t n)
{
	struct json_out j = { .out = out, .row = "\n  " };
	size_t i, k;

	json_array(&j, NULL);
	for (i = 0; i < n; i++)
		for (k = 0; k < lists[i].n; k++)
			session_json(&j, NULL, lists[i].collector,
			    lists[i].sessions[k]);
	json_array_end(&j);
	fputc('\n', out);
}

static bool
are_empty(const struct control_sessions_list *lists, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (lists[i].n > 0)
			return false;
	return true;
}

void
sessions_print(FILE *out, const struct control_sessions_list *lists, size_t n,
    enum list_form form)
{
	size_t i, k;

	if (form == LIST_JSON) {
		print_json(out, lists, n);
		return;
	}
	if (are_empty(lists, n))
		fprintf(out, "There is no session that you may see.\n");
	else if (form == LIST_TABLE)
		print_table(out, lists, n);
	for (i = 0; form == LIST_LONG && i < n; i++)
		for (k = 0; k < lists[i].n; k++)
			print_block(out, lists[i].collector,
			    lists[i].sessions[k], lists[i].reply->now_ns);
	for (i = 0; i < n; i++)
		print_totals(out, &lists[i]);
}
