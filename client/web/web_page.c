#include "client/web/web_page.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/machines_text.h"
#include "client/show/sessions_text.h"
#include "client/text/time_text.h"
#include "client/web/web_health.h"
#include "client/web/web_html.h"
#include "client/web/web_request.h"
#include "client/web/web_snapshot.h"
#include "protos/control.pb-c.h"
#include "protos/link.pb-c.h"
#include "transport/base/human_numbers.h"
#include "transport/base/machine_word.h"
#include "transport/link/link_wire.h"

typedef Tributary__MachineState machine_state;
typedef Tributary__SessionState session_state;
typedef Tributary__RecordingState recording_state;
typedef Tributary__QueryMetricsReply metrics_reply;
typedef Tributary__QueryMetricsReply__Count metrics_count;

#define TEXT_MAX 96

/* Room on a disk is said in days, and not for how long beyond a year. */
#define DAYS_FROM_HOURS 96.0
#define MOST_HOURS      8760.0

/* ---- text ---- */

static const char *
rate_text(char out[TEXT_MAX], double bytes)
{
	char text[HUMAN_TEXT_MAX];

	if (bytes < 0)
		return "-";
	snprintf(out, TEXT_MAX, "%s/s", human_bytes(text, human_whole(bytes)));
	return out;
}

/* The rate of the i-th in the answer. */
static double
rate_at(const struct web_rates *r, size_t i)
{
	return i < r->n ? r->all[i] : -1;
}

/* ---- health and numbers ---- */

static void
put_health(FILE *out, const struct web_snapshot *s, uint64_t now_s)
{
	struct web_health *h = calloc(1, sizeof(*h));
	size_t i;

	if (h == NULL)
		return;
	web_health_judge(h, s, now_s);
	fprintf(out, "<section class=\"state %s\" aria-labelledby=\"state\">"
	    "<h2 id=\"state\">%s</h2>\n", h->n == 0 ? "good" : "bad",
	    h->n == 0 ? "\xe2\x9c\x93 Healthy" : "\xe2\x9a\xa0 Not healthy");
	if (h->n > 0)
		fputs("<ul>", out);
	for (i = 0; i < h->n; i++) {
		fputs("<li>", out);
		web_html_text(out, h->problems[i]);
		fputs("</li>\n", out);
	}
	if (h->more > 0)
		fprintf(out, "<li>and %zu more.</li>\n", h->more);
	fputs(h->n > 0 ? "</ul></section>\n" : "</section>\n", out);
	free(h);
}

static void
put_fact(FILE *out, const char *what, const char *text)
{
	fprintf(out, "<div><dt>%s</dt><dd>", what);
	web_html_text(out, text);
	fputs("</dd></div>\n", out);
}

static uint64_t
count_of(metrics_count *const *counts, size_t n, const char *label)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (counts[i]->label != NULL &&
		    strcmp(counts[i]->label, label) == 0)
			return counts[i]->value;
	return 0;
}

static uint64_t
sum_of(metrics_count *const *counts, size_t n)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += counts[i]->value;
	return sum;
}

static void
put_disks(FILE *out, const struct web_snapshot *s)
{
	char room[HUMAN_TEXT_MAX], text[TEXT_MAX], what[TEXT_MAX];
	const metrics_reply *m = s->metrics;
	double hours;
	size_t i;

	for (i = 0; i < m->n_disk_free_bytes && i < 4; i++) {
		const char *folder = m->disk_free_bytes[i]->label;

		if (folder == NULL || (strcmp(folder, "trace_dir") != 0 &&
		    strcmp(folder, "archive_dir") != 0))
			continue;
		hours = web_health_hours_left(s, folder);
		human_bytes(room, m->disk_free_bytes[i]->value);
		if (hours < 0 || hours > MOST_HOURS)
			snprintf(text, sizeof(text), "%s", room);
		else if (hours >= DAYS_FROM_HOURS)
			snprintf(text, sizeof(text), "%s, %.0f days", room,
			    hours / 24);
		else
			snprintf(text, sizeof(text), "%s, %.0f hours", room,
			    hours);
		snprintf(what, sizeof(what), "Room in %s", folder);
		put_fact(out, what, text);
	}
}

