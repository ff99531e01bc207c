#include "client/archive/find/find_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/archive/catalog.h"
#include "client/archive/find/segment_details.h"
#include "client/archive/selection.h"
#include "client/text/colour.h"
#include "client/text/text_cell.h"
#include "client/text/time_text.h"
#include "protos/json_out.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"

/* Names in a cell; more of them are counted. */
#define CELL_NAMES 2u
/* Longer names are cut to so many bytes. */
#define NAME_BYTES 101
#define RECORDING_BYTES 201

enum column {
	WHEN, COLLECTOR, MACHINE, RECORDING, SIZE, LOST, TRIGGERS, PATH, COLUMNS
};

struct line {
	char cell[COLUMNS][TEXT_CELL_MAX];
	bool pinned, local;
};

struct printing {
	struct catalog *catalog;
	struct line *lines; /* owned */
	size_t n, room;
	struct json_out json;
	bool failed;
	char *err;
	size_t err_size;
};

/* ---- a table ---- */

/* "kiosk-7, kiosk-8, +3" */
static void
names_text(char out[TEXT_CELL_MAX], const struct detail_names *names)
{
	char name[NAME_BYTES];
	size_t i, len = 0;

	snprintf(out, TEXT_CELL_MAX, "-");
	for (i = 0; i < names->n && i < CELL_NAMES && len < TEXT_CELL_MAX; i++)
		len += (size_t)snprintf(out + len, TEXT_CELL_MAX - len,
		    "%s%s", i == 0 ? "" : ", ",
		    text_cell_cut(names->name[i], name, sizeof(name)));
	if (i < names->n && len < TEXT_CELL_MAX)
		snprintf(out + len, TEXT_CELL_MAX - len, ", +%zu",
		    names->n - i);
}

/* In a shared catalogue a path begins with it. */
static const char *
collector_of(const struct catalog_row *r, char out[TEXT_CELL_MAX])
{
	snprintf(out, TEXT_CELL_MAX, "%.*s", (int)strcspn(r->path, "/"),
	    r->path);
	return out;
}

static void
fill_line(struct line *l, const struct catalog_row *r,
    const struct segment_details *d)
{
	char name[RECORDING_BYTES], number[HUMAN_TEXT_MAX];
	char path[TEXT_CELL_MAX], when[TIME_TEXT_SPAN_MAX];
	const char *recording;

	snprintf(l->cell[WHEN], TEXT_CELL_MAX, "%s", !r->has_wall ? "-" :
	    time_text_span(when, (uint64_t)r->first_ns, (uint64_t)r->last_ns));
	text_cell_plain(collector_of(r, path), l->cell[COLLECTOR]);
	names_text(l->cell[MACHINE], &d->machines);
	names_text(l->cell[TRIGGERS], &d->triggers);
	recording = text_cell_cut(r->recording, name, sizeof(name));
	if (r->number == 0)
		snprintf(l->cell[RECORDING], TEXT_CELL_MAX, "%s", recording);
	else
		snprintf(l->cell[RECORDING], TEXT_CELL_MAX, "%s %" PRIu32,
		    recording, r->number);
	snprintf(l->cell[SIZE], TEXT_CELL_MAX, "%s", human_bytes(number,
	    r->bytes));
	snprintf(l->cell[LOST], TEXT_CELL_MAX, "%s", r->lost == 0 ? "-" :
	    human_count(number, r->lost));
	snprintf(l->cell[PATH], TEXT_CELL_MAX, "%s", text_cell_plain(r->path,
	    path));
	l->pinned = r->pinned;
	l->local = r->local;
}

static bool
line_cb(void *arg, const struct catalog_row *row)
{
	struct printing *p = arg;
	struct segment_details d;

	if (p->n == p->room)
		return false;
	if (segment_details_read(&d, p->catalog, row->id, p->err,
	    p->err_size) < 0) {
		p->failed = true;
		return false;
	}
	fill_line(&p->lines[p->n++], row, &d);
	segment_details_done(&d);
	return true;
}

static enum colour
colour_of(enum column k, const char *cell)
{
	if (strcmp(cell, "-") == 0)
		return COLOUR_NONE;
	return k == LOST ? COLOUR_BAD : k == TRIGGERS ? COLOUR_WARNING :
	    COLOUR_NONE;
}

static void
put_line(FILE *out, const struct line *l, const int *width, bool coloured)
{
	size_t k;

	for (k = 0; k < PATH; k++)
		if (width[k] > 0)
			text_cell_put_in(out, l->cell[k], width[k],
			    coloured, colour_of(k, l->cell[k]));
	fputs(l->cell[PATH], out);
	if (l->pinned)
		colour_put(out, coloured, COLOUR_GOOD, " (pinned)");
	if (!l->local)
		colour_put(out, coloured, COLOUR_DIM, " (in the store)");
	fputc('\n', out);
}

