#include "client/web/web_archive_page.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/archive/catalog.h"
#include "client/archive/find/segment_details.h"
#include "client/archive/selection.h"
#include "client/text/shell_word.h"
#include "client/text/time_text.h"
#include "client/web/web_archive_line.h"
#include "client/web/web_archive_trace.h"
#include "client/web/web_html.h"
#include "transport/base/human_numbers.h"

#define OK          200u
#define BAD         400u
#define UNAVAILABLE 503u

#define ERROR_BYTES 1024
#define CELL_MAX    256
/* Names in a cell; more of them are counted. */
#define CELL_NAMES 3u

struct printing {
	FILE *out;
	const struct web_archive_asked *asked;
	struct catalog *catalog;
	/* Sums of all that was found: bytes, and segments not here; and its time. */
	uint64_t bytes;
	size_t stored;
	struct web_line_span span;
	size_t rows; /* of the page */
	bool failed;
	char err[ERROR_BYTES];
};

/* ---- links ---- */

static void
put_value(FILE *out, char *sign, const char *name, const char *value)
{
	if (value[0] == '\0')
		return;
	fprintf(out, "%s%s=", *sign == '?' ? "?" : "&amp;", name);
	*sign = '&';
	web_html_query_value(out, value);
}

void
web_archive_put_link(FILE *out, const char *path, const struct web_search *s,
    uint32_t page)
{
	char sign = '?', number[16] = "";

	fputs(path, out);
	put_value(out, &sign, "machine", s->machine);
	put_value(out, &sign, "recording", s->recording);
	put_value(out, &sign, "trigger", s->trigger);
	put_value(out, &sign, "process", s->process);
	put_value(out, &sign, "collector", s->collector);
	put_value(out, &sign, "at", s->at);
	put_value(out, &sign, "around", s->around);
	put_value(out, &sign, "from", s->from);
	put_value(out, &sign, "to", s->to);
	put_value(out, &sign, "lost", s->lost ? "1" : "");
	if (page > 1)
		snprintf(number, sizeof(number), "%" PRIu32, page);
	put_value(out, &sign, "page", number);
}

static void
put_word(FILE *out, const char *flag, const char *word)
{
	char quoted[4 * PATH_MAX + 3];

	if (word[0] == '\0')
		return;
	fprintf(out, " %s", flag);
	web_html_text(out, shell_word(word, quoted, sizeof(quoted)));
}

static void
put_place(const struct printing *p)
{
	put_word(p->out, p->asked->place->catalog != NULL ? "--catalog " :
	    "--archive ", p->asked->place->name);
}

static void
put_command(const struct printing *p)
{
	const struct web_search *s = p->asked->search;
	FILE *out = p->out;

	fputs("<code>tributary fetch", out);
	put_place(p);
	put_word(out, "--collector ", s->collector);
	put_word(out, "--machine ", s->machine);
	put_word(out, "--recording ", s->recording);
	put_word(out, "--trigger ", s->trigger);
	put_word(out, "--process ", s->process);
	put_word(out, "--at ", s->at);
	put_word(out, "--around ", s->around);
	put_word(out, "--from ", s->from);
	put_word(out, "--to ", s->to);
	fprintf(out, "%s -o archive.pftrace</code>\n", s->lost ? " --lost" :
	    "");
}

/* ---- search ---- */

static void
put_field(FILE *out, const char *name, const char *label, const char *hint,
    const char *value)
{
	fprintf(out, "<label>%s<input name=\"%s\" maxlength=\"100\" "
	    "placeholder=\"%s\" value=\"", label, name, hint);
	web_html_text(out, value);
	fputs("\"></label>\n", out);
}