static void
put_certificate(FILE *out, const metrics_reply *m, uint64_t now_s)
{
	char text[TEXT_MAX];

	if (!m->has_certificate_expiry_s)
		return;
	if (m->certificate_expiry_s < now_s)
		snprintf(text, sizeof(text), "has ended");
	else
		snprintf(text, sizeof(text), "%" PRIu64 " days left",
		    (m->certificate_expiry_s - now_s) / 86400);
	put_fact(out, "Certificate", text);
}

static void
put_facts(FILE *out, const struct web_snapshot *s, uint64_t now_s)
{
	char text[HUMAN_TEXT_MAX], most[HUMAN_TEXT_MAX], both[TEXT_MAX];
	const metrics_reply *m = s->metrics;

	if (m == NULL)
		return;
	fputs("<section aria-labelledby=\"now\"><h2 id=\"now\">Now</h2>"
	    "<dl class=\"facts\">\n", out);
	put_fact(out, "Machines connected", human_count(text,
	    count_of(m->machines, m->n_machines, "connected")));
	put_fact(out, "Producers", human_count(text, m->producers));
	put_fact(out, "Sessions that record", human_count(text,
	    count_of(m->sessions, m->n_sessions, "started")));
	snprintf(both, sizeof(both), "%s of %s",
	    human_bytes(text, m->buffer_bytes),
	    human_bytes(most, m->buffer_limit_bytes));
	put_fact(out, "Buffers", both);
	put_fact(out, "Received", human_bytes(text, m->received_bytes));
	put_fact(out, "Packets lost", human_count(text,
	    sum_of(m->lost_packets, m->n_lost_packets)));
	put_disks(out, s);
	put_certificate(out, m, now_s);
	if (m->process != NULL)
		put_fact(out, "Memory", human_bytes(text,
		    m->process->resident_bytes));
	fputs("</dl></section>\n", out);
}

/* ---- recordings ---- */

static const struct web_column recording_columns[] = {
	{ "Recording", false }, { "State", false }, { "Running for", true },
	{ "Segment", true }, { "Written", true }, { "Rate", true },
};

static const char *
recording_text(const recording_state *r)
{
	switch (r->state) {
	case TRIBUTARY__RECORDING_STATE__STATE__STARTING:
		return "starts";
	case TRIBUTARY__RECORDING_STATE__STATE__RUNNING:
		return r->flight ? "waits for triggers" : "runs";
	case TRIBUTARY__RECORDING_STATE__STATE__WAITING:
		return "will be tried again";
	case TRIBUTARY__RECORDING_STATE__STATE__STOPPED:
		return "stopped";
	case TRIBUTARY__RECORDING_STATE__STATE__ENDING:
		return "ends";
	default:
		return "unknown";
	}
}

static void
put_recording(FILE *out, const recording_state *r, uint64_t now_ns)
{
	const struct web_column *c = recording_columns;
	char text[HUMAN_TEXT_MAX], rate[TEXT_MAX];

	web_html_begin_row(out, r->name != NULL ? r->name : "");
	if (r->state == TRIBUTARY__RECORDING_STATE__STATE__WAITING)
		web_html_warning(out, &c[1], recording_text(r));
	else
		web_html_cell(out, &c[1], recording_text(r));
	web_html_cell(out, &c[2], time_text_ago(text, r->began_ns, now_ns));
	web_html_cell(out, &c[3], r->segment != 0 ? human_count(text, r->segment) :
	    "-");
	web_html_cell(out, &c[4], human_bytes(text, r->bytes));
	web_html_cell(out, &c[5], rate_text(rate, r->has_bytes_per_second ?
	    (double)r->bytes_per_second : -1));
	web_html_end_row(out);
}

