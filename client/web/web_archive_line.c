#include "client/web/web_archive_line.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/archive/catalog.h"
#include "client/archive/selection.h"
#include "client/text/time_text.h"
#include "client/web/web_archive_page.h"
#include "client/web/web_html.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"

/* Cells of a line, and the cells of a link, which goes nearer. */
#define CELLS  300u
#define LINKED 10u
#define HEIGHT 14u
/* Segments of one question, and the bytes of a number of one. */
#define CHUNK    256u
#define ID_BYTES 24u
/* Rows of the catalogue that are read for one page. */
#define ROWS_MAX 20000u
#define NAME_MAX_BYTES 128u

enum mark {
	HAVE = 1,   /* data that is here */
	STORED = 2, /* data that is in the store alone */
	LOST = 4,
	TRIGGER = 8,
};

struct line {
	char name[NAME_MAX_BYTES], collector[NAME_MAX_BYTES];
	uint8_t cells[CELLS];
	unsigned segments, lossy, triggers;
};

struct lines {
	struct catalog *catalog;
	const struct selection *select;
	struct line *all; /* owned; WEB_LINE_MACHINES */
	size_t n;
	bool more, cut; /* other machines; older segments that found no room */
	int64_t low, high;
	size_t rows;
	bool failed;
	char *err;
	size_t err_size;
};

/* ---- what is read ---- */

/* A catalogue that is not ours may have any numbers. */
static bool
has_time(const struct catalog_row *row)
{
	return row->has_wall && row->first_ns >= 0 &&
	    row->last_ns >= row->first_ns;
}

void
web_line_span_add(struct web_line_span *span, const struct catalog_row *row)
{
	if (!has_time(row))
		return;
	if (!span->any || row->first_ns < span->low)
		span->low = row->first_ns;
	if (!span->any || row->last_ns > span->high)
		span->high = row->last_ns;
	span->any = true;
}

/* Narrows the lines to the time that is asked for. */
static void
narrow(struct lines *l)
{
	const struct selection *s = l->select;

	if (s->has_time && s->from_ns > l->low && s->from_ns < l->high)
		l->low = s->from_ns;
	if (s->has_time && s->to_ns < l->high && s->to_ns > l->low)
		l->high = s->to_ns;
}

static size_t
cell_of(const struct lines *l, int64_t at)
{
	double part;

	if (at <= l->low)
		return 0;
	if (at >= l->high)
		return CELLS - 1;
	part = (double)(at - l->low) / (double)(l->high - l->low);
	return (size_t)(part * (CELLS - 1) + 0.5);
}

/*
 * NULL: there is no room for another machine.  collector: of the machine, where
 * its name alone does not say which one it is; or "".
 */
static struct line *
line_of(struct lines *l, const char *name, const char *collector)
{
	struct line *line;
	size_t i;

	for (i = 0; i < l->n; i++)
		if (strncmp(l->all[i].name, name, NAME_MAX_BYTES - 1) == 0 &&
		    strncmp(l->all[i].collector, collector,
		    NAME_MAX_BYTES - 1) == 0)
			return &l->all[i];
	if (l->n == WEB_LINE_MACHINES) {
		l->more = true;
		return NULL;
	}
	line = &l->all[l->n++];
	snprintf(line->name, NAME_MAX_BYTES, "%s", name);
	snprintf(line->collector, NAME_MAX_BYTES, "%s", collector);
	return line;
}

/* SQL about the segments ids[0] to ids[n - 1], for which it has "%s". */
static struct catalog_statement *
ask(struct lines *l, const char *sql, const int64_t *ids, size_t n)
{
	char list[CHUNK * ID_BYTES], *text;
	struct catalog_statement *s = NULL;
	size_t i, len = 0;

	for (i = 0; i < n; i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len,
		    "%s%" PRId64, i == 0 ? "" : ",", ids[i]);
	if (asprintf(&text, sql, list) < 0) {
		snprintf(l->err, l->err_size, "no memory");
	} else {
		s = catalog_compile(l->catalog, text, l->err, l->err_size);
		free(text);
	}
	l->failed = l->failed || s == NULL;
	return s;
}

/* Whether there is a row more that may be read. */
static bool
step(struct lines *l, struct catalog_statement *s)
{
	int rc;

	if (l->rows >= ROWS_MAX) {
		l->cut = true;
		return false;
	}
	l->rows++;
	rc = catalog_step(l->catalog, s, l->err, l->err_size);
	l->failed = l->failed || rc < 0;
	return rc == 1;
}