static void
put_search(const struct printing *p)
{
	const struct web_search *s = p->asked->search;
	time_t now = time(NULL);
	FILE *out = p->out;
	char zone[32] = "";
	struct tm tm;

	if (localtime_r(&now, &tm) != NULL)
		(void)strftime(zone, sizeof(zone), tm.tm_gmtoff == 0 ? "UTC" :
		    "%Z, UTC%z", &tm);
	fputs("<section aria-labelledby=\"find\"><h2 id=\"find\">Search</h2>"
	    "<form class=\"fields\" method=\"get\" action=\"/archive\" "
	    "role=\"search\">\n", out);
	put_field(out, "machine", "Machine", "tram-*", s->machine);
	put_field(out, "at", "At", "14:32", s->at);
	put_field(out, "around", "Around it", "30s", s->around);
	put_field(out, "from", "From", "yesterday 14:00", s->from);
	put_field(out, "to", "To", "2026-11-23 15:00", s->to);
	put_field(out, "trigger", "Trigger", "", s->trigger);
	put_field(out, "process", "Process", "", s->process);
	put_field(out, "recording", "Recording", "", s->recording);
	if (p->asked->place->catalog != NULL)
		put_field(out, "collector", "Collector", "", s->collector);
	fprintf(out, "<label class=\"check\"><input type=\"checkbox\" "
	    "name=\"lost\" value=\"1\"%s> that lost something</label>"
	    "<button>Search</button>"
	    "<a href=\"/archive\">All</a></form>\n<p class=\"dim\">Times are "
	    "the clock of this server: %s. Names may be patterns.</p>"
	    "</section>\n", s->lost ? " checked" : "", zone);
}

/* ---- files ---- */

/* link prints the file's address once for each way to it. */
static void
put_ways(FILE *out, void (*link)(FILE *out, const void *arg), const void *arg,
    const char *title)
{
	fputs("<span class=\"ways\"><button type=\"button\" hidden data-href="
	    "\"", out);
	link(out, arg);
	fputs("\" data-title=\"", out);
	web_html_text(out, title);
	fputs("\">Open in Perfetto</button><a download href=\"", out);
	link(out, arg);
	fputs("\">Download</a></span>", out);
}

static void
segment_link(FILE *out, const void *arg)
{
	fputs("/archive/segment?path=", out);
	web_html_query_value(out, arg);
}

static void
trace_link(FILE *out, const void *arg)
{
	web_archive_put_link(out, "/archive/trace", arg, 1);
}

/* Offers all that was found as one trace. */
static void
put_joined(const struct printing *p, const struct selection_found *found)
{
	const struct web_search *s = p->asked->search;
	char bytes[HUMAN_TEXT_MAX], title[CELL_MAX];
	FILE *out = p->out;

	if (found->n == 0)
		return;
	fputs("<section aria-labelledby=\"all\"><h2 id=\"all\">As one trace"
	    "</h2>\n", out);
	snprintf(title, sizeof(title), "%s %s", s->machine[0] != '\0' ?
	    s->machine : "archive", s->at[0] != '\0' ? s->at : s->from);
	if (p->stored > 0) {
		fprintf(out, "<p>%zu of these segments %s in the store alone. "
		    "This brings and joins them:</p><p>", p->stored,
		    p->stored == 1 ? "is" : "are");
	} else if (found->n > WEB_JOIN_FILES || p->bytes > WEB_JOIN_BYTES) {
		fprintf(out, "<p>These are more than %u segments or %u MiB, "
		    "which are not joined here: narrow the search, or:</p><p>",
		    WEB_JOIN_FILES, (unsigned)(WEB_JOIN_BYTES >> 20));
	} else {
		fprintf(out, "<p>%zu segment%s, %s%s: ", found->n,
		    human_s(found->n), human_bytes(bytes, p->bytes),
		    s->at[0] != '\0' || s->from[0] != '\0' ||
		    s->to[0] != '\0' ? ", cut to the time" : "");
		put_ways(out, trace_link, s, title);
		fputs("</p><p>The same in a shell: ", out);
	}
	put_command(p);
	fputs("</p></section>\n", out);
}

/* ---- segments ---- */

static const struct web_column columns[] = {
	{ "When", false }, { "Machines", false }, { "Recording", false },
	{ "Size", true }, { "Lost", false }, { "Triggers", false },
	{ "File", false },
};

static const char *
names_text(char out[CELL_MAX], const struct detail_names *names)
{
	size_t i, len = 0;

	snprintf(out, CELL_MAX, "-");
	for (i = 0; i < names->n && i < CELL_NAMES; i++)
		len += (size_t)snprintf(out + len, CELL_MAX - len, "%s%.60s",
		    i == 0 ? "" : ", ", names->name[i]);
	if (i < names->n)
		snprintf(out + len, CELL_MAX - len, ", and %zu more",
		    names->n - i);
	return out;
}