static void
put_recordings(FILE *out, const Tributary__QueryRecordingsReply *r)
{
	size_t i;

	if (r == NULL || r->n_recordings == 0)
		return;
	fputs("<section aria-labelledby=\"rec\"><h2 id=\"rec\">Recordings</h2>\n",
	    out);
	web_html_begin_table(out, "Recordings", recording_columns,
	    sizeof(recording_columns) / sizeof(recording_columns[0]));
	for (i = 0; i < r->n_recordings && i < WEB_PAGE_ROWS; i++)
		put_recording(out, r->recordings[i], r->now_ns);
	web_html_end_table(out);
	fputs("</section>\n", out);
}

/* ---- sessions ---- */

static const struct web_column session_columns[] = {
	{ "Session", false }, { "State", false }, { "Owner", false },
	{ "Age", true }, { "Rate", true }, { "Buffers full", true },
	{ "Overwritten", true }, { "Packets lost", true },
};

static void
put_session(FILE *out, const session_state *e, double rate, uint64_t now_ns)
{
	const struct web_column *c = session_columns;
	char label[256], text[HUMAN_TEXT_MAX], speed[TEXT_MAX];
	uint64_t size = 0, used = 0, lost = 0;
	size_t i;

	for (i = 0; i < e->n_buffers; i++) {
		size += e->buffers[i]->size;
		used += e->buffers[i]->used;
		lost += e->buffers[i]->bytes_lost;
	}
	web_html_begin_row(out, session_label(e, label, sizeof(label)));
	if (e->error != NULL)
		web_html_warning(out, &c[1], session_state_text(e));
	else
		web_html_cell(out, &c[1], session_state_text(e));
	web_html_cell(out, &c[2], e->owner != NULL ? e->owner : "-");
	web_html_cell(out, &c[3], time_text_ago(text, e->created_ns, now_ns));
	web_html_cell(out, &c[4], rate_text(speed, rate));
	snprintf(text, sizeof(text), "%.0f %%", size == 0 ? 0.0 :
	    100.0 * (double)used / (double)size);
	web_html_cell(out, &c[5], text);
	web_html_cell(out, &c[6], human_bytes(text, lost));
	if (e->packets_lost != 0)
		web_html_warning(out, &c[7], human_count(text, e->packets_lost));
	else
		web_html_cell(out, &c[7], "0");
	web_html_end_row(out);
}

static void
put_sessions(FILE *out, const struct web_snapshot *s)
{
	const Tributary__QuerySessionsReply *r = s->sessions;
	size_t i;

	if (r == NULL)
		return;
	fputs("<section aria-labelledby=\"ses\"><h2 id=\"ses\">Sessions</h2>\n",
	    out);
	if (r->n_sessions == 0) {
		fputs("<p class=\"dim\">None.</p></section>\n", out);
		return;
	}
	web_html_begin_table(out, "Sessions", session_columns,
	    sizeof(session_columns) / sizeof(session_columns[0]));
	for (i = 0; i < r->n_sessions && i < WEB_PAGE_ROWS; i++)
		put_session(out, r->sessions[i], rate_at(&s->session_rates,
		    i), r->now_ns);
	web_html_end_table(out);
	if (r->n_sessions > WEB_PAGE_ROWS)
		fprintf(out, "<p class=\"dim\">and %zu more: tributary "
		    "sessions.</p>\n", r->n_sessions - WEB_PAGE_ROWS);
	fputs("</section>\n", out);
}

/* ---- machines ---- */

static const struct web_column machine_columns[] = {
	{ "Machine", false }, { "State", false }, { "Since", true },
	{ "Rate", true }, { "Waits there", true }, { "Packets lost", true },
	{ "Clock error", true }, { "Address", false },
};

