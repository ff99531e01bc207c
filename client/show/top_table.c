#include "client/show/top_table.h"

#include <stdlib.h>
#include <string.h>

#include "client/text/text_width.h"
#include "protos/utf8.h"

/* A first column keeps so much. */
#define LEAST_FIRST 6
#define GAP 2

void
top_table_done(struct top_table *t)
{
	free(t->rows);
	t->rows = NULL;
	top_table_clear(t);
}

void
top_table_clear(struct top_table *t)
{
	t->n_rows = 0;
	t->all = 0;
}

struct top_row *
top_table_add(struct top_table *t, double weight)
{
	struct top_row *r, *least;
	size_t i;

	t->all++;
	if (t->rows == NULL &&
	    (t->rows = calloc(TOP_MAX_ROWS, sizeof(*t->rows))) == NULL)
		return NULL;
	if (t->n_rows < TOP_MAX_ROWS) {
		r = &t->rows[t->n_rows++];
	} else {
		least = &t->rows[0];
		for (i = 1; i < t->n_rows; i++)
			if (t->rows[i].weight < least->weight)
				least = &t->rows[i];
		if (least->weight >= weight)
			return NULL;
		r = least;
	}
	memset(r, 0, sizeof(*r));
	r->weight = weight;
	return r;
}

static int
by_weight(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return strcmp(x->cells[0], y->cells[0]);
}

void
top_table_sort(struct top_table *t)
{
	if (t->n_rows > 0)
		qsort(t->rows, t->n_rows, sizeof(*t->rows), by_weight);
}

char *
top_cell(char out[TOP_CELL], const char *text)
{
	if (text == NULL || text[0] == '\0')
		text = "-";
	return utf8_escape(out, TOP_CELL, text, strlen(text), "");
}

static int
width_of(const struct top_table *t, size_t column)
{
	int width = text_width(t->columns[column].title), w;
	size_t i;

	for (i = 0; i < t->n_rows; i++) {
		w = text_width(t->rows[i].cells[column]);
		if (w > width)
			width = w;
	}
	return width;
}

static int
total(const struct top_table *t, const int *widths, const bool *shown)
{
	int sum = 0;
	size_t i;

	for (i = 0; i < t->n_columns; i++)
		if (shown[i])
			sum += widths[i] + (i == 0 ? 0 : GAP);
	return sum;
}

/* Chooses the columns that have room, and their widths. */
static void
fit(const struct top_table *t, int width, int *widths, bool *shown)
{
	size_t i, worst;

	for (i = 0; i < t->n_columns; i++) {
		widths[i] = width_of(t, i);
		shown[i] = true;
	}
	while (width > 0 && total(t, widths, shown) > width) {
		worst = 0;
		for (i = 1; i < t->n_columns; i++)
			if (shown[i] && (worst == 0 || t->columns[i].rank >=
			    t->columns[worst].rank))
				worst = i;
		/* Rather a shorter name than no numbers at all. */
		if (worst == 0 || (t->columns[worst].rank <= 1 &&
		    widths[0] > LEAST_FIRST)) {
			widths[0] -= total(t, widths, shown) - width;
			if (widths[0] < LEAST_FIRST)
				widths[0] = LEAST_FIRST;
			if (worst == 0 || total(t, widths, shown) <= width) {
				if (worst == 0 && widths[0] > width)
					widths[0] = width;
				return;
			}
		}
		shown[worst] = false;
	}
}

/* Text that is cut or filled to width columns. */
static void
put(FILE *out, const char *text, int width, bool right, bool last,
    bool coloured, enum colour c)
{
	size_t n;
	int w;

	n = text_width_fit(text, width, &w);
	if (right)
		fprintf(out, "%*s", width - w, "");
	if (n > 0) {
		fputs(colour_begin(coloured, c), out);
		fwrite(text, 1, n, out);
		fputs(colour_end(coloured, c), out);
	}
	if (!right && !last)
		fprintf(out, "%*s", width - w, "");
}

static void
put_line(FILE *out, const struct top_table *t, const struct top_row *row,
    const int *widths, const bool *shown, const char *end)
{
	size_t i, last = 0;

	for (i = 0; i < t->n_columns; i++)
		if (shown[i])
			last = i;
	for (i = 0; i < t->n_columns; i++) {
		if (!shown[i])
			continue;
		if (i > 0)
			fprintf(out, "%*s", GAP, "");
		put(out, row == NULL ? t->columns[i].title : row->cells[i],
		    widths[i], t->columns[i].right, i == last, t->coloured,
		    row == NULL ? COLOUR_HEADING : row->colours[i]);
	}
	fputs(end, out);
}

size_t
top_table_print(FILE *out, const struct top_table *t, int width,
    size_t max_rows, const char *end)
{
	int widths[TOP_MAX_COLUMNS];
	bool shown[TOP_MAX_COLUMNS];
	char more[TOP_CELL];
	size_t i, n = t->n_rows;

	if (max_rows == 0)
		return 0;
	if (t->all > max_rows || t->all > n)
		n = max_rows - 1 < t->n_rows ? max_rows - 1 : t->n_rows;
	fit(t, width, widths, shown);
	put_line(out, t, NULL, widths, shown, end);
	for (i = 0; i < n; i++)
		put_line(out, t, &t->rows[i], widths, shown, end);
	if (n == t->all)
		return 1 + n;
	snprintf(more, sizeof(more), "... and %zu more", t->all - n);
	put(out, more, width == 0 ? TOP_CELL : width, false, true, t->coloured,
	    COLOUR_DIM);
	fputs(end, out);
	return 2 + n;
}