static void
put_file(const struct printing *p, const struct catalog_row *r,
    const char *when)
{
	char title[CELL_MAX + 160];
	FILE *out = p->out;

	snprintf(title, sizeof(title), "%.140s %s", r->recording, when);
	fputs("<td role=\"cell\" data-head=\"File\"><div><span class=\"path\">",
	    out);
	web_html_text(out, r->path);
	fputs(r->pinned ? " (pinned)</span> " : "</span> ", out);
	if (r->local) {
		put_ways(out, segment_link, r->path, title);
	} else {
		fputs("<span>in the store alone: <code>tributary fetch", out);
		put_place(p);
		put_word(out, "", r->path);
		fputs(" -o segment.pftrace</code></span>", out);
	}
	fputs("</div></td>", out);
}

static void
put_segment(const struct printing *p, const struct catalog_row *r,
    const struct segment_details *d)
{
	char text[CELL_MAX], number[HUMAN_TEXT_MAX], span[TIME_TEXT_SPAN_MAX];
	const char *when = !r->has_wall ? "no time" : time_text_span(span,
	    (uint64_t)r->first_ns, (uint64_t)r->last_ns);
	FILE *out = p->out;

	web_html_begin_row(out, when);
	web_html_cell(out, &columns[1], names_text(text, &d->machines));
	if (r->number == 0)
		snprintf(text, sizeof(text), "%.200s", r->recording[0] != '\0' ?
		    r->recording : "-");
	else
		snprintf(text, sizeof(text), "%.200s %" PRIu32, r->recording,
		    r->number);
	web_html_cell(out, &columns[2], text);
	web_html_cell(out, &columns[3], human_bytes(number, r->bytes));
	if (r->problem[0] != '\0') {
		snprintf(text, sizeof(text), "%.240s", r->problem);
		web_html_warning(out, &columns[4], text);
	} else if (r->lost > 0) {
		web_html_warning(out, &columns[4], d->losses.n > 0 ?
		    names_text(text, &d->losses) : human_count(number,
		    r->lost));
	} else {
		web_html_cell(out, &columns[4], "nothing");
	}
	web_html_cell(out, &columns[5], names_text(text, &d->triggers));
	put_file(p, r, when);
	web_html_end_row(out);
}

static bool
row_cb(void *arg, const struct catalog_row *row)
{
	struct printing *p = arg;
	struct segment_details d;

	if (segment_details_read(&d, p->catalog, row->id, p->err,
	    sizeof(p->err)) < 0) {
		p->failed = true;
		return false;
	}
	put_segment(p, row, &d);
	segment_details_done(&d);
	/* Rows of a catalogue that is not ours may have one id. */
	return ++p->rows < WEB_ARCHIVE_ROWS;
}

static void
put_pager(const struct printing *p, size_t n, bool more, uint32_t page)
{
	size_t pages = (n + WEB_ARCHIVE_ROWS - 1) / WEB_ARCHIVE_ROWS;
	FILE *out = p->out;

	fprintf(out, "<nav aria-label=\"Pages of segments\"><span>%s%zu "
	    "segment%s, page %" PRIu32 " of %zu</span>\n", more ? "the newest "
	    : "", n, human_s(n), page, pages);
	if (page > 1) {
		fputs("<a rel=\"prev\" href=\"", out);
		web_archive_put_link(out, "/archive", p->asked->search,
		    page - 1);
		fputs("\">Newer</a>\n", out);
	}
	if (page < pages) {
		fputs("<a rel=\"next\" href=\"", out);
		web_archive_put_link(out, "/archive", p->asked->search,
		    page + 1);
		fputs("\">Older</a>\n", out);
	}
	fputs("</nav>\n", out);
	if (more)
		fprintf(out, "<p class=\"dim\">There are more than %u: narrow "
		    "the time, or search for a machine.</p>\n",
		    WEB_ARCHIVE_MOST);
}