static void
put_lines(FILE *out, const struct printing *p)
{
	static const char *const names[COLUMNS] = { "WHEN", "COLLECTOR",
		"MACHINE", "RECORDING", "SIZE", "LOST", "TRIGGERS", "PATH" };
	bool coloured = colour_is_on(out);
	int width[COLUMNS];
	size_t i, k;

	for (k = 0; k < COLUMNS; k++) {
		width[k] = (int)strlen(names[k]);
		for (i = 0; i < p->n; i++)
			width[k] = text_cell_widen(width[k],
			    p->lines[i].cell[k]);
	}
	/* A folder has the segments of one: no such column. */
	if (!catalog_is_shared(p->catalog))
		width[COLLECTOR] = 0;
	for (k = 0; k < PATH; k++)
		if (width[k] > 0)
			text_cell_put_in(out, names[k], width[k], coloured,
			    COLOUR_HEADING);
	colour_put(out, coloured, COLOUR_HEADING, names[PATH]);
	fputc('\n', out);
	for (i = 0; i < p->n; i++)
		put_line(out, &p->lines[i], width, coloured);
}

int
find_text_table(FILE *out, struct catalog *c,
    const struct selection_found *found, char *err, size_t err_size)
{
	struct printing p = { .catalog = c, .room = found->n, .err = err,
		.err_size = err_size };
	int rc;

	if ((p.lines = calloc(found->n + 1, sizeof(*p.lines))) == NULL)
		return FAILURE(err, err_size, "out of memory");
	rc = selection_each(c, found, line_cb, &p, err, err_size);
	if (rc == 0 && p.failed)
		rc = -1;
	if (rc == 0)
		put_lines(out, &p);
	free(p.lines);
	return rc;
}

/* ---- JSON ---- */

static void
put_time(struct json_out *j, const char *key, int64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	char text[64];
	struct tm tm;
	size_t n;

	if (gmtime_r(&seconds, &tm) == NULL ||
	    (n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm)) == 0)
		return;
	snprintf(text + n, sizeof(text) - n, ".%09" PRId64 "Z",
	    ns % 1000000000);
	json_string(j, key, text);
}

static void
put_stored(struct json_out *j, const struct catalog_stored *s)
{
	if (s->state == NULL)
		return;
	json_object(j, "stored");
	json_string(j, "state", s->state);
	json_string(j, "url", s->url);
	json_object_end(j);
}

static void
put_segment(struct json_out *j, const struct catalog_row *r,
    const struct segment_details *d, bool shared)
{
	char collector[TEXT_CELL_MAX];

	json_object(j, NULL);
	json_string(j, "path", r->path);
	if (shared)
		json_string(j, "collector", collector_of(r, collector));
	json_uint(j, "bytes", r->bytes);
	json_string(j, "recording", r->recording);
	if (r->number != 0)
		json_uint(j, "number", r->number);
	if (r->machine[0] != '\0')
		json_string(j, "machine", r->machine);
	json_strings(j, "machines", d->machines.name, d->machines.n);
	if (r->has_wall) {
		json_int(j, "first_ns", r->first_ns);
		json_int(j, "last_ns", r->last_ns);
		put_time(j, "first", r->first_ns);
		put_time(j, "last", r->last_ns);
	}
	json_uint(j, "packets", r->packets);
	json_uint(j, "lost", r->lost);
	json_strings(j, "losses", d->losses.name, d->losses.n);
	json_strings(j, "triggers", d->triggers.name, d->triggers.n);
	json_string(j, "verdict", r->verdict);
	json_bool(j, "pinned", r->pinned);
	json_bool(j, "local", r->local);
	put_stored(j, &r->stored);
	json_object_end(j);
}

static bool
json_cb(void *arg, const struct catalog_row *row)
{
	struct printing *p = arg;
	struct segment_details d;

	if (segment_details_read(&d, p->catalog, row->id, p->err,
	    p->err_size) < 0) {
		p->failed = true;
		return false;
	}
	put_segment(&p->json, row, &d, catalog_is_shared(p->catalog));
	segment_details_done(&d);
	return true;
}

int
find_text_json(FILE *out, struct catalog *c, const char *folder,
    const struct selection_found *found, bool more, char *err, size_t err_size)
{
	struct printing p = { .catalog = c, .json = { .out = out,
		.row = "\n  " }, .err = err, .err_size = err_size };

	json_object(&p.json, NULL);
	json_string(&p.json, "archive", folder);
	json_array(&p.json, "segments");
	if (selection_each(c, found, json_cb, &p, err, err_size) < 0 ||
	    p.failed)
		return -1;
	json_array_end(&p.json);
	json_bool(&p.json, "more", more);
	json_object_end(&p.json);
	fputc('\n', out);
	return 0;
}