static const char *
machine_name(const machine_state *m)
{
	if (m->id == 0)
		return MACHINE_WORD_HOST;
	return m->name != NULL && m->name[0] != '\0' ? m->name : "(no name)";
}

static bool
is_found(const machine_state *m, const char *search)
{
	return search[0] == '\0' ||
	    strcasestr(machine_name(m), search) != NULL ||
	    strcasestr(machine_state_text(m), search) != NULL ||
	    (m->address != NULL && strcasestr(m->address, search) != NULL);
}

/* Puts "unknown" for losses without a number. */
static void
put_losses(FILE *out, const struct web_column *c, const machine_state *m)
{
	char text[HUMAN_TEXT_MAX];
	uint64_t packets = 0;
	size_t i;

	for (i = 0; i < m->n_losses; i++)
		packets += m->losses[i]->packets;
	if (m->n_losses == 0)
		web_html_cell(out, c, "0");
	else
		web_html_warning(out, c, packets == 0 ? "unknown" :
		    human_count(text, packets));
}

static void
put_machine(FILE *out, const machine_state *m, double rate, uint64_t now_ns)
{
	const struct web_column *c = machine_columns;
	char text[HUMAN_TEXT_MAX], speed[TEXT_MAX], clock[TEXT_MAX];
	bool is_cut = m->state == TRIBUTARY__MACHINE_STATE__STATE__CUT;

	web_html_begin_row(out, machine_name(m));
	if (is_cut)
		web_html_warning(out, &c[1], machine_state_text(m));
	else
		web_html_cell(out, &c[1], machine_state_text(m));
	web_html_cell(out, &c[2], time_text_ago(text, m->state ==
	    TRIBUTARY__MACHINE_STATE__STATE__CONNECTED ?
	    m->connected_since_ns : m->cut_since_ns, now_ns));
	/* Data without a relay is counted for its producers. */
	web_html_cell(out, &c[3], rate_text(speed, m->bytes_unpacked != 0 ? rate :
	    -1));
	web_html_cell(out, &c[4], m->relay == NULL ? "-" : human_bytes(text,
	    m->relay->memory_bytes + m->relay->spool_bytes));
	put_losses(out, &c[5], m);
	if (m->clock_uncertainty_ns < 1000000)
		snprintf(clock, sizeof(clock), "\xc2\xb1 %.1f us",
		    (double)m->clock_uncertainty_ns / 1e3);
	else
		snprintf(clock, sizeof(clock), "\xc2\xb1 %.1f ms",
		    (double)m->clock_uncertainty_ns / 1e6);
	web_html_cell(out, &c[6], m->has_clock_offset_ns ? clock : "-");
	web_html_cell(out, &c[7], m->address != NULL ? m->address : "-");
	web_html_end_row(out);
}

static void
put_link(FILE *out, const struct web_query *q, uint32_t page, const char *where,
    const char *word)
{
	fprintf(out, "<a href=\"/?page=%" PRIu32 "&amp;refresh=%" PRIu32
	    "&amp;q=", page, q->refresh_s);
	web_html_query_value(out, q->search);
	fprintf(out, "%s\">%s</a>\n", where, word);
}

static void
put_search(FILE *out, const struct web_query *q)
{
	fputs("<form method=\"get\" action=\"/\" role=\"search\">"
	    "<label for=\"q\">Name, state or address</label>"
	    "<input id=\"q\" name=\"q\" type=\"search\" maxlength=\"100\" "
	    "value=\"", out);
	web_html_text(out, q->search);
	fprintf(out, "\"><input type=\"hidden\" name=\"refresh\" value=\"%"
	    PRIu32 "\"><button>Search</button></form>\n", q->refresh_s);
}