/* The line of a row that begins with a machine and the path of its segment. */
static struct line *
line_of_row(struct lines *l, struct catalog_statement *s)
{
	const char *name = catalog_text(s, 0), *path = catalog_text(s, 1);
	char collector[NAME_MAX_BYTES] = "";

	/* Each collector calls its own machine so. */
	if (catalog_is_shared(l->catalog) && name != NULL && path != NULL &&
	    strcmp(name, "host") == 0)
		snprintf(collector, sizeof(collector), "%.*s",
		    (int)strcspn(path, "/"), path);
	return line_of(l, name == NULL ? "" : name, collector);
}

/* A catalogue that is not ours may have any times. */
#define TIMES " AND s.first_ns >= 0 AND s.last_ns >= s.first_ns"

static void
add_machines(struct lines *l, const int64_t *ids, size_t n)
{
	struct catalog_statement *s = ask(l, "SELECT m.name, s.path, "
	    "coalesce(m.first_ns, s.first_ns), coalesce(m.last_ns, s.last_ns), "
	    "EXISTS (SELECT 1 FROM losses AS x WHERE x.segment = m.segment AND "
	    "(x.machine_id IS NULL OR x.machine_id = m.id)), s.local "
	    "FROM machines AS m JOIN segments AS s ON s.id = m.segment "
	    "WHERE m.segment IN (%s) AND m.packets > 0" TIMES, ids, n);
	enum mark here;
	struct line *line;
	size_t i, last;
	bool lost;

	while (s != NULL && step(l, s)) {
		line = line_of_row(l, s);
		if (line == NULL || catalog_int(s, 3) < l->low ||
		    catalog_int(s, 2) > l->high)
			continue;
		/* A shared catalogue has no other place than the store. */
		here = catalog_int(s, 5) != 0 ||
		    catalog_is_shared(l->catalog) ? HAVE : STORED;
		lost = catalog_int(s, 4) != 0;
		line->segments++;
		line->lossy += lost ? 1 : 0;
		last = cell_of(l, catalog_int(s, 3));
		for (i = cell_of(l, catalog_int(s, 2)); i <= last; i++)
			line->cells[i] |= (uint8_t)(here | (lost ? LOST : 0));
	}
	catalog_finish(s);
}

static void
add_triggers(struct lines *l, const int64_t *ids, size_t n)
{
	struct catalog_statement *s = ask(l, "SELECT m.name, s.path, t.at_ns "
	    "FROM triggers AS t JOIN segments AS s ON s.id = t.segment "
	    "JOIN machines AS m ON m.segment = t.segment AND m.id = "
	    "t.machine_id WHERE t.segment IN (%s) AND t.at_ns IS NOT NULL"
	    TIMES, ids, n);
	struct line *line;
	int64_t at;

	while (s != NULL && step(l, s)) {
		at = catalog_int(s, 2);
		line = line_of_row(l, s);
		if (line == NULL || at < l->low || at > l->high)
			continue;
		line->triggers++;
		line->cells[cell_of(l, at)] |= TRIGGER;
	}
	catalog_finish(s);
}

/* The newest segments are the first. */
static int
read_lines(struct lines *l, const struct selection_found *found)
{
	size_t i, n;

	for (i = 0; i < found->n && !l->failed && !l->cut; i += n) {
		n = found->n - i < CHUNK ? found->n - i : CHUNK;
		add_machines(l, found->ids + i, n);
		if (!l->failed)
			add_triggers(l, found->ids + i, n);
	}
	return l->failed ? -1 : 0;
}

static int
compare_lines(const void *left, const void *right)
{
	const struct line *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	return order != 0 ? order : strcmp(a->collector, b->collector);
}

/* ---- what is drawn ---- */

static void
put_runs(FILE *out, const struct line *line, enum mark mark, const char *class)
{
	size_t i, begin;

	for (i = 0; i < CELLS; i++) {
		if ((line->cells[i] & mark) == 0)
			continue;
		begin = i;
		while (i < CELLS && (line->cells[i] & mark) != 0)
			i++;
		fprintf(out, "<rect class=\"%s\" x=\"%zu\" y=\"%u\" "
		    "width=\"%zu\" height=\"%u\"/>", class, begin,
		    mark == LOST ? HEIGHT - 5 : 0, i - begin, mark == LOST ?
		    5 : HEIGHT);
	}
}

/* In seconds. */
static double
time_of(const struct lines *l, size_t cell)
{
	return ((double)l->low + (double)(l->high - l->low) *
	    ((double)cell / CELLS)) / 1e9;
}