static int
put_segments(struct printing *p, const struct selection_found *found,
    bool more)
{
	uint32_t page = p->asked->page;
	struct selection_found these;
	int rc;

	fputs("<section aria-labelledby=\"seg\"><h2 id=\"seg\">Segments</h2>\n",
	    p->out);
	if (found->n == 0) {
		fputs("<p>No segment is as asked for.</p></section>\n",
		    p->out);
		return 0;
	}
	if (page > (found->n - 1) / WEB_ARCHIVE_ROWS + 1)
		page = (uint32_t)((found->n - 1) / WEB_ARCHIVE_ROWS + 1);
	these.ids = found->ids + (size_t)(page - 1) * WEB_ARCHIVE_ROWS;
	these.n = found->n - (size_t)(page - 1) * WEB_ARCHIVE_ROWS;
	if (these.n > WEB_ARCHIVE_ROWS)
		these.n = WEB_ARCHIVE_ROWS;
	web_html_begin_table(p->out, "Segments", columns,
	    sizeof(columns) / sizeof(columns[0]));
	rc = selection_each(p->catalog, &these, row_cb, p, p->err,
	    sizeof(p->err));
	web_html_end_table(p->out);
	put_pager(p, found->n, more, page);
	fputs("</section>\n", p->out);
	return p->failed ? -1 : rc;
}

/* ---- the page ---- */

static bool
sum_cb(void *arg, const struct catalog_row *row)
{
	struct printing *p = arg;

	p->bytes += row->bytes;
	p->stored += row->local ? 0 : 1;
	web_line_span_add(&p->span, row);
	return true;
}

static int
put_found(struct printing *p, const struct selection *s)
{
	struct selection_found found;
	bool more;
	int rc;

	if (selection_run(&found, p->catalog, s, WEB_ARCHIVE_MOST + 1, p->err,
	    sizeof(p->err)) < 0)
		return -1;
	more = found.n > WEB_ARCHIVE_MOST;
	if (more)
		found.n = WEB_ARCHIVE_MOST;
	rc = selection_each(p->catalog, &found, sum_cb, p, p->err,
	    sizeof(p->err));
	if (rc == 0)
		rc = web_archive_line_print(p->out, p->catalog, s, &found,
		    &p->span, p->asked->search, p->err, sizeof(p->err));
	if (rc == 0 && selection_is_set(s))
		put_joined(p, &found);
	if (rc == 0)
		rc = put_segments(p, &found, more);
	selection_found_done(&found);
	return rc;
}

static unsigned
put_results(struct printing *p)
{
	const struct web_archive_place *place = p->asked->place;
	struct selection s;
	int rc;

	if (web_archive_select(&s, place, p->asked->search, p->err,
	    sizeof(p->err)) < 0)
		return BAD;
	p->catalog = web_archive_catalog(place, p->err, sizeof(p->err));
	if (p->catalog == NULL)
		return UNAVAILABLE;
	rc = put_found(p, &s);
	catalog_close(p->catalog);
	return rc == 0 ? OK : UNAVAILABLE;
}

unsigned
web_archive_page_print(FILE *out, const struct web_archive_asked *a)
{
	struct printing p = { .out = out, .asked = a };
	char about[CELL_MAX];
	unsigned status;

	snprintf(about, sizeof(about), "Archive %s", a->place->name);
	web_html_begin_page(out, "Archive", about, 0);
	fputs("<nav><a href=\"/\">Collector</a></nav>\n"
	    "<p id=\"said\" role=\"status\" data-ui=\"", out);
	web_html_text(out, a->ui);
	fputs("\"></p><noscript><p>Without scripts a trace is downloaded, and "
	    "opened in Perfetto&#39;s UI at ", out);
	web_html_text(out, a->ui);
	fputs(".</p></noscript>\n", out);
	put_search(&p);
	status = put_results(&p);
	if (status != OK) {
		fputs("<section class=\"state bad\"><h2>\xe2\x9a\xa0 ", out);
		web_html_text(out, p.err);
		fputs("</h2></section>\n", out);
	}
	fputs("</main>\n<footer><p>tributary-web " TRIBUTARY_VERSION ". Traces "
	    "go into this browser alone; nothing is uploaded.</p></footer>\n"
	    "<script src=\"/archive.js\"></script></body></html>\n", out);
	return status;
}