static void
put_pager(FILE *out, const struct web_query *q, uint32_t page, size_t found)
{
	size_t pages = (found + WEB_PAGE_MACHINES - 1) / WEB_PAGE_MACHINES;

	fprintf(out, "<nav aria-label=\"Pages of machines\"><span>%zu machine%s"
	    ", page %" PRIu32 " of %zu</span>\n", found, human_s(found), page,
	    pages == 0 ? 1 : pages);
	if (page > 1)
		put_link(out, q, page - 1, "#mac", "Previous");
	if (page < pages)
		put_link(out, q, page + 1, "#mac", "Next");
	fputs("</nav>\n", out);
}

static void
put_machines(FILE *out, const struct web_snapshot *s,
    const struct web_query *q)
{
	const Tributary__QueryMachinesReply *r = s->machines;
	size_t i, found = 0, first, shown = 0, at = 0;
	uint32_t page = q->page;

	if (r == NULL)
		return;
	fputs("<section aria-labelledby=\"mac\"><h2 id=\"mac\">Machines</h2>\n",
	    out);
	put_search(out, q);
	for (i = 0; i < r->n_machines; i++)
		found += is_found(r->machines[i], q->search);
	if ((size_t)(page - 1) * WEB_PAGE_MACHINES >= found)
		page = 1;
	first = (size_t)(page - 1) * WEB_PAGE_MACHINES;
	web_html_begin_table(out, "Machines", machine_columns,
	    sizeof(machine_columns) / sizeof(machine_columns[0]));
	for (i = 0; i < r->n_machines && shown < WEB_PAGE_MACHINES; i++) {
		if (!is_found(r->machines[i], q->search) || at++ < first)
			continue;
		shown++;
		put_machine(out, r->machines[i], rate_at(&s->machine_rates,
		    i), r->now_ns);
	}
	web_html_end_table(out);
	put_pager(out, q, page, found);
	fputs("</section>\n", out);
}

/* ---- top talkers ---- */

static const struct web_column talker_columns[] = {
	{ "Producer", false }, { "Machine", false }, { "Rate", true },
	{ "Written", true }, { "Lost", true },
};

static void
put_talker(FILE *out, const Tributary__ProducerState *p, double rate)
{
	const struct web_column *c = talker_columns;
	char text[HUMAN_TEXT_MAX], speed[TEXT_MAX];

	web_html_begin_row(out, p->name != NULL ? p->name : "");
	web_html_cell(out, &c[1], p->machine_id == 0 ? MACHINE_WORD_HOST :
	    p->machine_name != NULL ? p->machine_name : "-");
	web_html_cell(out, &c[2], rate_text(speed, rate));
	web_html_cell(out, &c[3], human_bytes(text, p->bytes));
	web_html_cell(out, &c[4], human_count(text, p->lost));
	web_html_end_row(out);
}

/* Puts the place of a rate where it belongs among the n highest. */
static size_t
insert(const struct web_rates *r, size_t *top, size_t n, size_t i)
{
	size_t at = n;

	if (n == WEB_PAGE_TALKERS) {
		at--;
		if (r->all[i] <= r->all[top[at]])
			return n;
	} else {
		n++;
	}
	for (; at > 0 && r->all[top[at - 1]] < r->all[i]; at--)
		top[at] = top[at - 1];
	top[at] = i;
	return n;
}

static void
put_talkers(FILE *out, const struct web_snapshot *s)
{
	const struct web_rates *r = &s->producer_rates;
	size_t top[WEB_PAGE_TALKERS], i, n = 0;

	if (s->producers == NULL)
		return;
	for (i = 0; i < r->n && i < s->producers->n_producers; i++)
		if (r->all[i] > 0)
			n = insert(r, top, n, i);
	if (n == 0)
		return;
	fputs("<section aria-labelledby=\"top\"><h2 id=\"top\">Top talkers</h2>"
	    "\n", out);
	web_html_begin_table(out, "Producers that write most", talker_columns,
	    sizeof(talker_columns) / sizeof(talker_columns[0]));
	for (i = 0; i < n; i++)
		put_talker(out, s->producers->producers[top[i]],
		    r->all[top[i]]);
	web_html_end_table(out);
	fputs("</section>\n", out);
}