static void
search_for(struct web_search *q, const struct line *line)
{
	snprintf(q->machine, sizeof(q->machine), "%s", line->name);
	if (line->collector[0] != '\0')
		snprintf(q->collector, sizeof(q->collector), "%s",
		    line->collector);
}

/* Links that go nearer, without a stop for the tabulator at each. */
static void
put_links(FILE *out, const struct lines *l, const struct line *line,
    const struct web_search *q)
{
	struct web_search near = *q;
	size_t i, k;
	unsigned any;

	search_for(&near, line);
	near.at[0] = near.around[0] = '\0';
	for (i = 0; i < CELLS; i += LINKED) {
		for (any = 0, k = i; k < i + LINKED; k++)
			any |= line->cells[k];
		if (any == 0)
			continue;
		snprintf(near.from, sizeof(near.from), "@%.3f",
		    time_of(l, i));
		snprintf(near.to, sizeof(near.to), "@%.3f",
		    time_of(l, i + LINKED));
		fputs("<a tabindex=\"-1\" href=\"", out);
		web_archive_put_link(out, "/archive", &near, 1);
		fprintf(out, "\"><rect class=\"near\" x=\"%zu\" y=\"0\" "
		    "width=\"%u\" height=\"%u\"/></a>", i, LINKED, HEIGHT);
	}
}

static void
put_line(FILE *out, const struct lines *l, const struct line *line,
    const struct web_search *q)
{
	struct web_search only = *q;

	search_for(&only, line);
	fputs("<div class=\"row\"><a href=\"", out);
	web_archive_put_link(out, "/archive", &only, 1);
	fputs("\">", out);
	web_html_text(out, line->name[0] != '\0' ? line->name : "(no name)");
	if (line->collector[0] != '\0') {
		fputs(" of ", out);
		web_html_text(out, line->collector);
	}
	fprintf(out, "</a><svg viewBox=\"0 0 %u %u\" preserveAspectRatio="
	    "\"none\" role=\"img\" aria-label=\"%u segment%s, %u with losses, "
	    "%u trigger%s\">", CELLS, HEIGHT, line->segments,
	    human_s(line->segments), line->lossy, line->triggers,
	    human_s(line->triggers));
	put_runs(out, line, HAVE, "have");
	put_runs(out, line, STORED, "stored");
	put_runs(out, line, LOST, "lost");
	put_runs(out, line, TRIGGER, "trigger");
	put_links(out, l, line, q);
	fprintf(out, "</svg><span class=\"said\">%u segment%s%s</span></div>\n",
	    line->segments, human_s(line->segments), line->lossy > 0 ?
	    ", \xe2\x9a\xa0 losses" : "");
}

static void
put_lines(FILE *out, struct lines *l, const struct web_search *q)
{
	char low[HUMAN_TEXT_MAX], high[HUMAN_TEXT_MAX];
	size_t i;

	qsort(l->all, l->n, sizeof(*l->all), compare_lines);
	fputs("<section aria-labelledby=\"line\"><h2 id=\"line\">Time line</h2>"
	    "<p class=\"key\"><span class=\"have\">data</span><span class="
	    "\"stored\">in the store alone</span><span class=\"lost\">something "
	    "was lost</span><span class=\"trigger\">trigger</span></p>"
	    "<div class=\"lines\">\n", out);
	for (i = 0; i < l->n; i++)
		put_line(out, l, &l->all[i], q);
	fprintf(out, "</div><p class=\"axis\"><span>%s</span><span>%s</span>"
	    "</p>\n", time_text_at(low, (uint64_t)l->low),
	    time_text_at(high, (uint64_t)l->high));
	if (l->more)
		fprintf(out, "<p class=\"dim\">These are %u machines; there "
		    "are more: search for one.</p>\n", WEB_LINE_MACHINES);
	if (l->cut)
		fputs("<p class=\"dim\">Older segments found no room here: "
		    "narrow the time, or search for a machine.</p>\n", out);
	fputs("</section>\n", out);
}

int
web_archive_line_print(FILE *out, struct catalog *c, const struct selection *s,
    const struct selection_found *found, const struct web_line_span *span,
    const struct web_search *q, char *err, size_t err_size)
{
	struct lines l = { .catalog = c, .select = s, .low = span->low,
		.high = span->high, .err = err, .err_size = err_size };
	int rc;

	if (!span->any)
		return 0;
	if ((l.all = calloc(WEB_LINE_MACHINES, sizeof(*l.all))) == NULL)
		return FAILURE(err, err_size, "no memory");
	narrow(&l);
	rc = read_lines(&l, found);
	if (rc == 0 && l.n > 0)
		put_lines(out, &l, q);
	free(l.all);
	return rc;
}