/* ---- losses and refusals ---- */

static const struct web_column loss_columns[] = {
	{ "Cause", false }, { "Packets", true },
};
static const struct web_column refusal_columns[] = {
	{ "Setting", false }, { "Refused", true }, { "The last one", true },
};

/* now_ns 0: a table without a column for the last one. */
static void
put_counts(FILE *out, const char *id, const char *title,
    const struct web_column *columns, metrics_count *const *counts, size_t n,
    uint64_t now_ns)
{
	char text[HUMAN_TEXT_MAX];
	size_t i;

	if (sum_of(counts, n) == 0)
		return;
	fprintf(out, "<section aria-labelledby=\"%s\"><h2 id=\"%s\">%s</h2>\n",
	    id, id, title);
	web_html_begin_table(out, title, columns, now_ns != 0 ? 3 : 2);
	for (i = 0; i < n && i < WEB_PAGE_ROWS; i++) {
		if (counts[i]->value == 0)
			continue;
		web_html_begin_row(out, counts[i]->label != NULL ? counts[i]->label :
		    "");
		web_html_cell(out, &columns[1], human_count(text,
		    counts[i]->value));
		if (now_ns != 0)
			web_html_cell(out, &columns[2], time_text_ago(text,
			    counts[i]->last_ns, now_ns));
		web_html_end_row(out);
	}
	web_html_end_table(out);
	fputs("</section>\n", out);
}

/* ---- the page ---- */

static void
put_head(FILE *out, const struct web_query *q, const char *collector)
{
	char about[512];

	snprintf(about, sizeof(about), "Collector at %s", collector);
	web_html_begin_page(out, collector, about, q->refresh_s);
}

static void
put_foot(FILE *out, const struct web_snapshot *s, const struct web_query *q,
    uint64_t now_s)
{
	char text[HUMAN_TEXT_MAX];
	struct web_query other = *q;

	fprintf(out, "</main>\n<footer><p>As of %s.", time_text_at(text,
	    now_s * UINT64_C(1000000000)));
	other.refresh_s = q->refresh_s == 0 ? WEB_REFRESH_S : 0;
	if (q->refresh_s > 0)
		fprintf(out, " Anew every %" PRIu32 " s: ", q->refresh_s);
	else
		fputs(" Does not refresh by itself: ", out);
	put_link(out, &other, q->page, "", q->refresh_s > 0 ? "stop" : "start");
	fputs("</p><p>", out);
	if (s->metrics != NULL && s->metrics->version != NULL) {
		fputs("Collector ", out);
		web_html_text(out, s->metrics->version);
		fputs(", ", out);
	}
	fputs("tributary-web " TRIBUTARY_VERSION ". Counts are since the "
	    "collector's start. <a href=\"/metrics\">Metrics</a></p></footer>\n"
	    "</body></html>\n", out);
}

void
web_page_print(FILE *out, const struct web_snapshot *s,
    const struct web_query *q, const char *collector, bool has_archive,
    uint64_t now_s)
{
	put_head(out, q, collector);
	if (has_archive)
		fputs("<nav><a href=\"/archive\">Archive</a></nav>\n", out);
	put_health(out, s, now_s);
	put_facts(out, s, now_s);
	put_recordings(out, s->recordings);
	put_sessions(out, s);
	put_talkers(out, s);
	put_machines(out, s, q);
	if (s->metrics != NULL) {
		put_counts(out, "los", "Lost packets", loss_columns,
		    s->metrics->lost_packets, s->metrics->n_lost_packets, 0);
		put_counts(out, "ref", "Refusals", refusal_columns,
		    s->metrics->refused, s->metrics->n_refused,
		    s->metrics->now_ns);
	}
	put_foot(out, s, q, now_s);
}
